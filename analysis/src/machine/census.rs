//! The kernel's lists of processes, threads and images at the start and the end of its session,
//! held against the starts and ends between.

use super::listed::Listed;
use super::process::Process;
use super::{Machine, SYSTEM, Span, widen};
use crate::counted::Counted;
use crate::keys::ProcessIndex;
use etl_format::Ticks;

/// What the kernel's lists and its events of starts and ends say of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Census {
    /// Times of the first and the last event of the lists at the start of the session.
    pub start: Option<Span>,
    /// Times of the first and the last event of the lists at its end.
    pub end: Option<Span>,
    /// Whether the list of processes at the start has the system's own process, one of the first.
    pub has_start: bool,
    /// Whether the list of processes at the end has it.
    pub has_end: bool,
    /// Events of the kernel about processes.
    pub processes: u64,
    /// Ends of processes that no event had shown before. Only those after the lists of the start
    /// count: what ends while they are made may be missing from them.
    pub unstarted_processes: Counted,
    /// The same of threads.
    pub unstarted_threads: Counted,
    /// The same of images.
    pub unstarted_images: Counted,
    /// Images that were unloaded after the lists of the start.
    pub unloads: u64,
}

impl Census {
    /// An event of the lists at the start.
    pub(crate) fn listed_at_start(&mut self, time: Ticks) {
        widen(&mut self.start, time);
        (self.unstarted_processes, self.unstarted_threads) = Default::default();
        (self.unstarted_images, self.unloads) = Default::default();
    }

    /// An event of the lists at the end.
    pub(crate) fn listed_at_end(&mut self, time: Ticks) {
        widen(&mut self.end, time);
    }
}

impl Process {
    /// Whether an event of the kernel is about the process itself.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        let Listed {
            at_start, at_end, ..
        } = self.listed;
        at_start || at_end || self.started.is_some() || self.ended.is_some()
    }
}

impl Machine {
    /// Takes a process of the lists into account.
    pub(super) fn listed(&mut self, index: ProcessIndex, is_end: bool) {
        let Some(process) = self.processes.get_mut(index.get()) else {
            return;
        };
        let is_system = process.pid == SYSTEM;
        if is_end {
            process.listed.at_end = true;
            self.census.has_end |= is_system;
        } else {
            process.listed.at_start = true;
            self.census.has_start |= is_system;
        }
    }
}
