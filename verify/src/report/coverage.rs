//! What addresses resolve to, by where they come from.

use etl_analysis::address::{Tallies, Tally};
use serde::Serialize;

/// What addresses resolve to, by origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Coverage {
    /// Stacks that the CLR logs after its events (event 82).
    pub clr_stacks: Tally,
    /// Stacks in extended data items.
    pub extended_stacks: Tally,
    /// Stacks that the kernel logs, in place or by key.
    pub kernel_stacks: Tally,
    /// Sampled instruction pointers.
    pub samples: Tally,
    /// Addresses at which exceptions were thrown.
    pub exceptions: Tally,
    /// Addresses at which precompiled code is entered.
    pub entry_points: Tally,
}

impl Coverage {
    pub(super) fn new(
        [clr_stacks, extended_stacks, kernel_stacks, samples, exceptions, entry_points]: Tallies,
    ) -> Self {
        Coverage { clr_stacks, extended_stacks, kernel_stacks, samples, exceptions, entry_points }
    }

    /// The tables with their names.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, Tally); 6] {
        [
            ("CLR stacks", self.clr_stacks),
            ("extended stacks", self.extended_stacks),
            ("kernel stacks", self.kernel_stacks),
            ("samples", self.samples),
            ("exceptions", self.exceptions),
            ("entry points", self.entry_points),
        ]
    }

    /// The rows with addresses.
    pub(super) fn filled(&self) -> impl Iterator<Item = (&'static str, Tally)> {
        self.rows().into_iter().filter(|(_, t)| t.frames > 0)
    }
}
