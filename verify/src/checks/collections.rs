//! Garbage collections: their numbers, starts and ends, and the suspensions around them.

use std::collections::BTreeMap;

use etl_format::read::{EventHeader, Record};
use etl_format::{ProcessId, ThreadId, Ticks};
use etl_schema::clr::collection::{
    ALLOCATED, BACKGROUND, END, FINALIZED, FINALIZING, HEAP_STATS, RESTARTED, RESTARTING, START,
    SUSPEND, SUSPENDED,
};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::{FieldReader, FieldValues};
use foldhash::HashMap;

use etl_analysis::machine::Counted;

/// The events that are missing from the collections of a CLR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collections {
    /// Numbers without a start event, between numbers with one.
    pub skipped: Counted,
    /// Starts that are followed by another start instead of an end.
    pub unended: Counted,
    /// Suspensions that are followed by another suspension instead of a restart.
    pub unrestarted: Counted,
    /// Events of suspensions that are missing between others.
    pub steps: Counted,
    /// Collections that ended and have no heap statistics.
    pub without_stats: Counted,
    /// Beginnings or ends of runs of finalizers that are missing between others.
    pub finalizers: Counted,
    /// Starts that are logged twice in one version of the event, or in fewer versions than the
    /// others.
    pub unmatched: Counted,
    /// The last start.
    last: Option<Start>,
    /// Versions of the event for the last start, as bits.
    last_versions: u8,
    /// Versions of the event for the first start, as bits; `None` before the second start.
    usual_versions: Option<u8>,
    /// Time of the first start.
    first_start: Option<Ticks>,
    /// A start whose end has to come before the next start.
    open: Option<Start>,
    /// The number of the last collection that ended.
    last_end: Option<u32>,
    /// When the last collection ended, if its heap statistics have not come yet.
    awaits_stats: Option<EndEvent>,
    /// The index in [`STEPS`] of the last event that only one thread of the CLR logs at a time: all
    /// but the first.
    cycle: Option<u8>,
    /// The last event of finalizers.
    finalizer: Option<u16>,
    /// Restarts so far.
    restarts: u64,
    /// Collections, and allocation events between them.
    rate: Rate,
    /// The number of events of each kind, in the order of [`KINDS`].
    counts: [u64; KINDS.len()],
    /// Time of the first event of any of the kinds.
    first: Option<Ticks>,
}

/// The start of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    number: u32,
    timestamp: Ticks,
}

/// The end of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EndEvent {
    timestamp: Ticks,
    /// Whether it is the end of a collection that suspends the CLR all the time.
    is_blocking: bool,
}

/// How a collection started.
#[derive(Clone, Copy, Debug)]
struct StartEvent {
    number: u32,
    /// The version of the event as a bit: some runtimes log each start in two versions.
    version: u8,
    /// Whether it is or may be a background collection: others may start before it ends.
    is_background: bool,
    timestamp: Ticks,
}

/// Kinds of events that every collection logs, and never an event.
pub(crate) struct AbsentKinds {
    /// Time of the first event of any kind.
    pub first: Ticks,
    /// The names of the kinds without an event.
    pub names: Vec<&'static str>,
}

/// A kind of event of collections.
struct Kind {
    id: u16,
    name: &'static str,
    /// The kinds that never come without it.
    proofs: &'static [u16],
}

