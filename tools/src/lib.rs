//! What is done to traces whole: comparing two, and cutting or scrubbing one.
//!
//! * [`diff`]: what differs between two traces, event by event, in bounded memory.
//! * [`scrub`](mod@scrub): a trace without names, paths, and whatever else is to stay private.
//! * [`slice`](mod@slice): a piece of a trace, with everything that the piece needs.
//!
//! A trace with itself:
//!
//! ```
//! use std::io::Cursor;
//!
//! use etl_format::read::{Options, Trace};
//! use etl_format::write::{File, LogFileHeader, Session, SessionConfig};
//! use etl_tools::diff::Differ;
//!
//! let header = LogFileHeader { start_time: 132_000_000_000_000_000, ..LogFileHeader::new() };
//! let file = File::new(Cursor::new(Vec::new()));
//! let (file, _) = Session::create(file, SessionConfig::new(header))?.close(None)?;
//! let bytes = file.into_inner().into_inner();
//!
//! let open = || Trace::open(bytes.as_slice(), &Options::salvage());
//! let summary = Differ::new().run(&mut open()?, &mut open()?, |difference| println!("{difference:?}"))?;
//! assert!(!summary.differs());
//! # Ok::<(), etl_tools::Error>(())
//! ```
//!
//! # Examples
//! Programs in `examples/`, each of which runs as it is (`cargo run --example compare`): `compare` compares two traces, `slice` cuts a
//! piece out of one, `scrub` makes one for strangers. The crate has no features.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::unreachable)]

mod compression;
pub mod diff;
mod error;
pub mod filter;
mod on_record;
pub mod problem;
pub mod rows;
pub mod scrub;
pub mod slice;
pub mod survey;

pub use error::{Error, Result, Side};
use on_record::OnRecord;

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
