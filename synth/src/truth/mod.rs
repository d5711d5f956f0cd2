//! What a simulation did: the reference that decoders, merges and verifiers are tested against.
//!
//! An [`Observer`] receives every event with what each session did with it, how each buffer and
//! each session ended, and what exists at the end. [`JsonlWriter`] writes these facts as JSON
//! lines, [`InMemoryTruth`] keeps them, [`Timeline`] prints them for people.

mod event;
mod in_memory;
mod jsonl;
mod observer;
mod report;
mod timeline;

pub use event::{EventOutcome, RaisedEvent, RecordFormat};
pub use in_memory::{InMemoryTruth, KnownCode, KnownEvent};
pub use jsonl::{JsonlWriter, SCHEMA_VERSION};
pub use observer::{NullObserver, Observer};
pub use report::{
    BufferOutcome, BufferReport, FileRange, ImageIdentity, InventoryItem, PdbIdentity, Refusal,
    RefusalCode, SessionReport,
};
pub use timeline::Timeline;
