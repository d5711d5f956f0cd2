//! Replacement of values in the decoded fields of a record.

use std::ops::Range;

use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_schema::decode::{Fields, LocatedField, Value};
use etl_schema::store::SchemaStore;
use etl_schema::{Count, EventSchema, Field, FieldKind, FieldRef, Length, OutType};

use super::mask::Mask;
use super::matcher::{Encoding, TextMatcher};
use super::patterns;
use super::policy::{Action, Category, Policy, category};
use super::summary::Summary;

/// Scrubs records, one at a time.
#[derive(Clone, Copy)]
pub(super) struct RecordScrubber<'a> {
    pub policy: &'a Policy,
    pub mask: &'a Mask,
    /// Listed texts, which must not survive.
    pub secrets: &'a TextMatcher,
    /// Names of users and machines, which are replaced as whole words.
    pub names: &'a TextMatcher,
    /// The size of the largest record that may change its length; `None` if lengths stay.
    pub max_size: Option<usize>,
}

/// What is done to a value, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Treatment {
    pub action: Action,
    /// The category of the value; `None` if the policy names its field, or all of it is replaced.
    pub category: Option<Category>,
}

impl Treatment {
    /// Treats the whole value.
    pub fn of_whole(action: Action) -> Self {
        Treatment {
            action,
            category: None,
        }
    }
}

/// A value in the payload.
struct FieldValue<'a> {
    field: &'a Field,
    range: Range<usize>,
    kind: ValueKind,
}

impl FieldValue<'_> {
    /// Whether the treatment may change the length of the value, if lengths need not stay.
    fn changes_length(&self, treatment: Treatment) -> bool {
        let is_dropped = treatment.action == Action::Drop;
        match self.kind {
            ValueKind::Text { .. } => true,
            ValueKind::Sid | ValueKind::Binary => is_dropped,
            ValueKind::SocketAddress => is_dropped && treatment.category.is_none(),
            ValueKind::Address | ValueKind::Ip | ValueKind::Other => false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Text {
        encoding: Encoding,
        /// Whether the text is in an array of a fixed size: bytes after a NUL are not text.
        is_array: bool,
    },
    Sid,
    Binary,
    SocketAddress,
    Address,
    Ip,
    Other,
}

impl RecordScrubber<'_> {
    /// Replaces fields in their own bytes; with `fixed` only fields that never change their length.
    pub(super) fn fields(
        &self,
        record: &Record<'_>,
        store: &SchemaStore,
        payload: &mut [u8],
        fixed: bool,
        summary: &mut Summary,
    ) {
        let Some(decoder) = store.decoder(record) else {
            if !payload.is_empty() {
                summary.undecoded += 1;
            }
            return;
        };
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        let mut values = Vec::new();
        add_values(decoder.fields(record.payload(), pointers), 0, &mut values);
        for value in values {
            let category = match value.kind {
                ValueKind::Ip | ValueKind::SocketAddress => Some(Category::Ips),
                _ => category(value.field),
            };
            let treatment = self.treatment(value.field, category);
            if treatment.action == Action::Keep {
                continue;
            }
            if treatment.category.is_none() && is_counter(decoder.schema(), value.field) {
                continue;
            }
            if fixed && value.changes_length(treatment) {
                continue;
            }
            let Some(bytes) = payload.get_mut(value.range.clone()) else {
                continue;
            };
            let before = bytes.to_vec();
            self.replace_value(treatment, value.kind, bytes);
            if before != bytes {
                summary.count_field(&value.field.name);
                summary.count(treatment.category);
            }
        }
    }

    /// The treatment of a field of this category.
    pub(super) fn treatment(&self, field: &Field, category: Option<Category>) -> Treatment {
        match (self.policy.named(field), category) {
            (Some(action), _) => Treatment::of_whole(action),
            (None, Some(category)) => Treatment {
                action: self.policy.of(category),
                category: Some(category),
            },
            (None, None) => Treatment::of_whole(Action::Keep),
        }
    }

    /// Replaces the parts of a value that are private by its category; without a category, all of
    /// it.
    pub(super) fn replace_value(&self, treatment: Treatment, kind: ValueKind, bytes: &mut [u8]) {
        match (treatment.action, kind) {
            (Action::Keep, _) => {}
            (_, ValueKind::Text { encoding, is_array }) => {
                self.replace_text(treatment, encoding, is_array, bytes);
            }
            (_, ValueKind::SocketAddress) if treatment.category.is_some() => {
                let range = socket_address(bytes);
                let address = bytes.get_mut(range).unwrap_or_default();
                self.replace_value(treatment, ValueKind::Ip, address);
            }
            (Action::Drop, ValueKind::Sid) => {
                bytes.get_mut(8..).unwrap_or_default().fill(0);
            }
            (Action::Drop, _) => bytes.fill(0),
            (Action::Hash, ValueKind::Sid) => {
                patterns::sid(self.mask, bytes);
            }
            (Action::Hash, ValueKind::Address) => self.replace_address(bytes),
            (Action::Hash, _) => {
                let stream = self.mask.stream("value", bytes).take(bytes.len());
                let new: Vec<u8> = stream.collect();
                bytes.copy_from_slice(&new);
            }
        }
    }

    fn replace_text(
        &self,
        treatment: Treatment,
        encoding: Encoding,
        is_array: bool,
        bytes: &mut [u8],
    ) {
        let mut characters = encoding.characters(bytes);
        if is_array && let Some(end) = characters.iter().position(|c| *c == '\0') {
            let rest = bytes.get_mut(end * encoding.step()..);
            rest.unwrap_or_default().fill(0);
            characters.truncate(end);
        }
        let kept = if treatment.category == Some(Category::CommandLines) {
            BLANKS
        } else {
            ""
        };
        for part in private_parts(treatment.category, &characters) {
            self.write(treatment.action, bytes, encoding, part, kept);
        }
    }

    fn replace_address(&self, bytes: &mut [u8]) {
        if let Some(word) = bytes.first_chunk_mut::<8>() {
            *word = self.mask.address(u64::from_le_bytes(*word)).to_le_bytes();
        } else if let Some(word) = bytes.first_chunk_mut::<4>() {
            let moved = self.mask.address(u32::from_le_bytes(*word).into());
            *word = (moved as u32).to_le_bytes();
        }
    }

    /// Writes letters over some characters of a value; characters in `kept` stay.
    fn write(
        &self,
        action: Action,
        bytes: &mut [u8],
        encoding: Encoding,
        range: Range<usize>,
        kept: &str,
    ) {
        let step = encoding.step();
        let old = bytes
            .get(range.start * step..range.end * step)
            .unwrap_or_default();
        let mut letters = self.mask.letters(&encoding.decoded(old), 0);
        for number in range {
            let Some(unit) = bytes.get_mut(number * step..(number + 1) * step) else {
                continue;
            };
            let letter = letters.next().unwrap_or(b'x');
            let [low, high @ ..] = unit else { continue };
            if kept.as_bytes().contains(low) && high.iter().all(|h| *h == 0) {
                continue;
            }
            *low = if action == Action::Drop { b'*' } else { letter };
            high.fill(0);
        }
    }
}

