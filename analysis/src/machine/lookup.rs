//! Looks up processes and threads by their ids, now and at earlier times.

use etl_format::{ProcessId, ThreadId, Ticks};
use foldhash::HashSet;

use super::IDLE;
use super::holders::Holders;
use super::process::Process;
use super::threads::Thread;
use super::{MAX_PROCESSES, Machine};
use crate::keys::ProcessIndex;

/// Who had the ids of processes and threads.
#[derive(Debug)]
pub(crate) struct IdHolders {
    processes: Holders<ProcessId>,
    threads: Holders<ThreadId>,
    /// By the ids of process and thread.
    of_processes: Holders<(ProcessId, ThreadId)>,
}

impl IdHolders {
    fn new(processes: &[Process], threads: &[Thread]) -> Self {
        IdHolders {
            processes: Holders::new(processes.iter().map(|p| (p.pid, p.started))),
            threads: Holders::new(threads.iter().map(|t| (t.tid, t.started))),
            of_processes: Holders::new(threads.iter().map(|t| ((t.pid, t.tid), t.started))),
        }
    }
}

/// Whether something had started at a time. Without a known start, it was there from the beginning.
fn had_started(started: Option<Ticks>, time: Ticks) -> bool {
    started.is_none_or(|started| started <= time)
}

impl Machine {
    /// Who had the ids, once the recording is read to its end.
    fn holders(&self) -> Option<&IdHolders> {
        if !self.is_finished {
            return None;
        }
        let threads = self.threads.list();
        let holders = self
            .holders
            .get_or_init(|| IdHolders::new(&self.processes, threads));
        Some(holders)
    }

    /// The process with an index.
    ///
    /// ```
    /// use etl_analysis::{EventRef, Machine};
    ///
    /// fn process_name<'m>(machine: &'m Machine, event: &EventRef) -> &'m str {
    ///     let process = event.process.and_then(|index| machine.process(index));
    ///     process.map_or("", |process| process.name())
    /// }
    /// ```
    #[must_use]
    pub fn process(&self, index: ProcessIndex) -> Option<&Process> {
        self.processes.get(index.get())
    }

    /// The processes with their indices, in the order in which they appeared.
    pub fn indexed_processes(&self) -> impl DoubleEndedIterator<Item = (ProcessIndex, &Process)> {
        let processes = self.processes.iter().enumerate();
        processes.map(|(index, process)| (ProcessIndex::new(index), process))
    }

    /// The process that had an id at a time. If there are several, returns the last that had
    /// started by then.
    ///
    /// ```
    /// use etl_analysis::Machine;
    /// use etl_format::{ProcessId, Ticks};
    ///
    /// fn process_name(machine: &Machine, pid: ProcessId, time: Ticks) -> &str {
    ///     match machine.process_at(pid, time).and_then(|index| machine.process(index)) {
    ///         Some(process) => process.name(),
    ///         None => "(unknown process)",
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn process_at(&self, pid: ProcessId, time: Ticks) -> Option<ProcessIndex> {
        if let Some(holders) = self.holders() {
            return holders.processes.at(pid, time).map(ProcessIndex::new);
        }
        if let Some(&index) = self.by_pid.get(&pid)
            && let Some(process) = self.process(index)
            && had_started(process.started, time)
        {
            return Some(index);
        }
        let mut first = None;
        for (index, process) in self.indexed_processes().rev() {
            if process.pid == pid {
                if had_started(process.started, time) {
                    return Some(index);
                }
                first = Some(index);
            }
        }
        first
    }

    /// The process that has an id now.
    #[must_use]
    pub fn index_of(&self, pid: ProcessId) -> Option<ProcessIndex> {
        self.recent
            .get(pid)
            .or_else(|| self.by_pid.get(&pid).copied())
    }

