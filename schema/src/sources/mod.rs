//! Where schemas come from besides the tables of this crate.

pub mod eventsource;
pub mod manifest;
pub mod tmf;
pub mod trace_event_info;
pub mod tracelogging;

mod name_guid;
mod tdh;

pub use name_guid::provider_guid;
