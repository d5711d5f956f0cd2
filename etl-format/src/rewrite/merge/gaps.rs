//! Buffers that are missing from an input while records of other inputs are written. The missing
//! records may belong between several buffers of the merged trace, so each of these is flagged.

use super::super::flagged::Place;
use crate::constants::{BUFFER_HEADER_SIZE, BufferFlags};
use crate::error::Result;
use crate::write::record::Record;
use crate::write::{Output, Session};

/// The inputs and processors whose next buffer was lost.
#[derive(Debug)]
pub(super) struct Gaps {
    open: Vec<Gap>,
    /// Free bytes of an empty buffer.
    capacity: usize,
}

/// A missing buffer of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub input: usize,
    pub processor: u16,
}

impl Gaps {
    /// `first_lost` are the processors whose first buffer was lost.
    pub fn new(first_lost: Vec<Gap>, buffer_size: u32) -> Self {
        Gaps {
            open: first_lost,
            capacity: (buffer_size as usize).saturating_sub(BUFFER_HEADER_SIZE),
        }
    }

    /// Closes the gap before a buffer of an input that begins, and opens the gap after it.
    pub fn pass(&mut self, input: usize, place: &Place) {
        let gap = Gap {
            input,
            processor: place.processor,
        };
        self.open.retain(|other| *other != gap);
        if place.is_before_lost {
            self.open.push(gap);
        }
    }

    /// Whether a buffer of another input is missing at the time of a record.
    #[inline]
    pub fn contain(&self, input: usize, processor: u16) -> bool {
        self.open
            .iter()
            .any(|gap| gap.input != input && gap.processor == processor)
    }

    /// Writes a record in a gap. This is a function of its own because few records are in gaps.
    #[cold]
    #[inline(never)]
    pub fn write<O: Output>(
        &self,
        session: &mut Session<O>,
        processor: u16,
        record: &impl Record,
    ) -> Result<()> {
        let was_empty = session.free_bytes(processor) == self.capacity;
        let sequence = session.sequence();
        session.write(processor, record)?;
        let is_first = was_empty || session.sequence() != sequence;
        if is_first {
            session.flag(processor, BufferFlags::BUFFER_LOST)
        } else {
            Ok(())
        }
    }
}
