//! What a trace says, gathered in one pass in time order.
//!
//! # Who owns an address
//! A method's code, or an image, is there from its load to its unload. What a rundown enumerates
//! has been there since before the trace, unless its load was seen (rules S1 and S7). An address is
//! looked up at the moment it was seen; if nothing covers it then, it waits, once per process and
//! address, for a rundown that may come later, and is decided at the end of the trace.

pub mod clr;
pub mod kernel;
mod process;
mod ranges;

use std::collections::HashMap;

use etl_format::Clock;
use etl_format::read::{Damage, ExtendedItem, FileHeader, Note, Record, Source, Trace};

use clr::ClrEvent;
use kernel::{Change, KernelEvent};

pub use process::{Bracket, Clr, Origin, Pending, Process, Seen, Sight, Tallies, Tally};
pub use ranges::{History, Range, Ranges};

/// The kernel's process, whose images every process sees.
const SYSTEM: u32 = 4;

/// Where addresses of a 64-bit kernel begin; no managed code is there.
const KERNEL_SPACE: u64 = 0xffff_8000_0000_0000;

/// How a stack key was used in a process.
#[derive(Clone, Copy, Debug)]
struct KeyUse {
    process: usize,
    count: u64,
    first: i64,
    last: i64,
}

/// A fault of the file, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Stable name of the kind.
    pub code: String,
    /// File offset.
    pub offset: u64,
    /// What was wrong.
    pub message: String,
}

/// What a trace says.
#[derive(Debug)]
pub struct Facts {
    /// The header event.
    pub header: FileHeader,
    /// The clock of the stamps.
    pub clock: Clock,
    /// Notes of the reader.
    pub notes: Vec<Note>,
    /// Damage of the file.
    pub faults: Vec<Fault>,
    /// Processes, in the order in which they appeared. A process id may come more than once.
    pub processes: Vec<Process>,
    /// Records read.
    pub records: u64,
    /// Stamps of the first and the last record.
    pub span: Option<(i64, i64)>,
    /// Stamps of the first and the last event of the rundown provider.
    pub rundown_span: Option<(i64, i64)>,
    /// Addresses that resolved to nothing: process, address, how often.
    pub offenders: Vec<(usize, u64, u64)>,
    by_pid: HashMap<u32, usize>,
    threads: HashMap<u32, u32>,
    /// Samples of threads whose process is not known yet, by thread and address.
    homeless: HashMap<(u32, u64), Sight>,
    keys: HashMap<u64, Vec<KeyUse>>,
    /// Kernel addresses, shared by all processes.
    kernel: Ranges,
}

impl Facts {
    /// Nothing yet but what the file says of itself.
    #[must_use]
    pub fn new<S: Source>(trace: &Trace<S>) -> Self {
        Facts {
            header: trace.header().clone(),
            clock: trace.clock(),
            notes: trace.notes().to_vec(),
            faults: Vec::new(),
            processes: Vec::new(),
            records: 0,
            span: None,
            rundown_span: None,
            offenders: Vec::new(),
            by_pid: HashMap::new(),
            threads: HashMap::new(),
            homeless: HashMap::new(),
            keys: HashMap::new(),
            kernel: Ranges::default(),
        }
    }

    /// Notes damage of the file.
    pub fn damage(&mut self, damage: &Damage) {
        self.faults.push(Fault {
            code: damage.error.code().to_owned(),
            offset: damage.range.start,
            message: damage.error.kind.to_string(),
        });
    }

    /// Takes in the next record.
    pub fn record(&mut self, record: &Record<'_>) {
        self.records += 1;
        let stamp = record.stamp();
        self.span = Some(match self.span {
            Some((first, last)) => (first.min(stamp), last.max(stamp)),
            None => (stamp, stamp),
        });
        if record.is_event() {
            self.event(record, stamp);
        } else if let Some(event) = kernel::decode(record) {
            self.kernel_event(event, stamp);
        }
    }

