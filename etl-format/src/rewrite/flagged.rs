//! Buffers that are flagged with losses, and which buffers of a new trace receive the flags.
//!
//! A flag means a time: events were lost between the first record of the buffer and the first
//! record of the processor's next buffer; a buffer was lost between the last record of the previous
//! buffer and the first record of this one. The buffers of a new trace contain other records, so at
//! each of these times a new buffer begins there.

use std::collections::BTreeMap;

use crate::constants::BufferFlags;
use crate::error::Result;
use crate::read::BufferEntry;
use crate::write::{Output, Session};

/// The losses that begin or end with the first record of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub processor: u16,
    /// Loss flags of the buffer.
    flags: BufferFlags,
    /// Whether this is the processor's first buffer.
    is_first: bool,
    /// Whether events were lost in the processor's previous buffer.
    ends_loss: bool,
    /// Whether a buffer was lost between this buffer and the processor's next buffer.
    pub is_before_lost: bool,
}

impl Place {
    /// Whether events were lost in the buffer.
    pub fn has_lost_events(&self) -> bool {
        self.flags.has(BufferFlags::EVENTS_LOST)
    }

    /// Prepares the new trace for the first record of the buffer.
    pub fn carry<O: Output>(&self, session: &mut Session<O>) -> Result<()> {
        if self.ends_loss {
            session.end_losses(self.processor)?;
        }
        if self.flags != BufferFlags(0) {
            session.carry_losses(self.processor, self.flags)?;
        }
        Ok(())
    }
}

/// The places of losses in a trace, by the offsets of buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Flagged(BTreeMap<u64, Place>);

impl Flagged {
    pub fn of(buffers: &[BufferEntry]) -> Self {
        let mut flagged = Flagged::default();
        if buffers.iter().all(|b| losses(b) == BufferFlags(0)) {
            return flagged;
        }
        let mut data: Vec<_> = buffers
            .iter()
            .filter(|b| !b.is_header() && !b.rebuilt)
            .collect();
        data.sort_by_key(|b| (b.processor, b.first_timestamp, b.sequence_number));
        for buffers in data.chunk_by(|b, next| b.processor == next.processor) {
            for (index, b) in buffers.iter().enumerate() {
                let previous = index.checked_sub(1).and_then(|index| buffers.get(index));
                let next = buffers.get(index + 1);
                let place = Place {
                    processor: b.processor,
                    flags: losses(b),
                    is_first: previous.is_none(),
                    ends_loss: previous.is_some_and(|b| losses(b).has(BufferFlags::EVENTS_LOST)),
                    is_before_lost: next.is_some_and(|b| losses(b).has(BufferFlags::BUFFER_LOST)),
                };
                if place.flags != BufferFlags(0) || place.ends_loss || place.is_before_lost {
                    flagged.0.insert(b.offset, place);
                }
            }
        }
        flagged
    }

    /// Processors that lost a buffer before their first buffer.
    pub fn first_lost(&self) -> impl Iterator<Item = u16> {
        self.0
            .values()
            .filter(|place| place.is_first && place.flags.has(BufferFlags::BUFFER_LOST))
            .map(|place| place.processor)
    }

    /// Whether a buffer is flagged with lost events.
    pub fn has_lost_events(&self) -> bool {
        self.0.values().any(Place::has_lost_events)
    }

    /// Removes the flags for lost events.
    pub fn forget_lost_events(&mut self) {
        for place in self.0.values_mut() {
            place.ends_loss = false;
            place.flags = place.flags.without(BufferFlags::EVENTS_LOST);
        }
    }

    /// Takes the place at the buffer with this offset.
    #[inline]
    pub fn take(&mut self, offset: u64) -> Option<Place> {
        if self.0.is_empty() {
            None
        } else {
            self.0.remove(&offset)
        }
    }

    /// Takes the places at buffers of which no record was read.
    pub fn take_rest(&mut self) -> impl Iterator<Item = Place> + use<> {
        std::mem::take(&mut self.0).into_values()
    }
}

/// The loss flags of a buffer.
fn losses(buffer: &BufferEntry) -> BufferFlags {
    let losses = BufferFlags::EVENTS_LOST | BufferFlags::BUFFER_LOST;
    if buffer.is_header() {
        BufferFlags(0)
    } else {
        BufferFlags(buffer.flags.0 & losses.0)
    }
}
