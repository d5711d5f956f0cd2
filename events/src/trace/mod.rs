//! Opened traces and their events.

mod events;
mod files;
mod opened;
mod options;
mod owned;
mod pass;
mod query;

pub use events::Events;
pub use opened::{NamedSource, Trace};
pub use options::{NamedInput, OpenOptions, from_bytes, from_reader, open, open_all};
pub use owned::OwnedEvents;
