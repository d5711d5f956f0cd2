//! Where schemas come from besides the tables of this crate.

pub mod tracelogging;

mod name_guid;

pub use name_guid::provider_guid;
