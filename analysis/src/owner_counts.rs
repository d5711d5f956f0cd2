//! How many events each process has, counted in the order of the file.
//!
//! Only the process and the thread of nearly all records are needed. Records about processes and
//! threads are kept, and change the machine in time order at the end.

use etl_format::constants::offset;
use etl_format::cursor::Bytes;
use etl_format::read::{Budget, Record, RecordBatch, Source};
use etl_format::{ProcessId, ThreadId, Ticks};
use foldhash::HashMap;

use crate::Result;
use crate::address::DirectMapped;
use crate::keys::ProcessIndex;
use crate::machine::Machine;
use crate::owner::{Counts, RecordOwner, is_read, stated};
use crate::run::{Recording, RecordingFile};
use crate::steps::{Step, Words};

/// Slots for the owners of the last records; a power of two.
const SLOTS: usize = 1 << 8;

/// Owners that are counted apart.
const MAX_OWNERS: usize = 1 << 18;

/// Bytes of records about processes and threads that are kept.
const MAX_BYTES: usize = 16 << 20;

/// What the header of a record says of its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Owner {
    /// The process in the high half, the thread in the low half.
    ids: u64,
    has_pid: bool,
    has_tid: bool,
    /// Whether it is an EVENT record: then the thread belongs to the process.
    is_event: bool,
}

impl Owner {
    #[inline]
    fn of(record: &Record<'_>) -> Self {
        if record.is_event() {
            // Thread and process, one after the other.
            let ids = record.bytes().u64_at(offset::event::THREAD).unwrap_or(0);
            return Owner {
                ids,
                has_pid: true,
                has_tid: true,
                is_event: true,
            };
        }
        let RecordOwner {
            process_id,
            thread_id,
        } = stated(record);
        let high = process_id.unwrap_or_default().get();
        let low = thread_id.unwrap_or_default().get();
        let ids = u64::from(high) << 32 | u64::from(low);
        Owner {
            ids,
            has_pid: process_id.is_some(),
            has_tid: thread_id.is_some(),
            is_event: false,
        }
    }

    fn pid(self) -> Option<ProcessId> {
        if self.has_pid {
            Some(ProcessId::new((self.ids >> 32) as u32))
        } else {
            None
        }
    }

    fn tid(self) -> Option<ThreadId> {
        if self.has_tid {
            Some(ThreadId::new(self.ids as u32))
        } else {
            None
        }
    }

    /// The ids without unknown ones.
    fn known(self) -> RecordOwner {
        RecordOwner {
            process_id: self.pid(),
            thread_id: self.tid(),
        }
        .known()
    }

    #[inline]
    fn hash(self) -> usize {
        // Ids are multiples of four.
        (self.ids >> 2 ^ self.ids >> 31) as usize
    }
}

/// The position of a record in time order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    timestamp: Ticks,
    /// The processor, from 1. The first buffer of the file, which is before all others, has 0.
    stream: u32,
    sequence_number: i64,
    in_buffer: u32,
}

impl Place {
    fn of(record: &Record<'_>) -> Self {
        let location = record.location();
        let stream = if location.buffer_offset == 0 {
            0
        } else {
            u32::from(location.processor) + 1
        };
        Place {
            timestamp: record.timestamp(),
            stream,
            sequence_number: location.sequence_number,
            in_buffer: location.in_buffer,
        }
    }
}

/// How many records an owner has, and the first of them.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    owner: Owner,
    count: u64,
    first: Place,
}

impl Seen {
    fn add(&mut self, other: &Seen) {
        self.first = if self.count == 0 {
            other.first
        } else {
            self.first.min(other.first)
        };
        self.count += other.count;
    }
}

/// Counts the events of each process from records in the order of the file, for
/// [`Analysis::count_by_owner`](crate::Analysis::count_by_owner).
#[derive(Debug)]
pub struct OwnerCounts {
    /// The owners of the last records.
    recent: DirectMapped<Seen>,
    all: HashMap<Owner, Seen>,
    /// The records about processes and threads.
    about: RecordBatch,
    /// Whether the memory limits were not reached.
    is_complete: bool,
}

/// How many events each process of a machine has, from
/// [`Analysis::count_by_owner`](crate::Analysis::count_by_owner).
#[derive(Debug)]
#[non_exhaustive]
pub struct EventsByProcess {
    /// The machine: its processes, threads and volumes.
    pub machine: Machine,
    counts: Vec<u64>,
}