    fn event(&mut self, record: &Record<'_>, stamp: i64) {
        let (Some(pid), Some(tid)) = (record.process_id(), record.thread_id()) else { return };
        self.threads.entry(tid).or_insert(pid);
        if let Some(from) = clr::decode(record) {
            let process = self.process(pid);
            if from.rundown {
                let (first, _) = self.rundown_span.unwrap_or((stamp, stamp));
                self.rundown_span = Some((first, stamp));
            }
            if from.event == ClrEvent::Stack {
                self.stack(process, Origin::ClrStack, clr::stack_frames(record), stamp);
            }
            if let Some(process) = self.processes.get_mut(process) {
                process.clr_event(&from, stamp);
            }
        }
        for item in record.extended() {
            if let ExtendedItem::Stack(stack) = item {
                let process = self.process(pid);
                self.stack(process, Origin::ExtendedStack, stack.addresses(), stamp);
            }
        }
    }

    fn kernel_event(&mut self, event: KernelEvent<'_>, stamp: i64) {
        match event {
            KernelEvent::Sample { address, tid } => {
                let pid = if tid == 0 { Some(0) } else { self.threads.get(&tid).copied() };
                match pid {
                    Some(pid) => {
                        let process = self.process(pid);
                        let address = std::iter::once(address);
                        self.stack(process, Origin::Sample, address, stamp);
                    }
                    None => {
                        let sight = Sight { count: 0, first: stamp, last: stamp, in_image: false };
                        let sight = self.homeless.entry((tid, address)).or_insert(sight);
                        (sight.count, sight.last) = (sight.count + 1, stamp);
                    }
                }
            }
            KernelEvent::Stack { pid, frames } => {
                let process = self.process(pid);
                self.stack(process, Origin::KernelStack, frames.iter(), stamp);
            }
            KernelEvent::StackKey { pid, key } => {
                let process = self.process(pid);
                let uses = self.keys.entry(key).or_default();
                match uses.iter_mut().find(|u| u.process == process) {
                    Some(known) => (known.count, known.last) = (known.count + 1, stamp),
                    None => {
                        uses.push(KeyUse { process, count: 1, first: stamp, last: stamp });
                    }
                }
                if let Some(process) = self.processes.get_mut(process) {
                    process.tally(Origin::KernelStack).stacks += 1;
                }
            }
            KernelEvent::StackDefinition { key, last, frames } => {
                // A definition at the first use comes before the others; those wait for the next.
                if last {
                    for key_use in self.keys.remove(&key).unwrap_or_default() {
                        self.keyed(key_use, frames.iter());
                    }
                }
            }
            KernelEvent::Image { change, pid, base, size } => {
                let from = if change == Change::Start { Some(stamp) } else { None };
                let kernel = pid == 0 || pid == SYSTEM;
                let process = self.process(pid);
                let own = self.processes.get_mut(process).map(|p| &mut p.images);
                for ranges in own.into_iter().chain(kernel.then_some(&mut self.kernel)) {
                    match change {
                        Change::End => ranges.remove(base, size, stamp),
                        _ => ranges.add(base, size, from),
                    }
                }
            }
            KernelEvent::Thread { change, pid, tid } => match change {
                Change::End => {
                    self.threads.insert(tid, pid);
                }
                Change::Start => {
                    self.threads.insert(tid, pid);
                }
                _ => {
                    self.threads.entry(tid).or_insert(pid);
                }
            },
            KernelEvent::Process { change, pid, name } => {
                self.process_event(change, pid, name, stamp)
            }
        }
    }

    fn process_event(&mut self, change: Change, pid: u32, name: &[u8], stamp: i64) {
        if change == Change::Start {
            // The id may have been another process's before.
            let reused = self.by_pid.get(&pid).and_then(|&p| self.processes.get(p));
            if reused.is_some_and(|p| p.ended.is_some()) {
                self.by_pid.remove(&pid);
            }
        }
        let index = self.process(pid);
        let Some(process) = self.processes.get_mut(index) else { return };
        if !name.is_empty() {
            process.name = String::from_utf8_lossy(name).into_owned();
        }
        match change {
            Change::Start => process.started = Some(stamp),
            Change::End => {
                process.ended = Some(stamp);
                process.code.clear(stamp);
                process.images.clear(stamp);
            }
            Change::AtStart | Change::AtEnd => {}
        }
    }

