//! Applies a row of the table to a trace.

use std::collections::BTreeMap;

use super::image::{HEADER, Image, Record};
use super::number::{Place, alter, get, parse, put, ticks};
use super::which::{Which, field, provider};

/// Fields of an EVENT record's header.
const RECORD: &[(&str, Place)] = &[
    ("tid", (0x08, 4)),
    ("pid", (0x0c, 4)),
    ("id", (0x28, 2)),
    ("version", (0x2a, 1)),
    ("level", (0x2c, 1)),
    ("opcode", (0x2d, 1)),
    ("keyword", (0x30, 8)),
];

/// Fields of a buffer's header.
const BUFFER: &[(&str, Place)] = &[
    ("saved", (0x04, 4)),
    ("sequence", (0x18, 8)),
    ("processor", (0x28, 2)),
    ("offset", (0x30, 4)),
    ("flags", (0x34, 2)),
];

/// Where the payload of the header event begins in the file.
const HEADER_EVENT: usize = HEADER + 0x20;

/// Fields of the header event's payload, in a 64-bit trace.
const FILE: &[(&str, Place)] = &[
    ("processors", (0x0c, 4)),
    ("end", (0x10, 8)),
    ("timer", (0x18, 4)),
    ("mode", (0x20, 4)),
    ("buffers", (0x24, 4)),
    ("pointer", (0x2c, 4)),
    ("events-lost", (0x30, 4)),
    ("mhz", (0x34, 4)),
    ("boot", (0xf8, 8)),
    ("frequency", (0x100, 8)),
    ("start", (0x108, 8)),
    ("clock", (0x110, 4)),
    ("buffers-lost", (0x114, 4)),
];

fn named(fields: &[(&str, Place)], name: &str) -> Place {
    let found = fields.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("{name} is no field")).1
}

/// The plain file of a trace after a change; the change is a row's first column. An empty change
/// only decompresses the trace.
///
/// # Panics
/// When the change cannot be read, or a step finds no record.
#[must_use]
pub fn change(image: &Image, change: &str) -> Vec<u8> {
    let mut edits = Edits {
        image,
        changed: BTreeMap::new(),
        added: BTreeMap::new(),
    };
    let mut later: Vec<Vec<&str>> = Vec::new();
    for step in change.split(';') {
        let words: Vec<&str> = step.split_whitespace().collect();
        match words.first() {
            None => {}
            Some(
                &("header" | "buffer" | "swap-buffers" | "drop-buffers" | "double-buffer")
                | &"cut-file",
            ) => later.push(words),
            Some(verb) => edits.step(verb, &words[1..]),
        }
    }
    let mut file = edits.file();
    for words in later {
        change_file(&mut file, &words);
    }
    file.concat()
}

/// Steps that change headers, or buffers as a whole.
fn change_file(file: &mut Vec<Vec<u8>>, words: &[&str]) {
    let number = |at: usize| parse(words[at]) as usize;
    match words[0] {
        "header" => {
            let (at, width) = named(FILE, words[1]);
            alter(&mut file[0], (HEADER_EVENT + at, width), words[2]);
        }
        "buffer" => alter(&mut file[number(1)], named(BUFFER, words[2]), words[3]),
        "swap-buffers" => {
            let place = named(BUFFER, "sequence");
            let (one, other) = (get(&file[number(1)], place), get(&file[number(2)], place));
            put(&mut file[number(1)], place, other);
            put(&mut file[number(2)], place, one);
        }
        "cut-file" => file.truncate(number(1)),
        "drop-buffers" => {
            file.drain(number(1)..number(2));
            count_buffers(file);
        }
        "double-buffer" => {
            let mut copy = file[number(1)].clone();
            put(&mut copy, named(BUFFER, "sequence"), file.len() as u64);
            file.push(copy);
            count_buffers(file);
        }
        verb => panic!("{verb} is no step"),
    }
}

/// Makes the file's header count its buffers.
fn count_buffers(file: &mut [Vec<u8>]) {
    let (at, width) = named(FILE, "buffers");
    let count = file.len() as u64;
    put(&mut file[0], (HEADER_EVENT + at, width), count);
}

/// Changes of records, not yet written.
struct Edits<'i> {
    image: &'i Image,
    /// Records with other bytes, or none, by index.
    changed: BTreeMap<usize, Option<Vec<u8>>>,
    /// New records by buffer, with their times.
    added: BTreeMap<usize, Vec<(i64, Vec<u8>)>>,
}

