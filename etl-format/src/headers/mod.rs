//! The values of headers, which [`crate::read`] decodes and [`crate::write`] encodes.

pub(crate) mod buffer;
pub(crate) mod file;

pub use buffer::BufferHeader;
pub use file::{FileHeader, TimeZone};

/// Identifies an event within its provider (`EVENT_DESCRIPTOR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EventDescriptor {
    /// Id; 0 for TraceLogging events.
    pub id: u16,
    /// Version of the payload.
    pub version: u8,
    /// Channel; 11 for TraceLogging events.
    pub channel: u8,
    /// Level, from 1 (critical) to 5 (verbose); sessions get events of level 0 at every level.
    pub level: u8,
    /// Opcode: the step of a task, such as start or stop.
    pub opcode: u8,
    /// Task: a component or an activity of the provider.
    pub task: u16,
    /// Keywords, one bit each.
    pub keyword: u64,
}
