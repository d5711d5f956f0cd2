//! Records on their way from one buffer to another.

use super::{Raw, Record};
use crate::error::Result;

/// A record as it was read, with the stamp that it was read with: what one without a stamp of its
/// own took over from the record before it, and is to keep in its new buffer.
#[derive(Clone, Copy, Debug)]
pub struct Moved<'a> {
    /// The record.
    pub raw: Raw<'a>,
    /// The stamp it was read with.
    pub moment: i64,
}

impl Record for Moved<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        self.raw.encode(out)
    }

    fn stamp(&self) -> Option<i64> {
        self.raw.stamp
    }

    fn moment(&self) -> Option<i64> {
        Some(self.raw.stamp.unwrap_or(self.moment))
    }
}