/// Kinds of events of collections. A session that gets one gets all of them: they have the same
/// keyword and level. A process is also suspended for other reasons than collections, and not every
/// collection leaves something to finalize.
const KINDS: [Kind; 9] = [
    Kind {
        id: START,
        name: "GCStart",
        proofs: &[END, HEAP_STATS],
    },
    Kind {
        id: END,
        name: "GCEnd",
        proofs: &[START, HEAP_STATS],
    },
    Kind {
        id: HEAP_STATS,
        name: "GCHeapStats",
        proofs: &[START, END],
    },
    Kind {
        id: SUSPEND,
        name: "GCSuspendEEBegin",
        proofs: &[START, END, SUSPENDED, RESTARTING, RESTARTED],
    },
    Kind {
        id: SUSPENDED,
        name: "GCSuspendEEEnd",
        proofs: &[START, END, SUSPEND, RESTARTING, RESTARTED],
    },
    Kind {
        id: RESTARTING,
        name: "GCRestartEEBegin",
        proofs: &[START, END, SUSPEND, SUSPENDED, RESTARTED],
    },
    Kind {
        id: RESTARTED,
        name: "GCRestartEEEnd",
        proofs: &[START, END, SUSPEND, SUSPENDED, RESTARTING],
    },
    Kind {
        id: FINALIZING,
        name: "GCFinalizersBegin",
        proofs: &[FINALIZED],
    },
    Kind {
        id: FINALIZED,
        name: "GCFinalizersEnd",
        proofs: &[FINALIZING],
    },
];

/// The number of allocation events between collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rate {
    collections: u64,
    /// The largest number between two collections.
    max: u64,
    /// The number since the last collection.
    since: u64,
    /// Time of the last collection.
    last: Option<Ticks>,
}

/// Events of a suspension in their order: the suspension begins and ends, the restart begins and
/// ends.
const STEPS: [u16; 4] = [SUSPEND, SUSPENDED, RESTARTING, RESTARTED];

/// Index of the beginning of a suspension in [`STEPS`].
const BEGIN: u8 = 0;
/// Index of its end: the CLR is suspended.
const ENDED: u8 = 1;
/// Index of the beginning of the restart.
const RESTART: u8 = 2;

/// The number of events that are missing between two, of those that one thread logs at a time.
fn steps_between(before: u8, after: u8) -> u64 {
    let cycle = STEPS.len() as u64 - 1;
    (u64::from(after) + 2 * cycle - u64::from(before) - 1) % cycle
}

/// The suspensions of a CLR by one of its threads.
#[derive(Clone, Copy, Debug, Default)]
struct Suspension {
    instance: u16,
    /// Time of the last suspension.
    timestamp: Ticks,
    /// Restarts of the CLR before it.
    restarts: u64,
    /// Whether it has begun, and the CLR is not suspended yet.
    is_pending: bool,
}

/// Reads the events of one kind. Some of them lack a field.
#[derive(Clone, Debug)]
struct EventReader {
    id: u16,
    fields: FieldReader<3>,
}

impl EventReader {
    /// Indices of the fields.
    const INSTANCE: usize = 0;
    const NUMBER: usize = 1;
    const TYPE: usize = 2;

    fn new(id: u16) -> Self {
        let names = ["ClrInstanceID", "Count", "Type"];
        EventReader {
            id,
            fields: FieldReader::of_event(CLR_RUNTIME, id, names),
        }
    }

    /// Readers of all events of collections, the most frequent event first.
    fn all() -> Vec<EventReader> {
        let mut readers = vec![EventReader::new(ALLOCATED)];
        for kind in KINDS {
            readers.push(EventReader::new(kind.id));
        }
        readers
    }
}

/// A process with collections.
#[derive(Clone, Copy, Debug)]
struct Process {
    pid: ProcessId,
    /// Time of its first event.
    since: Ticks,
}

/// A CLR of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ClrKey {
    /// Index of the process in [`Collectors`].
    process: usize,
    instance: u16,
}

/// A thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ThreadKey {
    /// Index of the process in [`Collectors`].
    process: usize,
    tid: ThreadId,
}

/// A CLR with its collections.
pub(super) struct Collector<'a> {
    /// Id of the process.
    pub pid: ProcessId,
    /// A time at which the process has this id.
    pub since: Ticks,
    /// Instance id of the CLR.
    pub instance: u16,
    pub collections: &'a Collections,
}

