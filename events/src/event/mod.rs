//! The event: one view of a record, with its names, its schema and its decoded fields.

mod head;
mod items;
mod message;
mod names;
mod origin;
mod owned;
mod prepared;
mod seconds;
mod view;

pub(crate) use head::{Head, Heads, without_common};
pub(crate) use items::{Instance, Items};
pub(crate) use message::message;
pub(crate) use names::{learned_provider, provider_name};
pub(crate) use origin::Origin;
pub use owned::OwnedEvent;
pub(crate) use prepared::{CsvValues, JsonMembers};
pub use view::Event;
