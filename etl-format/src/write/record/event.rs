//! EVENT records: manifest, TraceLogging and EventSource events.

use byteorder::{ByteOrder, LE};

use crate::headers::EventDescriptor;

use super::{Extended, Record};
use crate::Guid;
use crate::constants::{EventFlags, EventProperties, PointerSize, RecordKind};
use crate::error::Result;
use crate::write::put::{marker, sized};

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
    pub descriptor: EventDescriptor,
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
        let kind = self.pointer_size.choose(RecordKind::EVENT32, RecordKind::EVENT64);
        let d = &self.descriptor;
        // One append: a separate append for each field would check the capacity each time.
        let mut head = [0; 0x50];
        head[0x02..0x04].copy_from_slice(&marker(kind));
        LE::write_u16(&mut head[0x04..0x06], flags);
        LE::write_u16(&mut head[0x06..0x08], self.properties.0);
        LE::write_u32(&mut head[0x08..0x0c], self.thread_id);
        LE::write_u32(&mut head[0x0c..0x10], self.process_id);
        LE::write_i64(&mut head[0x10..0x18], self.timestamp);
        head[0x18..0x28].copy_from_slice(&self.provider.to_bytes());
        LE::write_u16(&mut head[0x28..0x2a], d.id);
        head[0x2a..0x2e].copy_from_slice(&[d.version, d.channel, d.level, d.opcode]);
        LE::write_u16(&mut head[0x2e..0x30], d.task);
        LE::write_u64(&mut head[0x30..0x38], d.keyword);
        LE::write_u32(&mut head[0x38..0x3c], self.kernel_time);
        LE::write_u32(&mut head[0x3c..0x40], self.user_time);
        head[0x40..].copy_from_slice(&self.activity.to_bytes());
        sized(out, 0, |out| {
            out.extend_from_slice(&head);
            let mut items = self.extended.iter().peekable();
            while let Some(item) = items.next() {
                item.encode(items.peek().is_some(), out)?;
            }
            out.extend_from_slice(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<i64> {
        Some(self.timestamp)
    }
}