    /// Index of the process that has this id now.
    fn process(&mut self, pid: u32) -> usize {
        *self.by_pid.entry(pid).or_insert_with(|| {
            self.processes.push(Process { pid, ..Process::default() });
            self.processes.len() - 1
        })
    }

    /// Resolves the addresses of a stack, or puts them by.
    fn stack(
        &mut self,
        process: usize,
        origin: Origin,
        frames: impl Iterator<Item = u64>,
        stamp: i64,
    ) {
        let Some(process) = self.processes.get_mut(process) else { return };
        let mut tally = Tally { stacks: 1, ..Tally::default() };
        for address in frames {
            tally.frames += 1;
            if address >= KERNEL_SPACE && self.kernel.covers_now(address) {
                tally.image += 1;
            } else if process.code.covers_now(address) {
                tally.managed += 1;
            } else {
                let images = process.images.covers_now(address);
                let in_image = images || self.kernel.covers_now(address);
                let sight = Sight { count: 1, first: stamp, last: stamp, in_image };
                process.pend(address, origin, sight);
            }
        }
        *process.tally(origin) += tally;
    }

    /// Frames of a stack that was told by key: when each use was is not kept, so all are decided at
    /// the end, for the span of the uses.
    fn keyed(&mut self, key_use: KeyUse, frames: impl Iterator<Item = u64>) {
        let KeyUse { process, count, first, last } = key_use;
        let Some(process) = self.processes.get_mut(process) else { return };
        for address in frames {
            process.tally(Origin::KernelStack).frames += count;
            let sight = Sight { count, first, last, in_image: false };
            process.pend(address, Origin::KernelStack, sight);
        }
    }

    /// Stacks told by a key that was never defined.
    #[must_use]
    pub fn undefined_stacks(&self) -> u64 {
        self.keys.values().flatten().map(|u| u.count).sum()
    }

    /// Decides what had to wait for the end of the trace.
    pub fn finish(&mut self) {
        for ((tid, address), sight) in std::mem::take(&mut self.homeless) {
            // A thread that nothing tells of: its addresses can still be the kernel's.
            let pid = self.threads.get(&tid).copied().unwrap_or(0);
            let process = self.process(pid);
            if let Some(process) = self.processes.get_mut(process) {
                let tally = process.tally(Origin::Sample);
                tally.stacks += sight.count;
                tally.frames += sight.count;
                process.pend(address, Origin::Sample, sight);
            }
        }
        let kernel = self.kernel.history();
        for (index, process) in self.processes.iter_mut().enumerate() {
            let (code, images) = (process.code.history(), process.images.history());
            for (address, pending) in std::mem::take(&mut process.pending) {
                let Pending { in_image, nowhere, first, last } = pending;
                let managed = code.covers(address, first, last);
                let image =
                    images.covers(address, first, last) || kernel.covers(address, first, last);
                let mut missed = 0;
                for ((origin, inside), outside) in
                    Origin::ALL.into_iter().zip(in_image).zip(nowhere)
                {
                    let tally = process.tally(origin);
                    match (managed, image) {
                        (true, _) => tally.managed += inside + outside,
                        (_, true) => tally.image += inside + outside,
                        _ => {
                            tally.image += inside;
                            tally.unresolved += outside;
                            missed += outside;
                        }
                    }
                }
                if missed > 0 {
                    self.offenders.push((index, address, missed));
                }
            }
        }
        self.offenders.sort_unstable_by_key(|&(process, address, count)| {
            (std::cmp::Reverse(count), process, address)
        });
    }

    /// All tallies of the trace.
    #[must_use]
    pub fn tallies(&self) -> Tallies {
        let mut sum = Tallies::default();
        for process in &self.processes {
            for (sum, tally) in sum.iter_mut().zip(process.tallies) {
                *sum += tally;
            }
        }
        sum
    }
}