/// The parts of a text of this category that are private, in characters.
pub(super) fn private_parts(category: Option<Category>, characters: &[char]) -> Vec<Range<usize>> {
    let len = characters.len();
    match category {
        // The program stays; its arguments are private.
        Some(Category::CommandLines) => {
            let arguments = end_of_program(characters)..len;
            vec![arguments]
        }
        // The file name after the last separator stays.
        Some(Category::Paths) => {
            let mut parts = Vec::new();
            let mut start = 0;
            for (end, character) in characters.iter().enumerate() {
                if matches!(character, '\\' | '/') {
                    let directory = characters.get(start..end).unwrap_or_default();
                    if is_private_directory(directory) {
                        parts.push(start..end);
                    }
                    start = end + 1;
                }
            }
            parts
        }
        // A NUL ends the text, or is part of it.
        _ => {
            let last = characters.iter().rposition(|c| *c != '\0');
            let text = 0..last.map_or(0, |last| last + 1);
            vec![text]
        }
    }
}

/// Whether a directory is private: drives and the directory of devices are not.
fn is_private_directory(name: &[char]) -> bool {
    !name.is_empty() && !name.ends_with(&[':']) && !name.iter().copied().eq("Device".chars())
}

/// The characters between the arguments of a command line.
const BLANKS: &str = " \t";

fn is_blank(c: &char) -> bool {
    BLANKS.contains(*c)
}

/// The index of the first character after the program of a command line.
fn end_of_program(characters: &[char]) -> usize {
    let Some(start) = characters.iter().position(|c| !is_blank(c)) else {
        return characters.len();
    };
    let rest = characters.get(start..).unwrap_or_default();
    if let ['"', quoted @ ..] = rest
        && let Some(end) = quoted.iter().position(|c| *c == '"')
    {
        return start + end + 2;
    }
    let word = rest.split(is_blank).next().unwrap_or_default();
    // Options may follow an extension without a blank.
    let options = (0..word.len()).find(|index| starts_with_option(word, *index));
    start + options.unwrap_or(word.len())
}

