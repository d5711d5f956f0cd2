//! The processes and threads that a record is about.

use etl_format::{ProcessId, ThreadId};

/// Up to two processes and two threads that a record is about: a context switch is about two
/// threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    processes: [Option<ProcessId>; 2],
    threads: [Option<ThreadId>; 2],
}

impl Subject {
    /// The subject of a record about these processes and threads, by their ids.
    #[must_use]
    pub fn new(processes: [Option<ProcessId>; 2], threads: [Option<ThreadId>; 2]) -> Self {
        Subject { processes, threads }
    }

    /// The ids of the processes.
    pub fn processes(&self) -> impl Iterator<Item = ProcessId> + use<> {
        self.processes.into_iter().flatten()
    }

    /// The ids of the threads.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> + use<> {
        self.threads.into_iter().flatten()
    }
}
