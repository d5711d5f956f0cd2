//! SYSTEM and COMPACT: kernel events with thread, process and timestamp.

use crate::constants::offset::kernel;
use crate::cursor::Bytes;
use crate::{ProcessId, ThreadId, Ticks};

/// Header of a SYSTEM record (0x20 bytes) or a COMPACT record (0x18, without the CPU times).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemHeader {
    /// Version of the payload; the high byte has no known meaning.
    pub version: u16,
    /// Group in the high byte, type (opcode) in the low one.
    pub hook: u16,
    /// The thread that ran when the kernel wrote the event.
    pub thread_id: ThreadId,
    /// The process of the thread.
    pub process_id: ProcessId,
    /// Raw timestamp.
    pub timestamp: Ticks,
    /// Kernel time of the thread in timer ticks; `None` in COMPACT records.
    pub kernel_time: Option<u32>,
    /// User time of the thread in timer ticks; `None` in COMPACT records.
    pub user_time: Option<u32>,
}

impl SystemHeader {
    /// Bytes of the SYSTEM form.
    pub const SIZE: usize = 0x20;

    /// Decodes the header of a SYSTEM record.
    pub(crate) fn parse(b: &[u8]) -> Option<Self> {
        Some(SystemHeader {
            kernel_time: Some(b.u32_at(kernel::KERNEL_TIME)?),
            user_time: Some(b.u32_at(kernel::USER_TIME)?),
            ..Self::parse_compact(b)?
        })
    }

    /// Decodes the header of a COMPACT record.
    pub(crate) fn parse_compact(b: &[u8]) -> Option<Self> {
        Some(SystemHeader {
            version: b.u16_at(kernel::VERSION)?,
            hook: b.u16_at(kernel::HOOK)?,
            thread_id: b.u32_at(kernel::THREAD).map(ThreadId::new)?,
            process_id: b.u32_at(kernel::PROCESS).map(ProcessId::new)?,
            timestamp: b.i64_at(kernel::TIMESTAMP).map(Ticks::new)?,
            kernel_time: None,
            user_time: None,
        })
    }
}
