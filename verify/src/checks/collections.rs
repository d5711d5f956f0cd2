//! Garbage collections: their numbers, starts and ends, and the suspensions around them.

use etl_format::{ProcessId, ThreadId, Ticks};
use std::collections::BTreeMap;

use etl_format::read::{EventHeader, Record};
use etl_schema::clr::collection::{
    ALLOCATED, BACKGROUND, END, FINALIZED, FINALIZING, HEAP_STATS, RESTARTED, RESTARTING, START,
    SUSPEND, SUSPENDED,
};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::{FieldReader, FieldValues};
use foldhash::HashMap;

use etl_analysis::machine::Counted;

/// What is missing of the collections of a CLR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collections {
    /// Numbers that no start event has, between those that have one.
    pub skipped: Counted,
    /// Starts with another start, and no end, after them.
    pub unended: Counted,
    /// Suspensions with another one, and no restart, after them.
    pub unrestarted: Counted,
    /// Events of suspensions that are missing between others of their thread.
    pub steps: Counted,
    /// Starts of a number that came before in the same version of the event, or in one version
    /// only of those in which all others came.
    pub unmatched: Counted,
    /// Number and timestamp of the last start.
    last: Option<(u32, Ticks)>,
    /// Versions of the events of the last start, as bits, and those of the starts before it.
    versions: (u8, Option<u8>),
    /// Number and timestamp of a start whose end has to come before the next start.
    open: Option<(u32, Ticks)>,
    /// Restarts so far.
    restarts: u64,
    /// Collections, and allocation events between them.
    rate: Rate,
    /// How often each of the kinds came.
    counts: [u64; KINDS.len()],
    /// When any of them came first.
    first: Option<Ticks>,
}

/// Kinds of events of collections. A session that gets one gets all of them: they have the same
/// keyword and level.
const KINDS: [(u16, &str); 9] = [
    (START, "GCStart"),
    (END, "GCEnd"),
    (HEAP_STATS, "GCHeapStats"),
    (SUSPEND, "GCSuspendEEBegin"),
    (SUSPENDED, "GCSuspendEEEnd"),
    (RESTARTING, "GCRestartEEBegin"),
    (RESTARTED, "GCRestartEEEnd"),
    (FINALIZING, "GCFinalizersBegin"),
    (FINALIZED, "GCFinalizersEnd"),
];

/// For each of the kinds, those that never come without it. A process is suspended for other
/// reasons than collections, too, and not every collection leaves something to finalize.
const PROOFS: [(u16, &[u16]); KINDS.len()] = [
    (START, &[END, HEAP_STATS]),
    (END, &[START, HEAP_STATS]),
    (HEAP_STATS, &[START, END]),
    (SUSPEND, &[START, END, SUSPENDED, RESTARTING, RESTARTED]),
    (SUSPENDED, &[START, END, SUSPEND, RESTARTING, RESTARTED]),
    (RESTARTING, &[START, END, SUSPEND, SUSPENDED, RESTARTED]),
    (RESTARTED, &[START, END, SUSPEND, SUSPENDED, RESTARTING]),
    (FINALIZING, &[FINALIZED]),
    (FINALIZED, &[FINALIZING]),
];

/// How many allocation events come between collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rate {
    collections: u64,
    /// The most between two of them.
    most: u64,
    /// Since the last one, and when that was.
    since: u64,
    last: Option<Ticks>,
}

/// Events of a suspension, in their order: it begins, is complete, and so for the restart.
const STEPS: [u16; 4] = [SUSPEND, SUSPENDED, RESTARTING, RESTARTED];

/// The suspensions by a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Suspension {
    instance: u16,
    timestamp: Ticks,
    /// Restarts of its CLR before it.
    restarts: u64,
    /// Whether it suspended at all.
    has_begun: bool,
    /// The last event, as an index of the steps.
    step: Option<u8>,
    /// Whole suspensions so far: some runtimes may do it in another way.
    whole: u32,
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
        for (id, _) in KINDS {
            readers.push(EventReader::new(id));
        }
        readers
    }
}

