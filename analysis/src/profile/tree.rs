//! The call tree of a profile.

use super::interrupt::ProcessorInterrupt;
use super::weight::Weight;
use crate::keys::ProcessIndex;
use etl_format::{ProcessId, ThreadId, Ticks};

/// The samples of a process, of a thread, or of what interrupted an idle processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// The process; `None` if no event states the process of the thread.
    pub process: Option<ProcessIndex>,
    /// Its id.
    pub pid: Option<ProcessId>,
    /// What interrupted idle processors, if these are the samples of that; the process is the idle
    /// process, and there is no thread.
    pub interrupt: Option<ProcessorInterrupt>,
    /// File name of the process, or `DPC of processor 2`; empty if no event states it.
    pub process_name: Box<str>,
    /// The thread, if each thread has a tree of its own.
    pub tid: Option<ThreadId>,
    /// Name of the thread; empty if no event states it.
    pub thread_name: Box<str>,
    /// Index of its node. The nodes below it follow.
    pub first: usize,
    /// Index after its last node.
    pub end: usize,
}

impl Root {
    /// Name and id of the process: `Orders.exe (4312)`, or `DPC of processor 2`.
    #[must_use]
    pub fn process_label(&self) -> String {
        if self.interrupt.is_some() {
            return self.process_name.to_string();
        }
        let name = if self.process_name.is_empty() {
            "?"
        } else {
            &self.process_name
        };
        match self.pid {
            Some(pid) => format!("{name} ({pid})"),
            None => "unknown process".to_owned(),
        }
    }

    /// Name and id of the thread: `.NET GC (12)`, or `thread 12`.
    #[must_use]
    pub fn thread_label(&self) -> Option<String> {
        let tid = self.tid?;
        let name = &self.thread_name;
        Some(if name.is_empty() {
            format!("thread {tid}")
        } else {
            format!("{name} ({tid})")
        })
    }
}

/// A node of the call tree: a frame, called from the frames above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallNode {
    /// Index of the node of its caller; `None` for the node of a [`Root`].
    pub parent: Option<usize>,
    /// Index of its frame; `None` for the node of a [`Root`].
    pub frame: Option<usize>,
    /// Nodes above it.
    pub depth: u32,
    /// The samples in it.
    pub exclusive: Weight,
    /// The samples in it and in the nodes below it.
    pub inclusive: Weight,
    /// Index after the last node below it.
    pub end: usize,
}

/// A sample with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimedSample {
    /// Ticks of the recording's clock.
    pub time: Ticks,
    /// Index of the node of its innermost frame.
    pub node: usize,
    /// Its weight.
    pub weight: Weight,
    /// The processor.
    pub processor: u16,
}
