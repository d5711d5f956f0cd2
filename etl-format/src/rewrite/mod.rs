//! Whole traces rewritten: merged, repaired, compressed or decompressed, relogged record by record.
//!
//! * [`merge`] writes the records of several traces of one recording into one trace.
//! * [`repair`] writes the readable records of a damaged or unclosed trace into a valid one.
//! * [`repack`] compresses or decompresses the buffers of a trace.
//! * [`Relogger`] writes the records of a trace, some of them changed or left out, into another one.
//!
//! Nothing here interprets events; what an operation must know about a provider stands in
//! [`crate::constants`].

pub mod merge;
mod relog;
pub mod repack;
pub mod repair;

pub use relog::{RelogPlan, Relogger};
