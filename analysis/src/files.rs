//! The files of a recording, and one timeline for all of them.

use std::collections::BTreeMap;

use etl_format::constants::{ClockType, FILETIME_PER_SECOND};
use etl_format::read::{Damage, Note, Part, PartGap, Source, Trace};
use etl_format::rewrite::merge::Reason;
use etl_format::same_machine;
use etl_format::{Clock, FileHeader, FileTime, Ticks};

use crate::buffers::{self, Contradictions};
use crate::counted::Counted;
use crate::loss::{Loss, LossKind};

pub use crate::buffers::Misplaced;

/// Sessions of a file that are kept.
const MAX_SESSIONS: usize = 64;

/// In what the headers of two files say that they are of different machines, or of different starts
/// of one: `processors 8 and 4`.
#[must_use]
pub fn machine_differences(one: &FileHeader, other: &FileHeader) -> Vec<String> {
    let differences = same_machine::differences(one, other).into_iter();
    let text = |reason| match reason {
        Reason::Machine { what, one, other } => format!("{what} {one} and {other}"),
        Reason::Boot { seconds } => format!("started {seconds} seconds apart"),
        _ => reason.to_string(),
    };
    differences.map(text).collect()
}

/// For each header the number of its machine: those of one machine since one start of it share one.
#[must_use]
pub fn machines<'h>(headers: impl IntoIterator<Item = &'h FileHeader>) -> Vec<usize> {
    let mut firsts: Vec<&FileHeader> = Vec::new();
    let mut number = |header: &'h FileHeader| {
        let is_same = |first: &&FileHeader| same_machine::differences(first, header).is_empty();
        firsts.iter().position(is_same).unwrap_or_else(|| {
            firsts.push(header);
            firsts.len() - 1
        })
    };
    headers.into_iter().map(&mut number).collect()
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

/// A session whose header stands in a file: the file's own, or one that a merge carried over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its name.
    pub name: String,
    /// Timestamp of its start.
    pub from: Ticks,
    /// Timestamp of its end, where it was closed.
    pub to: Option<Ticks>,
    /// Events that its header counts as lost.
    pub events_lost: u32,
    /// Buffers that its header counts as lost.
    pub buffers_lost: u32,
}

/// Records that say that something was lost, by what that is.
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
    /// Which of the files of the recording it is.
    pub index: usize,
    /// The index of the first of the files that hold its session: its own, unless it is one of
    /// several.
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
    /// Whether each buffer holds records of one processor, so that they cannot overlap in time.
    pub has_processors: bool,
    /// Buffers that begin before the one with the number before theirs, on the same processor.
    pub misnumbered: Vec<Misplaced>,
    /// Buffers that begin with the time of another one of their processor, and hold as much.
    pub doubled: Vec<Misplaced>,
    /// The highest processor of a buffer, where it is beyond those that the header counts.
    pub beyond_processors: Option<u16>,
    /// Buffers of a circular file that newer ones were written over, where there are any.
    pub overwritten: Option<u64>,
    /// Its session, and those that a merge carried over.
    pub sessions: Vec<Session>,
    /// Records that say that something was lost.
    pub loss_records: LossRecords,
    /// What it is of a session with several files.
    pub part: Option<Part>,
    /// Of a recording of several files: whether it has events of the CLR.
    pub has_clr: bool,
    /// Of a recording of several files: whether it has samples of the kernel, or events of
    /// processes, threads, images or stacks.
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
        let beyond = trace
            .buffers()
            .iter()
            .filter(|b| !b.rebuilt)
            .map(|b| b.processor)
            .max();
        let beyond_processors =
            beyond.filter(|&p| header.processors != 0 && u32::from(p) >= header.processors);
        let entries = trace.buffers();
        let noted = trace.notes().iter().filter_map(|note| {
            let offset = buffer_of(note)?;
            // They stand in the order of the file.
            let entry = entries.get(entries.partition_point(|b| b.offset < offset))?;
            if entry.offset != offset || entry.rebuilt {
                return None;
            }
            let buffer = NotedBuffer {
                processor: entry.processor,
                first_timestamp: timeline.timestamp(source, entry.first_timestamp),
            };
            Some((offset, buffer))
        });
        let noted = noted.collect();
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

    /// Adds a session that a merge carried over, if it is new; returns a loss that only its header
    /// states.
    pub(crate) fn add_session(
        &mut self,
        header: &FileHeader,
        from: Ticks,
        source: usize,
        timeline: &Timeline,
    ) -> Option<Loss> {
        let session = session(header, from, timeline);
        // The file's own is a record, too.
        let known = self
            .sessions
            .iter()
            .any(|s| s.name == session.name && s.from == session.from);
        if known || self.sessions.len() >= MAX_SESSIONS {
            return None;
        }
        let (from, to, what) = (Some(session.from), session.to, LossKind::EventsLost);
        let is_lost = session.events_lost > 0 && self.header.events_lost == 0;
        self.sessions.push(session);
        let session = self.session;
        is_lost.then_some(Loss {
            from,
            to,
            processor: None,
            what,
            source,
            session,
        })
    }

    /// Whether a program read another trace and wrote the events that it chose (`ITraceRelogger`).
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

