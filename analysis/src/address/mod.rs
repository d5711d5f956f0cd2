//! Addresses of stacks and samples: who owns them at which time, and what they resolved to.
//!
//! A method's code, or an image, is there from its load to its unload. What a rundown enumerates
//! has been there since before the trace, unless its load was seen. An address is looked up at the
//! time at which it was seen. If no named method covers it then, it waits, once per process and
//! address, for a rundown that may come later, and is decided at the end of the trace.

pub(crate) mod cache;
mod chunks;
mod finish;
pub(crate) mod keys;
pub(crate) mod pending;
mod ranges;
mod recent;
mod repeats;
pub(crate) mod resolve;

pub use finish::UnresolvedAddress;
pub use ranges::{Added, History, Range, Ranges, Tag};
