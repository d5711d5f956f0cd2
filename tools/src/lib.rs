//! Operations on whole traces, in bounded memory.
//!
//! * [`diff`]: the differences between two traces, event by event.
//! * [`slice`](mod@slice): a piece of a trace, with the state that it needs.
//! * [`scrub`](mod@scrub): a trace without names, paths and other private data.
//! * [`merge`], [`repair`], [`compress`]: several traces in one, a valid trace from a damaged one,
//!   and compressed or decompressed buffers.
//! * [`output`]: files that are complete under their name, or not there at all.
//!
//! Each operation is a builder with a method `run`:
//!
//! ```
//! use etl_format::{FileHeader, FileTime};
//! use etl_format::read::{Options, Trace};
//! use etl_format::write::Session;
//! use etl_tools::diff::Differ;
//!
//! let header = FileHeader::starting_at(FileTime::new(132_000_000_000_000_000));
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
#![forbid(unsafe_code)]

mod compression;
mod damage;
pub mod diff;
mod error;
mod on_record;
pub mod output;
pub mod scrub;
pub mod slice;

pub use compression::Compression;
pub use error::{Error, Result, Side};
use on_record::OnRecord;

pub use etl_format::rewrite::{merge, repack as compress, repair};

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
