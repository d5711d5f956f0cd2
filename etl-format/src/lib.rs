//! Reads and writes Windows event traces (`.etl`) on any OS: buffers, records, time order.
//!
//! This crate reads and writes the container and knows no provider. `etl-schema` decodes what
//! events mean. See [`constants`] for every tag of the format.
//!
//! Writes a trace in memory and reads it. [`read::Trace::open_path`] opens a file:
//!
//! ```
//! use etl_format::{EventDescriptor, FileHeader, FileTime, Guid};
//! use etl_format::read::{Options, Order, Trace};
//! use etl_format::write::record::Event;
//! use etl_format::write::Session;
//!
//! let start = FileTime::new(132_000_000_000_000_000);
//! let mut session = Session::in_memory(FileHeader::starting_at(start))?;
//! let descriptor = EventDescriptor { id: 7, level: 4, ..EventDescriptor::default() };
//! session.write(0, &Event::new(Guid::new(1, 2, 3, [4; 8]), descriptor, 2_000).process(4, 8))?;
//! let bytes = session.finish()?;
//!
//! let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
//! let clock = trace.clock();
//! let mut records = trace.records(Order::Time)?;
//! while let Some(record) = records.next_record()? {
//!     println!("{} {}", clock.time(record.timestamp()), record.kind());
//! }
//! assert_eq!(records.count(), 2, "the header event and ours");
//! # Ok::<(), etl_format::Error>(())
//! ```
//!
//! # Examples
//! The programs in `examples/` run without arguments (`cargo run --example time_order`) or on a
//! file. `file_order` and `time_order` read a trace, `salvage` reads a damaged one, `write_session`
//! writes one, `compress` compresses and decompresses its buffers.
//!
//! # Features
//! `serde`: [`FileTime`] is serialized as text; [`Ticks`], [`ProcessId`] and [`ThreadId`] are
//! numbers.
//!
//! The crate needs `std`.
#![forbid(unsafe_code)]

mod clock;
pub mod compress;
pub mod constants;
pub mod cursor;
mod error;
mod file_name;
mod guid;
mod headers;
mod ids;
mod number;
mod pool;
pub mod read;
mod refusal;
pub mod rewrite;
pub mod same_machine;
mod time;
pub mod write;

pub use clock::Clock;
pub use error::{Error, ErrorKind, Result};
pub use file_name::file_name;
pub use guid::{Guid, ParseGuidError};
pub use headers::{BufferHeader, EventDescriptor, FileHeader, TimeZone};
pub use ids::{ProcessId, ThreadId};
pub use number::parse_number;
pub use time::{FileTime, OutOfRange, Ticks, TimeRange};

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
