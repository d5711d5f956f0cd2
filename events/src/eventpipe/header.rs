//! The header of the trace.

use etl_format::constants::PointerSize;
use etl_format::{FileHeader, FileTime};
use etl_nettrace::TraceHeader;

/// The name of the session in the header: it marks a trace that was an EventPipe stream.
pub const SESSION_NAME: &str = FileHeader::EVENT_PIPE_NAME;

/// Holds the longest record and the header of the buffer. A larger buffer would make small traces
/// large, since a file consists of whole buffers.
const BUFFER_SIZE: u32 = 0x1_1000;

/// The most processors of a trace.
const MAX_PROCESSORS: u32 = 2048;

/// The width of pointers of a stream.
pub(super) fn pointer_size(trace: &TraceHeader) -> PointerSize {
    if trace.pointer_size == 4 {
        PointerSize::P4
    } else {
        PointerSize::P8
    }
}

/// The header of the trace of a stream, before the session is closed. The stream states no version
/// of an operating system.
pub(super) fn file_header(trace: &TraceHeader) -> FileHeader {
    let start_time = match trace.start_time {
        Some(time) => FileTime::new(time.get()),
        None => FileTime::default(),
    };
    let processors = trace.processor_count.unwrap_or(1);
    let process_id = trace.process_id.unwrap_or(0);
    let mut header = FileHeader::starting_at(start_time)
        .with_clock(trace.frequency, trace.start_ticks.get())
        .with_processors(processors.clamp(1, MAX_PROCESSORS))
        .with_logger_name(SESSION_NAME);
    header.buffer_size = BUFFER_SIZE;
    header.pointer_size = pointer_size(trace);
    header.stated_pointer_size = trace.pointer_size.into();
    header.process_id = process_id as u32;
    header.os_major = 0;
    header.os_minor = 0;
    header.build = 0;
    header.cpu_mhz = 0;
    header
}
