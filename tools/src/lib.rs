//! Operations on whole traces, in bounded memory.
//!
//! * [`diff`]: the differences between two traces, event by event.
//! * [`slice`](mod@slice): a piece of a trace, with the state that it needs.
//! * [`scrub`](mod@scrub): a trace without names, paths and other private data.
//! * [`merge`], [`repair`], [`compress`]: several traces in one, a valid trace from a damaged one,
//!   and compressed or decompressed buffers.
//! * [`survey`], [`processes`](mod@processes): a summary of a trace, and its processes.
//! * [`filter`], [`rows`]: events selected, and written as text, JSON lines, CSV or XML.
//!
//! Each operation is a builder with a method `run`:
//!
//! ```
//!
//! use etl_format::read::{Options, Trace};
//! use etl_format::write::{FileHeader, Session};
//! use etl_tools::diff::Differ;
//!
//! let header = FileHeader { start_time: 132_000_000_000_000_000, ..FileHeader::new() };
//! let bytes = Session::in_memory(header)?.finish()?;
//!
//! let open = || Trace::open(bytes.as_slice(), &Options::salvage());
//! let summary =
//!     Differ::new().run(&mut open()?, &mut open()?, |difference| println!("{difference:?}"))?;
//! assert!(!summary.differs());
//! # Ok::<(), etl_tools::Error>(())
//! ```
//!
//! # Examples
//! Programs in `examples/`, which run as they are (`cargo run --example compare`): `compare`
//! compares two traces, `slice` extracts a piece of one, `scrub` makes one safe to share.
//!
//! # Features
//! `unpack`: the module `input`, which unpacks gzip, Zstandard and ZIP files.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::unreachable)]

mod compression;
pub mod context;
pub mod diff;
mod error;
pub mod filter;
mod head_key;
pub mod header_fields;
#[cfg(feature = "unpack")]
pub mod input;
mod on_record;
pub mod problem;
pub mod processes;
pub mod rows;
pub mod schemas;
pub mod scrub;
pub mod slice;
pub mod survey;

pub use error::{Error, Result, Side};
use on_record::OnRecord;

pub use etl_format::rewrite::{merge, repack as compress, repair};

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
