//! Packs the text of tables.

use crate::archive::{self, Archive};
use crate::block::{self, FORMED, FORMS, LINES, LineStreams, NumberStreams, OTHER, WRITTEN};
use crate::code::{Repeated, put};
use crate::index::{self, Entry};

/// About how many bytes of text a block has: larger blocks need less space, smaller ones less time.
const BLOCK: usize = 256 << 10;

/// A text that is not a list of tables as [`crate::unpack`] writes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PackError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong in the line.
    pub what: String,
}

/// Packs the text of all tables: the inverse of [`crate::unpack`].
///
/// # Errors
/// If a line does not have the form in which [`crate::unpack`] writes it.
pub fn pack(text: &str) -> Result<Vec<u8>, PackError> {
    // The first section is the index, which is written last.
    let mut sections = vec![Vec::new()];
    let mut index = Vec::new();
    let mut block = Writer::default();
    let mut entries = Vec::new();
    let mut size = 0;
    let mut line = 1;
    for table in text.split("\n\n") {
        if size > 0 && size + table.len() > BLOCK {
            sections.push(std::mem::take(&mut block).finish());
            index.push(std::mem::take(&mut entries));
            size = 0;
        }
        entries.push(block.add_table(line, table)?);
        size += table.len();
        line += table.lines().count() + 1;
    }
    sections.push(block.finish());
    index.push(entries);
    if let Some(first) = sections.first_mut() {
        *first = index::write(&index);
    }
    let packed = archive::write(&sections);
    compare(text, &packed)?;
    Ok(packed)
}

/// Returns an error for the first line that would not be the same when it is unpacked.
fn compare(text: &str, packed: &[u8]) -> Result<(), PackError> {
    let archive = Archive::open(packed).unwrap_or_default();
    let mut tables = Vec::new();
    for block in 0..archive.block_count() {
        tables.extend(archive.block(block).unwrap_or_default());
    }
    let unpacked = tables.join("\n");
    if unpacked == text {
        return Ok(());
    }
    let lines = unpacked.lines().zip(text.lines());
    let equal_lines = lines.take_while(|(a, b)| a == b).count();
    let different = unpacked.lines().nth(equal_lines).unwrap_or("the end");
    Err(PackError {
        line: equal_lines + 1,
        what: format!("would be unpacked as: {different}"),
    })
}

/// The streams of a block.
#[derive(Default)]
struct Writer<'a> {
    numbers: NumberStreams<Vec<u8>>,
    lines: LineStreams<String>,
    repeated_lines: [Repeated<&'a str>; 6],
    builds: Repeated<&'a str>,
    lists: Repeated<Vec<&'a str>>,
    fields: Repeated<&'a str>,
    names: Repeated<&'a str>,
    types: Repeated<String>,
}

fn add_line(stream: &mut String, line: &str) {
    stream.push_str(line);
    stream.push('\n');
}

/// Whether a line begins an event or another layout.
fn begins_layout(line: &str) -> bool {
    line.starts_with("event ") || line.starts_with("other ")
}

impl<'a> Writer<'a> {
    fn finish(self) -> Vec<u8> {
        block::write(self.numbers, self.lines)
    }

    /// Adds a table. `first_line` is the number of its first line in the text, for errors.
    fn add_table(&mut self, first_line: usize, table: &'a str) -> Result<Entry, PackError> {
        let lines: Vec<&str> = table.lines().collect();
        let mut layouts = lines.chunk_by(|_, next| !begins_layout(next));
        let head = match lines.first() {
            Some(line) if begins_layout(line) => &[],
            _ => layouts.next().unwrap_or_default(),
        };
        let mut entry = parse_provider(head.first().unwrap_or(&"")).map_err(|what| PackError {
            line: first_line,
            what: what.to_owned(),
        })?;
        put(&mut self.numbers.head_lines, head.len() as u32);
        for line in head {
            add_line(&mut self.lines.heads, line);
        }

        self.repeated_lines.iter_mut().for_each(Repeated::clear);
        self.lists.clear();
        let mut layout_count = 0;
        let mut last_id = 0;
        let mut line = first_line + head.len();
        for layout in layouts {
            let (first, parts) = layout.split_first().unwrap_or((&"", &[]));
            if let Some(builds) = first.strip_prefix("other ") {
                put(&mut self.numbers.symbols, OTHER);
                if self.builds.write(&mut self.numbers.builds, builds) {
                    add_line(&mut self.lines.builds, builds);
                }
                self.add_list(parts);
            } else {
                let added = self.add_event(first, parts, &mut last_id);
                added.ok_or_else(|| PackError {
                    line,
                    what: "expected `event ID VERSION SYMBOL`".to_owned(),
                })?;
                entry.event_count += 1;
            }
            layout_count += 1;
            line += layout.len();
        }
        put(&mut self.numbers.events, layout_count);
        Ok(entry)
    }

