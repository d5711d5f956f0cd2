//! Writes records into buffers and buffers into a file, as the kernel and reloggers do.
//!
//! Encoders and decoders are separate, so that one reveals an error in the other. They share
//! constants and value types.
//!
//! ```
//! use etl_format::{EventDescriptor, FileHeader, FileTime, Guid};
//! use etl_format::write::record::Event;
//! use etl_format::write::Session;
//!
//! let start = FileTime::new(132_000_000_000_000_000);
//! let mut session = Session::in_memory(FileHeader::starting_at(start))?;
//! let descriptor = EventDescriptor { id: 1, level: 4, ..EventDescriptor::default() };
//! let provider = Guid::new(1, 2, 3, [4; 8]);
//! session.write(0, &Event::new(provider, descriptor, 2_000).process(4, 8).payload(b"text"))?;
//! let bytes: Vec<u8> = session.finish()?;
//! assert_eq!(bytes.len(), 2 * 0x1_0000, "a buffer for the header, and one for the event");
//! # Ok::<(), etl_format::Error>(())
//! ```

mod buffer;
mod compressor;
mod header;
mod output;
pub(crate) mod packing;
pub(crate) mod put;
pub mod record;
mod session;

pub use buffer::fill;
pub use compressor::BufferCompressor;
pub(crate) use compressor::MAX_THREADS;
pub use output::{Finished, Output, Pipe, TraceFile};
pub use session::{NextFile, Resume, Session, SessionConfig, SessionSummary, Style};
