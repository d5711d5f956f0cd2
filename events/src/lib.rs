//! The events of Windows event traces (`.etl`): open a trace, select events, read and print them.
//!
//! [`open`] opens a file, [`Trace::events`] selects events, and each [`Event`] has its names, its
//! decoded fields, its process and its message:
//!
//! ```
//! # fn open(_: &str) -> etl_events::Result<etl_events::Trace> {
//! #     etl_events::from_bytes(etl_events::testing::trace())
//! # }
//! let mut trace = open("trace.etl.zip")?;
//! let mut events = trace.events().provider("Microsoft-Windows-DotNETRuntime").event("GCStart*");
//! while let Some(event) = events.next()? {
//!     println!("{} {:?} {:?}", event.time(), event.process(), event.get("Count"));
//! }
//! # Ok::<(), etl_events::Error>(())
//! ```
//!
//! * [`OpenOptions`]: strict reading, memory, threads, names, schemas of manifests.
//! * [`Events`]: the filters of `etlkit dump` as methods.
//! * [`rows`]: events as text, JSON lines, CSV or XML.
//! * [`survey`]: the summary of a trace, with its [`processes`](mod@processes) and each
//!   [`problem`].
//! * [`missing`]: selected names that no event has, with the nearest names of the trace.
//!
//! The other modules are the parts of these, for programs that read records themselves: [`input`]
//! opens files, [`EventDecoder`] makes events of records, [`Selection`] combines a [`filter`] on
//! headers with [`conditions`] on fields, [`schemas`] reads the schemas that a trace defines, and
//! [`context`] the names of its processes, threads and addresses.
//!
//! # Features
//! * `mmap` (default): maps files into memory. Without it, files are read in blocks.
//! * `unpack` (default): unpacks gzip, Zstandard and ZIP files.
//!
//! The crate builds for WebAssembly. There, `mmap` has no effect, and `unpack` imports functions of
//! wasm-bindgen, which the ZIP reader names for the random numbers of encrypted archives.
#![cfg_attr(not(feature = "mmap"), forbid(unsafe_code))]
#![cfg_attr(feature = "mmap", deny(unsafe_code))]

mod columns;
pub mod conditions;
pub mod contents;
pub mod context;
mod decoder;
mod error;
mod event;
pub mod eventpipe;
pub mod filter;
mod head_key;
pub mod header_fields;
pub mod input;
pub mod missing;
pub mod problem;
pub mod processes;
pub mod rows;
pub mod schemas;
mod selection;
mod subject;
pub mod survey;
#[doc(hidden)]
pub mod testing;
pub mod time;
mod time_zone;
mod trace;

pub use decoder::{Depth, EventDecoder};
pub use error::{Error, Result};
pub use event::{Event, OwnedEvent};
pub use selection::Selection;
pub use subject::Subject;
pub use trace::{
    Events, NamedInput, NamedSource, OpenOptions, OwnedEvents, Trace, from_bytes, from_reader,
    open, open_all,
};

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