/// A process with collections.
#[derive(Clone, Copy, Debug)]
struct Process {
    pid: ProcessId,
    /// When its first event came.
    since: Ticks,
}

/// The collections of all CLRs.
#[derive(Clone, Debug)]
pub struct Collectors {
    readers: Vec<EventReader>,
    /// By process and CLR.
    clrs: BTreeMap<(usize, u16), Collections>,
    /// The last suspension by each thread of a process.
    threads: HashMap<(usize, ThreadId), Suspension>,
    processes: Vec<Process>,
    /// The process that has an id now.
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
    /// Processes, CLRs, and threads that suspend, that are kept.
    const MAX: usize = 1 << 16;

    /// A process started: what had its id before has ended.
    pub fn process_started(&mut self, pid: ProcessId) {
        self.by_pid.remove(&pid);
    }

    /// The process that has an id now.
    fn process(&mut self, pid: ProcessId, timestamp: Ticks) -> Option<usize> {
        if let Some(process) = self.by_pid.get(&pid) {
            return Some(*process);
        }
        let process = self.processes.len();
        if process >= Self::MAX {
            return None;
        }
        self.processes.push(Process {
            pid,
            since: timestamp,
        });
        self.by_pid.insert(pid, process);
        Some(process)
    }

    /// Whether an event is about collections.
    pub fn concern(header: &EventHeader) -> bool {
        let id = header.descriptor.id;
        header.provider == CLR_RUNTIME
            && (id == ALLOCATED || KINDS.iter().any(|(kind, _)| *kind == id))
    }

