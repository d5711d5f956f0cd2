//! Records that are copied from one buffer to another.

use super::{Raw, Record};
use crate::Ticks;
use crate::error::Result;

/// A record with the timestamp that it was read with. A record without its own timestamp took it
/// over from the record before it, and keeps it in its new buffer.
#[derive(Clone, Copy, Debug)]
pub struct Moved<'a> {
    /// The record.
    pub raw: Raw<'a>,
    /// The timestamp that it was read with.
    pub timestamp: Ticks,
}

impl Record for Moved<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        self.raw.encode(out)
    }

    fn timestamp(&self) -> Option<Ticks> {
        self.raw.timestamp
    }

    fn effective_timestamp(&self) -> Option<Ticks> {
        Some(self.raw.timestamp.unwrap_or(self.timestamp))
    }
}
