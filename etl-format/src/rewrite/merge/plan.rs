//! What all passes of a merge have in common: the clock, and how the inputs become part of it.

use crate::FileHeader;
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
    /// Lost events and buffers of each input, those of its session in inputs before it left out;
    /// `None` for merged traces, which count them so.
    lost: Option<Vec<[u32; 2]>>,
}

impl Plan {
    pub fn new<S: Source>(inputs: &[Input<S>], allow: Allow) -> Result<Self> {
        let headers: Vec<_> = inputs.iter().map(|input| &input.header).collect();
        let closed = headers.iter().all(|header| header.is_closed());
        let clocks = Clocks::relate(&headers, allow)?;
        let parts: Vec<_> = inputs.iter().map(Input::part).collect();
        let added = |count: fn(&FileHeader) -> u32| {
            Part::added(
                parts
                    .iter()
                    .map(Option::as_ref)
                    .zip(headers.iter().map(move |h| count(h))),
            )
        };
        let lost = added(|h| h.events_lost).zip(added(|h| h.buffers_lost));
        let lost = Some(lost.map(|(events, buffers)| [events, buffers]).collect());
        Ok(Plan {
            clocks,
            closed,
            between: missing_between(&parts),
            lost,
        })
    }

    /// The plans for the inputs before and from `middle` on.
    pub fn halves(&self, middle: usize) -> [Self; 2] {
        [0..middle, middle..self.clocks.starts.len()].map(|inputs| Plan {
            clocks: self.clocks.part(inputs.clone()),
            closed: self.closed,
            between: 0,
            lost: self
                .lost
                .as_ref()
                .map(|lost| lost.get(inputs).unwrap_or_default().to_vec()),
        })
    }

    /// The plan for the merged traces of both halves.
    pub fn joining(&self, one: &Self, two: &Self) -> Self {
        let clocks = Clocks::joining([&one.clocks, &two.clocks]);
        Plan {
            clocks,
            lost: None,
            ..*self
        }
    }

    /// Lost events and buffers of each input, without those that another input counts, too.
    pub fn lost<S: Source>(&self, inputs: &[Input<S>]) -> Vec<[u32; 2]> {
        let own = |input: &Input<S>| [input.header.events_lost, input.header.buffers_lost];
        self.lost
            .clone()
            .unwrap_or_else(|| inputs.iter().map(own).collect())
    }
}

/// Buffers of sessions with several files that are in none of the inputs.
fn missing_between(parts: &[Option<Part>]) -> u64 {
    let parts = parts
        .iter()
        .enumerate()
        .filter_map(|(index, part)| Some((index, part.as_ref()?)));
    let lost = Part::gaps(parts).into_iter().filter(|gap| gap.is_loss);
    lost.map(|gap| gap.count).fold(0, u64::saturating_add)
}
