//! Packs the text of tables.

use crate::archive::{self, Archive};
use crate::block::{self, FORMED, FORMS, LINES, LineStreams, NumberStreams, OTHER, WRITTEN};
use crate::code::{Repeated, put};
use crate::index::{self, Entry};

/// Bytes of text in a block, about: larger blocks need less space, smaller ones less time.
const BLOCK: usize = 256 << 10;

/// A text that is no list of tables, or not as [`crate::unpack`] writes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PackError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// Packs the text of all tables: the inverse of [`crate::unpack`].
///
/// # Errors
/// Where a line does not have the form in which [`crate::unpack`] writes it.
pub fn pack(text: &str) -> Result<Vec<u8>, PackError> {
    let (mut sections, mut index) = (vec![Vec::new()], Vec::new());
    let (mut block, mut entries, mut size) = (Writer::default(), Vec::new(), 0);
    let mut line = 1;
    for table in text.split("\n\n") {
        if size > 0 && size + table.len() > BLOCK {
            sections.push(std::mem::take(&mut block).finish());
            index.push(std::mem::take(&mut entries));
            size = 0;
        }
        entries.push(block.table(line, table)?);
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

/// An error for the first line that would not be the same when it is unpacked.
fn compare(text: &str, packed: &[u8]) -> Result<(), PackError> {
    let archive = Archive::open(packed).unwrap_or_default();
    let blocks = (0..archive.block_count()).filter_map(|at| archive.block(at));
    let unpacked = blocks.flatten().collect::<Vec<_>>().join("\n");
    if unpacked == text {
        return Ok(());
    }
    let same = unpacked
        .lines()
        .zip(text.lines())
        .take_while(|(a, b)| a == b)
        .count();
    let back = unpacked.lines().nth(same).unwrap_or("the end");
    Err(PackError {
        line: same + 1,
        what: format!("would be unpacked as: {back}"),
    })
}

/// The streams of a block.
#[derive(Default)]
struct Writer<'a> {
    numbers: NumberStreams<Vec<u8>>,
    lines: LineStreams<String>,
    seen: [Repeated<&'a str>; 6],
    builds: Repeated<&'a str>,
    lists: Repeated<Vec<&'a str>>,
    fields: Repeated<&'a str>,
    names: Repeated<&'a str>,
    types: Repeated<String>,
}

/// Adds a line to a stream.
fn add(stream: &mut String, line: &str) {
    stream.push_str(line);
    stream.push('\n');
}

impl<'a> Writer<'a> {
    fn finish(self) -> Vec<u8> {
        block::write(self.numbers, self.lines)
    }

    /// Adds a table, whose first line has this number.
    fn table(&mut self, first: usize, table: &'a str) -> Result<Entry, PackError> {
        let is_event = |line: &str| line.starts_with("event ") || line.starts_with("other ");
        let lines: Vec<&str> = table.lines().collect();
        let head_len = lines.iter().take_while(|line| !is_event(line)).count();
        let (head, rest) = lines.split_at_checked(head_len).unwrap_or_default();
        let at = |line: usize, what: &str| PackError {
            line: first + line,
            what: what.to_owned(),
        };

        let provider = head.first().and_then(|line| line.strip_prefix("provider "));
        let (name, guid) = provider
            .and_then(|p| p.split_once(' '))
            .ok_or_else(|| at(0, "expected a line `provider NAME GUID`"))?;
        let guid = guid_bytes(guid).ok_or_else(|| at(0, "this is no GUID"))?;
        put(&mut self.numbers.head_lines, head.len() as u32);
        head.iter()
            .for_each(|line| add(&mut self.lines.heads, line));

        self.seen.iter_mut().for_each(Repeated::clear);
        self.lists.clear();
        let (mut layouts, mut events, mut last_id, mut line) = (0, 0, 0, head_len);
        for event in rest.chunk_by(|_, next| !is_event(next)) {
            let (head, parts) = event.split_first().unwrap_or((&"", &[]));
            if let Some(builds) = head.strip_prefix("other ") {
                put(&mut self.numbers.symbols, OTHER);
                if self.builds.write(&mut self.numbers.builds, builds) {
                    add(&mut self.lines.builds, builds);
                }
                self.list(parts);
            } else {
                self.event(head, parts, &mut last_id)
                    .ok_or_else(|| at(line, "expected `event ID VERSION SYMBOL`"))?;
                events += 1;
            }
            layouts += 1;
            line += event.len();
        }
        put(&mut self.numbers.events, layouts);
        let name = name.replace("%20", " ").replace("%25", "%");
        Ok(Entry {
            guid,
            name,
            event_count: events,
        })
    }

    fn event(&mut self, head: &'a str, parts: &[&'a str], last_id: &mut u16) -> Option<()> {
        let mut words = head.strip_prefix("event ")?.splitn(3, ' ');
        let id: u16 = words.next()?.parse().ok()?;
        let version: u8 = words.next()?.parse().ok()?;
        let symbol = words.next()?;
        put(&mut self.numbers.ids, id.wrapping_sub(*last_id).into());
        put(&mut self.numbers.versions, version.into());
        *last_id = id;

        let is_field = |line: &&str| line.trim_start().starts_with("field ");
        let (lines, fields) =
            parts.split_at_checked(parts.iter().take_while(|l| !is_field(l)).count())?;
        let rest_of = |word: &str| {
            let mut rests = lines.iter().map(|line| line.trim_start().split_once(' '));
            rests
                .find_map(|found| found.filter(|(first, _)| *first == word))
                .map_or("", |l| l.1)
        };
        let rests = LINES.map(rest_of);
        for (at, rest) in rests.into_iter().enumerate() {
            if self
                .seen
                .get_mut(at)?
                .write(self.numbers.lines.get_mut(at)?, rest)
            {
                add(self.lines.lines.get_mut(at)?, rest);
            }
        }
        let [task, opcode] = [rests.first()?, rests.get(1)?].map(|rest| block::name_of(rest));
        let formed = |code: &u32| {
            block::symbol(*code, task, opcode, id, version).is_some_and(|formed| formed == symbol)
        };
        let code = (FORMED..FORMED + FORMS).find(formed).unwrap_or(WRITTEN);
        put(&mut self.numbers.symbols, code);
        if code == WRITTEN {
            add(&mut self.lines.symbols, symbol);
        }
        self.list(fields);
        Some(())
    }

    fn list(&mut self, list: &[&'a str]) {
        if !self.lists.write(&mut self.numbers.lists, list.to_vec()) {
            return;
        }
        put(&mut self.numbers.list_sizes, list.len() as u32);
        for field in list {
            if !self.fields.write(&mut self.numbers.fields, field) {
                continue;
            }
            let inner = field.trim_start();
            let indent = field.len().saturating_sub(inner.len() + 2);
            let rest = inner.split_once(' ').map_or("", |(_, rest)| rest);
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, ""));
            if self.names.write(&mut self.numbers.names, name) {
                add(&mut self.lines.names, name);
            }
            let kind = " ".repeat(indent) + kind;
            if self.types.write(&mut self.numbers.types, kind.clone()) {
                add(&mut self.lines.types, &kind);
            }
        }
    }
}

/// A GUID as records hold it.
fn guid_bytes(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.split('-').collect();
    let mut bytes = u128::from_str_radix(&digits, 16).ok()?.to_be_bytes();
    for part in [0..4, 4..6, 6..8] {
        bytes.get_mut(part)?.reverse();
    }
    (digits.len() == 32).then_some(bytes)
}
