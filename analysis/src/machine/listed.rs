//! What the kernel's lists say of a process.

use super::Span;

/// Which lists of the kernel have a process, and when threads of it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// The list at the start of the session has it.
    pub at_start: bool,
    /// The list at its end has it.
    pub at_end: bool,
    /// Times of the first and the last start of a thread of it.
    pub threads: Option<Span>,
}