impl Edits<'_> {
    fn step(&mut self, verb: &str, mut words: &[&str]) {
        let image = self.image;
        let found = Which::take(&mut words).of(image);
        assert!(!found.is_empty(), "{verb}: there is no such record");
        let rest = words;
        match verb {
            "drop" => self
                .changed
                .extend(found.into_iter().map(|index| (index, None))),
            "double" => {
                for index in found {
                    let record = &image.records[index];
                    let copy = (record.time, image.bytes(record).to_vec());
                    self.added.entry(record.buffer).or_default().push(copy);
                }
            }
            "again" | "shift" => {
                for index in found {
                    let time = image.records[index].time + ticks(rest[0]);
                    self.add(index, time);
                    if verb == "shift" {
                        self.changed.insert(index, None);
                    }
                }
            }
            "exchange" => {
                let name = |index: &usize| image.records[*index].name;
                let other = found.iter().find(|index| name(index) != name(&found[0]));
                let (one, other) = (found[0], *other.expect("records of two kinds"));
                self.add(one, image.records[other].time);
                self.add(other, image.records[one].time);
                self.changed.extend([(one, None), (other, None)]);
            }
            "put" => {
                for index in found {
                    let mut bytes = self.bytes(index);
                    set(&mut bytes, &image.records[index], rest[0], rest[1]);
                    self.changed.insert(index, Some(bytes));
                }
            }
            "cut" | "grow" => {
                for index in found {
                    let mut bytes = self.bytes(index);
                    let by = parse(rest[0]) as usize;
                    let size = if verb == "cut" {
                        bytes.len() - by
                    } else {
                        bytes.len() + by
                    };
                    bytes.resize(size, 0);
                    let place = (Record::size_at(&bytes), 2);
                    put(&mut bytes, place, size as u64);
                    self.changed.insert(index, Some(bytes));
                }
            }
            _ => panic!("{verb} is no step"),
        }
    }

    /// The bytes of a record as earlier steps left it.
    fn bytes(&self, index: usize) -> Vec<u8> {
        match self.changed.get(&index) {
            Some(bytes) => bytes.clone().expect("the record is still there"),
            None => self.image.bytes(&self.image.records[index]).to_vec(),
        }
    }

    /// Adds a copy of a record with another time, to the buffer of its processor at that time.
    fn add(&mut self, index: usize, time: i64) {
        let mut bytes = self.bytes(index);
        let place = (Record::time_at(&bytes), 8);
        put(&mut bytes, place, time as u64);
        let processor = self.image.buffers[self.image.records[index].buffer].processor;
        let lane = self.image.buffers.iter().enumerate().skip(1);
        let lane = lane.filter(|(_, buffer)| buffer.processor == processor);
        let begins = |at: usize| self.image.records[self.image.buffers[at].records.start].time;
        let lane: Vec<usize> = lane.map(|(at, _)| at).collect();
        let before = lane.iter().rev().find(|&&at| begins(at) <= time);
        let buffer = *before.unwrap_or(&lane[0]);
        self.added.entry(buffer).or_default().push((time, bytes));
    }

    /// The buffers of the changed file, all plain and of one size.
    fn file(mut self) -> Vec<Vec<u8>> {
        let mut file = Vec::new();
        let mut is_renumbered = false;
        for at in 0..self.image.buffers.len() {
            let bodies = self.bodies(at);
            is_renumbered |= bodies.len() != 1;
            file.extend(bodies.iter().map(|body| self.plain(at, body)));
        }
        if is_renumbered {
            for (number, buffer) in file.iter_mut().enumerate() {
                put(buffer, named(BUFFER, "sequence"), number as u64);
            }
        }
        let (at, width) = named(FILE, "mode");
        alter(&mut file[0], (HEADER_EVENT + at, width), "&0xfbffffff");
        count_buffers(&mut file);
        file
    }

    /// The records of a buffer, as several buffers if one cannot hold them, and none if none is
    /// left.
    fn bodies(&mut self, at: usize) -> Vec<Vec<u8>> {
        let buffer = &self.image.buffers[at];
        let added = self.added.remove(&at).unwrap_or_default();
        if added.is_empty() && self.changed.range(buffer.records.clone()).next().is_none() {
            return vec![buffer.body.clone()];
        }
        let mut items = Vec::new();
        for index in buffer.records.clone() {
            if !matches!(self.changed.get(&index), Some(None)) {
                items.push((self.image.records[index].time, self.bytes(index)));
            }
        }
        items.extend(added);
        // A stable sort: what is written twice stays after the first.
        items.sort_by_key(|(time, _)| *time);
        let mut bodies: Vec<Vec<u8>> = Vec::new();
        for (_, mut bytes) in items {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            match bodies.last_mut() {
                Some(body) if HEADER + body.len() + bytes.len() <= self.image.buffer_size => {
                    body.extend(bytes);
                }
                _ => bodies.push(bytes),
            }
        }
        bodies
    }

    /// A buffer with its header and filler.
    fn plain(&self, at: usize, body: &[u8]) -> Vec<u8> {
        let (size, fill) = (self.image.buffer_size, HEADER + body.len());
        let mut out = self.image.buffers[at].header.to_vec();
        out.extend(body);
        out.resize(size, 0xff);
        put(&mut out, (0, 4), size as u64);
        put(&mut out, named(BUFFER, "offset"), fill as u64);
        alter(&mut out, named(BUFFER, "flags"), "&0xffbf");
        if at == 0 {
            // Its state is the compression format of the file.
            put(&mut out, (0x2c, 4), 0);
        } else {
            put(&mut out, named(BUFFER, "saved"), fill as u64);
        }
        out
    }
}

/// Changes a field of a record.
fn set(bytes: &mut [u8], record: &Record, name: &str, value: &str) {
    match name {
        "provider" => bytes[0x18..0x28].copy_from_slice(&provider(value)),
        "time" => {
            let place = (Record::time_at(bytes), 8);
            alter(bytes, place, value);
        }
        name => {
            let place = match field(name) {
                Some((width, at)) if at < 0 => (bytes.len() - at.unsigned_abs(), width),
                Some((width, at)) => (record.payload + at.unsigned_abs(), width),
                None => named(RECORD, name),
            };
            alter(bytes, place, value);
        }
    }
}
