//! PERFINFO records: kernel events with a timestamp only.

use byteorder::{LE, WriteBytesExt};

use super::Record;
use crate::constants::{PointerSize, RecordKind};
use crate::error::Result;
use crate::write::put::{marker, sized, unwritable};

/// `PERFINFO_TRACE_HEADER`: u16 version word, marker, u16 size, u16 hook, i64 timestamp; then a
/// PEBS index, then counters, then the payload.
#[derive(Clone, Copy, Debug)]
pub struct PerfInfo<'a> {
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// Version of the payload.
    pub version: u8,
    /// Group in the high byte, type (opcode) in the low one.
    pub hook: u16,
    /// Raw timestamp.
    pub timestamp: i64,
    /// Index of a precise-sampling record (bit 15 of the version word).
    pub pebs_index: Option<u64>,
    /// The processor's counters, up to 7 (bits 8 to 10 of the version word).
    pub counters: &'a [u64],
    /// The bytes after the counters.
    pub payload: &'a [u8],
}

impl Record for PerfInfo<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let counters = u16::try_from(self.counters.len())
            .ok()
            .filter(|n| *n <= 7)
            .ok_or_else(|| unwritable("a PERFINFO record carries at most 7 counters"))?;
        let pebs = u16::from(self.pebs_index.is_some()) << 15;
        sized(out, 4, |out| {
            out.write_u16::<LE>(u16::from(self.version) | counters << 8 | pebs)?;
            out.extend(marker(
                self.pointer_size.choose(RecordKind::PERFINFO32, RecordKind::PERFINFO64),
            ));
            out.write_u16::<LE>(0)?;
            out.write_u16::<LE>(self.hook)?;
            out.write_i64::<LE>(self.timestamp)?;
            if let Some(index) = self.pebs_index {
                out.write_u64::<LE>(index)?;
            }
            for counter in self.counters {
                out.write_u64::<LE>(*counter)?;
            }
            out.extend_from_slice(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<i64> {
        Some(self.timestamp)
    }
}
