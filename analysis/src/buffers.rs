//! Compares the buffers of a file with each other: their numbers, processors and times.

use etl_format::Ticks;
use etl_format::constants::LogFileMode;
use etl_format::read::{BufferEntry, Source, Trace};

/// A buffer that contradicts another buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Its offset in the file.
    pub offset: u64,
    /// Its processor.
    pub processor: u16,
    /// Its raw first timestamp.
    pub first_timestamp: Ticks,
}

impl Misplaced {
    fn of(buffer: &BufferEntry) -> Self {
        let &BufferEntry {
            offset,
            processor,
            first_timestamp,
            ..
        } = buffer;
        Misplaced {
            offset,
            processor,
            first_timestamp,
        }
    }
}

/// Buffers that contradict others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contradictions {
    /// Buffers that begin before the buffer with the previous number, on the same processor.
    pub misnumbered: Vec<Misplaced>,
    /// Buffers that have the begin and the size of another buffer of their processor.
    pub doubled: Vec<Misplaced>,
}

impl Contradictions {
    /// Compares the buffers of a trace. Finds nothing if processors share their buffers, or numbers
    /// begin again in the middle of the file.
    pub fn of<S: Source>(trace: &Trace<S>) -> Self {
        if !has_processors(trace) {
            return Contradictions::default();
        }
        let session_start = trace.header().timestamp;
        let mut buffers = Vec::new();
        for buffer in trace.buffers() {
            // A buffer without a record that has a time begins with the start of the session.
            let has_time = buffer.first_timestamp > session_start;
            if has_time && !buffer.rebuilt && !buffer.is_header() {
                buffers.push(buffer);
            }
        }
        let mut found = Contradictions::default();
        buffers.sort_by_key(|b| (b.processor, b.sequence_number, b.offset));
        for (before, buffer) in buffers.iter().zip(buffers.iter().skip(1)) {
            if buffer.processor == before.processor
                && buffer.first_timestamp < before.first_timestamp
            {
                found.misnumbered.push(Misplaced::of(buffer));
            }
        }
        buffers.sort_by_key(|b| (begin_and_size(b), b.offset));
        for (before, buffer) in buffers.iter().zip(buffers.iter().skip(1)) {
            if begin_and_size(buffer) == begin_and_size(before) {
                found.doubled.push(Misplaced::of(buffer));
            }
        }
        found
    }
}

/// The processor, the begin and the size of a buffer.
fn begin_and_size(buffer: &BufferEntry) -> (u16, Ticks, u32) {
    (buffer.processor, buffer.first_timestamp, buffer.fill)
}

/// Whether each buffer of a trace has records of one processor, and all are of one file.
pub(crate) fn has_processors<S: Source>(trace: &Trace<S>) -> bool {
    let headers = trace.buffers().iter().filter(|b| b.is_header()).count();
    headers <= 1
        && !trace
            .header()
            .mode
            .has(LogFileMode::NO_PER_PROCESSOR_BUFFERING)
}
