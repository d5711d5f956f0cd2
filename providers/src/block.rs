//! A block: tables of several providers, split into streams of numbers and lines.
//!
//! Each stream contains one kind of numbers or lines, and an item that repeats is written once. A
//! compressed block has less than half the size of its compressed text.

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
    /// Ids, as the difference to the previous id (modulo 2^16).
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
    /// References to fields. A new field is followed by references to its name and type.
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

/// The code of an event whose symbol is written as a line.
pub(crate) const WRITTEN: u32 = 0;
/// The code of another layout, which is not an event.
pub(crate) const OTHER: u32 = 1;
/// The first code of an event whose symbol is formed from its other lines.
pub(crate) const FORMED: u32 = 2;
/// The number of these codes.
pub(crate) const FORMS: u32 = 7;

/// The symbol of an event with this code, from the names of its task and opcode.
pub(crate) fn symbol(code: u32, task: &str, opcode: &str, id: u16, version: u8) -> Option<String> {
    let mut symbol = match code.checked_sub(FORMED)? {
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
        let _ = write!(symbol, "_V{version}");
    }
    Some(symbol)
}

/// The name in the rest of a line `task VALUE NAME`.
pub(crate) fn name_of(rest: &str) -> &str {
    rest.split_once(' ').map_or("", |(_, name)| name)
}

/// The tables of a block.
pub(crate) fn read(bytes: &[u8]) -> Option<Vec<String>> {
    let mut input = Numbers(bytes);
    let mut reader = Reader::default();
    for stream in reader.numbers.all() {
        *stream = Numbers(input.bytes()?);
    }
    for stream in reader.lines.all() {
        *stream = Lines(core::str::from_utf8(input.bytes()?).ok()?);
    }
    let mut tables = Vec::new();
    while !reader.numbers.head_lines.0.is_empty() {
        tables.push(reader.read_table()?);
    }
    Some(tables)
}

#[derive(Default)]
struct Reader<'a> {
    numbers: NumberStreams<Numbers<'a>>,
    lines: LineStreams<Lines<'a>>,
    /// Lines of the provider's events so far.
    recent_lines: [Recent<&'a str>; 6],
    builds: Recent<&'a str>,
    /// Lists of fields of the provider, as text.
    lists: Recent<String>,
    fields: Recent<Field<'a>>,
    names: Recent<&'a str>,
    types: Recent<&'a str>,
}

#[derive(Clone, Copy, Debug)]
struct Field<'a> {
    name: &'a str,
    /// The type, after the spaces by which a member of a structure is indented.
    kind: &'a str,
}

impl Reader<'_> {
    /// Reads the table of the next provider.
    fn read_table(&mut self) -> Option<String> {
        let mut out = String::new();
        self.recent_lines.iter_mut().for_each(Recent::clear);
        self.lists.clear();
        for _ in 0..self.numbers.head_lines.next()? {
            out.push_str(self.lines.heads.next()?);
            out.push('\n');
        }
        let mut id = 0;
        for _ in 0..self.numbers.events.next()? {
            self.read_layout(&mut id, &mut out)?;
        }
        Some(out)
    }

    /// Reads the next event or other layout; `id` is the id of the previous event.
    fn read_layout(&mut self, id: &mut u16, out: &mut String) -> Option<()> {
        let code = self.numbers.symbols.next()?;
        if code == OTHER {
            let builds = self
                .builds
                .read(&mut self.numbers.builds, || self.lines.builds.next())?;
            writeln!(out, "other {builds}").ok()?;
            return self.read_list(out);
        }
        *id = id.wrapping_add(u16::try_from(self.numbers.ids.next()?).ok()?);
        let version = u8::try_from(self.numbers.versions.next()?).ok()?;
        let mut values = [""; LINES.len()];
        let streams = self.numbers.lines.iter_mut().zip(&mut self.lines.lines);
        let recent_lines = self.recent_lines.iter_mut().zip(streams);
        for (value, (recent, (numbers, lines))) in values.iter_mut().zip(recent_lines) {
            *value = *recent.read(numbers, || lines.next())?;
        }
        let [task, opcode, ..] = values;
        write!(out, "event {id} {version} ").ok()?;
        if code == WRITTEN {
            out.push_str(self.lines.symbols.next()?);
        } else {
            out.push_str(&symbol(code, name_of(task), name_of(opcode), *id, version)?);
        }
        out.push('\n');
        for (word, value) in LINES.iter().zip(values) {
            if !value.is_empty() {
                writeln!(out, "  {word} {value}").ok()?;
            }
        }
        self.read_list(out)
    }

    /// Reads the next list of fields.
    fn read_list(&mut self, out: &mut String) -> Option<()> {
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
            lists: list_references,
            list_sizes,
            fields: field_references,
            names: name_references,
            types: type_references,
            ..
        } = numbers;
        let text = lists.read(list_references, || {
            let mut text = String::new();
            for _ in 0..list_sizes.next()? {
                let Field { name, kind } = *fields.read(field_references, || {
                    let name = *names.read(name_references, || lines.names.next())?;
                    let kind = *types.read(type_references, || lines.types.next())?;
                    Some(Field { name, kind })
                })?;
                let (indent, kind) = kind.split_at(kind.len() - kind.trim_start().len());
                writeln!(text, "  {indent}field {name} {kind}").ok()?;
            }
            Some(text)
        })?;
        out.push_str(text);
        Some(())
    }
}

/// Packs streams into a block.
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

#[cfg(test)]
mod tests {
    use super::symbol;

    #[test]
    fn symbol_has_the_names_of_its_form_and_the_version() {
        let forms = [
            "TaskStop",
            "Task",
            "Stop",
            "Event7",
            "TaskStop7",
            "Task7",
            "Stop7",
        ];
        assert_eq!(forms.len(), super::FORMS as usize);
        for (form, expected) in forms.into_iter().enumerate() {
            let code = super::FORMED + form as u32;
            let with_version = format!("{expected}_V2");
            assert_eq!(
                symbol(code, "Task", "Stop", 7, 0).as_deref(),
                Some(expected)
            );
            assert_eq!(symbol(code, "Task", "Stop", 7, 2), Some(with_version));
        }
        assert_eq!(symbol(super::OTHER, "Task", "Stop", 7, 0), None);
        let after = super::FORMED + super::FORMS;
        assert_eq!(symbol(after, "Task", "Stop", 7, 0), None);
    }
}
