//! Rewrites whole traces: merge, repair, compress, decompress, and relog record by record.
//!
//! * [`merge`] writes the records of several traces of one recording into one trace.
//! * [`repair`] writes the readable records of a damaged or unclosed trace into a valid one.
//! * [`repack`] compresses or decompresses the buffers of a trace.
//! * [`Relogger`] writes the records of a trace, some of them changed or left out, into another
//!   one.
//!
//! These operations do not decode events; the few hooks that they need are in [`crate::constants`].

mod callback;
mod flagged;
mod losses;
pub mod merge;
mod relog;
pub mod repack;
pub mod repair;

pub use relog::{RelogPlan, Relogger};