/// The collections of all CLRs.
#[derive(Clone, Debug)]
pub struct Collectors {
    readers: Vec<EventReader>,
    clrs: BTreeMap<ClrKey, Collections>,
    /// The suspensions by each thread.
    threads: HashMap<ThreadKey, Suspension>,
    processes: Vec<Process>,
    /// Index of the process that has an id now.
    by_pid: HashMap<ProcessId, usize>,
}

impl Default for Collectors {
    fn default() -> Self {
        Collectors {
            readers: EventReader::all(),
            clrs: BTreeMap::new(),
            threads: HashMap::default(),
            processes: Vec::new(),
            by_pid: HashMap::default(),
        }
    }
}

impl Collectors {
    /// Processes, CLRs, and threads that suspend, that are kept, each.
    const MAX: usize = 1 << 16;

    /// Begins a process: the process that had its id before has ended.
    pub fn process_started(&mut self, pid: ProcessId) {
        self.by_pid.remove(&pid);
    }

    /// The index of the process that has an id now; `None` if there are too many processes.
    fn process(&mut self, pid: ProcessId, timestamp: Ticks) -> Option<usize> {
        if let Some(index) = self.by_pid.get(&pid) {
            return Some(*index);
        }
        let index = self.processes.len();
        if index >= Self::MAX {
            return None;
        }
        self.processes.push(Process {
            pid,
            since: timestamp,
        });
        self.by_pid.insert(pid, index);
        Some(index)
    }

    /// Whether an event is about collections.
    pub fn is_about_collections(header: &EventHeader) -> bool {
        let id = header.descriptor.id;
        header.provider == CLR_RUNTIME && (id == ALLOCATED || kind_index(id).is_some())
    }

    /// Adds an event that [is about collections](Self::is_about_collections).
    #[inline(never)]
    pub fn event(&mut self, record: &Record<'_>, header: &EventHeader, timestamp: Ticks) {
        let descriptor = header.descriptor;
        let id = descriptor.id;
        let Some(fields) = self.fields(id, record) else {
            return;
        };
        // The first version states neither the instance nor the type.
        let is_first_version = descriptor.version == 0;
        let instance = if is_first_version {
            0
        } else {
            let instance = uint(&fields, EventReader::INSTANCE);
            match instance.and_then(|instance| u16::try_from(instance).ok()) {
                Some(instance) => instance,
                None => return,
            }
        };
        let Some(process) = self.process(header.process_id, timestamp) else {
            return;
        };
        let clr = ClrKey { process, instance };
        if self.clrs.len() >= Self::MAX && !self.clrs.contains_key(&clr) {
            return;
        }
        let collections = self.clrs.entry(clr).or_default();
        collections.count(id, timestamp);
        match (id, uint(&fields, EventReader::NUMBER)) {
            (START, Some(number)) => collections.start(StartEvent {
                number,
                version: 1u8.checked_shl(descriptor.version.into()).unwrap_or(0),
                is_background: is_first_version
                    || uint(&fields, EventReader::TYPE) == Some(BACKGROUND),
                timestamp,
            }),
            (END, Some(number)) => collections.end(number, timestamp),
            (HEAP_STATS, _) => collections.stats(timestamp),
            (FINALIZING | FINALIZED, _) => collections.finalizer(id, timestamp),
            (ALLOCATED, _) => collections.rate.since += 1,
            (RESTARTED, _) => collections.restarts += 1,
            (SUSPEND, _) => self.suspend(header.thread_id, clr, timestamp),
            _ => {}
        }
        if let Some(step) = STEPS.iter().position(|step| *step == id) {
            self.step(header.thread_id, clr, step as u8, timestamp);
        }
    }

