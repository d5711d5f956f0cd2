//! COMPACT records: SYSTEM records without the CPU times.

use super::Record;
use crate::constants::{PointerSize, RecordKind};
use crate::error::Result;
use crate::write::put::{Put, marker, sized};

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
    /// Raw stamp.
    pub stamp: i64,
    /// What stands behind the header.
    pub payload: &'a [u8],
}

impl Record for Compact<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        sized(out, 4, |out| {
            out.put_u16(self.version);
            out.bytes(&marker(match self.pointer_size {
                PointerSize::P4 => RecordKind::COMPACT32,
                PointerSize::P8 => RecordKind::COMPACT64,
            }));
            out.put_u16(0);
            out.put_u16(self.hook);
            out.put_u32(self.thread_id);
            out.put_u32(self.process_id);
            out.put_i64(self.stamp);
            out.bytes(self.payload);
            Ok(())
        })
    }

    fn stamp(&self) -> Option<i64> {
        Some(self.stamp)
    }
}