impl EventsByProcess {
    pub(crate) fn new(machine: Machine, counts: Vec<u64>) -> Self {
        EventsByProcess { machine, counts }
    }

    /// The number of events of a process, of its threads, and of their samples and stacks.
    #[must_use]
    pub fn count(&self, process: ProcessIndex) -> u64 {
        self.counts.get(process.get()).copied().unwrap_or(0)
    }
}

impl Default for OwnerCounts {
    fn default() -> Self {
        OwnerCounts {
            recent: DirectMapped::new(SLOTS),
            all: HashMap::default(),
            about: RecordBatch::default(),
            is_complete: true,
        }
    }
}

impl OwnerCounts {
    /// Counts a record of a trace.
    #[inline]
    pub fn add(&mut self, record: &Record<'_>) {
        if record.is_stale() {
            return;
        }
        let owner = Owner::of(record);
        if let Some(slot) = self.recent.slot_mut(owner.hash()) {
            if slot.owner == owner && slot.count > 0 {
                slot.count += 1;
                if record.timestamp() <= slot.first.timestamp {
                    slot.first = slot.first.min(Place::of(record));
                }
            } else {
                let seen = Seen {
                    owner,
                    count: 1,
                    first: Place::of(record),
                };
                let before = core::mem::replace(slot, seen);
                self.keep(&before);
            }
        }
        if is_read(record) {
            self.is_complete &= self.about.bytes() < MAX_BYTES;
            if self.is_complete {
                self.about.push(record);
            }
        }
    }

    #[inline(never)]
    fn keep(&mut self, seen: &Seen) {
        if seen.count == 0 {
            return;
        }
        self.is_complete &= self.all.len() < MAX_OWNERS || self.all.contains_key(&seen.owner);
        if self.is_complete {
            self.all.entry(seen.owner).or_insert(Seen {
                owner: seen.owner,
                ..Seen::default()
            });
            if let Some(sum) = self.all.get_mut(&seen.owner) {
                sum.add(seen);
            }
        }
    }

    /// The events by process of a recording of one file, whose records were all counted. `None` if
    /// one id belonged to several processes or threads, so that ids alone do not say whose events
    /// they are, or if the memory limits were reached.
    pub(crate) fn finish<S: Source>(
        mut self,
        recording: &Recording<S>,
    ) -> Result<Option<EventsByProcess>> {
        for seen in self.recent.take(1) {
            self.keep(&seen);
        }
        let [RecordingFile { trace, name }] = recording.files() else {
            return Ok(None);
        };
        if !self.is_complete {
            return Ok(None);
        }
        let timeline = recording.timeline();
        let mut machine = Machine::new(timeline.clone(), true);
        machine.add_file(trace, name);
        let about: Vec<_> = self.about.records().collect();
        let mut changes = Vec::new();
        for record in &about {
            changes.push((Place::of(record), MachineChange::Record(record)));
        }
        for seen in self.all.values() {
            changes.push((seen.first, MachineChange::Owner(seen.owner)));
        }
        changes.sort_unstable_by_key(|(place, change)| (*place, change.rank()));
        for (index, (place, change)) in (0..).zip(changes) {
            // Some bytes of a record become a whole process.
            if index % Budget::RECORDS == 0 {
                recording.check_memory()?;
            }
            let time = timeline.timestamp(0, place.timestamp);
            change.apply(&mut machine, time);
        }
        machine.finish();
        let mut counts = Counts::default();
        for Seen { owner, count, .. } in self.all.values() {
            let process = match (owner.known().process_id, owner.known().thread_id) {
                (Some(pid), _) => Some(machine.process_index(pid)),
                (None, Some(tid)) => machine.running(tid),
                (None, None) => None,
            };
            if let Some(process) = process {
                counts.add_to(process, *count);
            }
        }
        // The threads of samples, which state no process.
        let owners = self.all.keys().map(|owner| owner.known());
        let samples = owners.filter(|owner| owner.process_id.is_none());
        if !machine.has_own_ids(samples.filter_map(|owner| owner.thread_id)) {
            return Ok(None);
        }
        let counts = counts.finish(&mut machine);
        Ok(Some(EventsByProcess { machine, counts }))
    }
}

/// What changes the machine at a place of the file.
#[derive(Clone, Copy, Debug)]
enum MachineChange<'r> {
    /// A record about a process or a thread.
    Record(&'r Record<'r>),
    /// The first record of an owner.
    Owner(Owner),
}

