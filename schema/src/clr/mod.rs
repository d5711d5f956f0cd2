//! Keywords and enumerations of the CLR's providers.

pub mod collection;
pub mod keyword;

/// The two enumerations of the rundown provider. With both keywords the start one comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Enumeration {
    /// `DCStart` events: what existed when the session enabled the provider.
    Start,
    /// `DCEnd` events: what exists when the session is about to stop.
    End,
}

impl Enumeration {
    /// Both.
    pub const ALL: [Enumeration; 2] = [Enumeration::Start, Enumeration::End];

    /// `start` or `end`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Enumeration::Start => "start",
            Enumeration::End => "end",
        }
    }
}
