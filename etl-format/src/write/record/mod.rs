//! Records as they are made: one struct per kind, each with its own byte layout.
//!
//! A struct borrows its payload, and encoding allocates nothing but what the output grows by.

mod compact;
mod event;
mod extended;
mod full;
mod instance;
mod message;
mod moved;
mod perfinfo;
mod raw;
mod system;

#[cfg(test)]
mod tests;

pub use compact::Compact;
pub use event::{Descriptor, Event};
pub use extended::Extended;
pub use full::Full;
pub use instance::Instance;
pub(crate) use message::give_timestamp;
pub use message::{Message, MessageMarker};
pub use moved::Moved;
pub use perfinfo::PerfInfo;
pub use raw::Raw;
pub use system::System;

use crate::error::Result;

/// Anything that can be put into a buffer as one record.
pub trait Record {
    /// Appends the record to `out`, without the alignment gap behind it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unwritable`] when the record does not fit the format (it would be longer
    /// than 65535 bytes, say); `out` is then as it was.
    fn encode(&self, out: &mut Vec<u8>) -> Result<()>;

    /// The raw timestamp, for those kinds that have one.
    fn timestamp(&self) -> Option<i64>;

    /// The timestamp with which the record is to be read: its own, or for one without, that of the
    /// place it comes from. `None` where none is known: then it takes over whatever stands before it.
    fn moment(&self) -> Option<i64> {
        self.timestamp()
    }
}

impl<R: Record + ?Sized> Record for &R {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        (**self).encode(out)
    }

    fn timestamp(&self) -> Option<i64> {
        (**self).timestamp()
    }

    fn moment(&self) -> Option<i64> {
        (**self).moment()
    }
}
