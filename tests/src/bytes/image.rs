//! A trace as plain buffers, and where its records are.

use super::number::get;
use super::xpress;

/// Bytes of a buffer's header.
pub const HEADER: usize = 0x48;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// An event of a provider, by id.
    Event([u8; 16], u16),
    /// A classic event of a class, by opcode.
    Classic([u8; 16], u8),
    /// An event of the kernel, by hook id.
    Kernel(u16),
}

/// A record of an [`Image`].
#[derive(Clone, Debug)]
pub struct Record {
    /// What it is about.
    pub name: Name,
    /// Its timestamp.
    pub time: i64,
    /// Its process, if its header names one.
    pub process: Option<u32>,
    /// Index of its buffer.
    pub buffer: usize,
    /// Its place in the body of the buffer, without the bytes that align the next one.
    pub place: std::ops::Range<usize>,
    /// The place of its payload in its bytes.
    pub payload: usize,
}

impl Record {
    /// The record at a place of a buffer.
    fn at(body: &[u8], buffer: usize, start: usize) -> Self {
        let bytes = &body[start..];
        let number = |at, width| get(bytes, (at, width));
        let guid = || bytes[0x18..0x28].try_into().expect("16 bytes");
        let process = Some(number(0x0c, 4) as u32);
        let hook = || Name::Kernel(number(6, 2) as u16);
        let (name, size_at, time_at, process, payload) = match bytes[2] {
            1 | 2 => (hook(), 4, 0x10, process, 0x20),
            3 | 4 => (hook(), 4, 0x10, process, 0x18),
            0x10 | 0x11 => (hook(), 4, 8, None, 0x10),
            0x0a | 0x14 => (Name::Classic(guid(), bytes[4]), 0, 0x10, process, 0x30),
            0x12 | 0x13 => {
                let payload = 0x50 + extended(bytes);
                (
                    Name::Event(guid(), number(0x28, 2) as u16),
                    0,
                    0x10,
                    process,
                    payload,
                )
            }
            kind => panic!("an unknown kind of record: {kind:#x}"),
        };
        let size = number(size_at, 2) as usize;
        let time = number(time_at, 8) as i64;
        Record {
            name,
            time,
            process,
            buffer,
            place: start..start + size,
            payload,
        }
    }

    /// Where the header has the timestamp.
    pub fn time_at(bytes: &[u8]) -> usize {
        if matches!(bytes[2], 0x10 | 0x11) {
            8
        } else {
            0x10
        }
    }

    /// Where the header has the size of the record.
    pub fn size_at(bytes: &[u8]) -> usize {
        if matches!(bytes[2], 1..=4 | 0x10 | 0x11) {
            4
        } else {
            0
        }
    }
}

/// The length of an event's extended items.
fn extended(bytes: &[u8]) -> usize {
    let mut at = 0;
    // Each item has its size, and a bit that states whether another one follows.
    let mut more = get(bytes, (4, 2)) & 1;
    while more != 0 {
        more = get(bytes, (0x50 + at + 4, 2)) & 1;
        at += get(bytes, (0x50 + at, 2)) as usize;
    }
    at
}

/// A buffer of an [`Image`].
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its header as in the file.
    pub header: [u8; HEADER],
    /// Its records, decompressed, without filler.
    pub body: Vec<u8>,
    /// The processor that wrote it.
    pub processor: u16,
    /// Its records as indexes into those of the image.
    pub records: std::ops::Range<usize>,
}

/// A trace as plain buffers, and where its records are.
#[derive(Clone, Debug)]
pub struct Image {
    /// The buffers in the order of the file.
    pub buffers: Vec<Buffer>,
    /// The records in the order of the file.
    pub records: Vec<Record>,
    /// Indexes of the records in time order.
    pub by_time: Vec<usize>,
    /// The timestamp of the header event.
    pub start: i64,
    /// Bytes of a buffer, with its header.
    pub buffer_size: usize,
}

impl Image {
    /// Reads a trace.
    ///
    /// # Panics
    /// When the trace is damaged.
    #[must_use]
    pub fn new(file: &[u8]) -> Self {
        let (mut buffers, mut records) = (Vec::new(), Vec::new());
        let mut rest = file;
        while !rest.is_empty() {
            let (own, next) = rest.split_at(get(rest, (0, 4)) as usize);
            let header: [u8; HEADER] = own[..HEADER].try_into().expect("a header");
            let fill = get(&header, (0x30, 4)) as usize - HEADER;
            let is_compressed = get(&header, (0x34, 2)) & 0x40 != 0;
            let body = match is_compressed {
                true => xpress::decompress(&own[HEADER..], fill),
                false => own[HEADER..HEADER + fill].to_vec(),
            };
            let first = records.len();
            let mut at = 0;
            while at < body.len() {
                let record = Record::at(&body, buffers.len(), at);
                at = record.place.end.next_multiple_of(8);
                records.push(record);
            }
            let processor = get(&header, (0x28, 2)) as u16;
            buffers.push(Buffer {
                header,
                body,
                processor,
                records: first..records.len(),
            });
            rest = next;
        }
        let mut by_time: Vec<usize> = (0..records.len()).collect();
        by_time.sort_by_key(|&index| records[index].time);
        let start = records[0].time;
        let buffer_size = get(&buffers[0].body, (0x20, 4)) as usize;
        Image {
            buffers,
            records,
            by_time,
            start,
            buffer_size,
        }
    }

    /// The bytes of a record.
    #[must_use]
    pub fn bytes(&self, record: &Record) -> &[u8] {
        &self.buffers[record.buffer].body[record.place.clone()]
    }
}
