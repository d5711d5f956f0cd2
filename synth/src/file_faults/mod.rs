//! Changes to finished files: faults that damage bytes, and edits of single records and headers.

mod buffers;
mod bytes;
mod edit;
mod patch;
mod record;

pub(crate) use bytes::apply;
pub(crate) use edit::edit;

/// Why a file cannot be edited, in words.
type Problem = Box<dyn core::error::Error>;
