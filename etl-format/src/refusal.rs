//! Reasons to refuse a merge of traces.

/// A refusal to merge traces, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input {} does not go with input {}: {reason}", input + 1, with + 1)]
pub struct Refusal {
    /// Index of the input that does not fit.
    pub input: usize,
    /// Index of the input it was compared with.
    pub with: usize,
    /// Why it does not fit.
    pub reason: Reason,
}

/// A reason not to merge two traces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Another machine: a fact of the machine differs. If this is allowed, the merged trace has the
    /// fact of the first input.
    #[error("another machine: {what} {one}, there {other}")]
    Machine {
        /// The fact.
        what: &'static str,
        /// The value of the input.
        one: u64,
        /// The value of the other input.
        other: u64,
    },
    /// The machine was restarted between the sessions, or it is another machine: the counters do
    /// not start at the same time. If this is allowed, timestamps are converted by the times of
    /// day.
    #[error("the machine was restarted in between: the counters started {seconds} seconds apart")]
    Boot {
        /// Seconds between the starts of the counters.
        seconds: u64,
    },
    /// Timestamps of the input's clock cannot be converted. If this is allowed, they are copied.
    #[error("its clock cannot be related to the other: {why}")]
    Clock {
        /// What the header lacks.
        why: &'static str,
    },
    /// The machine had pointers of another width. If this is allowed, each record keeps its width.
    #[error("pointers of {one} bytes, there of {other}")]
    PointerSize {
        /// Bytes of a pointer of the input.
        one: u64,
        /// Bytes of a pointer of the other input.
        other: u64,
    },
}

impl Reason {
    /// The name by which the reason is allowed: `machine`, `boot`, `clock` or `pointer-size`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Reason::Machine { .. } => "machine",
            Reason::Boot { .. } => "boot",
            Reason::Clock { .. } => "clock",
            Reason::PointerSize { .. } => "pointer-size",
        }
    }
}
