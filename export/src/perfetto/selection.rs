//! Which processes, threads and times are exported.

use std::collections::BTreeSet;

use etl_analysis::{Machine, ProcessIndex, ProcessLives};
use etl_format::{ProcessId, ThreadId, Ticks, TimeRange};

/// Which processes, threads and times are exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    lives: Option<ProcessLives>,
    first_threads: BTreeSet<ThreadId>,
    threads: Vec<ThreadId>,
    range: TimeRange,
}

impl Selection {
    /// Everything.
    #[must_use]
    pub fn new() -> Self {
        Selection::default()
    }

    /// Only these processes, while they have their ids. `first_threads` are their threads whose
    /// events belong to them before an event names the process
    /// ([`ProcessSelector::first_threads`](etl_analysis::ProcessSelector::first_threads)).
    #[must_use]
    pub fn processes(self, lives: ProcessLives, first_threads: BTreeSet<ThreadId>) -> Self {
        Selection {
            lives: Some(lives),
            first_threads,
            ..self
        }
    }

    /// Only the threads with these ids; all if there is none.
    #[must_use]
    pub fn threads(self, threads: Vec<ThreadId>) -> Self {
        Selection { threads, ..self }
    }

    /// Only events in a range of times of the recording's clock.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Selection { range, ..self }
    }

    /// Whether all processes and threads are selected.
    #[inline]
    pub(super) fn is_everything(&self) -> bool {
        self.lives.is_none() && self.threads.is_empty()
    }

    /// The ids of threads that are selected one by one.
    pub(super) fn selected_threads(&self) -> &[ThreadId] {
        &self.threads
    }

    /// The processes that are selected one by one.
    pub(super) fn selected_processes(&self, machine: &Machine) -> Option<BTreeSet<ProcessIndex>> {
        self.lives.as_ref()?;
        let first = first_time(machine);
        let mut selected = BTreeSet::new();
        for (index, process) in machine.indexed_processes() {
            if self.admits_process(machine, index, process.started().unwrap_or(first)) {
                selected.insert(index);
            }
        }
        Some(selected)
    }

    pub(super) fn range(&self) -> TimeRange {
        self.range
    }

    /// Whether a time is selected.
    #[inline]
    pub(super) fn admits_time(&self, time: Ticks) -> bool {
        self.range.contains(time)
    }

    /// Whether a process is selected.
    pub(super) fn admits_process(
        &self,
        machine: &Machine,
        process: ProcessIndex,
        time: Ticks,
    ) -> bool {
        if self.lives.is_none() {
            return true;
        }
        match machine.process(process) {
            Some(process) => self.admits_id(process.pid(), time),
            None => false,
        }
    }

    /// Whether the process that has an id at a time is selected.
    fn admits_id(&self, pid: ProcessId, time: Ticks) -> bool {
        match &self.lives {
            Some(lives) => lives.has(pid, time),
            None => true,
        }
    }

    fn admits_thread(&self, tid: Option<ThreadId>) -> bool {
        self.threads.is_empty() || tid.is_some_and(|tid| self.threads.contains(&tid))
    }

    /// Whether a thread is selected, by its id and the id of its process.
    pub(super) fn admits_ids(&self, pid: ProcessId, tid: ThreadId, time: Ticks) -> bool {
        self.admits_thread(Some(tid)) && self.admits_id(pid, time)
    }

    /// Whether a thread is selected, by its id and the index of its process.
    pub(super) fn admits(
        &self,
        machine: &Machine,
        process: Option<ProcessIndex>,
        tid: Option<ThreadId>,
        time: Ticks,
    ) -> bool {
        let is_process = match process {
            Some(process) => self.admits_process(machine, process, time),
            None => {
                self.lives.is_none() || tid.is_some_and(|tid| self.first_threads.contains(&tid))
            }
        };
        is_process && self.admits_thread(tid)
    }
}

/// The time of the first event.
pub(super) fn first_time(machine: &Machine) -> Ticks {
    match machine.span() {
        Some(span) => span.first,
        None => Ticks::new(0),
    }
}
