//! The process and the thread that a record is about, and counts of events by process.

use etl_format::constants::hook;
use etl_format::read::{Header, Record};
use etl_format::{ProcessId, ThreadId};
use etl_schema::providers::{
    DOTNET_EVENT_PIPE, KERNEL_PROCESS, SYSTEM_CONFIG_EX, UNIVERSAL_SYSTEM, kernel_class,
};
use etl_schema::views::kernel;
use foldhash::HashMap;

use crate::keys::ProcessIndex;
use crate::machine::Machine;

/// Threads without a known process whose events are counted for each thread.
const MAX_WAITING: usize = 1 << 20;

/// The process and the thread that a record is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordOwner {
    /// The process, if the record states it.
    pub process_id: Option<ProcessId>,
    /// The thread, if the record states it.
    pub thread_id: Option<ThreadId>,
}

impl RecordOwner {
    /// The owner without ids that are [`ProcessId::UNKNOWN`] or [`ThreadId::UNKNOWN`].
    pub(crate) fn known(self) -> Self {
        RecordOwner {
            process_id: self.process_id.filter(|id| id.is_known()),
            thread_id: self.thread_id.filter(|id| id.is_known()),
        }
    }
}

/// The process and the thread that a record is about: from its header, or for a sample or a stack
/// the process and the thread that ran. A sample states only the thread. Ids with all bits set,
/// which some classic events have, mean that the id is unknown.
#[must_use]
#[inline]
pub fn owner(record: &Record<'_>) -> RecordOwner {
    stated(record).known()
}

/// As [`owner`], but unknown ids are returned as they are stated.
#[inline]
pub(crate) fn stated(record: &Record<'_>) -> RecordOwner {
    match record.hook() {
        Some(hook::SAMPLE) => {
            if let Some(kernel::Sample { tid, .. }) = kernel::sample(record) {
                return RecordOwner {
                    process_id: None,
                    thread_id: Some(ThreadId::new(tid)),
                };
            }
        }
        Some(hook::STACK) => {
            if let Some(event) = kernel::Fields::of(record, hook::STACK) {
                let thread_id = event.thread_ids().into_iter().flatten().next();
                return RecordOwner {
                    process_id: event.process_id().map(ProcessId::new),
                    thread_id: thread_id.map(ThreadId::new),
                };
            }
        }
        _ => {}
    }
    RecordOwner {
        process_id: record.process_id(),
        thread_id: record.thread_id(),
    }
}

/// How many events each process has, by its index in the machine.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    of_processes: Vec<u64>,
    /// Events of threads whose process is not known yet.
    waiting: HashMap<ThreadId, u64>,
}

impl Counts {
    pub(crate) fn add(&mut self, machine: &mut Machine, record: &Record<'_>) {
        let RecordOwner {
            process_id,
            thread_id,
        } = owner(record);
        match (process_id, thread_id) {
            (Some(pid), _) => self.add_to(machine.process_index(pid), 1),
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

    pub(crate) fn add_to(&mut self, process: ProcessIndex, count: u64) {
        let process = process.get();
        if self.of_processes.len() <= process {
            self.of_processes.resize(process + 1, 0);
        }
        if let Some(sum) = self.of_processes.get_mut(process) {
            *sum += count;
        }
    }

    /// Adds the events of threads whose process became known later.
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
        return matches!(
            record.provider(),
            Some(KERNEL_PROCESS | DOTNET_EVENT_PIPE | UNIVERSAL_SYSTEM)
        );
    }
    is_of_machine(record)
}

/// Whether a merge wrote a record to describe the machine, or the record is an event of the kernel
/// about a process or a thread in the form that some relogged traces have.
#[inline(never)]
fn is_of_machine(record: &Record<'_>) -> bool {
    let Header::Full(header) = record.header() else {
        return false;
    };
    matches!(
        header.class,
        SYSTEM_CONFIG_EX | kernel_class::PROCESS | kernel_class::THREAD
    )
}
