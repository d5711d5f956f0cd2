//! Reads and writes Windows event traces (`.etl`) on any OS: buffers, records, time order.
//!
//! This crate reads and writes the container and knows no provider. `etl-schema` decodes what
//! events mean. See [`constants`] for every tag of the format.
//!
//! Writes a trace in memory and reads it. For a recorded trace, use `std::fs::read`:
//!
//! ```
//! use std::io::Cursor;
//!
//! use etl_format::read::{Options, Order, Trace};
//! use etl_format::write::{File, FileHeader, Session, SessionConfig};
//!
//! let header = FileHeader { start_time: 132_000_000_000_000_000, ..FileHeader::new() };
//! let file = File::new(Cursor::new(Vec::new()));
//! let (file, _) = Session::create(file, SessionConfig::new(header))?.close(None)?;
//! let bytes: Vec<u8> = file.into_inner().into_inner();
//!
//! let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
//! let clock = trace.clock();
//! let mut records = trace.records(Order::Time)?;
//! while let Some(record) = records.next_record()? {
//!     println!("{} {}", clock.filetime(record.timestamp()), record.kind());
//! }
//! assert_eq!(records.count(), 1, "the header event is the only record");
//! # Ok::<(), etl_format::Error>(())
//! ```
//!
//! # Examples
//! The programs in `examples/` run without arguments (`cargo run --example time_order`) or on a
//! file. `file_order` and `time_order` read a trace, `salvage` reads a damaged one, `write_session`
//! writes one, `compress` compresses and decompresses its buffers.
//!
//! # Features
//! `serde`: [`FileTime`] is serialized as text. The crate needs `std`.
#![forbid(unsafe_code)]

pub mod clock;
pub mod compress;
pub mod constants;
pub mod cursor;
pub mod error;
mod file_name;
pub mod guid;
mod headers;
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
pub use guid::Guid;
pub use number::parse_number;
pub use time::{FileTime, OutOfRange, Ticks, TimeRange};

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
