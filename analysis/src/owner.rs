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
/// the process and the thread that ran. Events of connections and of disks are about the process or
/// the thread in their payload: the thread in their header is the one that the network card or the
/// disk interrupted. Samples and events of disks state only the thread. Ids with all bits set,
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
                return in_payload(&event);
            }
        }
        Some(hook) if is_about_payload(hook) => {
            let event = kernel::Fields::of(record, hook);
            let owner = event.as_ref().map(in_payload).unwrap_or_default();
            if owner != RecordOwner::default() {
                return owner;
            }
        }
        _ => {}
    }
    RecordOwner {
        process_id: record.process_id(),
        thread_id: record.thread_id(),
    }
}

/// The process and the thread in the payload of a kernel event.
fn in_payload(event: &kernel::Fields<'_>) -> RecordOwner {
    let thread_id = event.thread_ids().into_iter().flatten().next();
    RecordOwner {
        process_id: event.process_id().map(ProcessId::new),
        thread_id: thread_id.map(ThreadId::new),
    }
}

/// Whether kernel events with this hook are about the process or the thread in their payload.
#[inline]
const fn is_about_payload(hook: u16) -> bool {
    let group = (hook >> 8) as u8;
    matches!(group, hook::GROUP_TCP | hook::GROUP_UDP)
        || matches!(hook, hook::DISK_READ | hook::DISK_WRITE | hook::DISK_FLUSH)
}

/// Whether the payload of a record states a thread, and nothing states its process.
#[must_use]
#[doc(hidden)]
pub fn has_thread_only(record: &Record<'_>, owner: &RecordOwner) -> bool {
    let is_thread = owner.thread_id.is_some() && owner.process_id.is_none();
    match record.hook() {
        Some(hook) => is_thread && (hook == hook::SAMPLE || is_about_payload(hook)),
        None => false,
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
