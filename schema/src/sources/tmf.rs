//! WPP trace message format files (TMF): the messages that a driver's PDB yields.
//!
//! ```text
//! 01020304-0506-0708-090a-0b0c0d0e0f10 driver // SRC=driver.c
//! #typev driver_c42 10 "%0read %10!d! bytes from %11!s!" //   LEVEL=INFO FLAGS=IO FUNC=Read
//! {
//! length, ItemLong -- 10
//! name, ItemWString -- 11
//! }
//! ```
//!
//! All other lines are skipped, as other tools skip them.

use crate::Error;
use crate::model::{
    EventSchema, Field, Identity, InType, Length, MapEntry, MapKind, OutType, SchemaSource,
    ValueMap,
};
use etl_format::Guid;
use std::sync::Arc;

/// The contents of a TMF file.
#[derive(Debug, Clone, PartialEq)]
pub struct Tmf {
    /// Its messages. Their provider is the message GUID, their identity the number.
    pub schemas: Vec<EventSchema>,
    /// Arguments of unknown types, and messages that no record can have.
    pub notes: Vec<TmfNote>,
}

/// A remark on a line of a TMF file. Lines are numbered from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TmfNote {
    /// An argument of an unknown type. Its size is unknown too, so it is read as the rest of the
    /// payload.
    UnknownType {
        /// Number of the line.
        line: usize,
        /// The type.
        item: String,
    },
    /// A message with a number that no record can have, because records store 16 bits of it. The
    /// message is left out.
    MessageNumber {
        /// Number of the line.
        line: usize,
        /// The number of the message.
        number: u64,
    },
}

/// The messages of a TMF file.
///
/// ```
/// use etl_schema::Identity;
/// use etl_schema::sources::tmf;
///
/// let text = r#"
/// 12345678-1234-1234-1234-123456789abc driver // SRC=io.c MJ= MN=
/// #typev io_c42 10 "%0read %10!d! bytes" // LEVEL=INFO FLAGS=READ
/// {
/// count, ItemLong -- 10
/// }
/// "#;
/// let tmf = tmf::parse(text)?;
/// assert_eq!(tmf.schemas[0].identity, Identity::Message { number: 10 });
/// assert_eq!(tmf.schemas[0].fields[0].name, "count");
/// # Ok::<(), etl_schema::Error>(())
/// ```
///
/// # Errors
/// The first line that is invalid. An unknown type is not an error: see [`Tmf::notes`].
pub fn parse(text: &str) -> Result<Tmf, Error> {
    parse_within(text, usize::MAX)
}

