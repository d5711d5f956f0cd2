//! Reads EventPipe streams (`.nettrace`) of versions 4 to 6: what .NET records on Linux, macOS and
//! Windows.
//!
//! A [`Reader`] reads any [`std::io::Read`] front to back, with bounded memory. It knows no
//! provider: a payload is bytes, and [`Metadata`] says what the stream states about them.
//!
//! ```
//! # mod write { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/common/write.rs")); }
//! # let stream = write::sample();
//! use etl_nettrace::{Options, Order, Reader};
//!
//! let by_time = Options { order: Order::Time, ..Options::default() };
//! let mut reader = Reader::with_options(stream.as_slice(), &by_time)?;
//! println!("process {:?}", reader.header().process_id);
//! while let Some(event) = reader.next_event()? {
//!     println!("{} {}/{}", event.timestamp, event.provider(), event.id());
//! }
//! assert!(reader.is_complete() && reader.damage().is_empty());
//! # Ok::<(), etl_nettrace::Error>(())
//! ```
//!
//! # Versions
//! | version | written by | read |
//! |---|---|---|
//! | 3 and earlier (`.netperf`) | .NET Core 2.1 | no |
//! | 4, 5 | every runtime since .NET Core 3.0; both state 4 | yes |
//! | 6 | one_collect, `dotnet-trace collect-linux` | yes |
//! | later | | no |
//!
//! The error of a version that is not read names the version.
//!
//! # Cut and damaged streams
//! A killed process leaves a stream without an end. The reader returns what is intact, and
//! [`Reader::cut_offset`] is set. Damage in a block costs the rest of this block; damage between
//! blocks ends the reading. [`Reader::damage`] lists both with their offsets. [`Mode::Strict`]
//! returns the first fault as an error.
//!
//! # Lost events
//! [`LossTracker`] finds events that the session dropped, with their thread and time.
//!
//! # Features
//! None. The crate needs `std`.
#![forbid(unsafe_code)]

mod blocks;
mod cursor;
mod damage;
mod error;
mod event;
mod event_header;
mod frame;
mod guid;
mod header;
mod held;
mod input;
mod labels;
mod losses;
mod metadata;
mod options;
mod process_info;
mod reader;
mod sequence_point;
mod sorter;
mod stacks;
mod tables;
mod threads;
mod time;

pub use damage::Damage;
pub use error::{Definition, Error, ErrorKind, Result};
pub use event::Event;
pub use guid::Guid;
pub use header::{Property, TraceHeader, Version};
pub use labels::Label;
pub use losses::{Loss, LossTracker};
pub use metadata::{Field, FieldType, Metadata, SESSION_KEYWORDS};
pub use options::{Limits, Mode, Options, Order};
pub use process_info::ProcessInfo;
pub use reader::{Item, Reader, UnknownBlock};
pub use sequence_point::{SequencePoint, ThreadSequence};
pub use threads::{RemovedThread, Thread};
pub use time::{FileTime, Ticks};

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
