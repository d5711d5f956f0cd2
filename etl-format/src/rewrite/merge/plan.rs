//! What all passes of a merge have in common: the clock, and how the inputs become part of it.

use crate::error::Result;
use crate::read::{Part, Source};

use super::clocks::Clocks;
use super::inputs::Input;
use super::refusal::Allow;

/// The plan of a merge, from the headers of all its inputs.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub clocks: Clocks,
    /// Whether all sessions were closed: else the last record may be the end.
    pub closed: bool,
    /// Buffers of sessions with several files that are in none of the inputs.
    pub between: u64,
}

impl Plan {
    pub fn new<S: Source>(inputs: &[Input<S>], allow: Allow) -> Result<Self> {
        let headers: Vec<_> = inputs.iter().map(|input| &input.header).collect();
        let closed = headers.iter().all(|header| header.is_closed());
        let clocks = Clocks::relate(&headers, allow)?;
        Ok(Plan { clocks, closed, between: missing_between(inputs) })
    }

    /// The plans for the inputs before and from `middle` on.
    pub fn halves(&self, middle: usize) -> [Self; 2] {
        [0..middle, middle..self.clocks.starts.len()].map(|inputs| Plan {
            clocks: self.clocks.part(inputs),
            closed: self.closed,
            between: 0,
        })
    }

    /// The plan for the merged traces of both halves.
    pub fn joining(&self, one: &Self, two: &Self) -> Self {
        Plan { clocks: Clocks::joining([&one.clocks, &two.clocks]), ..*self }
    }
}

/// Buffers of sessions with several files that are in none of the inputs.
fn missing_between<S: Source>(inputs: &[Input<S>]) -> u64 {
    let parts: Vec<_> = inputs.iter().map(Input::part).collect();
    let parts = parts.iter().enumerate().filter_map(|(index, part)| Some((index, part.as_ref()?)));
    let lost = Part::gaps(parts).into_iter().filter(|gap| gap.is_loss);
    lost.map(|gap| gap.count).fold(0, u64::saturating_add)
}
