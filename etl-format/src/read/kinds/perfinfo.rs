//! PERFINFO: kernel events with a timestamp only, and optional processor counters.

use crate::Ticks;
use crate::constants::offset::kernel;
use crate::cursor::Bytes;

/// Header of a PERFINFO record: 0x10 bytes, then an optional PEBS index and counters.
///
/// If a record has both, the index is before the counters; no known trace has such a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfInfoHeader<'a> {
    /// The version word as stored: payload version in the low byte, counters in bits 8 to 10, a
    /// PEBS index in bit 15.
    pub version_word: u16,
    /// Group in the high byte, type (opcode) in the low one.
    pub hook: u16,
    /// Raw timestamp.
    pub timestamp: Ticks,
    /// Index of a precise-sampling record.
    pub pebs_index: Option<u64>,
    counters: &'a [u8],
}

impl<'a> PerfInfoHeader<'a> {
    /// Bytes of the fixed part.
    pub const SIZE: usize = 0x10;

    pub(crate) fn parse(b: &'a [u8]) -> Option<Self> {
        let version_word = b.u16_at(kernel::VERSION)?;
        let counters = Self::SIZE + pebs_len(version_word)..payload_offset(version_word);
        Some(PerfInfoHeader {
            version_word,
            hook: b.u16_at(kernel::HOOK)?,
            timestamp: b.i64_at(kernel::PERFINFO_TIMESTAMP).map(Ticks::new)?,
            pebs_index: if pebs_len(version_word) > 0 {
                b.u64_at(Self::SIZE)
            } else {
                None
            },
            counters: b.get(counters).unwrap_or_default(),
        })
    }

    /// Version of the payload.
    #[must_use]
    pub fn version(&self) -> u8 {
        self.version_word as u8
    }

    /// The processor's counters.
    pub fn counters(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        self.counters
            .chunks_exact(8)
            .map(|counter| counter.u64_at(0).unwrap_or(0))
    }
}

/// Bytes of the PEBS index.
fn pebs_len(version_word: u16) -> usize {
    if version_word & 0x8000 != 0 { 8 } else { 0 }
}

/// Offset of the payload.
pub(crate) fn payload_offset(version_word: u16) -> usize {
    let counters = usize::from(version_word >> 8 & 7);
    PerfInfoHeader::SIZE + pebs_len(version_word) + counters * 8
}
