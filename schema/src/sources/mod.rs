//! Sources of schemas other than the built-in tables.

pub mod eventsource;
pub mod manifest;
pub mod tmf;
pub mod trace_event_info;
pub mod tracelogging;

mod name_guid;
pub(crate) mod perftrack;
mod tdh;

pub use name_guid::provider_guid;

/// A number in decimal or, with `0x`, in hexadecimal; white space around it does not matter.
fn number(text: &str) -> Option<u64> {
    etl_format::parse_number(text.trim())
}
