//! The simulated computer: clock, processors, processes, threads, images, address spaces.

mod clock;
mod files;
mod network;
mod process;
mod processor;
mod queue;
mod space;
mod thread;

use std::collections::BTreeSet;

pub(crate) use clock::Clock;
pub(crate) use files::{Disk, FIRST_VOLUME, Files, Handle, OpenFile, sectors};
pub(crate) use network::{Connection, Network, Socket};
pub(crate) use process::{Image, Process};
pub(crate) use processor::{LeaveReason, Processor, Switch};
pub(crate) use queue::Queue;
pub(crate) use space::{CodeHeap, Space};
pub(crate) use thread::Thread;

use crate::model::MachinePlan;
use crate::rng::Source;
use crate::time::Nanos;

/// The computer without the content of its processes.
#[derive(Debug)]
pub(crate) struct Machine {
    pub clock: Clock,
    pub processors: Vec<Processor>,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    next_id: u32,
    /// Ids that processes and threads have or had.
    ids: BTreeSet<u32>,
    next_processor: usize,
    /// Its files, and which of them are open.
    pub files: Files,
    /// What its disks do, in the order of the plan.
    pub disks: Vec<Disk>,
    pub network: Network,
}

impl Machine {
    /// A computer without processes.
    pub fn new(plan: &MachinePlan, source: Source) -> Self {
        let clock = Clock {
            frequency: plan.frequency,
            cpu_mhz: plan.cpu_mhz,
            start: plan.start.get(),
            uptime: plan.uptime,
        };
        Machine {
            clock,
            processors: vec![Processor::default(); usize::from(plan.processors.max(1))],
            processes: Vec::new(),
            threads: Vec::new(),
            next_id: 1000,
            ids: BTreeSet::new(),
            next_processor: 0,
            files: Files::new(&plan.disks),
            disks: Disk::all(plan, source),
            network: Network::new(&plan.network_cards),
        }
    }

    /// The process of a thread.
    pub fn process_of(&mut self, thread: usize) -> Option<&mut Process> {
        let process = self.threads.get(thread)?.process;
        self.processes.get_mut(process)
    }

    /// The time up to which a processor was simulated.
    pub fn horizon(&self, processor: usize) -> Nanos {
        self.processors.get(processor).map_or(0, |p| p.horizon)
    }

    /// A processor was simulated up to a time.
    pub fn advance(&mut self, processor: usize, at: Nanos) {
        if let Some(processor) = self.processors.get_mut(processor) {
            processor.horizon = processor.horizon.max(at);
        }
    }

    /// A new process or thread id: a multiple of 4, as in Windows.
    pub fn new_id(&mut self) -> u32 {
        loop {
            self.next_id = self.next_id.wrapping_add(4);
            if self.ids.insert(self.next_id) {
                return self.next_id;
            }
        }
    }

    /// Reserves an id. Returns `false` if it is already used.
    pub fn reserve_id(&mut self, id: u32) -> bool {
        self.ids.insert(id)
    }

    /// Adds a thread to a process, on the next processor in turn.
    pub fn add_thread(&mut self, process: usize) -> usize {
        let tid = self.new_id();
        let processor = self.next_processor;
        self.next_processor = (processor + 1) % self.processors.len().max(1);
        let index = self.threads.len();
        let Some(owner) = self.processes.get_mut(process) else {
            return index;
        };
        let processor = u16::try_from(processor).unwrap_or(0);
        let (stack, teb) = owner.space.thread_memory();
        let source = owner.source.named("thread").numbered(owner.threads_made);
        owner.threads_made += 1;
        owner.threads.push(index);
        self.threads
            .push(Thread::new(tid, process, processor, stack, teb, source));
        index
    }
}