/// As [`parse`], but refuses messages that need more than about `max_bytes` bytes of memory.
///
/// ```
/// use etl_schema::sources::tmf;
///
/// let mut text = "12345678-1234-1234-1234-123456789abc driver // SRC=io.c\n".to_owned();
/// for number in 10..1_010 {
///     text += &format!("#typev io_c42 {number} \"text\" // LEVEL=INFO\n{{\n}}\n");
/// }
/// assert_eq!(tmf::parse_within(&text, 1 << 20)?.schemas.len(), 1_000);
/// assert!(tmf::parse_within(&text, 1 << 16).is_err());
/// # Ok::<(), etl_schema::Error>(())
/// ```
///
/// # Errors
/// As [`parse`]; [`Error::TmfTooBig`] with the line of the message that needs too much.
pub fn parse_within(text: &str, max_bytes: usize) -> Result<Tmf, Error> {
    let mut out = Tmf {
        schemas: Vec::new(),
        notes: Vec::new(),
    };
    let mut memory = Memory {
        used: 0,
        max: max_bytes,
    };
    let mut source: Option<Source> = None;
    // The last message, whose arguments may follow.
    let mut message: Option<Message> = None;
    let mut block = Block::None;
    for (index, raw) in text.lines().enumerate() {
        let number = index + 1;
        let line = raw.trim_start_matches('\u{feff}').trim();
        match block {
            Block::None => {}
            Block::Arguments if line == "}" => {
                block = Block::None;
                out.schemas.extend(message.take().map(Message::finish));
                continue;
            }
            Block::Arguments => {
                if let Some(message) = &mut message {
                    let note = add_argument(message, line, number, &mut memory)?;
                    out.notes.extend(note);
                }
                continue;
            }
            Block::Other => {
                if line == "}" {
                    block = Block::None;
                }
                continue;
            }
        }
        if let Some(rest) = line.strip_prefix("#type") {
            out.schemas.extend(message.take().map(Message::finish));
            let expected = "a line with the message GUID before";
            let source = source.as_ref().ok_or(Error::Tmf {
                line: number,
                expected,
            })?;
            // `#typev` says that the arguments follow; older tools wrote `#type`.
            let rest = rest.trim_start_matches(char::is_alphanumeric);
            if let Some(large) = large_number(rest) {
                out.notes.push(TmfNote::MessageNumber {
                    line: number,
                    number: large,
                });
                continue;
            }
            let expected = "#typev NAME NUMBER \"FORMAT\" // LEVEL=... FLAGS=...";
            let parsed = Message::parse(source, rest).ok_or(Error::Tmf {
                line: number,
                expected,
            })?;
            memory.add(parsed.bytes(), number)?;
            message = Some(parsed);
        } else if line == "{" {
            block = if message.is_some() {
                Block::Arguments
            } else {
                Block::Other
            };
        } else if let Some((guid, rest)) = line.split_once(' ')
            && let Ok(guid) = guid.parse()
        {
            source = Some(Source::parse(guid, rest));
        }
    }
    out.schemas.extend(message.map(Message::finish));
    if out.schemas.is_empty() {
        Err(Error::NoMessage)
    } else {
        Ok(out)
    }
}

/// Adds the argument in a line to the message before it. Returns a note if its type is not known.
fn add_argument(
    message: &mut Message,
    line: &str,
    number: usize,
    memory: &mut Memory,
) -> Result<Option<TmfNote>, Error> {
    let expected = "ARGUMENT, ItemTYPE -- NUMBER";
    let argument = argument(line).ok_or(Error::Tmf {
        line: number,
        expected,
    })?;
    memory.add(argument.bytes(), number)?;
    let unknown = message.add(argument);
    Ok(unknown.map(|item| TmfNote::UnknownType { line: number, item }))
}

/// The memory for the messages.
struct Memory {
    /// About the bytes of the messages so far.
    used: usize,
    /// The allowed bytes.
    max: usize,
}

impl Memory {
    fn add(&mut self, bytes: usize, line: usize) -> Result<(), Error> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.max {
            return Ok(());
        }
        Err(Error::TmfTooBig {
            line,
            max: self.max,
        })
    }
}

/// The number of the message in `NAME NUMBER ...`, if it has more than 16 bits.
fn large_number(rest: &str) -> Option<u64> {
    let mut words = rest.split_whitespace();
    let number = words.nth(1)?.parse().ok()?;
    (number > u64::from(u16::MAX)).then_some(number)
}

/// The lines between braces that a line is one of.
#[derive(Clone, Copy)]
enum Block {
    None,
    /// The arguments of a message.
    Arguments,
    /// The values of an enumeration, for example.
    Other,
}

/// A line that begins with a message GUID: one source file of a component.
struct Source {
    guid: Guid,
    /// The friendly name: the name of the directory, or a name from the build.
    name: String,
    /// The replacement of `%!COMPNAME!`.
    component: String,
    /// The replacement of `%!SUBCOMP!`.
    subcomponent: String,
}

impl Source {
    /// `NAME // SRC=FILE MJ=COMPONENT MN=SUBCOMPONENT`
    fn parse(guid: Guid, rest: &str) -> Self {
        let (name, comment) = rest.split_once("//").unwrap_or((rest, ""));
        Source {
            guid,
            name: name.trim().chars().take(MAX_NAME).collect(),
            component: value_of(comment, "MJ="),
            subcomponent: value_of(comment, "MN="),
        }
    }
}

