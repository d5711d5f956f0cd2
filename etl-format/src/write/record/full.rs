//! FULL records: classic (MOF) events.

use byteorder::{LE, WriteBytesExt};

use super::Record;
use crate::Guid;
use crate::constants::{PointerSize, RecordKind};
use crate::error::Result;
use crate::write::put::{marker, sized};

/// `EVENT_TRACE_HEADER` and a payload.
///
/// | at | | at | |
/// |---|---|---|---|
/// | 00 | u16 size | 0c | u32 process |
/// | 02 | marker | 10 | i64 timestamp |
/// | 04 | u8 opcode | 18 | class GUID |
/// | 05 | u8 level | 28 | u32 kernel time |
/// | 06 | u16 version | 2c | u32 user time |
/// | 08 | u32 thread | 30 | payload |
#[derive(Clone, Copy, Debug)]
pub struct Full<'a> {
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// Opcode ("type") of the event within its class.
    pub opcode: u8,
    /// Level.
    pub level: u8,
    /// Version of the payload.
    pub version: u16,
    /// Thread; all ones when not known.
    pub thread_id: u32,
    /// Process.
    pub process_id: u32,
    /// Raw timestamp.
    pub timestamp: i64,
    /// Class of the event.
    pub class: Guid,
    /// Kernel time in timer ticks.
    pub kernel_time: u32,
    /// User time in timer ticks.
    pub user_time: u32,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

impl Full<'_> {
    /// Everything before the payload; the size is stated later.
    pub(super) fn head(&self, kind: RecordKind, out: &mut Vec<u8>) -> Result<()> {
        out.write_u16::<LE>(0)?;
        out.extend(marker(kind));
        out.push(self.opcode);
        out.push(self.level);
        out.write_u16::<LE>(self.version)?;
        out.write_u32::<LE>(self.thread_id)?;
        out.write_u32::<LE>(self.process_id)?;
        out.write_i64::<LE>(self.timestamp)?;
        out.extend(self.class.to_bytes());
        out.write_u32::<LE>(self.kernel_time)?;
        out.write_u32::<LE>(self.user_time)?;
        Ok(())
    }
}

impl Record for Full<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let kind = self.pointer_size.choose(RecordKind::FULL32, RecordKind::FULL64);
        sized(out, 0, |out| {
            self.head(kind, out)?;
            out.extend_from_slice(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<i64> {
        Some(self.timestamp)
    }
}
