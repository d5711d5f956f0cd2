//! FULL and INSTANCE: classic (MOF) events, with the class GUID in the header.

use crate::constants::offset::full;
use crate::cursor::Bytes;
use crate::{Guid, ProcessId, ThreadId, Ticks};

/// Header of a FULL record (`EVENT_TRACE_HEADER`, 0x30 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullHeader {
    /// Opcode ("type") of the event within its class.
    pub opcode: u8,
    /// Level.
    pub level: u8,
    /// Version of the payload.
    pub version: u16,
    /// The thread that wrote the event; [`ThreadId::UNKNOWN`] in some events.
    pub thread_id: ThreadId,
    /// The process that wrote the event; [`ProcessId::UNKNOWN`] in some events.
    pub process_id: ProcessId,
    /// Raw timestamp.
    pub timestamp: Ticks,
    /// Class of the event.
    pub class: Guid,
    /// Kernel time of the thread in timer ticks.
    pub kernel_time: u32,
    /// User time of the thread in timer ticks.
    pub user_time: u32,
}

impl FullHeader {
    /// Bytes of the header.
    pub const SIZE: usize = 0x30;

    pub(crate) fn parse(b: &[u8]) -> Option<Self> {
        Some(FullHeader {
            opcode: b.u8_at(full::OPCODE)?,
            level: b.u8_at(full::LEVEL)?,
            version: b.u16_at(full::VERSION)?,
            thread_id: b.u32_at(full::THREAD).map(ThreadId::new)?,
            process_id: b.u32_at(full::PROCESS).map(ProcessId::new)?,
            timestamp: b.i64_at(full::TIMESTAMP).map(Ticks::new)?,
            class: b.guid_at(full::CLASS)?,
            kernel_time: b.u32_at(full::KERNEL_TIME)?,
            user_time: b.u32_at(full::USER_TIME)?,
        })
    }
}

/// Header of an INSTANCE record: the header of a FULL record and the instance (0x48 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceHeader {
    /// The fields of a FULL record.
    pub full: FullHeader,
    /// Instance id.
    pub instance_id: u32,
    /// Instance id of the parent.
    pub parent_instance_id: u32,
    /// Class of the parent.
    pub parent_class: Guid,
}

impl InstanceHeader {
    /// Bytes of the header.
    pub const SIZE: usize = 0x48;

    pub(crate) fn parse(b: &[u8]) -> Option<Self> {
        Some(InstanceHeader {
            full: FullHeader::parse(b)?,
            instance_id: b.u32_at(full::INSTANCE)?,
            parent_instance_id: b.u32_at(full::PARENT_INSTANCE)?,
            parent_class: b.guid_at(full::PARENT_CLASS)?,
        })
    }
}
