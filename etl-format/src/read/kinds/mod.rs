//! Decoders of record headers, one file per layout.

mod event;
mod full;
mod message;
mod perfinfo;
mod system;

pub use event::EventHeader;
pub(crate) use event::descriptor;
pub use full::{FullHeader, InstanceHeader};
pub use message::MessageHeader;
pub use perfinfo::PerfInfoHeader;
pub(crate) use perfinfo::payload_at as perfinfo_payload_at;
pub use system::SystemHeader;

/// The decoded header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Header<'a> {
    /// SYSTEM and COMPACT records.
    System(SystemHeader),
    /// PERFINFO records.
    PerfInfo(PerfInfoHeader<'a>),
    /// FULL records.
    Full(FullHeader),
    /// INSTANCE records.
    Instance(InstanceHeader),
    /// WPP messages.
    Message(MessageHeader),
    /// EVENT records.
    Event(EventHeader),
    /// TIMED, ERROR, WNODE and unknown kinds: only their size is known.
    Opaque,
}
