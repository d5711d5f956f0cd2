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
/// | 00 | u16 size | 10 | i64 stamp |
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
    /// Raw stamp.
    pub stamp: i64,
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
    /// What stands behind them.
    pub payload: &'a [u8],
}

impl Record for Event<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let rest = self.flags.0 & !EventFlags::EXTENDED_INFO.0;
        let flags = if self.extended.is_empty() { 0 } else { EventFlags::EXTENDED_INFO.0 } | rest;
        sized(out, 0, |out| {
            out.put_u16(0);
            out.bytes(&marker(match self.pointer_size {
                PointerSize::P4 => RecordKind::EVENT32,
                PointerSize::P8 => RecordKind::EVENT64,
            }));
            out.put_u16(flags);
            out.put_u16(self.properties.0);
            out.put_u32(self.thread_id);
            out.put_u32(self.process_id);
            out.put_i64(self.stamp);
            out.put_guid(self.provider);
            let d = &self.descriptor;
            out.put_u16(d.id);
            out.bytes(&[d.version, d.channel, d.level, d.opcode]);
            out.put_u16(d.task);
            out.put_u64(d.keyword);
            out.put_u32(self.kernel_time);
            out.put_u32(self.user_time);
            out.put_guid(self.activity);
            let mut items = self.extended.iter().peekable();
            while let Some(item) = items.next() {
                item.encode(items.peek().is_some(), out)?;
            }
            out.bytes(self.payload);
            Ok(())
        })
    }

    fn stamp(&self) -> Option<i64> {
        Some(self.stamp)
    }
}