    /// The fields of an event about collections.
    fn fields<'a>(&mut self, id: u16, record: &Record<'a>) -> Option<FieldValues<'a, 3>> {
        self.readers
            .iter_mut()
            .find(|reader| reader.id == id)?
            .fields
            .read(record)
    }

    /// Adds an event of a suspension. All but the first of the four events are logged by one thread
    /// of the CLR at a time, in their order. Several threads may begin to suspend; all but one
    /// wait. Recordings of .NET Framework 4.5 and of .NET Core 3.1 to .NET 10 show no other order.
    fn step(&mut self, tid: ThreadId, clr: ClrKey, step: u8, timestamp: Ticks) {
        if step == BEGIN {
            return;
        }
        let thread = ThreadKey {
            process: clr.process,
            tid,
        };
        let Some(collections) = self.clrs.get_mut(&clr) else {
            return;
        };
        let before = collections.cycle.replace(step);
        // Another session recorded the event as well.
        if before == Some(step) {
            return;
        }
        let mut missing = match before {
            Some(before) => steps_between(before, step),
            None => 0,
        };
        if step == ENDED {
            let is_begun = match self.threads.get_mut(&thread) {
                Some(suspension) if suspension.instance == clr.instance => {
                    std::mem::take(&mut suspension.is_pending)
                }
                _ => false,
            };
            // The recording may begin while a thread suspends.
            missing += u64::from(!is_begun && before.is_some());
        }
        if missing > 0 {
            collections.steps.count += missing;
            collections.steps.first.get_or_insert(timestamp);
        }
        if step == RESTART {
            collections.restarting(timestamp);
        }
    }

    fn suspend(&mut self, tid: ThreadId, clr: ClrKey, timestamp: Ticks) {
        let Some(collections) = self.clrs.get_mut(&clr) else {
            return;
        };
        let thread = ThreadKey {
            process: clr.process,
            tid,
        };
        let is_full = self.threads.len() >= Self::MAX;
        let before = self.threads.get(&thread).copied();
        let mut suspension = Suspension::default();
        if let Some(before) = before
            && before.instance == clr.instance
        {
            // The thread itself waits for the restart.
            if before.restarts == collections.restarts {
                collections.unrestarted.add(before.timestamp);
            }
            suspension = before;
        }
        suspension.instance = clr.instance;
        suspension.is_pending = true;
        suspension.timestamp = timestamp;
        suspension.restarts = collections.restarts;
        if before.is_some() || !is_full {
            self.threads.insert(thread, suspension);
        }
    }

    /// Each CLR with its collections.
    pub(super) fn all(&self) -> impl Iterator<Item = Collector<'_>> {
        self.clrs.iter().filter_map(|(clr, collections)| {
            let process = self.processes.get(clr.process)?;
            Some(Collector {
                pid: process.pid,
                since: process.since,
                instance: clr.instance,
                collections,
            })
        })
    }
}

/// A field that fits into 32 bits.
fn uint(fields: &FieldValues<'_, 3>, index: usize) -> Option<u32> {
    u32::try_from(fields.uint(index)?).ok()
}

/// After this number of collections of a CLR, a missing event is not an accident.
const MIN_COLLECTIONS: u64 = 10;
/// After this number of allocations, a missing collection is not an accident.
const MIN_ALLOCATED: u64 = 200;
/// How many times as many allocations may come after the last collection as ever came between two.
const MAX_GROWTH: u64 = 10;

impl Rate {
    fn collection(&mut self, timestamp: Ticks) {
        if self.collections > 0 {
            self.max = self.max.max(self.since);
        }
        self.collections += 1;
        self.since = 0;
        self.last = Some(timestamp);
    }

    /// Whether so many allocations after the last collection must have caused another.
    fn is_exceeded(self) -> bool {
        self.collections >= MIN_COLLECTIONS
            && self.max > 0
            && self.since >= MIN_ALLOCATED
            && self.since > MAX_GROWTH * self.max
    }
}

/// The index of an event in [`KINDS`].
fn kind_index(id: u16) -> Option<usize> {
    KINDS.iter().position(|kind| kind.id == id)
}

impl Collections {
    /// Allocation events after the last collection, if they must have caused another.
    pub fn uncollected(&self) -> Counted {
        if !self.rate.is_exceeded() {
            return Counted::default();
        }
        Counted {
            count: self.rate.since,
            first: self.rate.last,
        }
    }

