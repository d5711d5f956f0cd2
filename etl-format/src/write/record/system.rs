//! SYSTEM records: kernel events with thread, process, timestamp and CPU times.

use super::Record;
use crate::constants::{PointerSize, RecordKind};
use crate::error::Result;
use crate::write::put::{Put, marker, sized};

/// `SYSTEM_TRACE_HEADER` and a payload.
///
/// | at | | at | |
/// |---|---|---|---|
/// | 00 | u16 version | 0c | u32 process |
/// | 02 | marker | 10 | i64 timestamp |
/// | 04 | u16 size | 18 | u32 kernel time |
/// | 06 | u16 hook | 1c | u32 user time |
/// | 08 | u32 thread | 20 | payload |
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// Version of the payload in the low byte; the high byte is 0 on disk.
    pub version: u16,
    /// Group in the high byte, type (opcode) in the low one.
    pub hook: u16,
    /// Thread.
    pub thread_id: u32,
    /// Process.
    pub process_id: u32,
    /// Raw timestamp.
    pub timestamp: i64,
    /// Kernel time in timer ticks.
    pub kernel_time: u32,
    /// User time in timer ticks.
    pub user_time: u32,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

impl Record for System<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        sized(out, 4, |out| {
            let kind = match self.pointer_size {
                PointerSize::P4 => RecordKind::SYSTEM32,
                PointerSize::P8 => RecordKind::SYSTEM64,
            };
            put_head(out, kind, self.version, self.hook, [self.thread_id, self.process_id]);
            out.put_i64(self.timestamp);
            out.put_u32(self.kernel_time);
            out.put_u32(self.user_time);
            out.bytes(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<i64> {
        Some(self.timestamp)
    }
}

/// What SYSTEM and COMPACT records begin with: the bytes before the timestamp, the size still 0.
pub(super) fn put_head(
    out: &mut Vec<u8>,
    kind: RecordKind,
    version: u16,
    hook: u16,
    [thread_id, process_id]: [u32; 2],
) {
    out.put_u16(version);
    out.bytes(&marker(kind));
    out.put_u16(0);
    out.put_u16(hook);
    out.put_u32(thread_id);
    out.put_u32(process_id);
}
