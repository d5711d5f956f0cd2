//! Records that are copied from one buffer to another.

use super::{Raw, Record};
use crate::error::Result;

/// A record with the timestamp that it was read with. A record without its own timestamp took it
/// over from the record before it, and keeps it in its new buffer.
#[derive(Clone, Copy, Debug)]
pub struct Moved<'a> {
    /// The record.
    pub raw: Raw<'a>,
    /// The timestamp that it was read with.
    pub timestamp: i64,
}

impl Record for Moved<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        self.raw.encode(out)
    }

    fn timestamp(&self) -> Option<i64> {
        self.raw.timestamp
    }

    fn effective_timestamp(&self) -> Option<i64> {
        Some(self.raw.timestamp.unwrap_or(self.timestamp))
    }
}