/// Whether an option is at an index of a word, right after the extension of a program.
fn starts_with_option(word: &[char], index: usize) -> bool {
    let program = word.get(..index).unwrap_or_default();
    let dot = program.len().saturating_sub(4);
    let extension = program.iter().skip(dot).map(char::to_ascii_lowercase);
    let extension: String = extension.collect();
    let is_program = matches!(extension.as_str(), ".exe" | ".com" | ".bat" | ".cmd");
    is_program && matches!(word.get(index), Some('/' | ',' | ';' | '=' | '"'))
}

/// The bytes of the address in a `SOCKADDR`; all bytes after the family if the family is unknown.
fn socket_address(bytes: &[u8]) -> Range<usize> {
    let address = match bytes {
        [2, 0, ..] => 4..8,
        [23, 0, ..] => 8..24,
        _ => 2..bytes.len(),
    };
    address.start.min(bytes.len())..address.end.min(bytes.len())
}

/// Adds all values of a walk. The first byte of the walk is byte `base` of the payload.
fn add_values<'a>(mut fields: Fields<'a>, base: usize, values: &mut Vec<FieldValue<'a>>) {
    while let Some(LocatedField {
        field,
        value,
        range,
    }) = fields.next_with_range()
    {
        add_value(field, value, base + range.start..base + range.end, values);
    }
}

fn add_value<'a>(
    field: &'a Field,
    value: Value<'a>,
    range: Range<usize>,
    values: &mut Vec<FieldValue<'a>>,
) {
    let is_array = matches!(field.length, Length::Fixed(_));
    let kind = match value {
        Value::Null => return,
        Value::Struct(members) => return add_values(members.fields(), range.start, values),
        Value::Array(items) => {
            let mut items = items.iter();
            while let Some(element) = items.next_with_range() {
                let start = range.start + element.range.start;
                let end = range.start + element.range.end;
                add_value(field, element.value, start..end, values);
            }
            return;
        }
        Value::Utf16(_) => ValueKind::Text {
            encoding: Encoding::Wide,
            is_array,
        },
        Value::Ansi(_) | Value::Utf8(_) => ValueKind::Text {
            encoding: Encoding::Narrow,
            is_array,
        },
        Value::Sid(_) => ValueKind::Sid,
        Value::Binary(_) if field.out == OutType::SocketAddress => ValueKind::SocketAddress,
        Value::Binary(_) => ValueKind::Binary,
        Value::Ipv4(_) | Value::Ipv6(_) => ValueKind::Ip,
        _ if category(field) == Some(Category::Addresses) => ValueKind::Address,
        _ => ValueKind::Other,
    };
    if !range.is_empty() {
        values.push(FieldValue { field, range, kind });
    }
}

/// Whether a field contains the count or length of another field: then it stays.
pub(super) fn is_counter(schema: &EventSchema, field: &Field) -> bool {
    counts_any(field, &schema.fields, &schema.fields)
}

/// Whether `counter` contains the count or length of any of `fields`, or of their members. `top`
/// are the fields of the event.
fn counts_any(counter: &Field, fields: &[Field], top: &[Field]) -> bool {
    for field in fields {
        if let Count::Field(reference) = field.count
            && is_field(counter, reference, fields, top)
        {
            return true;
        }
        if let Length::Field(reference) = field.length
            && is_field(counter, reference, fields, top)
        {
            return true;
        }
        if let FieldKind::Struct(members) = &field.kind
            && counts_any(counter, members, top)
        {
            return true;
        }
    }
    false
}

