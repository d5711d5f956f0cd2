//! Changes traces as bytes, without the code that the tests judge.
//!
//! An [`Image`] is a trace as plain buffers and the places of their records; [`change()`] applies
//! one row of `tests/cases/mutations.txt` to it. Nothing here uses etl-format, etl-schema or
//! etl-synth: a fact that they have wrong must not be wrong here for the same reason.
//!
//! The rows are not `edit` nodes of the scenario language, although these also change records. An
//! `edit` node names events and fields: whoever performs it needs the names, ids and layouts of
//! etl-schema, with which the verifier decodes the changed trace. A row has ids, hooks and offsets,
//! as the documents and a hex dump show them. Besides, an `edit` node belongs to a file of a
//! simulation, and it cannot select by time or every n-th record, or exchange, drop and double
//! buffers.

mod change;
mod image;
mod number;
mod which;
mod xpress;

pub use change::change;
pub use image::{Buffer, Image, Name, Record};
pub use which::Which;
