//! The process and the thread that a record is about, and counts of events by process.

use etl_format::constants::{UNKNOWN_ID, hook};
use etl_format::read::{Header, Record};
use etl_schema::providers::{KERNEL_PROCESS, SYSTEM_CONFIG_EX, kernel_class};
use etl_schema::views::kernel;
use foldhash::HashMap;

use crate::machine::Machine;

/// Threads without a known process whose events are counted apart.
const MAX_WAITING: usize = 1 << 20;

/// The process and the thread that a record is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Id of the process, if known.
    pub pid: Option<u32>,
    /// Id of the thread, if known.
    pub tid: Option<u32>,
}

/// The process and the thread that a record is about: from its header, or for a sample or a stack
/// the ones that ran. A sample has a thread only. Ids with all bits set, which some classic events
/// have, are unknown.
#[must_use]
#[inline]
pub fn owner(record: &Record<'_>) -> Owner {
    let (pid, tid) = stated(record);
    Owner { pid: known(pid), tid: known(tid) }
}

/// The id; `None` if all its bits are set, which means unknown.
#[inline]
pub(crate) fn known(id: Option<u32>) -> Option<u32> {
    id.filter(|&id| id != UNKNOWN_ID)
}

#[inline]
pub(crate) fn stated(record: &Record<'_>) -> (Option<u32>, Option<u32>) {
    match record.hook() {
        Some(hook::SAMPLE) => {
            if let Some(kernel::Sample { tid, .. }) = kernel::sample(record) {
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
    pub(crate) fn add(&mut self, machine: &mut Machine, record: &Record<'_>) {
        match owner(record) {
            Owner { pid: Some(pid), .. } => self.add_to(machine.process(pid), 1),
            Owner { pid: None, tid: Some(tid) } => match machine.running(tid) {
                Some(process) => self.add_to(process, 1),
                None if self.waiting.len() < MAX_WAITING || self.waiting.contains_key(&tid) => {
                    *self.waiting.entry(tid).or_default() += 1;
                }
                None => {}
            },
            Owner { pid: None, tid: None } => {}
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

/// Whether the machine reads the whole record.
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
