//! EVENT: manifest, TraceLogging and EventSource events (`EVENT_HEADER`).

use crate::Guid;
use crate::constants::{EventFlags, EventProperties};
use crate::cursor::Bytes;
use crate::headers::EventDescriptor;

/// Header of an EVENT record (0x50 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHeader {
    /// Flags as stored.
    pub flags: EventFlags,
    /// Properties as stored.
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
    /// Activity.
    pub activity: Guid,
}

impl EventHeader {
    /// Bytes of the header.
    pub const SIZE: usize = 0x50;

    #[inline]
    pub(crate) fn parse(b: &[u8]) -> Option<Self> {
        let b: &[u8; Self::SIZE] = b.first_chunk()?;
        let b = b.as_slice();
        Some(EventHeader {
            flags: EventFlags(b.u16_at(4)?),
            properties: EventProperties(b.u16_at(6)?),
            thread_id: b.u32_at(8)?,
            process_id: b.u32_at(0x0c)?,
            timestamp: b.i64_at(0x10)?,
            provider: b.guid_at(0x18)?,
            descriptor: descriptor(b)?,
            kernel_time: b.u32_at(0x38)?,
            user_time: b.u32_at(0x3c)?,
            activity: b.guid_at(0x40)?,
        })
    }

    /// Whether the payload has the layout of the provider's manifest: no extended data can bring
    /// another schema.
    #[inline]
    #[must_use]
    pub fn has_manifest_layout(&self) -> bool {
        !self.flags.has(EventFlags::EXTENDED_INFO) && !self.flags.has(EventFlags::STRING_ONLY)
    }
}

#[inline]
pub(crate) fn descriptor(record: &[u8]) -> Option<EventDescriptor> {
    Some(EventDescriptor {
        id: record.u16_at(0x28)?,
        version: record.u8_at(0x2a)?,
        channel: record.u8_at(0x2b)?,
        level: record.u8_at(0x2c)?,
        opcode: record.u8_at(0x2d)?,
        task: record.u16_at(0x2e)?,
        keyword: record.u64_at(0x30)?,
    })
}