/// The value of a key in a comment; empty if the comment does not have it.
fn value_of(comment: &str, key: &str) -> String {
    let value = comment
        .split_whitespace()
        .find_map(|word| word.strip_prefix(key));
    value.unwrap_or_default().to_owned()
}

/// A message while its arguments are read.
struct Message {
    schema: EventSchema,
    format: String,
    /// The number of each field in the format.
    numbers: Vec<u32>,
    /// Whether an argument takes the rest of the payload.
    closed: bool,
}

impl Message {
    /// `NAME NUMBER "FORMAT" // LEVEL=... FLAGS=... FUNC=...`
    fn parse(source: &Source, rest: &str) -> Option<Self> {
        let (name, rest) = rest.trim_start().split_once(' ')?;
        let (number, rest) = rest.trim_start().split_once(' ')?;
        let number = number.parse().ok()?;
        let format = rest.trim_start().strip_prefix('"')?;
        let end = format.rfind("\" //").or_else(|| format.rfind('"'))?;
        let (format, comment) = format.split_at_checked(end)?;
        let mut schema =
            EventSchema::new(source.guid, Identity::Message { number }, SchemaSource::Tmf);
        schema.provider_name = source.name.clone().into();
        schema.name = name.to_owned().into();
        for word in comment.split_whitespace() {
            match word.split_once('=') {
                Some(("LEVEL", level)) => schema.level.name = level.to_owned().into(),
                Some(("FLAGS", flags)) => schema.keyword_names.push(flags.to_owned().into()),
                Some(("FUNC", function)) => schema.task.name = function.to_owned().into(),
                _ => {}
            }
        }
        let format = known_words(format, &schema, source);
        Some(Message {
            schema,
            format,
            numbers: Vec::new(),
            closed: false,
        })
    }

    /// About the bytes that it needs, without its arguments. Lists that grow have twice the bytes,
    /// and a store has some bytes for each schema.
    fn bytes(&self) -> usize {
        let mut bytes = 2 * size_of::<EventSchema>() + STORED + 2 * self.format.len();
        let schema = &self.schema;
        for name in [&schema.name, &schema.provider_name, &schema.level.name] {
            bytes += name.len();
        }
        bytes += schema.task.name.len();
        for name in &schema.keyword_names {
            bytes += name.len();
        }
        bytes
    }

    /// Adds an argument; returns its type if that is unknown.
    fn add(&mut self, argument: Argument) -> Option<String> {
        let Argument {
            number,
            field,
            unknown,
        } = argument;
        if let Some(field) = field
            && !self.closed
            && self.numbers.len() < MAX_ARGUMENTS
        {
            self.schema.fields.push(field);
            self.numbers.push(number);
            self.closed = unknown.is_some();
        }
        unknown
    }

    fn finish(mut self) -> EventSchema {
        self.schema.message = Some(numbered(&self.format, &self.numbers).into());
        self.schema
    }
}

/// A format whose inserts have the numbers of the fields, from 10 on without gaps. The numbers of
/// the arguments have gaps for arguments without bytes. An insert of an argument without a field is
/// escaped, so that it is shown as text.
fn numbered(format: &str, numbers: &[u32]) -> String {
    let mut out = String::with_capacity(format.len());
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).take(3).count();
        let (number, mut text) = after.split_at_checked(digits).unwrap_or_default();
        match number.parse::<u32>() {
            Ok(number @ 10..) => match numbers.iter().position(|n| *n == number) {
                Some(index) => out.push_str(&format!("%{}", index + 10)),
                None => out.push_str(&format!("%%{number}")),
            },
            _ => {
                out.push('%');
                out.push_str(number);
                // The next character, even a `%`, does not begin another insert.
                let next = text
                    .chars()
                    .next()
                    .filter(|_| digits == 0)
                    .map_or(0, char::len_utf8);
                let (taken, left) = text.split_at_checked(next).unwrap_or_default();
                out.push_str(taken);
                text = left;
            }
        }
        rest = text;
    }
    out.push_str(rest);
    out
}

/// Bytes of a schema in a store: its decoder, and the places in its tables.
const STORED: usize = 256;