    fn count(&mut self, id: u16, timestamp: Ticks) {
        if let Some(index) = kind_index(id)
            && let Some(count) = self.counts.get_mut(index)
        {
            *count += 1;
            self.first.get_or_insert(timestamp);
        }
    }

    fn count_of(&self, id: u16) -> u64 {
        let count = kind_index(id).and_then(|index| self.counts.get(index));
        count.copied().unwrap_or(0)
    }

    /// The kinds without any event, although there are many events of kinds that never come without
    /// them.
    pub fn absent(&self) -> Option<AbsentKinds> {
        let mut names = Vec::new();
        for kind in KINDS {
            let mut proofs = kind.proofs.iter();
            let is_proven = proofs.any(|proof| self.count_of(*proof) >= MIN_COLLECTIONS);
            if is_proven && self.count_of(kind.id) == 0 {
                names.push(kind.name);
            }
        }
        if names.is_empty() {
            return None;
        }
        let first = self.first?;
        Some(AbsentKinds { first, names })
    }

    /// Checks that a start is logged once in each version of the event in which the first start is.
    fn check_version(&mut self, start: &StartEvent) {
        let Some(last) = self.last else {
            self.last_versions = start.version;
            self.first_start = Some(start.timestamp);
            return;
        };
        if last.number == start.number {
            if self.last_versions & start.version != 0 {
                self.unmatched.add(start.timestamp);
            }
            self.last_versions |= start.version;
            return;
        }
        let usual = *self.usual_versions.get_or_insert(self.last_versions);
        if self.last_versions != usual && self.last_versions.count_ones() < usual.count_ones() {
            self.unmatched.add(last.timestamp);
        }
        let has_more = self.last_versions & usual == usual && self.last_versions != usual;
        if has_more && let Some(first) = self.first_start {
            self.unmatched.add(first);
            self.usual_versions = Some(self.last_versions);
        }
        self.last_versions = start.version;
    }

    fn start(&mut self, event: StartEvent) {
        self.check_version(&event);
        let start = Start {
            number: event.number,
            timestamp: event.timestamp,
        };
        let last = self.last.replace(start);
        if last.is_some_and(|last| last.number == start.number) {
            return;
        }
        self.rate.collection(start.timestamp);
        // A smaller number is another process's, whose start the trace may lack, or comes from
        // another session's event.
        if let Some(last) = last
            && last.number < start.number
        {
            let skipped = u64::from(start.number - last.number - 1);
            if skipped > 0 {
                self.skipped.count += skipped;
                self.skipped.first.get_or_insert(last.timestamp);
            }
            if let Some(open) = self.open {
                self.unended.add(open.timestamp);
            }
        }
        self.open = if event.is_background {
            None
        } else {
            Some(start)
        };
    }

    fn end(&mut self, number: u32, timestamp: Ticks) {
        // Another session recorded the event as well.
        if self.last_end.replace(number) == Some(number) {
            return;
        }
        if let Some(before) = self.awaits_stats.take() {
            self.without_stats.add(before.timestamp);
        }
        if let Some(last) = self.last
            && last.number < number
        {
            self.skipped.count += u64::from(number - last.number);
            self.skipped.first.get_or_insert(timestamp);
            self.last = Some(Start { number, timestamp });
        }
        let is_blocking = self.open.is_some_and(|open| open.number == number);
        if is_blocking {
            self.open = None;
        }
        self.awaits_stats = Some(EndEvent {
            timestamp,
            is_blocking,
        });
    }

    /// The statistics of the heap come after the end of each collection.
    fn stats(&mut self, timestamp: Ticks) {
        let is_expected = self.awaits_stats.take().is_some();
        if let Some(open) = self.open
            && !is_expected
            && self.last_end.is_some()
        {
            self.unended.add(open.timestamp.max(timestamp));
            self.open = None;
        }
    }

