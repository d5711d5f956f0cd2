//! Where addresses come from, and how many of them resolved to what.

use serde::Serialize;

/// The events that addresses come from, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Stacks that the CLR logs after its events.
    ClrStack,
    /// Stacks in extended data items.
    ExtendedStack,
    /// Stacks that the kernel logs.
    KernelStack,
    /// Sampled instruction pointers.
    Sample,
    /// Addresses at which exceptions were thrown.
    Exception,
    /// Addresses at which precompiled code is entered, as the runtime states them.
    EntryPoint,
}

impl Origin {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// All of them, in the order of the report.
    pub const ALL: [Origin; Self::COUNT] = [
        Origin::ClrStack,
        Origin::ExtendedStack,
        Origin::KernelStack,
        Origin::Sample,
        Origin::Exception,
        Origin::EntryPoint,
    ];
}

/// What addresses of one origin resolve to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Tally {
    /// Stacks, and samples as stacks of one address.
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
    /// Native code, in a recording without any event of the kernel that could name it.
    pub not_recorded: u64,
}

impl Tally {
    /// Addresses that events of the recording can name.
    #[must_use]
    pub const fn recorded(&self) -> u64 {
        self.frames.saturating_sub(self.not_recorded)
    }

    /// Addresses in a managed method or in an image.
    #[must_use]
    pub const fn resolved(&self) -> u64 {
        self.recorded().saturating_sub(self.unresolved)
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.stacks += other.stacks;
        self.frames += other.frames;
        self.managed += other.managed;
        self.named += other.named;
        self.image += other.image;
        self.identified += other.identified;
        self.unresolved += other.unresolved;
        self.not_recorded += other.not_recorded;
    }
}

/// Tallies by origin.
pub type Tallies = [Tally; Origin::COUNT];
