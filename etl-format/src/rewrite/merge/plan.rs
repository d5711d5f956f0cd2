//! The plan that all passes of a merge have in common: the clock, and the losses of the inputs.

use crate::error::Result;
use crate::read::{Part, Source};

use super::clocks::Clocks;
use super::inputs::Input;
use super::refusal::Allow;

/// The plan of a merge, from the headers of all its inputs.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub clocks: Clocks,
    /// Whether all sessions were closed. Otherwise the last record may be the end.
    pub closed: bool,
    /// Buffers of sessions with several files that are in none of the inputs.
    pub between: u64,
    /// Losses of each input, without losses that inputs before it count; `None` for merged traces,
    /// whose headers count them like this.
    losses: Option<Vec<Losses>>,
}

/// The losses that an input counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    pub events: u32,
    pub buffers: u32,
}

impl Plan {
    pub fn new<S: Source>(inputs: &[Input<S>], allow: Allow) -> Result<Self> {
        let headers: Vec<_> = inputs.iter().map(|input| &input.header).collect();
        let closed = headers.iter().all(|header| header.is_closed());
        let clocks = Clocks::relate(&headers, allow)?;
        let parts: Vec<_> = inputs.iter().map(Input::part).collect();
        let part_refs = parts.iter().map(Option::as_ref);
        let events = headers.iter().map(|header| header.events_lost);
        let buffers = headers.iter().map(|header| header.buffers_lost);
        let added_events = Part::added(part_refs.clone().zip(events));
        let added_buffers = Part::added(part_refs.zip(buffers));
        let losses = added_events
            .zip(added_buffers)
            .map(|(events, buffers)| Losses { events, buffers })
            .collect();
        Ok(Plan {
            clocks,
            closed,
            between: missing_between(&parts),
            losses: Some(losses),
        })
    }

    /// The plans for the inputs before and from `middle` on.
    pub fn halves(&self, middle: usize) -> [Self; 2] {
        [0..middle, middle..self.clocks.starts.len()].map(|inputs| Plan {
            clocks: self.clocks.part(inputs.clone()),
            closed: self.closed,
            between: 0,
            losses: self
                .losses
                .as_ref()
                .map(|losses| losses.get(inputs).unwrap_or_default().to_vec()),
        })
    }

    /// The plan for the merged traces of both halves.
    pub fn joining(&self, first: &Self, second: &Self) -> Self {
        Plan {
            clocks: Clocks::joining([&first.clocks, &second.clocks]),
            losses: None,
            ..*self
        }
    }

    /// Losses of each input, without losses that another input also counts.
    pub fn losses<S: Source>(&self, inputs: &[Input<S>]) -> Vec<Losses> {
        if let Some(losses) = &self.losses {
            return losses.clone();
        }
        let headers = inputs.iter().map(|input| &input.header);
        headers
            .map(|header| Losses {
                events: header.events_lost,
                buffers: header.buffers_lost,
            })
            .collect()
    }
}

/// Buffers of sessions with several files that are in none of the inputs.
fn missing_between(parts: &[Option<Part>]) -> u64 {
    let parts = parts
        .iter()
        .enumerate()
        .filter_map(|(index, part)| Some((index, part.as_ref()?)));
    let mut missing = 0u64;
    for gap in Part::gaps(parts) {
        if gap.is_loss {
            missing = missing.saturating_add(gap.count);
        }
    }
    missing
}
