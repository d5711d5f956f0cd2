//! Addresses of stacks and samples: who owns them at which time, and what they resolved to.
//!
//! A method's code, or an image, is there from its load to its unload. What a rundown enumerates
//! has been there since before the trace, unless its load was seen. An address is looked up at the
//! time at which it was seen. If no named method covers it then, it waits for a rundown that may
//! come later, and is decided at the end of the trace: once per process, address, and time between
//! beginnings and ends of what covers it.

mod address_cache;
mod cache;
mod chunks;
mod keys;
mod origin;
mod pending;
mod ranges;
mod stack_cache;

pub(crate) use address_cache::{AddressCache, CachedAddress, Owner, ProcessOrigin, Resolved};
pub(crate) use cache::DirectMapped;
pub(crate) use keys::{KeyUse, Keys};
pub use origin::{Origin, Tallies, Tally};
pub(crate) use pending::{Cover, MAX_PENDING, Pending, PendingAddresses, Sighting};
pub use ranges::{Added, History, Range, Ranges, Tag};
pub(crate) use stack_cache::{CachedStack, Frame, Lookup, StackCache};

/// Where the addresses of a 64-bit process end: it has 128 TiB of them.
pub(crate) const END_OF_USER_SPACE: u64 = 1 << 47;

/// Where addresses of a 64-bit kernel begin; no managed code is there.
pub(crate) const KERNEL_SPACE: u64 = 0xffff_8000_0000_0000;
