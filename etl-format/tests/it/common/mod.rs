//! Makes traces byte by byte, for tests of the reader.
//!
//! The layouts are defined here again on purpose, so that a wrong offset in the crate does not
//! agree with the tests.

#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

pub mod event;
pub mod header;
pub mod packed;
pub mod reading;
pub mod records;

pub use header::HeaderEvent;
pub use records::{compact, event, full, instance, message, perfinfo, system};

/// Bytes of a buffer header.
pub const BUFFER_HEADER: usize = 0x48;

/// Appends little-endian integers.
#[derive(Clone, Default)]
pub struct Out(pub Vec<u8>);

impl Out {
    pub fn u8(mut self, v: u8) -> Self {
        self.0.push(v);
        self
    }
    pub fn u16(mut self, v: u16) -> Self {
        self.0.extend(v.to_le_bytes());
        self
    }
    pub fn u32(mut self, v: u32) -> Self {
        self.0.extend(v.to_le_bytes());
        self
    }
    pub fn u64(mut self, v: u64) -> Self {
        self.0.extend(v.to_le_bytes());
        self
    }
    pub fn i64(self, v: i64) -> Self {
        self.u64(v as u64)
    }
    pub fn bytes(mut self, v: &[u8]) -> Self {
        self.0.extend(v);
        self
    }
    pub fn utf16(mut self, v: &str) -> Self {
        self.0.extend(v.encode_utf16().flat_map(u16::to_le_bytes));
        self
    }
}

/// Joins records, each aligned to 8 bytes.
pub fn lay(records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        out.extend(record);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    out
}

/// One buffer: its header's fields, and its records already laid out.
#[derive(Clone)]
pub struct Buffer {
    /// Bytes in the file, filler included. 0 for as many as the records take.
    pub size: u32,
    pub cpu: u16,
    pub seq: i64,
    pub logger: u16,
    pub state: u32,
    pub flags: u16,
    pub kind: u16,
    pub timestamp: i64,
    /// Overrides both fill fields.
    pub fill: Option<u32>,
    /// Whether the records are stored compressed, and the bytes that they then are.
    pub packed: Option<Vec<u8>>,
    pub records: Vec<u8>,
}

impl Buffer {
    /// A data buffer as the kernel writes it.
    pub fn data(size: u32, cpu: u16, seq: i64, records: &[Vec<u8>]) -> Self {
        Buffer {
            size,
            cpu,
            seq,
            logger: 7,
            state: 3,
            flags: 0x20,
            kind: 0,
            timestamp: 0,
            fill: None,
            packed: None,
            records: lay(records),
        }
    }

    /// Buffer 0, with the header event and what follows it.
    pub fn header(size: u32, event: &HeaderEvent, others: &[Vec<u8>]) -> Self {
        let mut records = vec![event.bytes()];
        records.extend_from_slice(others);
        Buffer {
            flags: 0x21,
            kind: 4,
            ..Buffer::data(size, 0, 0, &records)
        }
    }

    pub fn fill(&self) -> u32 {
        self.fill
            .unwrap_or((BUFFER_HEADER + self.records.len()) as u32)
    }

    /// The buffer as stored in a file.
    pub fn bytes(&self) -> Vec<u8> {
        let body = self.packed.as_ref().unwrap_or(&self.records);
        let size = match self.size {
            0 => (BUFFER_HEADER + body.len()) as u32,
            size => size,
        };
        let flags = self.flags | if self.packed.is_some() { 0x40 } else { 0 };
        let fill = self.fill();
        let mut out = Out::default()
            .u32(size)
            .u32(fill)
            .u32(size.wrapping_add(fill))
            .u32(0)
            .i64(self.timestamp)
            .i64(self.seq)
            .u64(0)
            .u16(self.cpu)
            .u16(self.logger)
            .u32(self.state)
            .u32(fill)
            .u16(flags)
            .u16(self.kind)
            .bytes(&[0; 16])
            .bytes(body)
            .0;
        assert!(
            out.len() <= size as usize,
            "records do not fit into the buffer"
        );
        out.resize(size as usize, 0xff);
        out
    }
}

/// A whole trace.
#[derive(Clone)]
pub struct File {
    pub event: HeaderEvent,
    /// Records of buffer 0 after the header event.
    pub extras: Vec<Vec<u8>>,
    pub buffers: Vec<Buffer>,
    /// Number of the compression format, and its encoder.
    pub format: Option<(u32, Encoder)>,
}

/// Packs the records of a buffer.
pub type Encoder = fn(&[u8]) -> Vec<u8>;

impl File {
    /// A trace of uncompressed buffers of `size` bytes.
    pub fn new(size: u32) -> Self {
        let event = HeaderEvent {
            buffer_size: size,
            ..HeaderEvent::default()
        };
        File {
            event,
            extras: Vec::new(),
            buffers: Vec::new(),
            format: None,
        }
    }

    /// The same trace as a compressed one.
    pub fn compressed(mut self, format: u32, encoder: Encoder) -> Self {
        self.event.mode |= 0x0400_0000;
        self.event.log = (2, 0);
        self.format = Some((format, encoder));
        self
    }

    /// Adds a data buffer with the next sequence number.
    pub fn buffer(mut self, cpu: u16, records: &[Vec<u8>]) -> Self {
        let seq = self.buffers.len() as i64 + 1;
        self.buffers
            .push(Buffer::data(self.event.buffer_size, cpu, seq, records));
        self
    }

    /// The file, with the header's buffer count set right.
    pub fn bytes(&self) -> Vec<u8> {
        let mut event = self.event.clone();
        event
            .buffers_written
            .get_or_insert(self.buffers.len() as u32 + 1);
        let mut first = Buffer::header(event.buffer_size, &event, &self.extras);
        if let Some((format, _)) = self.format {
            (first.size, first.state) = (first.fill().next_multiple_of(0x200), format);
        }
        let mut out = first.bytes();
        for buffer in &self.buffers {
            let mut buffer = buffer.clone();
            if let (Some((_, encode)), None) = (self.format, &buffer.packed) {
                (buffer.packed, buffer.size) = (Some(encode(&buffer.records)), 0);
            }
            out.extend(buffer.bytes());
        }
        out
    }
}

/// `count` small records with timestamps from `first` on and different payloads.
pub fn run(first: i64, count: usize) -> Vec<Vec<u8>> {
    (0..count as i64)
        .map(|i| system(true, 0x0f01, first + i, &(first + i).to_le_bytes()))
        .collect()
}

/// A trace of three processors with two buffers each, four records in each buffer: buffers of 0x400
/// bytes, 7 in all, records 1 + 24.
pub fn small() -> File {
    let mut file = File::new(0x400);
    for round in 0..2i64 {
        for cpu in 0..3u16 {
            file = file.buffer(cpu, &run(1000 + round * 100 + i64::from(cpu) * 10, 4));
        }
    }
    file
}

/// Overwrites bytes.
pub fn patch(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes[at..at + new.len()].copy_from_slice(new);
}
