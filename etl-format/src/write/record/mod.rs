//! Encoders of records: one struct per kind.
//!
//! A struct borrows its payload, and encoding only appends to the output.

mod event;
mod extended;
mod full;
mod message;
mod perfinfo;
mod raw;
mod system;

#[cfg(test)]
mod tests;

pub use event::Event;
pub use extended::Extended;
pub use full::{Full, Instance};
pub(crate) use message::insert_timestamp;
pub use message::{Message, MessageMarker};
pub use perfinfo::PerfInfo;
pub use raw::{Moved, Raw};
pub use system::System;

use crate::Ticks;
use crate::error::Result;

/// A record that can be encoded.
pub trait Record {
    /// Appends the record to `out`, without alignment padding.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unwritable`] if the format cannot express the record, for example
    /// because it is longer than 65535 bytes; then `out` is unchanged.
    fn encode(&self, out: &mut Vec<u8>) -> Result<()>;

    /// The record's own raw timestamp, if it has one.
    fn timestamp(&self) -> Option<Ticks>;

    /// The timestamp that a reader should return for the record: its own timestamp, or the
    /// timestamp that it was read with. `None` for the timestamp of the record before it.
    fn effective_timestamp(&self) -> Option<Ticks> {
        self.timestamp()
    }
}

impl<R: Record + ?Sized> Record for &R {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        (**self).encode(out)
    }

    fn timestamp(&self) -> Option<Ticks> {
        (**self).timestamp()
    }

    fn effective_timestamp(&self) -> Option<Ticks> {
        (**self).effective_timestamp()
    }
}
