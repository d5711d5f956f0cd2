//! How many addresses resolve to what, by the events that contain them.

use etl_analysis::address::{Tallies, Tally};
use serde::Serialize;

/// What addresses resolve to, by origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Coverage {
    /// Stacks that the CLR logs after its events (ClrStackWalk, event 82).
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

/// A row of [`Coverage`] with its title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoverageRow {
    /// Where the addresses come from.
    pub origin: &'static str,
    /// What they resolve to.
    pub tally: Tally,
}

impl Coverage {
    pub(super) fn new(
        [
            clr_stacks,
            extended_stacks,
            kernel_stacks,
            samples,
            exceptions,
            entry_points,
        ]: Tallies,
    ) -> Self {
        Coverage {
            clr_stacks,
            extended_stacks,
            kernel_stacks,
            samples,
            exceptions,
            entry_points,
        }
    }

    /// The tallies with the names of their origins, in the order of the report.
    ///
    /// ```
    /// use etl_verify::Coverage;
    ///
    /// let origins = Coverage::default().rows().map(|row| row.origin);
    /// assert_eq!(origins[3], "samples");
    /// ```
    #[must_use]
    pub fn rows(&self) -> [CoverageRow; 6] {
        [
            CoverageRow {
                origin: "CLR stacks",
                tally: self.clr_stacks,
            },
            CoverageRow {
                origin: "extended stacks",
                tally: self.extended_stacks,
            },
            CoverageRow {
                origin: "kernel stacks",
                tally: self.kernel_stacks,
            },
            CoverageRow {
                origin: "samples",
                tally: self.samples,
            },
            CoverageRow {
                origin: "exceptions",
                tally: self.exceptions,
            },
            CoverageRow {
                origin: "entry points",
                tally: self.entry_points,
            },
        ]
    }

    /// The rows with addresses.
    pub(super) fn filled(&self) -> impl Iterator<Item = CoverageRow> {
        self.rows().into_iter().filter(|row| row.tally.frames > 0)
    }
}
