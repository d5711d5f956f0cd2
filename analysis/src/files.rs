//! The files of a recording.

use std::collections::BTreeMap;

use etl_format::read::{BufferEntry, Damage, Note, Part, PartGap, Source, Trace};
use etl_format::rewrite::merge::Reason;
use etl_format::same_machine;
use etl_format::{FileHeader, Ticks};

use crate::buffers::{self, Contradictions};
use crate::counted::Counted;
use crate::loss::{Loss, LossKind};

pub use crate::buffers::Misplaced;
pub use crate::timeline::{MachineClock, Timeline};

/// Sessions of a file that are kept.
const MAX_SESSIONS: usize = 64;

/// The differences between the headers of two files by which they are of different machines, or of
/// different starts of one machine: `processors 8 and 4`.
#[must_use]
pub fn machine_differences(one: &FileHeader, other: &FileHeader) -> Vec<String> {
    let mut texts = Vec::new();
    for difference in same_machine::differences(one, other) {
        texts.push(match difference {
            Reason::Machine { what, one, other } => format!("{what} {one} and {other}"),
            Reason::Boot { seconds } => format!("started {seconds} seconds apart"),
            _ => difference.to_string(),
        });
    }
    texts
}

/// The number of the machine of each header. Headers share a number if they are of one start of one
/// machine.
#[must_use]
pub fn machines<'h>(headers: impl IntoIterator<Item = &'h FileHeader>) -> Vec<usize> {
    let mut firsts: Vec<&FileHeader> = Vec::new();
    let mut numbers = Vec::new();
    for header in headers {
        let mut known = firsts.iter();
        let number = known.position(|first| same_machine::differences(first, header).is_empty());
        numbers.push(number.unwrap_or(firsts.len()));
        if number.is_none() {
            firsts.push(header);
        }
    }
    numbers
}

/// A damaged range of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DamagedRange {
    /// The damage, as the reader reports it.
    pub damage: Damage,
    /// The processor of the buffer that it is in, if the damage does not reach beyond one buffer.
    pub processor: Option<u16>,
}

/// A session whose header is in a file: the session of the file, or a session that was merged into
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its name.
    pub name: String,
    /// Timestamp of its start.
    pub from: Ticks,
    /// Timestamp of its end, if it was closed.
    pub to: Option<Ticks>,
    /// Lost events, as its header counts them.
    pub events_lost: u32,
    /// Lost buffers, as its header counts them.
    pub buffers_lost: u32,
}

/// Records that say that something was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossRecords {
    /// Events.
    pub events: Counted,
    /// Buffers.
    pub buffers: Counted,
    /// Files of the session.
    pub files: Counted,
}

/// A buffer that a [`Note`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotedBuffer {
    /// Its processor.
    pub processor: u16,
    /// Time of its first record.
    pub first_timestamp: Ticks,
}

/// What a file states of itself.
#[derive(Clone, Debug)]
pub struct FileFacts {
    /// Its name, as the user gave it.
    pub name: String,
    /// Its index in the recording.
    pub index: usize,
    /// The index of the first file of its session: a session may have written several.
    pub session: usize,
    /// Its header event.
    pub header: FileHeader,
    /// Notes of the reader.
    pub notes: Vec<Note>,
    /// The buffers that notes are about, by offset.
    pub noted: BTreeMap<u64, NotedBuffer>,
    /// The ranges that could not be read.
    pub damage: Vec<DamagedRange>,
    /// Buffers whose records are not in time order.
    pub disordered: u64,
    /// Buffers that begin before an earlier one of the same processor ends.
    pub overlaps: u64,
    /// Whether each buffer has records of one processor only, so that buffers of a processor cannot
    /// overlap in time.
    pub has_processors: bool,
    /// Buffers that begin before the buffer with the previous number, on the same processor.
    pub misnumbered: Vec<Misplaced>,
    /// Buffers that have the begin and the size of another buffer of their processor.
    pub doubled: Vec<Misplaced>,
    /// The highest processor of a buffer, if it is beyond the number of processors in the header.
    pub beyond_processors: Option<u16>,
    /// Buffers of a circular file that newer buffers replaced, if there are any.
    pub overwritten: Option<u64>,
    /// Its session, and the sessions that were merged into it.
    pub sessions: Vec<Session>,
    /// Records that say that something was lost.
    pub loss_records: LossRecords,
    /// Its place in a session with several files.
    pub part: Option<Part>,
    /// Whether it has events of the CLR. Known only in a recording of several files.
    pub has_clr: bool,
    /// Whether it has samples of the kernel, or events of processes, threads, images or stacks.
    /// Known only in a recording of several files.
    pub has_kernel: bool,
}