/// Whether a reference from one of `fields` refers to this field.
fn is_field(field: &Field, reference: FieldRef, fields: &[Field], top: &[Field]) -> bool {
    let target = match reference {
        FieldRef::Here(index) => fields.get(usize::from(index)),
        FieldRef::Top(index) => top.get(usize::from(index)),
    };
    target.is_some_and(|target| std::ptr::eq(target, field))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: ValueKind = ValueKind::Text {
        encoding: Encoding::Wide,
        is_array: false,
    };

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// The replacement of a value.
    fn after(action: Action, category: Option<Category>, kind: ValueKind, value: &[u8]) -> Vec<u8> {
        let policy = Policy::none();
        let mask = Mask::new(b"salt");
        let none = TextMatcher::default();
        let scrubber = RecordScrubber {
            policy: &policy,
            mask: &mask,
            secrets: &none,
            names: &none,
            max_size: None,
        };
        let mut bytes = value.to_vec();
        scrubber.replace_value(Treatment { action, category }, kind, &mut bytes);
        bytes
    }

    #[test]
    fn value_replaces_the_address_of_a_socket_address() {
        let ipv4 = [&[2, 0, 0x1f, 0x90, 10, 20, 30, 40][..], &[0; 8]].concat();
        let ipv6 = [
            &[23, 0, 0x1f, 0x90, 0, 0, 0, 0][..],
            &[0x20; 16],
            &[5, 0, 0, 0],
        ]
        .concat();
        let by = Some(Category::Ips);
        for (value, address) in [(&ipv4, 4..8), (&ipv6, 8..24)] {
            for action in [Action::Hash, Action::Drop] {
                let new = after(action, by, ValueKind::SocketAddress, value);
                let mut expected = value.clone();
                let ip = after(action, by, ValueKind::Ip, &value[address.clone()]);
                assert_ne!(ip, value[address.clone()]);
                expected[address.clone()].copy_from_slice(&ip);
                assert_eq!(new, expected, "{action:?}: as an address by itself");
            }
            let whole = after(Action::Drop, None, ValueKind::SocketAddress, value);
            assert_eq!(
                whole,
                vec![0; value.len()],
                "a named field is dropped whole"
            );
        }
        let other = after(
            Action::Drop,
            by,
            ValueKind::SocketAddress,
            &[17, 0, 1, 2, 3],
        );
        assert_eq!(other, [17, 0, 0, 0, 0]);
        assert_eq!(
            after(Action::Drop, by, ValueKind::SocketAddress, &[2, 0, 1]),
            [2, 0, 1]
        );
    }

    #[test]
    fn value_leaves_nothing_after_a_nul() {
        let array = |encoding| ValueKind::Text {
            encoding,
            is_array: true,
        };
        for by in [None, Some(Category::Users), Some(Category::Machines)] {
            let counted = after(Action::Drop, by, WIDE, &wide("secrA\0secretB\0"));
            assert_eq!(counted, wide("*************\0"));
            let fixed = after(Action::Drop, by, array(Encoding::Wide), &wide("PC7\0left"));
            assert_eq!(fixed, wide("***\0\0\0\0\0"));
            let fixed = after(Action::Hash, by, array(Encoding::Narrow), b"PC7\0left");
            assert_eq!(fixed[3..], [0; 5]);
        }
        let path = after(
            Action::Drop,
            Some(Category::Paths),
            array(Encoding::Narrow),
            b"a\\b\0c\\",
        );
        assert_eq!(path, b"*\\b\0\0\0");
    }

    #[test]
    fn value_is_the_same_in_every_encoding() {
        let narrow = ValueKind::Text {
            encoding: Encoding::Narrow,
            is_array: false,
        };
        let new = |kind, bytes: &[u8]| {
            let mut bytes = after(Action::Hash, Some(Category::Users), kind, bytes);
            bytes.retain(|byte| *byte != 0);
            bytes
        };
        let expected = new(WIDE, &wide("\u{160}koda"));
        assert_eq!(new(narrow, b"\x8akoda"), expected);
        assert_eq!(new(narrow, "\u{160}koda".as_bytes())[..5], expected);
        assert_eq!(new(narrow, "\u{161}KODA".as_bytes())[..5], expected);
    }

    #[test]
    fn command_lines_keep_their_program() {
        for (line, program) in [
            ("app.exe --password=x", "app.exe"),
            ("app.exe\t--password=x", "app.exe"),
            (" app.exe -p", " app.exe"),
            ("app.exe/p:x", "app.exe"),
            ("C:\\tools\\APP.EXE\"x\"", "C:\\tools\\APP.EXE"),
            ("C:/tools/app.exe /p", "C:/tools/app.exe"),
            ("app.exe.config x", "app.exe.config"),
            ("\"C:\\a b\\app.exe\" -p x", "\"C:\\a b\\app.exe\""),
            ("\"C:\\a b\\app.exe -p x", "\"C:\\a"),
            ("app.exe", "app.exe"),
            ("  ", "  "),
            ("", ""),
        ] {
            let characters: Vec<char> = line.chars().collect();
            let expected = program.chars().count()..characters.len();
            let parts = private_parts(Some(Category::CommandLines), &characters);
            assert_eq!(parts, [expected], "{line}");
        }
    }
}
