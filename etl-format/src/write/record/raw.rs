//! Records from encoded bytes, and records that are copied from one buffer to another.

use super::Record;
use crate::Ticks;
use crate::constants::{MARKER_EVENT_TRACE, MARKER_TRACE, RecordKind};
use crate::error::Result;
use crate::write::put::unwritable;

/// An encoded record, such as one that was read, or one of a kind without a struct here.
///
/// The bytes must be one complete record whose size field equals their length.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    /// The record.
    pub bytes: &'a [u8],
    /// Its raw timestamp, if it has one.
    pub timestamp: Option<Ticks>,
}

impl Raw<'_> {
    /// The value of the record's size field.
    fn stated_size(&self) -> Option<usize> {
        let &[a, b, kind, mark, c, d, ..] = self.bytes else {
            return None;
        };
        if mark & MARKER_TRACE == 0 {
            return None;
        }
        let kernel_format = mark & (MARKER_TRACE | MARKER_EVENT_TRACE)
            == MARKER_TRACE | MARKER_EVENT_TRACE
            && RecordKind(kind).is_kernel();
        let field = if kernel_format { [c, d] } else { [a, b] };
        Some(u16::from_le_bytes(field).into())
    }
}

impl Record for Raw<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        if self.bytes.len() < 8 || self.stated_size() != Some(self.bytes.len()) {
            return Err(unwritable(
                "a raw record has no marker, or its size field is not the length of its bytes",
            ));
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }

    fn timestamp(&self) -> Option<Ticks> {
        self.timestamp
    }
}

/// A record with the timestamp that it was read with. A record without its own timestamp took it
/// over from the record before it, and keeps it in its new buffer.
#[derive(Clone, Copy, Debug)]
pub struct Moved<'a> {
    /// The record.
    pub raw: Raw<'a>,
    /// The timestamp that it was read with.
    pub timestamp: Ticks,
}

impl Record for Moved<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        self.raw.encode(out)
    }

    fn timestamp(&self) -> Option<Ticks> {
        self.raw.timestamp
    }

    fn effective_timestamp(&self) -> Option<Ticks> {
        Some(self.raw.timestamp.unwrap_or(self.timestamp))
    }
}