/// The clock of a file, and the machine that recorded it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineClock {
    /// The number of the machine, as from [`machines`].
    pub machine: usize,
    /// The clock of the file.
    pub clock: Clock,
}

impl MachineClock {
    /// Whether two files count the same counter of one machine.
    fn is_on_counter_of(&self, other: &MachineClock) -> bool {
        self.machine == other.machine && self.clock.is_same_counter(&other.clock)
    }
}

/// How the timestamps of several files become times of one timeline.
///
/// Files on one counter of a machine are related by the counter, so by the clock of the one that
/// began first: the time of day may have been set between their starts. Where all files are on one,
/// the raw timestamps are kept; else all become FILETIMEs.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// For each file the clock that its counter is read with.
    clocks: Vec<Clock>,
    same: bool,
    set_by: u64,
}

impl Timeline {
    /// The most by which the same raw timestamp stands at different times in files of one machine
    /// without a change of its clock: by reading two clocks one after the other.
    const SKEW: u64 = FILETIME_PER_SECOND.unsigned_abs() / 10;

    /// A timeline for files of one machine, with these clocks.
    #[must_use]
    pub fn new(clocks: Vec<Clock>) -> Self {
        let mut files = Vec::with_capacity(clocks.len());
        for clock in clocks {
            files.push(MachineClock { machine: 0, clock });
        }
        Timeline::of_machines(&files)
    }

    /// A timeline for files of several machines.
    #[must_use]
    pub fn of_machines(files: &[MachineClock]) -> Self {
        let mut by_start = files.to_vec();
        by_start.sort_by_key(|file| file.clock.start_timestamp);
        // Of the files on one counter, the file that began first.
        let mut firsts: Vec<MachineClock> = Vec::new();
        for file in by_start {
            if !firsts.iter().any(|first| file.is_on_counter_of(first)) {
                firsts.push(file);
            }
        }
        let mut clocks = Vec::with_capacity(files.len());
        let mut set_by = 0;
        for file in files {
            let first = firsts.iter().find(|first| file.is_on_counter_of(first));
            let clock = first.map_or(file.clock, |first| first.clock);
            let apart = clock.zeros_apart(&file.clock, Self::SKEW).unwrap_or(0);
            set_by = apart.max(set_by);
            clocks.push(clock);
        }
        let same = clocks
            .windows(2)
            .all(|pair| matches!(pair, [one, other] if one == other));
        Timeline {
            same,
            set_by,
            clocks,
        }
    }

    /// Whether all files have the same clock.
    #[must_use]
    pub fn is_one_clock(&self) -> bool {
        self.same
    }

    /// The most, in FILETIME units, by which the time of day was set between the starts of files on
    /// one counter; 0 if by their headers it was not.
    #[must_use]
    pub fn set_by(&self) -> u64 {
        self.set_by
    }

