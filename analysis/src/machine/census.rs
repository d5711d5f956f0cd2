//! The kernel's lists of processes, threads and images at the start and the end of its session,
//! compared with the starts and ends between.

use etl_format::Ticks;

use super::Machine;
use super::SYSTEM;
use crate::counted::{Counted, Span, widen};
use crate::keys::ProcessIndex;

/// The kernel's lists of processes, threads and images, compared with its events of starts and
/// ends.
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
    /// Ends of processes that no event had shown before. Only ends after the lists of the start are
    /// counted: what ends while they are made may be missing from them.
    pub unstarted_processes: Counted,
    /// The same of threads.
    pub unstarted_threads: Counted,
    /// The same of images.
    pub unstarted_images: Counted,
    /// Images that were unloaded after the lists of the start.
    pub unloads: u64,
}

/// The two times at which the kernel lists what there is.
#[derive(Clone, Copy, Debug)]
pub(super) enum KernelList {
    Start,
    End,
}

impl Census {
    /// An event of the lists at the start.
    pub(crate) fn listed_at_start(&mut self, time: Ticks) {
        widen(&mut self.start, time);
        self.unstarted_processes = Counted::default();
        self.unstarted_threads = Counted::default();
        self.unstarted_images = Counted::default();
        self.unloads = 0;
    }

    /// An event of the lists at the end.
    pub(crate) fn listed_at_end(&mut self, time: Ticks) {
        widen(&mut self.end, time);
    }
}

impl Machine {
    /// Notes that a list has a process.
    pub(super) fn listed(&mut self, index: ProcessIndex, list: KernelList) {
        let Some(process) = self.processes.get_mut(index.get()) else {
            return;
        };
        let is_system = process.pid == SYSTEM;
        process.listed.place.get_or_insert(self.census.processes);
        match list {
            KernelList::Start => {
                process.listed.at_start = true;
                self.census.has_start |= is_system;
            }
            KernelList::End => {
                process.listed.at_end = true;
                self.census.has_end |= is_system;
            }
        }
    }
}