    fn add_event(&mut self, head: &'a str, parts: &[&'a str], last_id: &mut u16) -> Option<()> {
        let mut words = head.strip_prefix("event ")?.splitn(3, ' ');
        let id: u16 = words.next()?.parse().ok()?;
        let version: u8 = words.next()?.parse().ok()?;
        let symbol = words.next()?;
        put(&mut self.numbers.ids, id.wrapping_sub(*last_id).into());
        put(&mut self.numbers.versions, version.into());
        *last_id = id;

        let line_count = parts
            .iter()
            .take_while(|line| !line.trim_start().starts_with("field "))
            .count();
        let (lines, fields) = parts.split_at_checked(line_count)?;
        let values = LINES.map(|word| value_of(lines, word));
        let streams = self.numbers.lines.iter_mut().zip(&mut self.lines.lines);
        let repeated_lines = self.repeated_lines.iter_mut().zip(streams);
        for (value, (repeated, (numbers, lines))) in values.iter().zip(repeated_lines) {
            if repeated.write(numbers, value) {
                add_line(lines, value);
            }
        }
        let [task, opcode, ..] = values;
        let task = block::name_of(task);
        let opcode = block::name_of(opcode);
        let code = (FORMED..FORMED + FORMS)
            .find(|code| {
                let formed = block::symbol(*code, task, opcode, id, version);
                formed.as_deref() == Some(symbol)
            })
            .unwrap_or(WRITTEN);
        put(&mut self.numbers.symbols, code);
        if code == WRITTEN {
            add_line(&mut self.lines.symbols, symbol);
        }
        self.add_list(fields);
        Some(())
    }

    fn add_list(&mut self, list: &[&'a str]) {
        if !self.lists.write(&mut self.numbers.lists, list.to_vec()) {
            return;
        }
        put(&mut self.numbers.list_sizes, list.len() as u32);
        for field in list {
            if !self.fields.write(&mut self.numbers.fields, field) {
                continue;
            }
            let trimmed = field.trim_start();
            let indent = field.len().saturating_sub(trimmed.len() + 2);
            let name_and_type = block::name_of(trimmed);
            let (name, kind) = name_and_type.split_once(' ').unwrap_or((name_and_type, ""));
            if self.names.write(&mut self.numbers.names, name) {
                add_line(&mut self.lines.names, name);
            }
            let kind = " ".repeat(indent) + kind;
            if self.types.write(&mut self.numbers.types, kind.clone()) {
                add_line(&mut self.lines.types, &kind);
            }
        }
    }
}

/// Parses the first line of a table. Returns an entry without events, or what is wrong.
fn parse_provider(line: &str) -> Result<Entry, &'static str> {
    let provider = line.strip_prefix("provider ");
    let Some((name, guid)) = provider.and_then(|provider| provider.split_once(' ')) else {
        return Err("expected a line `provider NAME GUID`");
    };
    let Some(guid) = guid_bytes(guid) else {
        return Err("not a GUID");
    };
    Ok(Entry {
        guid,
        name: name.replace("%20", " ").replace("%25", "%"),
        event_count: 0,
    })
}

/// The rest of the first line that begins with a word; empty if there is no such line.
fn value_of<'a>(lines: &[&'a str], word: &str) -> &'a str {
    for line in lines {
        if let Some((first, value)) = line.trim_start().split_once(' ')
            && first == word
        {
            return value;
        }
    }
    ""
}

/// A GUID in the byte order of records.
fn guid_bytes(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.split('-').collect();
    let mut bytes = u128::from_str_radix(&digits, 16).ok()?.to_be_bytes();
    for part in [0..4, 4..6, 6..8] {
        bytes.get_mut(part)?.reverse();
    }
    (digits.len() == 32).then_some(bytes)
}
