//! COMPACT records: SYSTEM records without the CPU times.

use super::Record;
use super::system::put_head;
use crate::constants::{PointerSize, RecordKind};
use crate::error::Result;
use crate::write::put::{Put, sized};

/// A kernel event without CPU times: laid out as [`super::System`] up to 0x18, where the payload
/// begins.
#[derive(Clone, Copy, Debug)]
pub struct Compact<'a> {
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// Version of the payload in the low byte.
    pub version: u16,
    /// Group in the high byte, type (opcode) in the low one.
    pub hook: u16,
    /// Thread.
    pub thread_id: u32,
    /// Process.
    pub process_id: u32,
    /// Raw timestamp.
    pub timestamp: i64,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

impl Record for Compact<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        sized(out, 4, |out| {
            let kind = match self.pointer_size {
                PointerSize::P4 => RecordKind::COMPACT32,
                PointerSize::P8 => RecordKind::COMPACT64,
            };
            put_head(out, kind, self.version, self.hook, [self.thread_id, self.process_id]);
            out.put_i64(self.timestamp);
            out.bytes(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<i64> {
        Some(self.timestamp)
    }
}
