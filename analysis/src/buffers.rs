//! The buffers of a file held against each other: their numbers, processors and times.

use etl_format::Ticks;
use etl_format::constants::LogFileMode;
use etl_format::read::{BufferEntry, Source, Trace};

/// A buffer that contradicts another one.
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
    /// Buffers that begin before the one with the number before theirs, on the same processor.
    pub misnumbered: Vec<Misplaced>,
    /// Buffers that begin with the time of another one of their processor, and hold as much.
    pub doubled: Vec<Misplaced>,
}

impl Contradictions {
    /// What the buffers of a trace state. Where processors share their buffers, or numbers begin
    /// again in the middle of the file, nothing is known.
    pub fn of<S: Source>(trace: &Trace<S>) -> Self {
        if !has_processors(trace) {
            return Contradictions::default();
        }
        let session_start = trace.header().timestamp;
        // Without a record that has a time, a buffer has that of the session's start.
        let timed =
            |b: &&BufferEntry| !b.rebuilt && !b.is_header() && b.first_timestamp > session_start;
        let mut buffers: Vec<&BufferEntry> = trace.buffers().iter().filter(timed).collect();
        let mut out = Contradictions::default();
        buffers.sort_by_key(|b| (b.processor, b.sequence_number, b.offset));
        for (before, b) in buffers.iter().zip(buffers.iter().skip(1)) {
            if b.processor == before.processor && b.first_timestamp < before.first_timestamp {
                out.misnumbered.push(Misplaced::of(b));
            }
        }
        let time_and_size = |b: &BufferEntry| (b.processor, b.first_timestamp, b.fill);
        buffers.sort_by_key(|b| (time_and_size(b), b.offset));
        for (before, b) in buffers.iter().zip(buffers.iter().skip(1)) {
            if time_and_size(b) == time_and_size(before) {
                out.doubled.push(Misplaced::of(b));
            }
        }
        out
    }
}

/// Whether each buffer of a trace holds records of one processor, and all are of one file.
pub(crate) fn has_processors<S: Source>(trace: &Trace<S>) -> bool {
    let headers = trace.buffers().iter().filter(|b| b.is_header()).count();
    headers <= 1
        && !trace
            .header()
            .mode
            .has(LogFileMode::NO_PER_PROCESSOR_BUFFERING)
}