/// Values of an enumeration. Real ones have fewer than 1,000.
const MAX_VALUES: usize = 1 << 16;

/// Bytes by which a message may grow for each of its words.
const MAX_GROWTH: usize = 1 << 14;

/// Longest name of a provider, in characters.
const MAX_NAME: usize = 256;

/// Arguments of one message. Real messages have fewer than 100.
const MAX_ARGUMENTS: usize = 1024;

/// A format in which `%!FUNC!` and similar words are replaced by the properties of the message.
fn known_words(format: &str, schema: &EventSchema, source: &Source) -> String {
    let flags = schema.keyword_names.first().map_or("", |name| &**name);
    let mut text = format.to_owned();
    for (word, value) in [
        ("%!FUNC!", &*schema.task.name),
        ("%!LEVEL!", &*schema.level.name),
        ("%!FLAGS!", flags),
        ("%!COMPNAME!", &*source.component),
        ("%!SUBCOMP!", &*source.subcomponent),
        ("%!FILE!", &*schema.name),
    ] {
        let value = value.replace('%', "%%");
        // A word that would make the message too long is not replaced.
        let grown = text.matches(word).count().saturating_mul(value.len());
        if grown <= MAX_GROWTH {
            text = text.replace(word, &value);
        }
    }
    // The place of the prefix that a formatter writes before every message.
    text.replace("%!STDPREFIX!", "%0")
}

/// A line between the braces of a message.
struct Argument {
    number: u32,
    /// `None` for an argument that has no bytes in the trace.
    field: Option<Field>,
    /// Its type, if that is unknown.
    unknown: Option<String>,
}

impl Argument {
    /// About the bytes that it needs.
    fn bytes(&self) -> usize {
        let Some(field) = &self.field else {
            return 0;
        };
        let mut bytes = 2 * size_of::<Field>() + field.name.len();
        if let Some(map) = &field.map {
            for entry in map.entries() {
                bytes += 2 * size_of::<MapEntry>() + entry.name.len();
            }
        }
        bytes
    }
}

/// `NAME, ItemTYPE -- NUMBER`
fn argument(line: &str) -> Option<Argument> {
    let (front, number) = line.rsplit_once("--")?;
    let number = number.trim().parse().ok()?;
    let comma = front.rfind(", Item")?;
    let name = front.get(..comma)?.trim();
    let item = front.get(comma + 2..)?.trim();
    if let Some(field) = field(name, item) {
        return Some(Argument {
            number,
            field,
            unknown: None,
        });
    }
    let rest = Field::new(name.to_owned(), InType::Binary).with_length(Length::Rest);
    Some(Argument {
        number,
        field: Some(rest),
        unknown: Some(item.to_owned()),
    })
}

/// The field of an argument, unless the argument has no bytes; `None` for an unknown type.
fn field(name: &str, whole: &str) -> Option<Option<Field>> {
    let (ty, list) = match whole.split_once('(') {
        Some((ty, list)) => (ty, list.trim_end().trim_end_matches(')')),
        None => (whole, ""),
    };
    let mut words = TYPES.lines().map(|line| line.split(' '));
    let mut row = words.find(|row| row.clone().next() == ty.strip_prefix("Item"))?;
    row.next();
    let Some(ty) = row.next().and_then(InType::from_name) else {
        return Some(None);
    };
    let mut field = Field::new(name.to_owned(), ty);
    match row.next() {
        Some("counted") => field.length = Length::U16,
        Some("values") => field.map = Some(map(list, MapKind::Values)),
        Some("bits") => field.map = Some(map(list, MapKind::Bits)),
        Some(word) => match word.parse() {
            Ok(bytes) => field.length = Length::Fixed(bytes),
            Err(_) => field.out = OutType::from_name(word).unwrap_or(OutType::Default),
        },
        None => {}
    }
    if let Some(out) = row.next().and_then(OutType::from_name) {
        field.out = out;
    }
    Some(Some(field))
}

/// The types of arguments without `Item`: the in-type; `counted`, `values`, `bits` or a length in
/// bytes; the out-type. The names of the values of `Enum` and `FlagsEnum` are in the PDB.
const TYPES: &str = include_str!("../../tables/tmf-types.txt");