    /// The clock of the timeline. It starts when the file starts that began first.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let first = self.clocks.first().copied();
        let first = first.unwrap_or(clock_in_file_time(FileTime::new(0)));
        if self.same {
            return first;
        }
        let earliest = self
            .clocks
            .iter()
            .map(|c| c.start_time)
            .min()
            .unwrap_or(first.start_time);
        clock_in_file_time(earliest)
    }

    /// Where a raw timestamp of a file stands.
    #[inline]
    #[must_use]
    pub fn timestamp(&self, source: usize, raw: Ticks) -> Ticks {
        if self.same {
            return raw;
        }
        self.clocks
            .get(source)
            .map_or(raw, |clock| Ticks::new(clock.time(raw).get()))
    }

    /// The clock by which raw timestamps of a file become times of the calendar, as those of the
    /// other files do. Its start may be that of another file.
    #[must_use]
    pub fn clock_of(&self, source: usize) -> Clock {
        self.clocks
            .get(source)
            .copied()
            .unwrap_or_else(|| self.clock())
    }

    /// What stands so many FILETIME units after a timestamp of the timeline.
    #[must_use]
    pub fn after(&self, timestamp: Ticks, units: i64) -> Ticks {
        let clock = self.clock();
        let time = clock.time(timestamp).get().saturating_add(units);
        clock.ticks_at(FileTime::new(time))
    }
}

/// A clock that counts in FILETIME units.
fn clock_in_file_time(start: FileTime) -> Clock {
    Clock::new(ClockType::SYSTEM_TIME, start, Ticks::new(start.get()), 0, 0)
}

fn session(header: &FileHeader, from: Ticks, timeline: &Timeline) -> Session {
    // The time of day may have been set between the starts of two sessions.
    let lasted = header
        .end_time
        .get()
        .saturating_sub(header.start_time.get());
    let to = (lasted > 0).then(|| timeline.after(from, lasted));
    let &FileHeader {
        events_lost,
        buffers_lost,
        ..
    } = header;
    Session {
        name: text(&header.logger_name),
        from,
        to,
        events_lost,
        buffers_lost,
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
    use etl_format::{FileTime, Ticks};

    use super::*;

    fn clock(start_timestamp: i64, start_time: i64, frequency: i64) -> Clock {
        Clock::new(
            ClockType::QPC,
            FileTime::new(start_time),
            Ticks::new(start_timestamp),
            frequency,
            0,
        )
    }

    #[test]
    fn one_machine_has_one_clock() {
        let second = FILETIME_PER_SECOND;
        let one = Timeline::new(vec![
            clock(0, 0, 1_000),
            clock(5_000, 5 * second + 7, 1_000),
        ]);
        assert!(one.is_one_clock());
        assert_eq!(one.timestamp(1, Ticks::new(6_000)), 6_000);
        let two = Timeline::new(vec![clock(0, 0, 1_000), clock(5_000, 99 * second, 1_000)]);
        assert!(!two.is_one_clock());
        assert_eq!(two.timestamp(1, Ticks::new(6_000)), 100 * second);
        assert_eq!(two.clock().time(Ticks::new(10 * second)).get(), 10 * second);
    }

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

    #[test]
    fn timeline_starts_with_the_first_file_in_any_order() {
        let second = FILETIME_PER_SECOND;
        let (early, late) = (clock(0, 0, 1_000), clock(5_000, 5 * second, 1_000));
        for files in [vec![early, late], vec![late, early]] {
            assert_eq!(Timeline::new(files).clock(), early);
        }
    }

    #[test]
    fn timeline_relates_files_by_their_counter_if_the_time_was_set() {
        let second = FILETIME_PER_SECOND;
        let (early, set) = (clock(0, 0, 1_000), clock(5_000, 14 * second, 1_000));
        let one = Timeline::new(vec![set, early]);
        assert!(one.is_one_clock());
        assert_eq!(
            (one.clock(), one.set_by()),
            (early, 9 * second.unsigned_abs())
        );
        // Beside a file with another clock.
        let system = Clock::new(
            ClockType::SYSTEM_TIME,
            FileTime::new(second),
            Ticks::new(second),
            0,
            0,
        );
        let several = Timeline::new(vec![set, early, system]);
        assert!(!several.is_one_clock());
        assert_eq!(
            several.timestamp(0, Ticks::new(5_000)),
            several.timestamp(1, Ticks::new(5_000))
        );
        // Another machine that started at the same time.
        let files = [early, set].into_iter().enumerate();
        let files = files.map(|(machine, clock)| MachineClock { machine, clock });
        let two = Timeline::of_machines(&files.collect::<Vec<_>>());
        assert_eq!(two.timestamp(1, Ticks::new(5_000)), 14 * second);
    }
}
