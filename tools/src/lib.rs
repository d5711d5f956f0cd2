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
//! use etl_tools::diff::{self, diff};
//!
//! let header = LogFileHeader { start_time: 132_000_000_000_000_000, ..LogFileHeader::new() };
//! let file = File::new(Cursor::new(Vec::new()));
//! let (file, _) = Session::create(file, SessionConfig::new(header))?.close(None)?;
//! let bytes = file.into_inner().into_inner();
//!
//! let open = || Trace::open(bytes.as_slice(), &Options::salvage());
//! let print = |difference: diff::Difference<'_>| println!("{difference:?}");
//! let summary = diff(&mut open()?, &mut open()?, &diff::Options::default(), print, |_| {});
//! assert!(!summary.map_err(|(_which, error)| error)?.differs());
//! # Ok::<(), etl_format::Error>(())
//! ```
//!
//! # Examples
//! Programs in `examples/`, each of which runs as it is (`cargo run --example compare`): `compare` compares two traces, `slice` cuts a
//! piece out of one, `scrub` makes one for strangers. The crate has no features.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::unreachable)]

pub mod diff;
pub mod scrub;
pub mod slice;

/// Why a trace could not be made from another.
#[derive(Debug)]
pub enum Failed {
    /// The source could not be read.
    Reading(etl_format::Error),
    /// The new trace could not be written.
    Writing(etl_format::Error),
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failed::Reading(error) => write!(f, "reading: {error}"),
            Failed::Writing(error) => write!(f, "writing: {error}"),
        }
    }
}

impl std::error::Error for Failed {}

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
