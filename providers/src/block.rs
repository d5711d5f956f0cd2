//! A block: tables of several providers, taken apart by what their lines are about.
//!
//! Numbers of one kind stand together, and so do words of one kind; what repeats is written once.
//! That makes a block less than half as large, compressed, as its text.

use std::fmt::Write;

use crate::code::{Lines, Numbers, Recent, put};

/// The lines that an event can have before its fields, in their order.
pub(crate) const LINES: [&str; 6] = ["task", "opcode", "level", "keywords", "unmasked", "channel"];

/// Streams of numbers, in the order of the block.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberStreams<T> {
    /// Lines before the first event, for each provider.
    pub head_lines: T,
    /// Events and other layouts, for each provider.
    pub events: T,
    /// Ids, less the one before (modulo 2^16).
    pub ids: T,
    pub versions: T,
    /// How an event's symbol is formed: see [`symbol`].
    pub symbols: T,
    /// References to the lines of [`LINES`], and to the builds of other layouts.
    pub lines: [T; 6],
    pub builds: T,
    /// References to lists of fields, and how many fields new lists have.
    pub lists: T,
    pub list_sizes: T,
    /// References to fields; of new ones to their names and types.
    pub fields: T,
    pub names: T,
    pub types: T,
}

/// Streams of lines, in the order of the block.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineStreams<T> {
    pub heads: T,
    pub symbols: T,
    pub lines: [T; 6],
    pub builds: T,
    pub names: T,
    pub types: T,
}

impl<T> NumberStreams<T> {
    pub fn all(&mut self) -> impl Iterator<Item = &mut T> {
        let first = [
            &mut self.head_lines,
            &mut self.events,
            &mut self.ids,
            &mut self.versions,
            &mut self.symbols,
        ];
        let last = [
            &mut self.builds,
            &mut self.lists,
            &mut self.list_sizes,
            &mut self.fields,
            &mut self.names,
            &mut self.types,
        ];
        first.into_iter().chain(&mut self.lines).chain(last)
    }
}

impl<T> LineStreams<T> {
    pub fn all(&mut self) -> impl Iterator<Item = &mut T> {
        let first = [&mut self.heads, &mut self.symbols];
        let last = [&mut self.builds, &mut self.names, &mut self.types];
        first.into_iter().chain(&mut self.lines).chain(last)
    }
}

/// The code of a symbol that is written out.
pub(crate) const WRITTEN: u32 = 0;
/// The code of another layout, in place of an event.
pub(crate) const OTHER: u32 = 1;
/// The first code of a symbol that follows from the other lines.
pub(crate) const FORMED: u32 = 2;
/// How many codes follow from there.
pub(crate) const FORMS: u32 = 7;

/// The symbol of an event with this code, from the names of its task and opcode.
pub(crate) fn symbol(code: u32, task: &str, opcode: &str, id: u16, version: u8) -> Option<String> {
    let mut out = match code.checked_sub(FORMED)? {
        0 => format!("{task}{opcode}"),
        1 => task.to_owned(),
        2 => opcode.to_owned(),
        3 => format!("Event{id}"),
        4 => format!("{task}{opcode}{id}"),
        5 => format!("{task}{id}"),
        6 => format!("{opcode}{id}"),
        _ => return None,
    };
    if version > 0 {
        // Writing to a string does not fail.
        let _ = write!(out, "_V{version}");
    }
    Some(out)
}

/// The name in the rest of a line `task VALUE NAME`.
pub(crate) fn name_of(rest: &str) -> &str {
    rest.split_once(' ').map_or("", |(_, name)| name)
}

/// The tables of a block.
pub(crate) fn read(bytes: &[u8]) -> Option<Vec<String>> {
    let mut input = Numbers(bytes);
    let (mut numbers, mut lines) = (NumberStreams::default(), LineStreams::default());
    for stream in numbers.all() {
        *stream = Numbers(input.bytes()?);
    }
    for stream in lines.all() {
        *stream = Lines(core::str::from_utf8(input.bytes()?).ok()?);
    }
    let mut reader = Reader {
        numbers,
        lines,
        ..Reader::default()
    };
    let mut out = Vec::new();
    while !reader.numbers.head_lines.0.is_empty() {
        out.push(reader.table()?);
    }
    Some(out)
}

