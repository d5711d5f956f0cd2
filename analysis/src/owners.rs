//! A quick pass: which process has which events, and what ids and volumes are called.
//!
//! It looks at few records: those about processes, threads and volumes. Of the others, which are
//! nearly all, it only needs whose they are.

use etl_format::constants::hook;
use etl_format::read::{Header, Record, Source};
use etl_schema::providers::{KERNEL_PROCESS, SYSTEM_CONFIG_EX, kernel_class};
use etl_schema::views::kernel;
use foldhash::HashMap;

use crate::Result;
use crate::address::DirectMapped;
use crate::machine::Machine;
use crate::observe::RecordObserver;
use crate::owner_counts::OwnerCounts;
use crate::run::{Analysis, Pass, Recording, each_record, each_record_of};
use crate::steps::{Step, Words};

/// Slots for threads; a power of two.
const THREADS: usize = 1 << 10;

/// Threads without a known process whose events are counted apart.
const MAX_WAITING: usize = 1 << 20;

/// Process and thread that a record is about: those of its header, but for a sample or a stack
/// those that ran. A sample has a thread only. Ids with all bits set, which some classic events
/// have, are unknown.
#[must_use]
#[inline]
pub fn owner(record: &Record<'_>) -> (Option<u32>, Option<u32>) {
    let (pid, tid) = stated(record);
    (known(pid), known(tid))
}

/// An id, unless it stands for an unknown one.
#[inline]
pub(crate) fn known(id: Option<u32>) -> Option<u32> {
    id.filter(|&id| id != u32::MAX)
}

#[inline]
pub(crate) fn stated(record: &Record<'_>) -> (Option<u32>, Option<u32>) {
    match record.hook() {
        Some(hook::SAMPLE) => {
            if let Some((_, tid)) = kernel::sample(record) {
                return (None, Some(tid));
            }
        }
        Some(hook::STACK) => {
            if let Some(event) = kernel::Fields::of(record, hook::STACK) {
                return (event.process_id(), event.thread_ids().into_iter().flatten().next());
            }
        }
        _ => {}
    }
    (record.process_id(), record.thread_id())
}

/// How many events each process has, by its index in the machine.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    of_processes: Vec<u64>,
    /// Those of threads whose process is not known yet.
    waiting: HashMap<u32, u64>,
}

impl Counts {
    fn add(&mut self, machine: &mut Machine, record: &Record<'_>) {
        match owner(record) {
            (Some(pid), _) => self.add_to(machine.process(pid), 1),
            (None, Some(tid)) => match machine.running(tid) {
                Some(process) => self.add_to(process, 1),
                None if self.waiting.len() < MAX_WAITING || self.waiting.contains_key(&tid) => {
                    *self.waiting.entry(tid).or_default() += 1;
                }
                None => {}
            },
            (None, None) => {}
        }
    }

    pub(crate) fn add_to(&mut self, process: usize, count: u64) {
        if self.of_processes.len() <= process {
            self.of_processes.resize(process + 1, 0);
        }
        if let Some(sum) = self.of_processes.get_mut(process) {
            *sum += count;
        }
    }

    /// The threads may have become known later.
    pub(crate) fn finish(mut self, machine: &mut Machine) -> Vec<u64> {
        for (tid, count) in std::mem::take(&mut self.waiting) {
            if let Some(process) = machine.running(tid) {
                self.add_to(process, count);
            }
        }
        self.of_processes
    }
}

/// What of a record names processes, threads or volumes. `threads` has those of the last events, by
/// their lowest bits: the machine knows their process.
#[inline]
fn step<'r>(record: &'r Record<'r>, threads: &mut DirectMapped<Option<u32>>) -> Option<Step<'r>> {
    if is_read(record) {
        return Some(Step::Record(record));
    }
    let (true, Some(pid), Some(tid)) = (record.is_event(), record.process_id(), record.thread_id())
    else {
        return None;
    };
    let slot = threads.slot_mut(tid as usize >> 2);
    let is_known = slot.is_some_and(|thread| thread.replace(tid) == Some(tid));
    (!is_known).then_some(Step::Words(Words::Thread { pid, tid }))
}

/// Whether the machine takes in a record as a whole.
#[inline]
pub(crate) fn is_read(record: &Record<'_>) -> bool {
    if let Some(id) = record.hook() {
        return matches!(
            id,
            hook::PROCESS_START..=hook::PROCESS_DC_END
                | hook::THREAD_START..=hook::THREAD_DC_END
                | hook::THREAD_SET_NAME
        );
    }
    if record.is_event() {
        return record.provider() == Some(KERNEL_PROCESS);
    }
    is_of_machine(record)
}

/// Whether a merge added a record to describe the machine, or it is an event of the kernel about a
/// process or a thread in the form that some relogged traces have.
#[inline(never)]
fn is_of_machine(record: &Record<'_>) -> bool {
    let Header::Full(header) = record.header() else { return false };
    matches!(header.class, SYSTEM_CONFIG_EX | kernel_class::PROCESS | kernel_class::THREAD)
}

impl Analysis {
    /// Reads a recording for its processes, threads and volumes alone, which takes a fraction of
    /// the time of [`Analysis::run`]. The machine has no images, code and addresses. Of the methods
    /// of `records`, [`RecordObserver::record`] alone is called.
    ///
    /// # Errors
    /// As [`Analysis::run`].
    #[doc(hidden)]
    pub fn run_for_owners<S: Source>(
        &self,
        recording: &mut Recording<S>,
        records: &mut impl RecordObserver,
    ) -> Result<Machine> {
        Ok(self.owners(recording, records, false)?.0)
    }

    /// The same, and how many events each process has, by its index: those of its threads, with the
    /// samples and stacks of its threads. `counted` are all records of the recording: it is read
    /// only where they do not suffice, as an id has been that of several processes or threads.
    ///
    /// # Errors
    /// As [`Analysis::run`].
    pub fn count_by_owner<S: Source>(
        &self,
        recording: &mut Recording<S>,
        counted: OwnerCounts,
    ) -> Result<(Machine, Vec<u64>)> {
        match counted.finish(recording) {
            Some(counts) => Ok(counts),
            None => self.owners(recording, &mut (), true),
        }
    }

    pub(crate) fn owners<S: Source>(
        &self,
        recording: &mut Recording<S>,
        records: &mut impl RecordObserver,
        count: bool,
    ) -> Result<(Machine, Vec<u64>)> {
        let mut counts = Counts::default();
        // Names of threads are kept with the others.
        let mut machine = self.names(true).read(recording, |pass, readers| {
            counts = Counts::default();
            let mut threads = DirectMapped::new(THREADS);
            let Pass { timeline, machine, is_second, .. } = pass;
            if is_second {
                records.restart();
            }
            let mut take = |record: &Record<'_>, file: usize, time: i64| {
                records.record(record, file);
                if let Some(step) = step(record, &mut threads) {
                    machine.apply(step, time, file, &mut ());
                }
                if count {
                    counts.add(machine, record);
                }
            };
            match readers {
                [reader] => each_record_of(reader, timeline, |record, time| take(record, 0, time)),
                _ => each_record(readers, timeline, take),
            }
        })?;
        let counts = counts.finish(&mut machine);
        Ok((machine, counts))
    }
}
