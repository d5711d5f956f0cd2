//! The processes and threads that a record is about, from its header or its payload.
//!
//! Kernel events name them in their payloads: the header of a thread's end names the thread that
//! ended it, and a sample has no process or thread in its header.

use etl_events::Subject;
use etl_format::constants::hook;
use etl_format::read::Record;
use etl_format::{ProcessId, ThreadId};
use foldhash::HashMap;

use super::kernel::{KernelEvent, ThreadProcess, group};

/// Threads whose process is remembered.
const MAX_THREADS: usize = 1 << 20;

/// The processes of threads, as far as the trace has defined them.
#[derive(Debug, Default)]
pub(super) struct ThreadOwners {
    owners: HashMap<ThreadId, ProcessId>,
}

impl ThreadOwners {
    /// Learns from a record. Returns the thread if the header of an event is the first record that
    /// names its process.
    pub fn learn(
        &mut self,
        record: &Record<'_>,
        kernel: Option<&KernelEvent<'_>>,
    ) -> Option<ThreadProcess> {
        if let Some(kernel) = kernel
            && let Some(ThreadProcess { thread, process }) = kernel.thread()
        {
            let starts_or_ends = matches!(kernel.hook, hook::THREAD_START | hook::THREAD_END);
            let has_capacity = self.owners.len() < MAX_THREADS;
            match self.owners.get_mut(&thread) {
                Some(owner) if starts_or_ends => *owner = process,
                None if has_capacity => {
                    self.owners.insert(thread, process);
                }
                _ => {}
            }
            return None;
        }
        if !record.is_event() {
            return None;
        }
        let thread = record.thread_id()?;
        let process = record.process_id()?;
        if self.owners.len() >= MAX_THREADS || self.owners.contains_key(&thread) {
            return None;
        }
        self.owners.insert(thread, process);
        Some(ThreadProcess { thread, process })
    }

    /// The subject of a record.
    pub fn subject(&self, record: &Record<'_>, kernel: Option<&KernelEvent<'_>>) -> Subject {
        let mut ids = match kernel {
            Some(kernel) => match kernel_ids(record, kernel) {
                Some(ids) => ids,
                None => return Subject::default(),
            },
            None => header_ids(record),
        };
        if ids.processes == [None; 2] {
            for (process, thread) in ids.processes.iter_mut().zip(ids.threads) {
                *process = thread.and_then(|thread| self.process_of(thread));
            }
        }
        Subject::new(ids.processes, ids.threads)
    }

    fn process_of(&self, thread: ThreadId) -> Option<ProcessId> {
        // Thread 0 is the idle thread of every processor.
        if thread == 0 {
            Some(ProcessId::new(0))
        } else {
            self.owners.get(&thread).copied()
        }
    }
}

/// The ids of processes and threads that a record names.
struct Ids {
    processes: [Option<ProcessId>; 2],
    threads: [Option<ThreadId>; 2],
}

fn header_ids(record: &Record<'_>) -> Ids {
    Ids {
        processes: [record.known_process_id(), None],
        threads: [record.known_thread_id(), None],
    }
}

/// The ids that a kernel event names; `None` for rundowns, which are not about a process.
fn kernel_ids(record: &Record<'_>, kernel: &KernelEvent<'_>) -> Option<Ids> {
    if matches!(
        kernel.hook,
        hook::STACK_KEY_CREATE
            ..=hook::STACK_KEY_RUNDOWN
                | hook::FILE_RUNDOWN
                | hook::KCB_RUNDOWN_BEGIN
                | hook::KCB_RUNDOWN_END
    ) {
        return None;
    }
    let header = header_ids(record);
    let Some(fields) = kernel.fields else {
        return Some(header);
    };
    let mut threads = fields.thread_ids().map(|id| id.map(ThreadId::new));
    // Older disk events do not name the thread that caused the access.
    if threads == [None; 2] && kernel.group() == group::DISK {
        threads = header.threads;
    }
    Some(Ids {
        processes: [fields.process_id().map(ProcessId::new), None],
        threads,
    })
}
