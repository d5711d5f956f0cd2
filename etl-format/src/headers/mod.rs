//! Plain values of headers, which the read half decodes and the write half encodes.

pub(crate) mod buffer;
pub(crate) mod file;

pub use buffer::BufferHeader;
pub use file::{FileHeader, TimeZone};

/// What names an event within its provider (`EVENT_DESCRIPTOR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EventDescriptor {
    /// Id; 0 for TraceLogging events.
    pub id: u16,
    /// Version of the payload.
    pub version: u8,
    /// Channel; 11 for TraceLogging events.
    pub channel: u8,
    /// Level.
    pub level: u8,
    /// Opcode.
    pub opcode: u8,
    /// Task.
    pub task: u16,
    /// Keywords.
    pub keyword: u64,
}
