//! PERFINFO records: kernel events with a timestamp only.

use byteorder::{ByteOrder, LE, WriteBytesExt};

use super::Record;
use crate::Ticks;
use crate::constants::offset::kernel;
use crate::constants::{PointerSize, RecordKind, SYSTEM_TRACE_VERSION};
use crate::error::Result;
use crate::write::put::{marker, sized, unwritable};

/// Bytes of the header.
const HEADER_SIZE: usize = 0x10;

/// Offset of the marker: kind and fixed bits.
const MARKER: usize = 0x02;

/// The largest number of counters, which the version word states in 3 bits.
const MAX_COUNTERS: usize = 7;

/// `PERFINFO_TRACE_HEADER`: u16 version word, marker, u16 size, u16 hook, i64 timestamp; then an
/// optional PEBS index, counters, and the payload.
///
/// ```
/// use etl_format::constants::hook;
/// use etl_format::write::record::{PerfInfo, Record};
///
/// let sample = PerfInfo::new(hook::SAMPLE, 2_000).payload(&[0; 16]);
/// let mut bytes = Vec::new();
/// sample.counters(&[100, 200]).encode(&mut bytes)?;
/// assert_eq!(bytes.len(), 0x10 + 2 * 8 + 16);
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PerfInfo<'a> {
    /// Width of pointers in the payload.
    pointer_size: PointerSize,
    /// Version of the payload.
    version: u8,
    /// Group in the high byte, type (opcode) in the low one.
    hook: u16,
    /// Raw timestamp.
    timestamp: Ticks,
    /// Index of a precise-sampling record (bit 15 of the version word).
    pebs_index: Option<u64>,
    /// The processor's counters, up to 7 (bits 8 to 10 of the version word).
    counters: &'a [u64],
    /// The bytes after the counters.
    payload: &'a [u8],
}

impl<'a> PerfInfo<'a> {
    /// A kernel event with a hook (group in the high byte, type in the low one) and a raw
    /// timestamp. Pointers have 64 bits, the version is 2; counters and payload are empty.
    #[must_use]
    pub fn new(hook: u16, timestamp: impl Into<Ticks>) -> Self {
        PerfInfo {
            pointer_size: PointerSize::P8,
            version: SYSTEM_TRACE_VERSION,
            hook,
            timestamp: timestamp.into(),
            pebs_index: None,
            counters: &[],
            payload: &[],
        }
    }

    /// Sets the width of pointers in the payload.
    #[must_use]
    pub fn pointer_size(mut self, pointer_size: PointerSize) -> Self {
        self.pointer_size = pointer_size;
        self
    }

    /// Sets the version of the payload.
    #[must_use]
    pub fn version(mut self, version: u8) -> Self {
        self.version = version;
        self
    }

    /// Sets the index of a precise-sampling record.
    #[must_use]
    pub fn pebs_index(mut self, index: u64) -> Self {
        self.pebs_index = Some(index);
        self
    }

    /// Sets the processor's counters, at most 7.
    #[must_use]
    pub fn counters(mut self, counters: &'a [u64]) -> Self {
        self.counters = counters;
        self
    }

    /// Sets the bytes after the counters.
    #[must_use]
    pub fn payload(mut self, payload: &'a [u8]) -> Self {
        self.payload = payload;
        self
    }
}

impl Record for PerfInfo<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        if self.counters.len() > MAX_COUNTERS {
            return Err(unwritable("a PERFINFO record carries at most 7 counters"));
        }
        let counter_bits = (self.counters.len() as u16) << 8;
        let pebs_bit = u16::from(self.pebs_index.is_some()) << 15;
        let version_word = u16::from(self.version) | counter_bits | pebs_bit;
        let kind = self
            .pointer_size
            .choose(RecordKind::PERFINFO32, RecordKind::PERFINFO64);
        // One append: a separate append for each field would check the capacity each time.
        let mut header = [0; HEADER_SIZE];
        LE::write_u16(&mut header[kernel::VERSION..], version_word);
        header[MARKER..kernel::SIZE].copy_from_slice(&marker(kind));
        LE::write_u16(&mut header[kernel::HOOK..], self.hook);
        LE::write_i64(
            &mut header[kernel::PERFINFO_TIMESTAMP..],
            self.timestamp.get(),
        );
        sized(out, kernel::SIZE, |out| {
            out.extend_from_slice(&header);
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

    fn timestamp(&self) -> Option<Ticks> {
        Some(self.timestamp)
    }
}
