//! The collections of all CLRs: finds the CLR and the thread to which an event belongs.

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

use super::kinds::{KINDS, kind_index};
use super::{Collections, StartEvent};

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

/// A field that fits into 32 bits.
fn uint(fields: &FieldValues<'_, 3>, index: usize) -> Option<u32> {
    u32::try_from(fields.uint(index)?).ok()
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
pub(crate) struct Collector<'a> {
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
        collections.counts.add(id, timestamp);
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
            (ALLOCATED, _) => collections.rate.allocation(),
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
    pub(crate) fn all(&self) -> impl Iterator<Item = Collector<'_>> {
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

#[cfg(test)]
mod tests {
    use etl_analysis::machine::Counted;

    use super::*;

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
}
