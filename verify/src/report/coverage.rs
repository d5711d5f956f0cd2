//! What addresses resolve to, by where they come from.

use serde::Serialize;

use crate::facts::Tally;

/// What addresses of one origin resolve to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CoverageTable {
    /// Stacks; samples count as stacks of one address.
    pub stacks: u64,
    /// Addresses.
    pub frames: u64,
    /// In a managed method.
    pub managed: u64,
    /// Of these, in a method with a name.
    pub named: u64,
    /// In a native image of the process or the kernel.
    pub image: u64,
    /// Of these, in an image with a PDB identity.
    pub identified: u64,
    /// In neither.
    pub unresolved: u64,
}

impl From<Tally> for CoverageTable {
    fn from(t: Tally) -> Self {
        CoverageTable {
            stacks: t.stacks,
            frames: t.frames,
            managed: t.managed,
            named: t.named,
            image: t.image,
            identified: t.identified,
            unresolved: t.unresolved,
        }
    }
}

/// What addresses resolve to, by origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Coverage {
    /// Stacks that the CLR logs after its events (event 82).
    pub clr_stacks: CoverageTable,
    /// Stacks in extended data items.
    pub extended_stacks: CoverageTable,
    /// Stacks that the kernel logs, in place or by key.
    pub kernel_stacks: CoverageTable,
    /// Sampled instruction pointers.
    pub samples: CoverageTable,
    /// Addresses at which exceptions were thrown.
    pub exceptions: CoverageTable,
    /// Addresses at which precompiled code is entered.
    pub entry_points: CoverageTable,
}

impl Coverage {
    pub(super) fn new(
        [clr, extended, kernel, samples, exceptions, entry_points]: [Tally; 6],
    ) -> Self {
        Coverage {
            clr_stacks: clr.into(),
            extended_stacks: extended.into(),
            kernel_stacks: kernel.into(),
            samples: samples.into(),
            exceptions: exceptions.into(),
            entry_points: entry_points.into(),
        }
    }

    /// The tables with their names.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, CoverageTable); 6] {
        [
            ("CLR stacks", self.clr_stacks),
            ("extended stacks", self.extended_stacks),
            ("kernel stacks", self.kernel_stacks),
            ("samples", self.samples),
            ("exceptions", self.exceptions),
            ("entry points", self.entry_points),
        ]
    }
}
