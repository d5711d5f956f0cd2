//! EVENT records with extended items.

use super::Out;
use super::records::{GUID_A, GUID_B};

/// An EVENT record before it is written.
#[derive(Clone)]
pub struct Event {
    pub wide: bool,
    pub flags: u16,
    pub properties: u16,
    pub thread: u32,
    pub process: u32,
    pub timestamp: i64,
    pub provider: [u8; 16],
    pub id: u16,
    pub version: u8,
    pub channel: u8,
    pub level: u8,
    pub opcode: u8,
    pub task: u16,
    pub keyword: u64,
    pub times: (u32, u32),
    pub activity: [u8; 16],
    /// The bytes between header and payload; their flag is set when there are some.
    pub items: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Default for Event {
    fn default() -> Self {
        Event {
            wide: true,
            flags: 0,
            properties: 0,
            thread: 0x55,
            process: 0x66,
            timestamp: 0,
            provider: GUID_A,
            id: 1,
            version: 2,
            channel: 11,
            level: 4,
            opcode: 7,
            task: 0x0908,
            keyword: 0x8000_0000_0000_0010,
            times: (12, 13),
            activity: GUID_B,
            items: Vec::new(),
            payload: Vec::new(),
        }
    }
}

impl Event {
    pub fn bytes(&self) -> Vec<u8> {
        let flags = self.flags | u16::from(!self.items.is_empty());
        Out::default()
            .u16((0x50 + self.items.len() + self.payload.len()) as u16)
            .u8(if self.wide { 0x13 } else { 0x12 })
            .u8(0xc0)
            .u16(flags)
            .u16(self.properties)
            .u32(self.thread)
            .u32(self.process)
            .i64(self.timestamp)
            .bytes(&self.provider)
            .u16(self.id)
            .u8(self.version)
            .u8(self.channel)
            .u8(self.level)
            .u8(self.opcode)
            .u16(self.task)
            .u64(self.keyword)
            .u32(self.times.0)
            .u32(self.times.1)
            .bytes(&self.activity)
            .bytes(&self.items)
            .bytes(&self.payload)
            .0
    }
}

/// A chain of extended items: type and data each.
pub fn chain(items: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, (kind, data)) in items.iter().enumerate() {
        let padded = data.len().next_multiple_of(8);
        let linked = u16::from(i + 1 < items.len());
        let mut item = Out::default()
            .u16(8 + padded as u16)
            .u16(*kind)
            .u16(linked)
            .u16(data.len() as u16)
            .bytes(data)
            .0;
        item.resize(8 + padded, 0);
        out.extend(item);
    }
    out
}
