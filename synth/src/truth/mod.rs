//! What a simulation did: the reference that decoders, merges and verifiers are tested against.
//!
//! An [`Observer`] receives each [`Fact`]: every event with its outcome in each session, how each
//! buffer and each session ended, and what exists at the end. [`JsonlWriter`] writes the facts as
//! JSON lines, [`InMemoryTruth`] keeps them, [`Timeline`] prints them for people.

mod event;
mod event_line;
mod expected;
mod in_memory;
mod interrupt;
mod io;
mod jsonl;
mod observer;
mod report;
mod timeline;

pub use event::{EventOutcome, RaisedEvent, RecordFormat, SessionOutcome};
pub(crate) use expected::ExpectedFiles;
pub use in_memory::{
    InMemoryTruth, KnownBuffer, KnownCode, KnownEvent, KnownFault, KnownIdentity, KnownKernelFlags,
    KnownMerge,
};
pub use interrupt::InterruptReport;
pub use io::{FileOperation, IoReport, NetworkOperation};
pub use jsonl::{JsonlWriter, SCHEMA_VERSION};
pub use observer::{Fact, Observer};
pub use report::{
    BufferOutcome, BufferReport, CommandReport, FileRange, ImageIdentity, InventoryItem, Refusal,
    RefusalCode, SessionReport,
};
pub use timeline::Timeline;
