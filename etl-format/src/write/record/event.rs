//! EVENT records: manifest, TraceLogging and EventSource events.

use super::{Extended, Record};
use crate::Guid;
use crate::constants::{EventFlags, EventProperties, PointerSize, RecordKind};
use crate::error::Result;
use crate::write::put::{Put, marker, sized};

/// What names an event within its provider (`EVENT_DESCRIPTOR`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Id; 0 for TraceLogging events.
    pub id: u16,
    /// Version of the payload.
    pub version: u8,
    /// Channel; 11 for TraceLogging events.
    pub channel: u8,
    /// Level.
    pub level: u8,
    /// Opcode.
    pub opcode: u8,
    /// Task.
    pub task: u16,
    /// Keywords.
    pub keyword: u64,
}

/// `EVENT_HEADER`, extended items, and a payload.
///
/// | at | | at | |
/// |---|---|---|---|
/// | 00 | u16 size | 10 | i64 timestamp |
/// | 02 | marker | 18 | provider GUID |
/// | 04 | u16 flags | 28 | descriptor, 16 bytes |
/// | 06 | u16 properties | 38 | u32 kernel time |
/// | 08 | u32 thread | 3c | u32 user time |
/// | 0c | u32 process | 40 | activity GUID |
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// Flags besides [`EventFlags::EXTENDED_INFO`], which is set just when there are items.
    pub flags: EventFlags,
    /// Properties; 0 on disk so far.
    pub properties: EventProperties,
    /// Thread.
    pub thread_id: u32,
    /// Process.
    pub process_id: u32,
    /// Raw timestamp.
    pub timestamp: i64,
    /// Provider.
    pub provider: Guid,
    /// Id, version and so on.
    pub descriptor: Descriptor,
    /// Kernel time in timer ticks, or the low half of the processor time of a private session.
    pub kernel_time: u32,
    /// User time in timer ticks, or the high half of the processor time.
    pub user_time: u32,
    /// Activity, or zero.
    pub activity: Guid,
    /// Extended items, in the order in which they are written.
    pub extended: &'a [Extended<'a>],
    /// The bytes after the extended items.
    pub payload: &'a [u8],
}

impl Record for Event<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let rest = self.flags.0 & !EventFlags::EXTENDED_INFO.0;
        let flags = if self.extended.is_empty() { 0 } else { EventFlags::EXTENDED_INFO.0 } | rest;
        let kind = match self.pointer_size {
            PointerSize::P4 => RecordKind::EVENT32,
            PointerSize::P8 => RecordKind::EVENT64,
        };
        let d = &self.descriptor;
        // One append: a separate append for each field would check the capacity each time.
        let mut head = [0; 0x50];
        head[0x02..0x04].copy_from_slice(&marker(kind));
        head[0x04..0x06].copy_from_slice(&flags.to_le_bytes());
        head[0x06..0x08].copy_from_slice(&self.properties.0.to_le_bytes());
        head[0x08..0x0c].copy_from_slice(&self.thread_id.to_le_bytes());
        head[0x0c..0x10].copy_from_slice(&self.process_id.to_le_bytes());
        head[0x10..0x18].copy_from_slice(&self.timestamp.to_le_bytes());
        head[0x18..0x28].copy_from_slice(&self.provider.to_bytes());
        head[0x28..0x2a].copy_from_slice(&d.id.to_le_bytes());
        head[0x2a..0x2e].copy_from_slice(&[d.version, d.channel, d.level, d.opcode]);
        head[0x2e..0x30].copy_from_slice(&d.task.to_le_bytes());
        head[0x30..0x38].copy_from_slice(&d.keyword.to_le_bytes());
        head[0x38..0x3c].copy_from_slice(&self.kernel_time.to_le_bytes());
        head[0x3c..0x40].copy_from_slice(&self.user_time.to_le_bytes());
        head[0x40..].copy_from_slice(&self.activity.to_bytes());
        sized(out, 0, |out| {
            out.bytes(&head);
            let mut items = self.extended.iter().peekable();
            while let Some(item) = items.next() {
                item.encode(items.peek().is_some(), out)?;
            }
            out.bytes(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<i64> {
        Some(self.timestamp)
    }
}
