//! SYSTEM and COMPACT: kernel events with thread, process and timestamp.

use crate::cursor::Bytes;

/// Header of a SYSTEM record (0x20 bytes) or of a COMPACT one (0x18, without the CPU times).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemHeader {
    /// Version of the payload; the high byte has no known meaning.
    pub version: u16,
    /// Group in the high byte, type (opcode) in the low one.
    pub hook: u16,
    /// Thread.
    pub thread_id: u32,
    /// Process.
    pub process_id: u32,
    /// Raw timestamp.
    pub timestamp: i64,
    /// Kernel time of the thread in timer ticks; `None` in COMPACT records.
    pub kernel_time: Option<u32>,
    /// User time of the thread in timer ticks; `None` in COMPACT records.
    pub user_time: Option<u32>,
}

impl SystemHeader {
    /// Bytes of the SYSTEM form.
    pub const SIZE: usize = 0x20;

    pub(crate) fn parse(b: &[u8], compact: bool) -> Option<Self> {
        let times = if compact { None } else { Some((b.u32_at(0x18)?, b.u32_at(0x1c)?)) };
        Some(SystemHeader {
            version: b.u16_at(0)?,
            hook: b.u16_at(6)?,
            thread_id: b.u32_at(8)?,
            process_id: b.u32_at(0x0c)?,
            timestamp: b.i64_at(0x10)?,
            kernel_time: times.map(|t| t.0),
            user_time: times.map(|t| t.1),
        })
    }
}