#[derive(Default)]
struct Reader<'a> {
    numbers: NumberStreams<Numbers<'a>>,
    lines: LineStreams<Lines<'a>>,
    /// Lines that events of the provider had so far.
    seen: [Recent<&'a str>; 6],
    builds: Recent<&'a str>,
    /// Lists of fields of the provider: as the text that they are.
    lists: Recent<String>,
    fields: Recent<(&'a str, &'a str)>,
    names: Recent<&'a str>,
    types: Recent<&'a str>,
}

impl Reader<'_> {
    /// The next provider.
    fn table(&mut self) -> Option<String> {
        let mut out = String::new();
        self.seen.iter_mut().for_each(Recent::clear);
        self.lists.clear();
        for _ in 0..self.numbers.head_lines.next()? {
            out.push_str(self.lines.heads.next()?);
            out.push('\n');
        }
        let mut id = 0;
        for _ in 0..self.numbers.events.next()? {
            self.event(&mut id, &mut out)?;
        }
        Some(out)
    }

    /// The next event or other layout; `id` is that of the event before.
    fn event(&mut self, id: &mut u16, out: &mut String) -> Option<()> {
        let code = self.numbers.symbols.next()?;
        if code == OTHER {
            let builds = self
                .builds
                .read(&mut self.numbers.builds, || self.lines.builds.next())?;
            writeln!(out, "other {builds}").ok()?;
            return self.list(out);
        }
        *id = id.wrapping_add(u16::try_from(self.numbers.ids.next()?).ok()?);
        let version = u8::try_from(self.numbers.versions.next()?).ok()?;
        let mut rests = [""; 6];
        let streams = self.numbers.lines.iter_mut().zip(&mut self.lines.lines);
        for ((rest, seen), (numbers, lines)) in rests.iter_mut().zip(&mut self.seen).zip(streams) {
            *rest = *seen.read(numbers, || lines.next())?;
        }
        let [task, opcode, ..] = rests;
        write!(out, "event {id} {version} ").ok()?;
        if code == WRITTEN {
            out.push_str(self.lines.symbols.next()?);
        } else {
            out.push_str(&symbol(code, name_of(task), name_of(opcode), *id, version)?);
        }
        out.push('\n');
        for (word, rest) in LINES.iter().zip(rests).filter(|(_, rest)| !rest.is_empty()) {
            writeln!(out, "  {word} {rest}").ok()?;
        }
        self.list(out)
    }

    /// The next list of fields.
    fn list(&mut self, out: &mut String) -> Option<()> {
        let Reader {
            numbers,
            lines,
            lists,
            fields,
            names,
            types,
            ..
        } = self;
        let NumberStreams {
            lists: references,
            list_sizes,
            fields: of_fields,
            ..
        } = numbers;
        let (of_names, of_types) = (&mut numbers.names, &mut numbers.types);
        let text = lists.read(references, || {
            let mut text = String::new();
            for _ in 0..list_sizes.next()? {
                let (name, kind) = *fields.read(of_fields, || {
                    let name = *names.read(of_names, || lines.names.next())?;
                    Some((name, *types.read(of_types, || lines.types.next())?))
                })?;
                // Members of structures are indented further.
                let (indent, kind) = kind.split_at(kind.len() - kind.trim_start().len());
                writeln!(text, "  {indent}field {name} {kind}").ok()?;
            }
            Some(text)
        })?;
        out.push_str(text);
        Some(())
    }
}

/// The block of these streams.
pub(crate) fn write(
    mut numbers: NumberStreams<Vec<u8>>,
    mut lines: LineStreams<String>,
) -> Vec<u8> {
    let mut out = Vec::new();
    let numbers = numbers.all().map(|stream| &**stream);
    for stream in numbers.chain(lines.all().map(|stream| stream.as_bytes())) {
        put(&mut out, stream.len() as u32);
        out.extend(stream);
    }
    out
}
