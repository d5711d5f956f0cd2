//! SYSTEM and COMPACT: kernel events with thread, process and timestamp.

use crate::constants::offset::kernel;
use crate::cursor::Bytes;
use crate::{ProcessId, ThreadId, Ticks};

/// Header of a SYSTEM record (0x20 bytes) or of a COMPACT one (0x18, without the CPU times).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemHeader {
    /// Version of the payload; the high byte has no known meaning.
    pub version: u16,
    /// Group in the high byte, type (opcode) in the low one.
    pub hook: u16,
    /// Thread.
    pub thread_id: ThreadId,
    /// Process.
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

    pub(crate) fn parse(b: &[u8], compact: bool) -> Option<Self> {
        let times = || Some((b.u32_at(kernel::KERNEL_TIME)?, b.u32_at(kernel::USER_TIME)?));
        let times = if compact { None } else { Some(times()?) };
        Some(SystemHeader {
            version: b.u16_at(kernel::VERSION)?,
            hook: b.u16_at(kernel::HOOK)?,
            thread_id: b.u32_at(kernel::THREAD).map(ThreadId::new)?,
            process_id: b.u32_at(kernel::PROCESS).map(ProcessId::new)?,
            timestamp: b.i64_at(kernel::TIMESTAMP).map(Ticks::new)?,
            kernel_time: times.map(|t| t.0),
            user_time: times.map(|t| t.1),
        })
    }
}
