//! Records on their way from one buffer to another.

use super::{Raw, Record};
use crate::error::Result;

/// A record as it was read, with the timestamp that it was read with: what one without a timestamp of its
/// own took over from the record before it, and is to keep in its new buffer.
#[derive(Clone, Copy, Debug)]
pub struct Moved<'a> {
    /// The record.
    pub raw: Raw<'a>,
    /// The timestamp it was read with.
    pub moment: i64,
}

impl Record for Moved<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        self.raw.encode(out)
    }

    fn timestamp(&self) -> Option<i64> {
        self.raw.timestamp
    }

    fn moment(&self) -> Option<i64> {
        Some(self.raw.timestamp.unwrap_or(self.moment))
    }
}