    /// The CLR begins to restart: a collection that suspends it all the time is over.
    fn restarting(&mut self, timestamp: Ticks) {
        if let Some(open) = self.open.take() {
            self.unended.add(open.timestamp);
        }
        if let Some(end) = self.awaits_stats
            && end.is_blocking
            && end.timestamp <= timestamp
        {
            self.without_stats.add(end.timestamp);
            self.awaits_stats = None;
        }
    }

    /// One thread runs the finalizers of a CLR.
    fn finalizer(&mut self, id: u16, timestamp: Ticks) {
        if self.finalizer.replace(id) == Some(id) {
            self.finalizers.add(timestamp);
        }
    }

    /// Whether several sessions recorded the starts, and so the other events as well.
    pub fn is_doubled(&self) -> bool {
        let starts = kind_index(START).and_then(|index| self.counts.get(index));
        self.unmatched.count * 2 >= starts.copied().unwrap_or(0).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(number: u32, version: u8, timestamp: Ticks) -> StartEvent {
        StartEvent {
            number,
            version,
            is_background: false,
            timestamp,
        }
    }

    fn background(number: u32, version: u8, timestamp: Ticks) -> StartEvent {
        StartEvent {
            is_background: true,
            ..start(number, version, timestamp)
        }
    }

    #[test]
    fn start_counts_skipped_numbers_and_starts_without_end() {
        let mut clr = Collections::default();
        // The first one may have any number; background collections may end later.
        clr.start(start(7, 4, Ticks::new(10)));
        clr.end(7, Ticks::new(11));
        clr.start(background(8, 4, Ticks::new(20)));
        clr.start(start(9, 4, Ticks::new(30)));
        clr.end(9, Ticks::new(31));
        clr.start(start(10, 4, Ticks::new(40)));
        clr.end(8, Ticks::new(41));
        assert_eq!((clr.skipped.count, clr.unended.count), (0, 0));
        clr.start(start(11, 4, Ticks::new(50)));
        assert_eq!(
            clr.unended,
            Counted {
                count: 1,
                first: Some(Ticks::new(40))
            }
        );
        clr.end(11, Ticks::new(51));
        clr.start(start(14, 4, Ticks::new(60)));
        assert_eq!(
            clr.skipped,
            Counted {
                count: 2,
                first: Some(Ticks::new(50))
            }
        );
        assert_eq!(clr.unended.count, 1);
    }

    #[test]
    fn start_knows_doubled_events_and_new_processes() {
        let mut clr = Collections::default();
        clr.start(start(7, 4, Ticks::new(10)));
        clr.start(start(7, 4, Ticks::new(10)));
        clr.end(7, Ticks::new(11));
        clr.end(7, Ticks::new(11));
        clr.start(start(8, 4, Ticks::new(20)));
        // The process ended, and another has its id.
        clr.start(start(1, 4, Ticks::new(30)));
        clr.end(1, Ticks::new(31));
        clr.start(start(2, 4, Ticks::new(40)));
        assert_eq!((clr.skipped.count, clr.unended.count), (0, 0));
    }

    #[test]
    fn process_distinguishes_processes_that_had_the_same_id() {
        let mut all = Collectors::default();
        assert_eq!(
            [
                all.process(ProcessId::new(7), Ticks::new(10)),
                all.process(ProcessId::new(8), Ticks::new(11))
            ],
            [Some(0), Some(1)]
        );
        assert_eq!(all.process(ProcessId::new(7), Ticks::new(12)), Some(0));
        all.process_started(ProcessId::new(7));
        assert_eq!(
            [
                all.process(ProcessId::new(7), Ticks::new(20)),
                all.process(ProcessId::new(8), Ticks::new(21))
            ],
            [Some(2), Some(1)]
        );
        for process in [0, 2] {
            let clr = ClrKey {
                process,
                instance: 9,
            };
            all.clrs.entry(clr).or_default();
        }
        let starts: Vec<_> = all
            .all()
            .map(|clr| (clr.pid, clr.since, clr.instance))
            .collect();
        let pid = ProcessId::new(7);
        assert_eq!(starts, [(pid, Ticks::new(10), 9), (pid, Ticks::new(20), 9)]);
    }

    /// The CLR of the tests on suspensions.
    const CLR: ClrKey = ClrKey {
        process: 1,
        instance: 0,
    };

    #[test]
    fn suspend_expects_a_restart_before_the_thread_suspends_again() {
        let mut all = Collectors::default();
        let restart = |all: &mut Collectors| {
            all.clrs.entry(CLR).or_default().restarts += 1;
        };
        all.clrs.entry(CLR).or_default();
        // Two threads want to suspend; the second waits for the first.
        all.suspend(ThreadId::new(10), CLR, Ticks::new(100));
        all.suspend(ThreadId::new(11), CLR, Ticks::new(101));
        restart(&mut all);
        restart(&mut all);
        all.suspend(ThreadId::new(10), CLR, Ticks::new(200));
        restart(&mut all);
        all.suspend(ThreadId::new(10), CLR, Ticks::new(300));
        assert_eq!(all.clrs[&CLR].unrestarted.count, 0);
        all.suspend(ThreadId::new(10), CLR, Ticks::new(400));
        assert_eq!(
            all.clrs[&CLR].unrestarted,
            Counted {
                count: 1,
                first: Some(Ticks::new(300))
            }
        );
    }

    #[test]
    fn check_version_expects_each_start_in_the_same_versions() {
        let mut clr = Collections::default();
        let both = |clr: &mut Collections, number, at| {
            clr.start(start(number, 2, at));
            clr.start(start(number, 4, at));
            clr.end(number, Ticks::new(1));
        };
        both(&mut clr, 1, Ticks::new(10));
        both(&mut clr, 2, Ticks::new(20));
        assert_eq!(clr.unmatched.count, 0);
        // One of the two is missing.
        clr.start(start(3, 4, Ticks::new(30)));
        clr.end(3, Ticks::new(31));
        both(&mut clr, 4, Ticks::new(40));
        assert_eq!(
            clr.unmatched,
            Counted {
                count: 1,
                first: Some(Ticks::new(30))
            }
        );
        clr.start(start(5, 2, Ticks::new(50)));
        clr.start(start(5, 2, Ticks::new(50)));
        assert_eq!(clr.unmatched.count, 2);
    }

    #[test]
    fn check_version_finds_that_the_first_start_is_halved() {
        let mut clr = Collections::default();
        clr.start(start(1, 4, Ticks::new(10)));
        for number in 2..4 {
            clr.start(start(number, 2, Ticks::new(20)));
            clr.start(start(number, 4, Ticks::new(20)));
        }
        clr.start(start(4, 2, Ticks::new(30)));
        let found = clr.unmatched;
        assert_eq!((found.count, found.first), (1, Some(Ticks::new(10))));
    }

    /// The four events of a suspension by a thread, without one of them.
    fn suspension(all: &mut Collectors, tid: u32, without: Option<u8>) {
        for step in (0..4).filter(|step| Some(*step) != without) {
            if step == BEGIN {
                all.suspend(ThreadId::new(tid), CLR, Ticks::new(100));
            }
            all.step(ThreadId::new(tid), CLR, step, Ticks::new(100));
        }
    }

    #[test]
    fn step_finds_each_missing_event_of_a_suspension() {
        for without in 0..4 {
            let mut all = Collectors::default();
            all.clrs.entry(CLR).or_default();
            suspension(&mut all, 10, None);
            // The thread that suspends may be another one each time.
            suspension(&mut all, 11, Some(without));
            suspension(&mut all, 10, None);
            assert_eq!(all.clrs[&CLR].steps.count, 1, "{without}");
        }
    }

    #[test]
    fn step_allows_a_recording_that_begins_in_a_suspension() {
        for missed in 1..4 {
            let mut all = Collectors::default();
            all.clrs.entry(CLR).or_default();
            for step in missed..4 {
                all.step(ThreadId::new(10), CLR, step, Ticks::new(90));
            }
            // Two threads begin to suspend, and two sessions record the events.
            for tid in [10, 11] {
                all.suspend(ThreadId::new(tid), CLR, Ticks::new(100));
            }
            for tid in [10, 11] {
                for step in [1, 1, 2, 2, 3, 3] {
                    all.step(ThreadId::new(tid), CLR, step, Ticks::new(101));
                }
            }
            assert_eq!(all.clrs[&CLR].steps.count, 0, "{missed}");
        }
    }

    #[test]
    fn end_and_stats_find_each_missing_event_of_a_collection() {
        let of = |without: u16| {
            let mut clr = Collections::default();
            for number in 1..4 {
                for id in [START, END, HEAP_STATS, RESTARTING] {
                    if id == without && number == 3 {
                        continue;
                    }
                    let time = Ticks::new(i64::from(10 * number));
                    match id {
                        START => clr.start(start(number, 4, time)),
                        END => clr.end(number, time),
                        HEAP_STATS => clr.stats(time),
                        _ => clr.restarting(time),
                    }
                }
            }
            [clr.skipped, clr.unended, clr.without_stats].map(|counted| counted.count)
        };
        assert_eq!(of(0), [0, 0, 0]);
        assert_eq!(of(START), [1, 0, 0]);
        assert_eq!(of(END), [0, 1, 0]);
        assert_eq!(of(HEAP_STATS), [0, 0, 1]);
    }

    #[test]
    fn finalizer_finds_a_run_without_beginning_or_end() {
        let of = |ids: &[u16]| {
            let mut clr = Collections::default();
            ids.iter().for_each(|id| clr.finalizer(*id, Ticks::new(5)));
            clr.finalizers.count
        };
        assert_eq!(of(&[FINALIZED, FINALIZING, FINALIZED, FINALIZING]), 0);
        assert_eq!(of(&[FINALIZING, FINALIZING]), 1);
        assert_eq!(of(&[FINALIZED, FINALIZED]), 1);
    }

    #[test]
    fn absent_is_a_kind_that_comes_with_others() {
        let of = |ids: &[u16], times: u64| {
            let mut clr = Collections::default();
            for _ in 0..times {
                ids.iter().for_each(|id| clr.count(*id, Ticks::new(7)));
            }
            clr.absent().map(|absent| absent.names)
        };
        let all: Vec<u16> = KINDS.iter().map(|kind| kind.id).collect();
        assert_eq!(of(&all, 10), None);
        for kind in KINDS {
            let others: Vec<u16> = all.iter().copied().filter(|id| *id != kind.id).collect();
            assert_eq!(of(&others, 10), Some(vec![kind.name]));
            assert_eq!(of(&others, 9), None, "too few to decide");
        }
        // Without collections, threads are suspended for something else.
        assert_eq!(of(&STEPS, 10), None);
        assert_eq!(
            of(&[START, END, HEAP_STATS], 10).map(|names| names.len()),
            Some(4)
        );
    }

    #[test]
    fn uncollected_needs_far_more_allocations_than_ever() {
        let mut clr = Collections::default();
        let collect = |clr: &mut Collections, number: u32, ticks| {
            clr.rate.since += ticks;
            clr.start(start(number, 4, Ticks::new(number.into())));
            clr.end(number, Ticks::new(1));
        };
        (1..=10).for_each(|number| collect(&mut clr, number, 30));
        clr.rate.since += 300;
        assert_eq!(clr.uncollected(), Counted::default());
        clr.rate.since += 1;
        assert_eq!(
            clr.uncollected(),
            Counted {
                count: 301,
                first: Some(Ticks::new(10))
            }
        );
    }
}
