//! Keys by which results refer to processes, threads and CLRs of a machine.

use etl_format::ThreadId;
use serde::Serialize;

/// The index of a process in [`Machine::processes`](crate::Machine::processes).
///
/// Windows uses the ids of processes again, so an id alone does not say which process it is.
/// [`Machine::process`](crate::Machine::process) returns the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ProcessIndex(usize);

impl ProcessIndex {
    /// The process at an index in [`Machine::processes`](crate::Machine::processes).
    #[must_use]
    pub const fn new(index: usize) -> Self {
        ProcessIndex(index)
    }

    /// The index.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}

/// A CLR of a process: a process may load several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClrKey {
    /// The process.
    pub process: ProcessIndex,
    /// The number of the CLR in its process (`ClrInstanceID`).
    pub clr: u16,
}

impl ClrKey {
    /// A CLR by its number in a process.
    #[must_use]
    pub const fn new(process: ProcessIndex, clr: u16) -> Self {
        ClrKey { process, clr }
    }
}

/// A thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKey {
    /// The process; `None` if the recording does not name it.
    pub process: Option<ProcessIndex>,
    /// The id of the thread.
    pub tid: ThreadId,
}

impl ThreadKey {
    /// A thread by its id.
    #[must_use]
    pub const fn new(process: Option<ProcessIndex>, tid: ThreadId) -> Self {
        ThreadKey { process, tid }
    }
}
