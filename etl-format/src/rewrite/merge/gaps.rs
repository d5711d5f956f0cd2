//! Buffers that are missing from one input while records of the others are written: as they may
//! belong between several buffers of the merged trace, each of these is flagged.

use super::super::flagged::Place;
use crate::constants::{BUFFER_HEADER_SIZE, BufferFlags};
use crate::error::Result;
use crate::write::record::Record;
use crate::write::{Output, Session};

/// The inputs and processors whose next buffer was lost.
#[derive(Debug)]
pub(super) struct Gaps {
    open: Vec<(usize, u16)>,
    /// Free bytes of an empty buffer.
    capacity: usize,
}

impl Gaps {
    /// Of these, the first buffer was lost.
    pub fn new(first_lost: Vec<(usize, u16)>, buffer_size: u32) -> Self {
        Gaps {
            open: first_lost,
            capacity: (buffer_size as usize).saturating_sub(BUFFER_HEADER_SIZE),
        }
    }

    /// A buffer of an input begins.
    pub fn pass(&mut self, input: usize, place: &Place) {
        self.open.retain(|of| *of != (input, place.processor));
        if place.is_before_lost {
            self.open.push((input, place.processor));
        }
    }

    /// Whether a record of an input comes while a buffer of another one is missing.
    #[inline]
    pub fn contain(&self, input: usize, processor: u16) -> bool {
        self.open
            .iter()
            .any(|&(other, of)| other != input && of == processor)
    }

    /// Writes such a record. Few are: the code for all others stays small.
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
