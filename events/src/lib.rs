//! The events of Windows event traces (`.etl`): open a trace, select events, print them.
//!
//! * [`input`]: traces from files, pipes and memory, packed or not.
//! * [`filter`]: events selected by provider, id, level, keyword, process, thread and time.
//! * [`rows`]: events as text, JSON lines, CSV or XML, and conditions on their fields.
//! * [`context`]: names of processes, threads, paths and addresses for the values of events.
//! * [`schemas`]: the schemas that traces define, for the events before them as well.
//! * [`survey`], [`processes`](mod@processes), [`problem`]: a summary of a trace, its processes
//!   and its faults.
//!
//! ```
//! use etl_events::input::{Input, InputOptions};
//! use etl_events::rows::{Format, RowWriter};
//! use etl_format::read::{Options, Order};
//! use etl_schema::store::SchemaStore;
//!
//! /// Prints the events of a trace, one JSON object per line.
//! fn print(path: &std::path::Path) -> etl_events::Result<()> {
//!     let mut input = Input::open(path, &InputOptions::default())?;
//!     let mut trace = input.trace(&Options::salvage())?;
//!     let mut rows = RowWriter::new(Format::JsonLines, trace.clock(), SchemaStore::default());
//!     let mut records = trace.records(Order::Time)?;
//!     while let Some(record) = records.next_record()? {
//!         let mut line = Vec::new();
//!         rows.learn(&record);
//!         rows.write(&mut line, &record);
//!         print!("{}", String::from_utf8_lossy(&line));
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Features
//! * `mmap` (default): maps files into memory. Without it, files are read in blocks.
//! * `unpack` (default): unpacks gzip, Zstandard and ZIP files.
//!
//! The crate builds for WebAssembly. There, `mmap` has no effect, and `unpack` imports functions of
//! wasm-bindgen, which the ZIP reader names for the random numbers of encrypted archives.
#![cfg_attr(not(feature = "mmap"), forbid(unsafe_code))]
#![cfg_attr(feature = "mmap", deny(unsafe_code))]

pub mod context;
mod error;
pub mod filter;
mod head_key;
pub mod header_fields;
pub mod input;
pub mod problem;
pub mod processes;
pub mod rows;
pub mod schemas;
mod subject;
pub mod survey;

pub use error::{Error, Result};
pub use subject::Subject;

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
