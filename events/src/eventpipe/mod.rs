//! EventPipe streams (`.nettrace`) as traces: each event of a stream becomes a record of a session
//! named [`SESSION_NAME`].
//!
//! [`Input`](crate::input::Input) converts a stream when it is opened; [`convert`] writes the trace
//! to an output.
//!
//! ```no_run
//! use std::fs::File;
//!
//! use etl_events::eventpipe::{self, ConvertOptions};
//! use etl_format::write::TraceFile;
//!
//! let stream = File::open("app.nettrace")?;
//! let trace = TraceFile::new(File::create("app.etl")?);
//! let report = eventpipe::convert(stream, trace, &ConvertOptions::default())?.report;
//! println!("{} events, {} lost", report.events, report.events_lost);
//! if let Some(offset) = report.cut_offset {
//!     println!("the stream is cut after {offset} bytes");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What becomes what
//! * Provider, id, version, level, keywords, process, thread, time, activities and payload are
//!   unchanged. A provider that the stream names without its GUID has the GUID of its name, as in
//!   ETW.
//! * An event that the stream describes gets the extended items of a TraceLogging event, with the
//!   names and types of its fields. Types that TraceLogging does not have are encoded again.
//! * The stream does not describe the events of the runtime. The tables have their names, opcodes,
//!   tasks and fields.
//! * The stack becomes an extended item.
//! * A context switch of `dotnet-trace collect-linux` is also two records of the kernel: when the
//!   thread leaves its processor, and when it runs again, with its stack.
//! * Lost events are counted, and flagged in the buffer in which they are missing.
//! * A stream that is cut becomes a trace that was not closed.

mod fields;
mod fixed;
mod header;
mod kinds;
mod losses;
mod payload;
mod report;
mod switches;
mod writer;

use std::io::Read;

use etl_format::write::{Finished, Output};
use etl_nettrace::{Options, Order, Reader};

pub use etl_nettrace::{Damage, Limits, Mode};
pub use header::SESSION_NAME;
pub use report::ConversionReport;
use writer::RecordWriter;

/// The first bytes of a stream. Earlier versions start as other files of the same library do.
const MAGIC: &[u8] = b"Nettrace";

/// Whether a file with these first bytes is an EventPipe stream.
///
/// ```
/// assert!(etl_events::eventpipe::is_stream(b"Nettrace\x14\0\0\0!FastSerialization.1"));
/// ```
#[must_use]
pub fn is_stream(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// How a stream is converted.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// What happens at damage. Default: it is skipped, and counted as a lost buffer.
    pub mode: Mode,
    /// Bounds on the memory of the reader.
    pub limits: Limits,
}

/// Why a stream cannot be converted.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The stream cannot be read. The offset is of the stream.
    #[error(transparent)]
    Read(#[from] etl_nettrace::Error),
    /// The trace cannot be written.
    #[error(transparent)]
    Write(#[from] etl_format::Error),
}

/// Converts a stream to a trace.
///
/// # Errors
/// When the stream is of a version that is not supported, when reading or writing fails, when a
/// limit would be exceeded, and with [`Mode::Strict`] at the first damage.
pub fn convert<O: Output>(
    source: impl Read,
    output: O,
    options: &ConvertOptions,
) -> Result<Finished<O, ConversionReport>, ConvertError> {
    let options = Options {
        order: Order::Time,
        mode: options.mode,
        limits: options.limits,
    };
    let mut reader = Reader::with_options(source, &options)?;
    let mut writer = RecordWriter::new(output, reader.header())?;
    loop {
        writer.add_damage(reader.damage(), reader.cut_offset())?;
        let Some(item) = reader.next_item()? else {
            break;
        };
        writer.add(&item)?;
    }
    if reader.is_complete() {
        return Ok(writer.close()?);
    }
    writer.report_mut().cut_offset = reader.cut_offset();
    Ok(writer.abandon()?)
}
