//! The write half: records to buffers to a file, as the kernel and reloggers write them.
//!
//! Encoders and decoders are separate, so that one half reveals an error in the other. They share
//! constants and plain value types.
//!
//! ```
//! use std::io::Cursor;
//! use etl_format::constants::{EventFlags, EventProperties, PointerSize};
//! use etl_format::write::record::{Event, EventDescriptor};
//! use etl_format::write::{File, FileHeader, Session, SessionConfig};
//! use etl_format::Guid;
//!
//! # fn main() -> etl_format::Result<()> {
//! let header = FileHeader {
//!     timestamp: 1_000,
//!     start_time: 132_000_000_000_000_000,
//!     ..FileHeader::new()
//! };
//! let file = File::new(Cursor::new(Vec::new()));
//! let mut session = Session::create(file, SessionConfig::new(header))?;
//! session.write(0, &Event {
//!     pointer_size: PointerSize::P8,
//!     flags: EventFlags(0),
//!     properties: EventProperties(0),
//!     thread_id: 8,
//!     process_id: 4,
//!     timestamp: 2_000,
//!     provider: Guid::new(1, 2, 3, [4; 8]),
//!     descriptor: EventDescriptor { id: 1, level: 4, ..EventDescriptor::default() },
//!     kernel_time: 0,
//!     user_time: 0,
//!     activity: Guid::ZERO,
//!     extended: &[],
//!     payload: b"",
//! })?;
//! let (file, summary) = session.close(None)?;
//! assert_eq!(summary.events_written, 1);
//! assert_eq!(file.into_inner().into_inner().len(), 2 * 0x1_0000);
//! # Ok(())
//! # }
//! ```

mod buffer;
mod compressor;
mod header;
mod output;
pub(crate) mod packing;
pub(crate) mod put;
pub mod record;
mod session;

pub use crate::headers::{BufferHeader, FileHeader, TimeZone};
pub use buffer::fill;
pub use compressor::BufferCompressor;
pub(crate) use compressor::MAX_THREADS;
pub use output::{File, Output, Pipe};
pub use record::Record;
pub use session::{NextFile, Resume, Session, SessionConfig, SessionSummary, Style};
