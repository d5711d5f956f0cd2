//! Buffers that are flagged with losses, and which buffers of a new trace take over the flags.
//!
//! A flag has a place by the buffers around it: events were lost between the first record of the
//! buffer and that of the processor's next one; a buffer was lost between the last record of the
//! buffer before and its first one. The buffers of a new trace hold other records, so each of these
//! places begins a buffer there, too.

use std::collections::BTreeMap;

use crate::constants::BufferFlags;
use crate::error::Result;
use crate::read::BufferEntry;
use crate::write::{Output, Session};

/// What begins or ends with the first record of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub processor: u16,
    /// Loss flags of the buffer.
    flags: BufferFlags,
    /// Whether it is the processor's first one.
    is_first: bool,
    /// Whether events were lost in the processor's buffer before.
    ends: bool,
    /// Whether a buffer was lost between this one and the processor's next one.
    pub is_before_lost: bool,
}

impl Place {
    /// Whether events were lost in the buffer.
    pub fn has_lost_events(&self) -> bool {
        self.flags.has(BufferFlags::EVENTS_LOST)
    }

    /// Prepares the new trace for the first record of the buffer.
    pub fn carry<O: Output>(&self, session: &mut Session<O>) -> Result<()> {
        if self.ends {
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
        for (index, b) in data.iter().enumerate() {
            let neighbour = |index: Option<usize>| {
                let other = index.and_then(|index| data.get(index));
                other
                    .filter(|other| other.processor == b.processor)
                    .map(|other| losses(other))
            };
            let before = neighbour(index.checked_sub(1));
            let after = neighbour(index.checked_add(1));
            let place = Place {
                processor: b.processor,
                flags: losses(b),
                is_first: before.is_none(),
                ends: before.is_some_and(|flags| flags.has(BufferFlags::EVENTS_LOST)),
                is_before_lost: after.is_some_and(|flags| flags.has(BufferFlags::BUFFER_LOST)),
            };
            if place.flags != BufferFlags(0) || place.ends || place.is_before_lost {
                flagged.0.insert(b.offset, place);
            }
        }
        flagged
    }

    /// Processors that lost a buffer before their first one.
    pub fn first_lost(&self) -> impl Iterator<Item = u16> {
        let first = |place: &&Place| place.is_first && place.flags.has(BufferFlags::BUFFER_LOST);
        self.0.values().filter(first).map(|place| place.processor)
    }

    /// Whether the flags say where events were lost.
    pub fn has_lost_events(&self) -> bool {
        self.0.values().any(Place::has_lost_events)
    }

    /// Forgets where events were lost.
    pub fn forget_lost_events(&mut self) {
        for place in self.0.values_mut() {
            place.ends = false;
            place.flags = BufferFlags(place.flags.0 & BufferFlags::BUFFER_LOST.0);
        }
    }

    /// The place at the buffer with this offset, once.
    #[inline]
    pub fn take(&mut self, offset: u64) -> Option<Place> {
        if self.0.is_empty() {
            None
        } else {
            self.0.remove(&offset)
        }
    }

    /// The places at buffers without a record that was read.
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
