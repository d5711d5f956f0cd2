//! Which rows are made.

use std::collections::BTreeSet;

use etl_analysis::ProcessIndex;
use etl_format::{ThreadId, Ticks, TimeRange};

/// Which processes, threads and times have rows. Default: all.
///
/// ```
/// use etl_format::{ThreadId, Ticks, TimeRange};
/// use etl_tables::Selection;
///
/// let range = TimeRange::new(Some(Ticks::new(100)), Some(Ticks::new(200)));
/// let selection = Selection::new().threads(vec![ThreadId::new(8)]).within(range);
/// assert!(selection.has_thread(Some(ThreadId::new(8))) && !selection.has_thread(None));
/// assert!(selection.has_time(Ticks::new(100)) && !selection.has_time(Ticks::new(200)));
/// assert!(selection.has_lifetime(None, Some(Ticks::new(100))));
/// assert!(!selection.has_lifetime(Some(Ticks::new(200)), None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    processes: Option<BTreeSet<ProcessIndex>>,
    threads: Vec<ThreadId>,
    range: TimeRange,
}

impl Selection {
    /// Selects everything.
    #[must_use]
    pub fn new() -> Self {
        Selection::default()
    }

    /// Selects the processes with these indices in the machine; `None` selects all.
    #[must_use]
    pub fn processes(self, processes: Option<BTreeSet<ProcessIndex>>) -> Self {
        Selection { processes, ..self }
    }

    /// Selects the threads with these ids; an empty list selects all.
    #[must_use]
    pub fn threads(self, threads: Vec<ThreadId>) -> Self {
        Selection { threads, ..self }
    }

    /// Selects a range of the recording's clock.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Selection { range, ..self }
    }

    /// The selected range of the recording's clock.
    #[must_use]
    pub fn range(&self) -> TimeRange {
        self.range
    }

    /// Whether a process is selected. An unknown process is selected only if all processes are.
    #[must_use]
    pub fn has_process(&self, process: Option<ProcessIndex>) -> bool {
        let Some(selected) = &self.processes else {
            return true;
        };
        process.is_some_and(|process| selected.contains(&process))
    }

    /// Whether a thread is selected. An unknown thread is selected only if all threads are.
    #[must_use]
    pub fn has_thread(&self, tid: Option<ThreadId>) -> bool {
        self.threads.is_empty() || tid.is_some_and(|tid| self.threads.contains(&tid))
    }

    /// Whether a time is selected.
    #[must_use]
    pub fn has_time(&self, time: Ticks) -> bool {
        self.range.contains(time)
    }

    /// Whether a process, thread or image existed at a selected time. `None` means before or after
    /// the recording.
    #[must_use]
    pub fn has_lifetime(&self, started: Option<Ticks>, ended: Option<Ticks>) -> bool {
        if let (Some(ended), Some(from)) = (ended, self.range.from)
            && ended < from
        {
            return false;
        }
        if let (Some(started), Some(to)) = (started, self.range.to)
            && started >= to
        {
            return false;
        }
        true
    }
}