    /// Adds an event that they [`concern`](Self::concern).
    #[inline(never)]
    pub fn event(&mut self, record: &Record<'_>, header: &EventHeader, timestamp: Ticks) {
        let descriptor = header.descriptor;
        let id = descriptor.id;
        let is_first_version = descriptor.version == 0;
        let Some(fields) = self.fields(id, record) else {
            return;
        };
        let field = |index: usize| {
            fields
                .uint(index)
                .and_then(|value| u32::try_from(value).ok())
        };
        let instance = if is_first_version {
            Some(0)
        } else {
            field(EventReader::INSTANCE)
        };
        let Some(instance) = instance.and_then(|instance| u16::try_from(instance).ok()) else {
            return;
        };
        let Some(process) = self.process(header.process_id, timestamp) else {
            return;
        };
        let clr = (process, instance);
        if self.clrs.len() >= Self::MAX && !self.clrs.contains_key(&clr) {
            return;
        }
        let known = self.clrs.entry(clr).or_default();
        known.count(id, timestamp);
        match (id, field(EventReader::NUMBER)) {
            (START, Some(number)) => {
                // The first version does not state the type.
                let is_beside = is_first_version || field(EventReader::TYPE) == Some(BACKGROUND);
                let version = 1u8.checked_shl(descriptor.version.into()).unwrap_or(0);
                known.start(number, version, is_beside, timestamp);
            }
            (END, Some(number)) => known.end(number),
            (ALLOCATED, _) => known.rate.since += 1,
            (RESTARTED, _) => known.restarts += 1,
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

    /// A thread that suspends a CLR also restarts it.
    fn step(
        &mut self,
        tid: ThreadId,
        (process, instance): (usize, u16),
        step: u8,
        timestamp: Ticks,
    ) {
        let Some(own) = self.threads.get_mut(&(process, tid)) else {
            return;
        };
        if own.instance != instance {
            return;
        }
        let before = own.step.replace(step);
        // Another session recorded the event as well.
        if before == Some(step) {
            return;
        }
        let steps = STEPS.len() as u8;
        let missing = before.map_or(0, |before| (step + steps - (before + 1) % steps) % steps);
        if missing == 0 {
            own.whole += u32::from(before.is_some() && step + 1 == steps);
        } else if own.whole >= MIN_WHOLE {
            if let Some(known) = self.clrs.get_mut(&(process, instance)) {
                known.steps.count += u64::from(missing);
                known.steps.first.get_or_insert(timestamp);
            }
        } else {
            own.whole = 0;
        }
    }

    fn suspend(&mut self, tid: ThreadId, (process, instance): (usize, u16), timestamp: Ticks) {
        let Some(known) = self.clrs.get_mut(&(process, instance)) else {
            return;
        };
        let thread = (process, tid);
        let before = self.threads.get(&thread).copied();
        let same = before
            .filter(|b| b.instance == instance)
            .unwrap_or_default();
        let restarts = known.restarts;
        let now = Suspension {
            instance,
            timestamp,
            restarts,
            has_begun: true,
            ..same
        };
        // The thread itself waits for the restart.
        let is_same = |b: &Suspension| b.has_begun && b.instance == instance;
        let unrestarted = before.filter(|b| is_same(b) && b.restarts == known.restarts);
        if let Some(before) = unrestarted {
            known.unrestarted.add(before.timestamp);
        }
        if before.is_some() || self.threads.len() < Self::MAX {
            self.threads.insert(thread, now);
        }
    }

    /// The collections of each CLR, with its instance, and the id of its process at a time.
    pub fn all(&self) -> impl Iterator<Item = (ProcessId, Ticks, u16, &Collections)> {
        self.clrs
            .iter()
            .filter_map(|(&(process, instance), collections)| {
                let Process { pid, since } = *self.processes.get(process)?;
                Some((pid, since, instance, collections))
            })
    }
}

/// Whole suspensions of a thread, collections of a CLR, and allocations between them, from which on
/// what is missing is no accident.
const MIN_WHOLE: u32 = 3;
const MIN_COLLECTIONS: u64 = 10;
const MIN_ALLOCATED: u64 = 200;
/// How many times as many allocations as ever between two collections there may be after the last.
const MAX_GROWTH: u64 = 10;

impl Rate {
    fn collection(&mut self, timestamp: Ticks) {
        if self.collections > 0 {
            self.most = self.most.max(self.since);
        }
        self.collections += 1;
        (self.since, self.last) = (0, Some(timestamp));
    }

    /// Allocation events after the last collection, if they are far too many for none.
    fn excess(self) -> Option<Counted> {
        let is_rated = self.collections >= MIN_COLLECTIONS && self.most > 0;
        let is_beyond = self.since >= MIN_ALLOCATED && self.since > MAX_GROWTH * self.most;
        (is_rated && is_beyond).then_some(Counted {
            count: self.since,
            first: self.last,
        })
    }
}

impl Collections {
    /// Allocation events after the last collection, if there should have been collections.
    pub fn uncollected(&self) -> Counted {
        self.rate.excess().unwrap_or_default()
    }

    fn count(&mut self, id: u16, timestamp: Ticks) {
        let index = KINDS.iter().position(|(kind, _)| *kind == id);
        if let Some(count) = index.and_then(|index| self.counts.get_mut(index)) {
            *count += 1;
            self.first.get_or_insert(timestamp);
        }
    }

    /// The names of kinds without any event, though there are many of those that come with them;
    /// and when any of them came first.
    pub fn absent(&self) -> Option<(Ticks, Vec<&'static str>)> {
        let count = |id: u16| {
            let index = KINDS.iter().position(|(kind, _)| *kind == id);
            index
                .and_then(|index| self.counts.get(index))
                .copied()
                .unwrap_or(0)
        };
        let is_absent = |id: u16| {
            let proofs = PROOFS
                .iter()
                .find(|(kind, _)| *kind == id)
                .map_or(&[][..], |(_, p)| p);
            count(id) == 0 && proofs.iter().any(|proof| count(*proof) >= MIN_COLLECTIONS)
        };
        let absent: Vec<_> = KINDS
            .iter()
            .filter(|(id, _)| is_absent(*id))
            .map(|(_, name)| *name)
            .collect();
        Some((self.first?, absent)).filter(|(_, absent)| !absent.is_empty())
    }

    /// Takes in a start, with the version of its event as a bit: some runtimes log it in two.
    fn version(&mut self, number: u32, version: u8, timestamp: Ticks) {
        let (own, all) = &mut self.versions;
        if self.last.is_some_and(|(last, _)| last == number) {
            if *own & version != 0 {
                self.unmatched.add(timestamp);
            }
            *own |= version;
            return;
        }
        if let Some((_, at)) = self.last {
            let before = *all.get_or_insert(*own);
            if *own != before && own.count_ones() < before.count_ones() {
                self.unmatched.add(at);
            }
        }
        *own = version;
    }

    fn start(&mut self, number: u32, version: u8, is_beside: bool, timestamp: Ticks) {
        self.version(number, version, timestamp);
        let last = self.last.replace((number, timestamp));
        if last.is_none_or(|(before, _)| before != number) {
            self.rate.collection(timestamp);
        }
        // A number that is not larger is that of another process, whose start the trace may lack,
        // or of another session's event.
        let Some((before, at)) = last.filter(|(before, _)| *before < number) else {
            if last.is_none_or(|(before, _)| before != number) {
                self.open = (!is_beside).then_some((number, timestamp));
            }
            return;
        };
        let skipped = u64::from(number - before - 1);
        if skipped > 0 {
            self.skipped.count += skipped;
            self.skipped.first.get_or_insert(at);
        }
        if let Some((_, started)) = self.open.take() {
            self.unended.add(started);
        }
        self.open = (!is_beside).then_some((number, timestamp));
    }

    fn end(&mut self, number: u32) {
        if self.open.is_some_and(|(open, _)| open == number) {
            self.open = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_counts_skipped_numbers_and_starts_without_end() {
        let mut clr = Collections::default();
        // The first one may have any number; those beside may end later.
        clr.start(7, 4, false, Ticks::new(10));
        clr.end(7);
        clr.start(8, 4, true, Ticks::new(20));
        clr.start(9, 4, false, Ticks::new(30));
        clr.end(9);
        clr.start(10, 4, false, Ticks::new(40));
        clr.end(8);
        assert_eq!((clr.skipped.count, clr.unended.count), (0, 0));
        clr.start(11, 4, false, Ticks::new(50));
        assert_eq!(
            clr.unended,
            Counted {
                count: 1,
                first: Some(Ticks::new(40))
            }
        );
        clr.end(11);
        clr.start(14, 4, false, Ticks::new(60));
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
        clr.start(7, 4, false, Ticks::new(10));
        clr.start(7, 4, false, Ticks::new(10));
        clr.end(7);
        clr.end(7);
        clr.start(8, 4, false, Ticks::new(20));
        // The process ended, and another one has its id.
        clr.start(1, 4, false, Ticks::new(30));
        clr.end(1);
        clr.start(2, 4, false, Ticks::new(40));
        assert_eq!((clr.skipped.count, clr.unended.count), (0, 0));
    }

    #[test]
    fn process_keeps_those_apart_that_had_an_id_in_turn() {
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
            all.clrs.entry((process, 9)).or_default();
        }
        let known: Vec<_> = all
            .all()
            .map(|(pid, since, clr, _)| (pid, since, clr))
            .collect();
        let pid = ProcessId::new(7);
        assert_eq!(known, [(pid, Ticks::new(10), 9), (pid, Ticks::new(20), 9)]);
    }

    #[test]
    fn suspend_expects_a_restart_before_the_thread_suspends_again() {
        let mut all = Collectors::default();
        let restart = |all: &mut Collectors| {
            all.clrs.entry((1, 0)).or_default().restarts += 1;
        };
        all.clrs.entry((1, 0)).or_default();
        // Two threads want to suspend; the second waits for the first.
        all.suspend(ThreadId::new(10), (1, 0), Ticks::new(100));
        all.suspend(ThreadId::new(11), (1, 0), Ticks::new(101));
        restart(&mut all);
        restart(&mut all);
        all.suspend(ThreadId::new(10), (1, 0), Ticks::new(200));
        restart(&mut all);
        all.suspend(ThreadId::new(10), (1, 0), Ticks::new(300));
        assert_eq!(all.clrs[&(1, 0)].unrestarted.count, 0);
        all.suspend(ThreadId::new(10), (1, 0), Ticks::new(400));
        assert_eq!(
            all.clrs[&(1, 0)].unrestarted,
            Counted {
                count: 1,
                first: Some(Ticks::new(300))
            }
        );
    }

    #[test]
    fn version_expects_each_start_in_the_same_versions() {
        let mut clr = Collections::default();
        let both = |clr: &mut Collections, number, at| {
            clr.start(number, 2, false, at);
            clr.start(number, 4, false, at);
            clr.end(number);
        };
        both(&mut clr, 1, Ticks::new(10));
        both(&mut clr, 2, Ticks::new(20));
        assert_eq!(clr.unmatched.count, 0);
        // One of the two is missing.
        clr.start(3, 4, false, Ticks::new(30));
        clr.end(3);
        both(&mut clr, 4, Ticks::new(40));
        assert_eq!(
            clr.unmatched,
            Counted {
                count: 1,
                first: Some(Ticks::new(30))
            }
        );
        clr.start(5, 2, false, Ticks::new(50));
        clr.start(5, 2, false, Ticks::new(50));
        assert_eq!(clr.unmatched.count, 2);
    }

    #[test]
    fn step_expects_the_four_events_of_a_suspension_in_a_row() {
        let mut all = Collectors::default();
        all.clrs.entry((1, 0)).or_default();
        let suspension = |all: &mut Collectors, without: Option<u8>| {
            for step in (0..4).filter(|step| Some(*step) != without) {
                if step == 0 {
                    all.suspend(ThreadId::new(10), (1, 0), Ticks::new(100));
                }
                all.step(ThreadId::new(10), (1, 0), step, Ticks::new(100));
            }
        };
        // What is done in another way at first is not judged.
        suspension(&mut all, Some(2));
        (0..4).for_each(|_| suspension(&mut all, None));
        assert_eq!(all.clrs[&(1, 0)].steps.count, 0);
        suspension(&mut all, Some(1));
        suspension(&mut all, Some(3));
        suspension(&mut all, None);
        assert_eq!(all.clrs[&(1, 0)].steps.count, 2);
    }

    #[test]
    fn absent_is_a_kind_that_comes_with_others() {
        let of = |ids: &[u16], times: u64| {
            let mut clr = Collections::default();
            for _ in 0..times {
                ids.iter().for_each(|id| clr.count(*id, Ticks::new(7)));
            }
            clr.absent().map(|(_, names)| names)
        };
        let all: Vec<u16> = KINDS.iter().map(|(id, _)| *id).collect();
        assert_eq!(of(&all, 10), None);
        for (kind, name) in KINDS {
            let others: Vec<u16> = all.iter().copied().filter(|id| *id != kind).collect();
            assert_eq!(of(&others, 10), Some(vec![name]));
            assert_eq!(of(&others, 9), None, "too few to decide");
        }
        // Without collections, threads are suspended for something else.
        assert_eq!(of(&STEPS, 10), None);
        assert_eq!(
            of(&[START, END, HEAP_STATS], 10).map(|names| names.len()),
            Some(4)
        );
        assert!(
            PROOFS
                .iter()
                .zip(KINDS)
                .all(|((kind, _), (id, _))| *kind == id)
        );
    }

    #[test]
    fn uncollected_needs_far_more_allocations_than_ever() {
        let mut clr = Collections::default();
        let collect = |clr: &mut Collections, number: u32, ticks| {
            clr.rate.since += ticks;
            clr.start(number, 4, false, Ticks::new(number.into()));
            clr.end(number);
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