/// What is missing between files of one session.
#[must_use]
pub fn gaps_between(files: &[FileFacts]) -> Vec<PartGap> {
    let parts = files.iter().enumerate();
    Part::gaps(parts.filter_map(|(index, file)| Some((index, file.part.as_ref()?))))
}

impl FileFacts {
    /// What a file states of itself; `source` is its index.
    pub(crate) fn new<S: Source>(
        trace: &Trace<S>,
        source: usize,
        name: &str,
        timeline: &Timeline,
    ) -> Self {
        let header = trace.header().clone();
        let from = timeline.timestamp(source, header.timestamp);
        let sessions = vec![session(&header, from, timeline)];
        let intact = trace.buffers().iter().filter(|b| !b.rebuilt);
        let highest = intact.map(|b| b.processor).max();
        let beyond_processors = highest.filter(|&processor| {
            header.processors != 0 && u32::from(processor) >= header.processors
        });
        let mut noted = BTreeMap::new();
        for offset in trace.notes().iter().filter_map(buffer_of) {
            if let Some(buffer) = intact_buffer(trace.buffers(), offset) {
                let noted_buffer = NotedBuffer {
                    processor: buffer.processor,
                    first_timestamp: timeline.timestamp(source, buffer.first_timestamp),
                };
                noted.insert(offset, noted_buffer);
            }
        }
        let Contradictions {
            misnumbered,
            doubled,
        } = Contradictions::of(trace);
        FileFacts {
            name: name.to_owned(),
            index: source,
            session: source,
            header,
            notes: trace.notes().to_vec(),
            noted,
            damage: Vec::new(),
            disordered: 0,
            overlaps: 0,
            has_processors: buffers::has_processors(trace),
            misnumbered,
            doubled,
            beyond_processors,
            overwritten: trace.overwritten(),
            sessions,
            loss_records: LossRecords::default(),
            part: trace.part(),
            has_clr: false,
            has_kernel: false,
        }
    }

    /// Adds a session that was merged into the file, if it is new. Returns a loss that only the
    /// header of the session states.
    pub(crate) fn add_session(
        &mut self,
        header: &FileHeader,
        from: Ticks,
        source: usize,
        timeline: &Timeline,
    ) -> Option<Loss> {
        let session = session(header, from, timeline);
        // The header of the file's own session is a record as well.
        let mut sessions = self.sessions.iter_mut();
        if let Some(known) = sessions.find(|s| s.name == session.name && s.from == session.from) {
            // Each file of a session with several files has a header.
            known.to = known.to.max(session.to);
            return None;
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return None;
        }
        let mut loss = None;
        if session.events_lost > 0 && self.header.events_lost == 0 {
            loss = Some(Loss {
                from: Some(session.from),
                to: session.to,
                processor: None,
                what: LossKind::EventsLost,
                source,
                session: self.session,
            });
        }
        self.sessions.push(session);
        loss
    }

    /// The sessions that recorded the file. The header of a merged file spans all of its sessions
    /// and is left out if the headers of these are known, as after a merge by `etlkit`.
    #[must_use]
    pub fn recorded_sessions(&self) -> &[Session] {
        match self.sessions.split_first() {
            Some((_, merged)) if self.is_merged() && !merged.is_empty() => merged,
            _ => &self.sessions,
        }
    }

