//! A trace as a list of records that can be changed and written again.

use etl_format::cursor::Bytes;
use etl_format::read::{Options, Trace};
use etl_format::write::Session;
use etl_format::write::record::Raw;

/// Bytes before the payload of an event without extended items.
pub const HEADER: usize = 0x50;

/// A record with the accessors that edits need.
#[derive(Clone, Debug)]
pub struct Rec {
    pub bytes: Vec<u8>,
    pub processor: u16,
    pub name: String,
}

impl Rec {
    pub fn is_event(&self) -> bool {
        matches!(self.bytes[2], 0x12 | 0x13) && self.bytes[3] == 0xc0
    }

    pub fn timestamp(&self) -> i64 {
        let perfinfo = matches!(self.bytes[2], 0x10 | 0x11) && self.bytes[3] == 0xc0;
        self.bytes.i64_at(if perfinfo { 8 } else { 16 }).unwrap()
    }

    pub fn at(mut self, timestamp: i64) -> Self {
        let perfinfo = matches!(self.bytes[2], 0x10 | 0x11);
        let place = if perfinfo { 8 } else { 16 };
        self.bytes[place..place + 8].copy_from_slice(&timestamp.to_le_bytes());
        self
    }

    pub fn put(&mut self, place: usize, bytes: &[u8]) {
        self.bytes[place..place + bytes.len()].copy_from_slice(bytes);
    }

    pub fn id(&self) -> u16 {
        self.bytes.u16_at(0x28).unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.bytes.u32_at(0x0c).unwrap()
    }

    pub fn tid(&self) -> u32 {
        self.bytes.u32_at(8).unwrap()
    }

    pub fn payload(&self) -> &[u8] {
        let size = usize::from(self.bytes.u16_at(0).unwrap());
        &self.bytes[HEADER..size]
    }

    /// The same event with another payload.
    pub fn with_payload(mut self, payload: &[u8]) -> Self {
        self.bytes.truncate(HEADER);
        self.bytes.extend(payload);
        let size = self.bytes.len() as u16;
        self.put(0, &size.to_le_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self
    }

    pub fn u64(&self, place: usize) -> u64 {
        self.payload().u64_at(place).unwrap()
    }

    pub fn set_u64(&mut self, place: usize, value: u64) {
        self.put(HEADER + place, &value.to_le_bytes());
    }
}

/// All records after buffer 0, in time order.
pub fn records(file: &[u8]) -> Vec<Rec> {
    let mut trace = etl_events::from_bytes(file).unwrap();
    let mut events = trace.events().without_names().with_stale_records();
    let mut all = Vec::new();
    while let Some(event) = events.next().unwrap() {
        let record = event.record();
        if record.location().buffer_offset == 0 {
            continue;
        }
        let name = event.schema().map(|schema| schema.name.to_string());
        let mut bytes = record.bytes().to_vec();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        all.push(Rec {
            bytes,
            processor: record.processor(),
            name: name.unwrap_or_default(),
        });
    }
    all
}

/// Writes records after the header of a file, in the order given.
pub fn write(file: &[u8], records: &[Rec]) -> Vec<u8> {
    let trace = Trace::open(file, &Options::default()).unwrap();
    let header = trace.header().clone();
    let end = header.end_time;
    let mut session = Session::in_memory(header).unwrap();
    for record in records {
        let size = usize::from(record.size());
        let raw = Raw {
            bytes: &record.bytes[..size],
            timestamp: Some(record.timestamp().into()),
        };
        session.write(record.processor, &raw).unwrap();
    }
    session.close(Some(end)).unwrap().output
}

impl Rec {
    /// The length without padding.
    pub fn size(&self) -> u16 {
        let system = matches!(self.bytes[2], 1..=4 | 0x10 | 0x11);
        self.bytes.u16_at(if system { 4 } else { 0 }).unwrap()
    }
}