    /// The threads, in the order in which they appeared. A thread id may come more than once.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        self.threads.list()
    }

    /// The thread that had an id at a time. If there are several, returns the last that had started
    /// by then.
    ///
    /// ```
    /// use etl_analysis::Machine;
    /// use etl_format::{ThreadId, Ticks};
    ///
    /// fn thread_name(machine: &Machine, tid: ThreadId, time: Ticks) -> &str {
    ///     machine.thread_at(tid, time).map_or("", |thread| &thread.name)
    /// }
    /// ```
    #[must_use]
    pub fn thread_at(&self, tid: ThreadId, time: Ticks) -> Option<&Thread> {
        let threads = self.threads.list();
        if let Some(holders) = self.holders() {
            return threads.get(holders.threads.at(tid, time)?);
        }
        let mut first = None;
        for thread in threads.iter().rev() {
            if thread.tid == tid {
                if had_started(thread.started, time) {
                    return Some(thread);
                }
                first = Some(thread);
            }
        }
        first
    }

    /// The last thread of a process that had an id. Without a process, the last thread of all
    /// processes that had the id.
    #[must_use]
    pub fn thread_of(&self, process: Option<ProcessIndex>, tid: ThreadId) -> Option<&Thread> {
        let Some(process) = process else {
            return self.thread_at(tid, Ticks::MAX);
        };
        let process = self.process(process)?;
        // Other processes may have the same id before and after this one.
        let until = process.ended.unwrap_or(Ticks::MAX);
        let threads = self.threads.list();
        let thread = match self.holders() {
            Some(holders) => {
                let ids = (process.pid, tid);
                threads.get(holders.of_processes.begun(ids, until)?)?
            }
            None => threads.iter().rfind(|thread| {
                thread.pid == process.pid && thread.tid == tid && had_started(thread.started, until)
            })?,
        };
        match (thread.ended, process.started) {
            (Some(ended), Some(started)) if ended < started => None,
            _ => Some(thread),
        }
    }

    /// The process of a thread of this machine.
    #[must_use]
    pub fn process_of(&self, thread: &Thread) -> Option<ProcessIndex> {
        // A thread that was there from the beginning belongs to the first process with the id.
        let time = thread.started.or(thread.ended).unwrap_or(Ticks::MIN);
        self.process_at(thread.pid, time)
    }

    /// The process that a thread belongs to now. Thread 0 is the idle thread of every processor.
    #[must_use]
    pub fn process_of_thread(&self, tid: ThreadId) -> Option<ProcessIndex> {
        match self.sampled.get(tid) {
            Some(index) => Some(index),
            None => self.index_of(self.pid_of_thread(tid)?),
        }
    }

    /// The id of the process that a thread belongs to now.
    pub(super) fn pid_of_thread(&self, tid: ThreadId) -> Option<ProcessId> {
        if tid == 0 {
            Some(IDLE)
        } else {
            self.threads.pid_of(tid)
        }
    }

    /// The process of a thread that did something before any event named its process: the first
    /// process that the recording names.
    #[must_use]
    pub fn first_process_of_thread(&self, tid: ThreadId) -> Option<ProcessIndex> {
        if tid == 0 {
            return self.process_at(IDLE, Ticks::MIN);
        }
        let thread = self.thread_at(tid, Ticks::MIN)?;
        self.process_at(thread.pid, thread.started.unwrap_or(Ticks::MIN))
    }

    /// Whether every process id, and each of these thread ids, was used by one process only.
    pub(crate) fn has_own_ids(&self, threads: impl Iterator<Item = ThreadId>) -> bool {
        if self.processes.len() != self.by_pid.len() || self.processes.len() >= MAX_PROCESSES {
            return false;
        }
        let wanted: HashSet<ThreadId> = threads.collect();
        for thread in self.threads.list() {
            let is_shared = self.threads.pid_of(thread.tid) != Some(thread.pid);
            if is_shared && wanted.contains(&thread.tid) {
                return false;
            }
        }
        true
    }
}