impl MachineChange<'_> {
    /// The order of changes at one place: what a record states of a process comes before its owner.
    fn rank(&self) -> (bool, Option<u64>) {
        match self {
            MachineChange::Record(_) => (false, None),
            MachineChange::Owner(owner) => (true, Some(owner.ids)),
        }
    }

    fn apply(self, machine: &mut Machine, time: Ticks) {
        let owner = match self {
            MachineChange::Record(record) => {
                machine.apply(Step::Record(record), time, 0, &mut ());
                return;
            }
            MachineChange::Owner(owner) => owner,
        };
        if owner.is_event
            && let (Some(pid), Some(tid)) = (owner.pid(), owner.tid())
        {
            machine.apply(Step::Words(Words::Thread { pid, tid }), time, 0, &mut ());
        }
        if let Some(pid) = owner.known().process_id {
            machine.process_index(pid);
        }
    }
}

#[cfg(test)]
mod tests {

    use etl_format::FileHeader;
    use etl_format::constants::hook;
    use etl_format::read::Order;
    use etl_format::write::Session;
    use etl_format::write::record::{PerfInfo, System};

    use super::*;
    use crate::Analysis;

    const CPUS: usize = 2;

    /// A trace in which these processes start and end, one after the other, each with a thread that
    /// is sampled on the other processor.
    fn trace(pids: &[u32]) -> Vec<u8> {
        let header = FileHeader {
            processors: CPUS as u32,
            ..FileHeader::new()
        };
        let mut session = Session::in_memory(header).unwrap();
        for (at, &pid) in pids.iter().enumerate() {
            let tid = pid + 4;
            let name = format!("{at}.exe\0\0\0");
            let ids = [0, 0, pid, 4].map(u32::to_le_bytes).concat();
            let process = [&ids[..], &[0; 20], name.as_bytes()].concat();
            let thread = [&pid.to_le_bytes()[..], &tid.to_le_bytes(), &[0; 64]].concat();
            let events = [
                (hook::PROCESS_START, 4, &process),
                (hook::THREAD_START, 4, &thread),
                (hook::SAMPLE, pid, &thread),
                (hook::PROCESS_END, pid, &process),
            ];
            for (step, (hook, process_id, payload)) in (0i64..).zip(events) {
                let timestamp = 2_000 + 100 * at as i64 + 10 * step;
                if hook == hook::SAMPLE {
                    let payload = [&[0; 8][..], &tid.to_le_bytes(), &[0; 4]].concat();
                    let sample = PerfInfo::new(hook, timestamp).payload(&payload);
                    session.write(1, &sample).unwrap();
                    continue;
                }
                let event = System::new(hook, timestamp)
                    .version(3)
                    .process(process_id, 4);
                session.write(0, &event.payload(payload)).unwrap();
            }
        }
        session.finish().unwrap()
    }

    /// Names with counts of events.
    type Names = Vec<(String, u64)>;

    /// Names and counts by the ids alone, and by a pass in time order.
    fn counted(bytes: &[u8]) -> (Option<Names>, Names) {
        let mut recording = Recording::open([(bytes, "a.etl")]).unwrap();
        let mut counts = OwnerCounts::default();
        let trace = &mut recording.files_mut()[0].trace;
        let mut records = trace.records(Order::File).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            counts.add(&record);
        }
        let named = |events: EventsByProcess| {
            let processes = events.machine.indexed_processes();
            processes
                .map(|(index, process)| (process.name().to_owned(), events.count(index)))
                .collect::<Vec<_>>()
        };
        let quick = counts.finish(&recording).unwrap().map(named);
        (
            quick,
            named(
                Analysis::new()
                    .owners(&mut recording, &mut (), true)
                    .unwrap(),
            ),
        )
    }

    #[test]
    fn counts_by_id_equal_counts_in_time_order_if_no_id_is_reused() {
        let (quick, slow) = counted(&trace(&[100, 200, 300]));
        assert!(
            slow.iter()
                .any(|(name, count)| name == "1.exe" && *count == 2),
            "{slow:?}"
        );
        assert_eq!(quick, Some(slow));
        let (quick, slow) = counted(&trace(&[100, 200, 100]));
        assert_eq!(quick, None);
        assert!(
            slow.iter()
                .any(|(name, count)| name == "2.exe" && *count == 2),
            "{slow:?}"
        );
    }
}
