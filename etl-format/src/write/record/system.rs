//! SYSTEM and COMPACT records: kernel events with thread, process and timestamp.

use byteorder::{LE, WriteBytesExt};

use super::Record;
use crate::constants::{PointerSize, RecordKind};
use crate::error::Result;
use crate::write::put::{marker, sized};

/// `SYSTEM_TRACE_HEADER` and a payload, or the same without CPU times: a COMPACT record.
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
    /// Kernel and user time in timer ticks; `None` makes this a COMPACT record.
    pub cpu_times: Option<(u32, u32)>,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

impl Record for System<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let (narrow, wide) = match self.cpu_times {
            Some(_) => (RecordKind::SYSTEM32, RecordKind::SYSTEM64),
            None => (RecordKind::COMPACT32, RecordKind::COMPACT64),
        };
        sized(out, 4, |out| {
            out.write_u16::<LE>(self.version)?;
            out.extend(marker(self.pointer_size.choose(narrow, wide)));
            out.write_u16::<LE>(0)?;
            out.write_u16::<LE>(self.hook)?;
            out.write_u32::<LE>(self.thread_id)?;
            out.write_u32::<LE>(self.process_id)?;
            out.write_i64::<LE>(self.timestamp)?;
            if let Some((kernel, user)) = self.cpu_times {
                out.write_u32::<LE>(kernel)?;
                out.write_u32::<LE>(user)?;
            }
            out.extend_from_slice(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<i64> {
        Some(self.timestamp)
    }
}