    /// Whether the file was merged and does not say when its sessions began and ended, as after a
    /// merge by Windows.
    #[must_use]
    pub fn hides_sessions(&self) -> bool {
        self.is_merged() && self.sessions.len() < 2
    }

    /// Whether an earlier file holds the same session: a session may write several files.
    pub(crate) fn is_of_session_of(&self, first: &FileFacts) -> bool {
        match (&first.part, &self.part) {
            (Some(first), Some(part)) => part.is_of_session_of(first),
            _ => false,
        }
    }

    /// Whether a program read another trace and wrote selected events of it (`ITraceRelogger`).
    #[must_use]
    pub fn is_selection(&self) -> bool {
        self.header.is_selection()
    }

    /// Whether the file was written by a merge.
    #[must_use]
    pub fn is_merged(&self) -> bool {
        self.header.is_of_several_files() || text(&self.header.logger_name) == "Relogger"
    }
}

fn session(header: &FileHeader, from: Ticks, timeline: &Timeline) -> Session {
    // The time of day may have been set between the starts of two sessions.
    let start_time = header.start_time.get();
    let lasted = header.end_time.get().saturating_sub(start_time);
    let to = if lasted > 0 {
        Some(timeline.after(from, lasted))
    } else {
        None
    };
    Session {
        name: text(&header.logger_name),
        from,
        to,
        events_lost: header.events_lost,
        buffers_lost: header.buffers_lost,
    }
}

/// The buffer at an offset of the file, if its header is intact. `buffers` are in file order.
fn intact_buffer(buffers: &[BufferEntry], offset: u64) -> Option<&BufferEntry> {
    let index = buffers.partition_point(|buffer| buffer.offset < offset);
    let buffer = buffers.get(index)?;
    if buffer.offset == offset && !buffer.rebuilt {
        Some(buffer)
    } else {
        None
    }
}

/// Offset of the buffer that a note is about.
#[must_use]
pub fn buffer_of(note: &Note) -> Option<u64> {
    match *note {
        Note::EventsLostInBuffer { offset, .. }
        | Note::BufferLostBefore { offset, .. }
        | Note::SequenceGap { offset, .. }
        | Note::SequenceTwice { offset, .. }
        | Note::SequenceWrong { offset, .. } => Some(offset),
        _ => None,
    }
}

fn text(units: &[u16]) -> String {
    String::from_utf16_lossy(units)
        .trim_end_matches('\0')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use etl_format::constants::ClockType;
    use etl_format::{FileTime, Ticks};

    use super::*;

    #[test]
    fn machines_differ_by_what_headers_state() {
        const START: i64 = 132_000_000_000_000_000;
        let header = |change: fn(&mut FileHeader)| {
            let mut header = FileHeader::starting_at(FileTime::new(START));
            header.processors = 4;
            header.boot_time = FileTime::new(START - 10_000_000_000);
            change(&mut header);
            header
        };
        let headers = [
            header(|_| {}),
            header(|h| h.boot_time = FileTime::new(START - 9_999_990_000)),
            header(|h| {
                h.clock_type = ClockType::SYSTEM_TIME;
                h.timestamp = Ticks::new(START);
            }),
            // Without buffers of their own.
            header(|h| h.processors = 1),
            header(|h| h.build += 1),
            header(|h| h.boot_time = FileTime::new(START - 46_000_000_000)),
            // The same counter values an hour later.
            header(|h| {
                h.start_time = FileTime::new(START + 36_000_000_000);
                h.boot_time = FileTime::default();
            }),
        ];
        assert_eq!(machines(&headers), [0, 0, 0, 0, 1, 2, 3]);
        let differences = machine_differences(&headers[0], &headers[6]);
        assert_eq!(differences, ["started 3600 seconds apart"]);
    }
}