/// A map of names: of 0, 1, 2 ... or of bit 0, 1, 2 ... A name can state its number (`NAME=5`); the
/// names after it continue from there.
fn map(list: &str, kind: MapKind) -> Arc<ValueMap> {
    let mut entries = Vec::new();
    let mut next = 0u64;
    for name in list.split(',').take(MAX_VALUES) {
        let (name, number) = match name.split_once('=') {
            Some((name, number)) => (name, super::number(number)),
            None => (name, None),
        };
        let number = number.unwrap_or(next);
        next = number.saturating_add(1);
        let value = match kind {
            MapKind::Values => Some(number),
            MapKind::Patterns => None,
            MapKind::Bits => u32::try_from(number)
                .ok()
                .and_then(|bit| 1u64.checked_shl(bit)),
        };
        if let Some(value) = value {
            entries.push(MapEntry {
                value,
                name: name.trim().to_owned().into(),
            });
        }
    }
    Arc::new(ValueMap::new("", kind, entries))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decoder;
    use crate::render::Renderer;
    use etl_format::constants::PointerSize;

    const TMF: &str = "// PDB:  driver.pdb\n\
        01020304-0506-0708-090a-0b0c0d0e0f10 driver // SRC=driver.c MJ= MN=\n\
        #typev driver_c42 10 \"%0read %10!d! \"quoted\" from %11!s!\" //   LEVEL=INFO FLAGS=IO FUNC=Read\n\
        {\nlength, ItemLong -- 10\nx ? a, b : c, ItemWString -- 11\nmode, ItemListByte(off,on) -- 12\n}\n\
        #typev driver_c50 11 \"%0done\" //   LEVEL=INFO\n{\n}\n";

    #[test]
    fn parse_reads_messages_and_arguments() {
        let schemas = parse(TMF).unwrap().schemas;
        assert_eq!(schemas.len(), 2);
        let first = &schemas[0];
        assert_eq!(first.identity, Identity::Message { number: 10 });
        assert_eq!(
            first.message.as_deref(),
            Some("%0read %10!d! \"quoted\" from %11!s!")
        );
        assert_eq!((&*first.level.name, &*first.task.name), ("INFO", "Read"));
        assert_eq!(first.fields[1].name, "x ? a, b : c");
        assert_eq!(
            first.fields[2].map.as_ref().and_then(|m| m.get(1)),
            Some("on")
        );
        let decoder = Decoder::new(Arc::new(first.clone()));
        assert!(
            decoder
                .check(b"\x05\0\0\0a\0\0\0\x01", PointerSize::P4)
                .is_exact()
        );
    }

    /// The message of one argument, as people read it.
    fn shown(item: &str, payload: &[u8]) -> String {
        let text = format!(
            "01020304-0506-0708-090a-0b0c0d0e0f10 d // SRC=d.c\n\
             #typev d_c1 10 \"%0%!FUNC!: %10!s!\" // LEVEL=INFO FLAGS=IO FUNC=Do%it\n\
             {{\narg, {item} -- 10\n}}\n"
        );
        let schema = parse(&text)
            .unwrap_or_else(|e| panic!("{item}: {e}"))
            .schemas
            .remove(0);
        let message = schema.message.clone().unwrap();
        let decoder = Decoder::new(Arc::new(schema));
        let note = decoder.check(payload, PointerSize::P8);
        assert!(note.is_exact(), "{item}: {note:?}");
        let mut out = Vec::new();
        let fields = decoder.fields(payload, PointerSize::P8);
        Renderer::new().message(&mut out, &message, &fields);
        let out = String::from_utf8(out).unwrap();
        out.strip_prefix("Do%it: ")
            .unwrap_or_else(|| panic!("{out}"))
            .to_owned()
    }

    #[test]
    fn parse_reads_every_item_type() {
        for (item, payload, text) in [
            ("ItemLong", &[0xff; 4][..], "-1"),
            ("ItemULong", &[0xff; 4], "4294967295"),
            ("ItemShort", &[0xfe, 0xff], "-2"),
            ("ItemUShort", &[1, 1], "257"),
            ("ItemChar", &[0xff], "-1"),
            ("ItemUChar", &[7], "7"),
            ("ItemLongLong", &[0xff; 8], "-1"),
            ("ItemULongLong", &[1, 0, 0, 0, 0, 0, 0, 0], "1"),
            ("ItemLongLongX", &[16, 0, 0, 0, 0, 0, 0, 0], "0x10"),
            ("ItemULongLongXX", &[16, 0, 0, 0, 0, 0, 0, 0], "0x10"),
            ("ItemDouble", &1.5f64.to_le_bytes(), "1.5"),
            ("ItemPtr", &[1, 0, 0, 0, 0, 0, 0, 0], "0x1"),
            ("ItemString", b"ab\0", "ab"),
            ("ItemWString", b"a\0b\0\0\0", "ab"),
            ("ItemPString", b"\x02\0ab", "ab"),
            ("ItemPWString", b"\x04\0a\0b\0", "ab"),
            ("ItemHEXDump", b"\x02\0\xab\xcd", "abcd"),
            ("ItemIPAddr", &[127, 0, 0, 1], "127.0.0.1"),
            ("ItemPort", &[0, 80], "80"),
            ("ItemNTSTATUS", &[5, 0, 0, 0xc0], "0xc0000005"),
            ("ItemNDIS_STATUS", &[5, 0, 0, 0xc0], "0xc0000005"),
            ("ItemNDIS_OID", &[1, 1, 1, 0], "0x10101"),
            ("ItemEnum(_STATE)", &[3, 0, 0, 0], "3"),
            ("ItemFlagsEnum(_F)", &[3, 0, 0, 0], "0x3"),
            ("ItemListByte(off,on)", &[1], "on"),
            ("ItemListShort(a,b=5,c)", &[6, 0], "c"),
            ("ItemListLong(a,b=0x10)", &[16, 0, 0, 0], "b"),
            ("ItemSetByte(1,2,4)", &[5], "1|4"),
            ("ItemSetLong(a,b=31)", &[0, 0, 0, 0x80], "b"),
        ] {
            let shown = shown(item, payload);
            assert!(shown.contains(text), "{item}: {shown:?} has no {text:?}");
        }
        assert_eq!(
            shown("ItemGuid", &[0; 16]),
            "00000000-0000-0000-0000-000000000000"
        );
        assert!(
            !shown("ItemEnum(_STATE)", &[0; 4]).contains("STATE"),
            "its names are in the PDB"
        );
    }

    #[test]
    fn parse_reports_errors_with_their_line() {
        let bad = TMF.replace("-- 10", "- 10");
        let error = parse(&bad).unwrap_err().to_string();
        assert_eq!(error, "line 5: expected ARGUMENT, ItemTYPE -- NUMBER");
        assert_eq!(parse("nothing here"), Err(Error::NoMessage));
        assert!(matches!(
            parse("#typev a 1 \"x\""),
            Err(Error::Tmf { line: 1, .. })
        ));
    }

    /// An unknown type affects its own message only.
    #[test]
    fn parse_reads_an_unknown_type_as_the_rest_of_the_message() {
        let tmf = parse(&TMF.replace("ItemWString", "ItemMine(a,b)")).unwrap();
        let note = TmfNote::UnknownType {
            line: 6,
            item: "ItemMine(a,b)".to_owned(),
        };
        assert_eq!(tmf.notes, [note]);
        assert_eq!(tmf.schemas.len(), 2, "the others are read");
        let decoder = Decoder::new(Arc::new(tmf.schemas[0].clone()));
        let payload = b"\x05\0\0\0anything";
        assert!(decoder.check(payload, PointerSize::P4).is_exact());
        let mut out = Vec::new();
        let message = tmf.schemas[0].message.as_deref().unwrap();
        let fields = decoder.fields(payload, PointerSize::P4);
        Renderer::new().message(&mut out, message, &fields);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "read 5 \"quoted\" from 616e797468696e67"
        );
    }

    /// Arguments without bytes also have numbers, and lines that are not messages are skipped.
    #[test]
    fn parse_numbers_inserts_by_argument() {
        let text = "01020304-0506-0708-090a-0b0c0d0e0f10 d // SRC=d.c MJ=Comp MN=Sub\n\
            #enumv x\n{\nA = 1\n}\n\
            #typev d_c7 12 \"%!STDPREFIX!%!COMPNAME!/%!SUBCOMP! %11!d! %10 100%% %12!d! %1\"\n\
            {\nnone, ItemNone -- 10\none, ItemLong -- 11\n}\n\
            #type d_c9 13 \"old\"\n{\n}\n#typev d_c8 14 \"no arguments\"\n";
        let tmf = parse(text).unwrap();
        let messages: Vec<_> = tmf
            .schemas
            .iter()
            .filter_map(|s| s.message.as_deref())
            .collect();
        assert_eq!(
            messages,
            [
                "%0Comp/Sub %10!d! %%10 100%% %%12!d! %1",
                "old",
                "no arguments"
            ]
        );
    }

    /// The prefix of a message in `tracefmt`, as far as the record has its parts.
    #[test]
    fn wpp_message_inserts_the_parts_of_the_prefix() {
        use crate::render::Prefix;
        let text = "01020304-0506-0708-090a-0b0c0d0e0f10 d // SRC=d.c\n\
            #typev d_c7 12 \"[%9!d!]%8!04X!.%3!04X!::%4!s! [%1!s!] %0%2: %5|%6|%7 %10!03d! %0after\"\n\
            {\none, ItemLong -- 10\n}\n";
        let schema = parse(text).unwrap().schemas.remove(0);
        let (message, name) = (schema.message.clone().unwrap(), schema.name.clone());
        let component = schema.provider_name.clone();
        let decoder = Decoder::new(Arc::new(schema));
        let fields = decoder.fields(b"\x07\0\0\0", PointerSize::P4);
        let prefix = Prefix {
            component: &component,
            source: &name,
            thread: Some(0x1c),
            time: "12:00",
            sequence: Some(9),
            process: Some(0xabc),
            processor: Some(3),
            ..Prefix::default()
        };
        let mut out = Vec::new();
        Renderer::new().wpp_message(&mut out, &message, &prefix, &fields);
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "[3]0ABC.001C::12:00 [d] d_c7: ||9 007 after");
        // Without the record's properties the inserts stay.
        let mut out = Vec::new();
        Renderer::new().plain_message(&mut out, "%9!d! %10", &fields);
        assert_eq!(out, b"%9 7");
    }

    /// Files of several drivers together have more messages than one message GUID can number.
    #[test]
    fn parse_reads_more_messages_than_a_number_has() {
        let mut text = String::new();
        for index in 0..70_000 {
            if index % 10_000 == 0 {
                text += &format!(
                    "{:08x}-1234-1234-1234-123456789abc driver // SRC=io.c\n",
                    index
                );
            }
            text += &format!(
                "#typev io_c42 {} \"text\" // LEVEL=INFO\n{{\n}}\n",
                10 + index % 10_000
            );
        }
        let tmf = parse(&text).unwrap();
        assert_eq!((tmf.schemas.len(), tmf.notes.len()), (70_000, 0));
        let text = "12345678-1234-1234-1234-123456789abc driver // SRC=io.c\n\
                    #typev io_c42 65535 \"last\" // LEVEL=INFO\n{\n}\n\
                    #typev io_c43 65536 \"none\" // LEVEL=INFO\n{\nx, ItemLong -- 10\n}\n\
                    #typev io_c44 11 \"next\" // LEVEL=INFO\n{\n}\n";
        let tmf = parse(text).unwrap();
        let names: Vec<_> = tmf.schemas.iter().map(|schema| &*schema.name).collect();
        assert_eq!(names, ["io_c42", "io_c44"]);
        let note = TmfNote::MessageNumber {
            line: 5,
            number: 65_536,
        };
        assert_eq!(tmf.notes, [note]);
    }
}
