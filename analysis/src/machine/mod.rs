//! The machine that a recording describes, gathered in one pass in time order.

mod drives;
pub mod images;
pub mod names;
mod process;
mod runtime;
mod threads;

use std::borrow::Cow;

use etl_format::Clock;
use etl_format::constants::{EventFlags, PointerSize};
use etl_format::read::{EventHeader, ExtendedItem, Record};
use etl_schema::views::clr;
use etl_schema::views::kernel::{self, Change};
use foldhash::HashMap;

use crate::address::cache::DirectMapped;
use crate::address::keys::Keys;
use crate::address::pending::Sighting;
use crate::address::resolve::Resolver;
use crate::address::{Ranges, Tag, UnresolvedAddress};
use crate::files::{FileFacts, Timeline};
use crate::loss::Loss;
use crate::observe::{Change as MachineChange, Life, StateObserver};
use crate::scan::{Scan, is_plain};
use crate::steps::{ClrHead, Light};
use drives::Volumes;
use images::Images;
use names::Names;
use threads::Threads;

pub use drives::Volume;
pub(crate) use drives::is_description;
pub use process::{Cause, Counted, MethodSigns, Origin, Process, Tallies, Tally};
pub use runtime::{Bracket, Clr, Known, ModuleFacts, Things};
pub use threads::Thread;

/// The kernel's process, whose images every process sees.
const SYSTEM: u32 = 4;

/// Slots for processes and for threads that were looked up last.
const RECENT_PROCESSES: usize = 64;
const RECENT_THREADS: usize = 256;

/// Samples of threads without a known process that are kept, by thread and address; others count
/// for the idle process.
const MAX_UNATTRIBUTED: usize = 1 << 20;

/// Processes that are kept apart; all others count as one. A machine has some hundreds.
const MAX_PROCESSES: usize = 1 << 16;

/// The id under which processes beyond the limit count.
const OTHERS: u32 = u32::MAX;

/// Times of the first and the last of some records.
pub type Span = Option<(i64, i64)>;

fn life(change: Change) -> Life {
    match change {
        Change::Start => Life::Begun,
        Change::End => Life::Ended,
        Change::RundownStart | Change::RundownEnd => Life::Listed,
    }
}

#[inline]
pub(crate) fn widen(span: &mut Span, timestamp: i64) {
    match span {
        Some((first, last)) => (*first, *last) = (timestamp.min(*first), timestamp.max(*last)),
        None => *span = Some((timestamp, timestamp)),
    }
}

/// The machine that a recording describes.
#[derive(Debug)]
pub struct Machine {
    /// The files.
    pub files: Vec<FileFacts>,
    /// The clock of the recording.
    pub clock: Clock,
    /// What was lost.
    pub losses: Vec<Loss>,
    /// Processes, in the order in which they appeared. A process id may come more than once.
    pub processes: Vec<Process>,
    /// Records read.
    pub records: u64,
    /// Ticks of the first and the last record.
    pub span: Span,
    /// Ticks of the first and the last event of the runtime provider.
    pub runtime_span: Span,
    /// Ticks of the first and the last event of the rundown provider.
    pub rundown_span: Span,
    /// Ticks of the first and the last kernel record.
    pub kernel_span: Span,
    /// Addresses that resolved to nothing, the most frequent first.
    pub unresolved: Vec<UnresolvedAddress>,
    /// Images, and the identities that a merge adds.
    pub images: Images,
    /// Names of methods, modules, assemblies, domains and images, where they are kept.
    pub names: Option<Names>,
    timeline: Timeline,
    /// What the last record changed, where an observer wants to know.
    pub(crate) changes: Option<Vec<MachineChange>>,
    by_pid: HashMap<u32, usize>,
    /// Indices of the processes that were looked up last, by id.
    recent: DirectMapped<Option<(u32, usize)>>,
    pub(crate) threads: Threads,
    volumes: Volumes,
    /// Indices of the processes of the threads that were sampled last, by thread id.
    sampled: DirectMapped<Option<(u32, usize)>>,
    /// The thread of the last event: its process is known.
    last_thread: Option<u32>,
    /// Samples of threads whose process is not known yet, by thread and address.
    pub(crate) unattributed: HashMap<(u32, u64), Sighting>,
    /// Uses of stack keys that are not defined yet.
    keys: Keys,
    pub(crate) resolver: Resolver,
}

impl Machine {
    /// A machine of which nothing is known yet. `names` keeps the names of methods, modules,
    /// assemblies, domains and images; the [`Tag`]s of code then hold the number of a method in
    /// [`Names`] instead of its id.
    pub(crate) fn new(timeline: Timeline, names: bool) -> Self {
        Machine {
            files: Vec::new(),
            clock: timeline.clock(),
            losses: Vec::new(),
            processes: Vec::new(),
            records: 0,
            span: None,
            runtime_span: None,
            rundown_span: None,
            kernel_span: None,
            unresolved: Vec::new(),
            images: Images::default(),
            names: names.then(Names::default),
            timeline,
            changes: None,
            by_pid: HashMap::default(),
            recent: DirectMapped::new(RECENT_PROCESSES),
            threads: Threads::default(),
            volumes: Volumes::default(),
            sampled: DirectMapped::new(RECENT_THREADS),
            last_thread: None,
            unattributed: HashMap::default(),
            keys: Keys::default(),
            resolver: Resolver::default(),
        }
    }

    /// The processes, in the order in which they appeared. A process id may come more than once.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Index of the process that had an id at a time: of several, the last that had started by
    /// then.
    #[must_use]
    pub fn process_at(&self, pid: u32, time: i64) -> Option<usize> {
        let own = |index: &usize| self.processes.get(*index).is_some_and(|p| p.pid == pid);
        let had = |index: &usize| {
            let process = self.processes.get(*index);
            process.and_then(|p| p.started).is_none_or(|started| started <= time)
        };
        let now = self.by_pid.get(&pid).copied().filter(had);
        let indices = || (0..self.processes.len()).filter(own);
        now.or_else(|| indices().rfind(had)).or_else(|| indices().next())
    }

    /// Index of the process that has an id now.
    #[must_use]
    pub fn index_of(&self, pid: u32) -> Option<usize> {
        self.by_pid.get(&pid).copied()
    }

    /// The threads, in the order in which they appeared. A thread id may come more than once.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        self.threads.list()
    }

    /// The thread that had an id at a time: of several, the last that had started by then.
    #[must_use]
    pub fn thread_at(&self, tid: u32, time: i64) -> Option<&Thread> {
        let own = || self.threads.list().iter().filter(|thread| thread.tid == tid);
        own().rfind(|t| t.started.is_none_or(|at| at <= time)).or_else(|| own().next())
    }

    /// Index of the process that a thread belongs to now. Thread 0 is the idle one of every
    /// processor.
    #[must_use]
    pub fn process_of_thread(&self, tid: u32) -> Option<usize> {
        let pid = if tid == 0 { Some(0) } else { self.threads.pid_of(tid) };
        self.index_of(pid?)
    }

    /// The volumes with their drive letters, where a merge recorded them.
    #[must_use]
    pub fn volumes(&self) -> &[Volume] {
        self.volumes.list()
    }

    /// A path of an event as users have it: with the drive letter of its volume, where that is
    /// known.
    #[must_use]
    pub fn user_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        self.volumes.user_path(path)
    }

    /// Images of the kernel by address.
    pub(crate) fn kernel_images(&self) -> &Ranges {
        &self.resolver.kernel
    }

    /// How the times of the files become times of the recording.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Takes over what was counted where records were read.
    pub(crate) fn scanned(&mut self, scan: Scan) {
        (self.records, self.kernel_span, self.span) =
            (scan.records, scan.kernel_span, scan.other_span);
        if let Some((first, last)) = self.kernel_span {
            widen(&mut self.span, first);
            widen(&mut self.span, last);
        }
    }

    /// Takes in a record that may change the machine, or has addresses.
    pub(crate) fn owners(
        &mut self,
        record: &Record<'_>,
        timestamp: i64,
        source: usize,
        observer: &mut impl StateObserver,
    ) {
        if let Some(header) = record.event() {
            self.event(record, &header, timestamp, observer);
        } else if record.is_kernel() {
            if let Some(event) = kernel::decode(record) {
                self.kernel_event(event, record, timestamp, observer);
            } else if record.hook() == Some(0) {
                self.session(record, source);
            }
        } else {
            self.images.identity(record);
            self.volumes.record(record);
        }
    }

    fn event(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        timestamp: i64,
        observer: &mut impl StateObserver,
    ) {
        let (pid, tid) = (header.process_id, header.thread_id);
        if self.last_thread != Some(tid) {
            self.threads.seen(tid, pid);
            self.last_thread = Some(tid);
        }
        if let Some(rundown) = clr::rundown_of(header.provider) {
            let (id, version) = (header.descriptor.id, header.descriptor.version);
            let head = ClrHead {
                pid,
                tid,
                known: true,
                id,
                version,
                rundown,
                wide: record.pointer_size() == Some(PointerSize::P8),
            };
            self.clr_event(&head, record.payload(), Some(header), timestamp, observer);
        }
        if header.flags.has(EventFlags::EXTENDED_INFO) {
            for item in record.extended() {
                if let ExtendedItem::Stack(stack) = item {
                    let process = self.process(pid);
                    self.resolver.stack(
                        &mut self.processes,
                        process,
                        Origin::ExtendedStack,
                        stack.addresses(),
                        timestamp,
                    );
                }
            }
        }
    }

    /// Takes in an event of the CLR of which no field matters.
    pub(crate) fn light(
        &mut self,
        Light { head, short }: Light,
        time: i64,
        observer: &mut impl StateObserver,
    ) {
        if !head.known {
            self.threads.seen(head.tid, head.pid);
        }
        let mut seen = head.seen(time);
        if !short {
            let index = self.process(head.pid);
            widen(self.clr_span(head.rundown), time);
            if let Some(process) = self.processes.get_mut(index) {
                process.clr_seen(head.rundown, time);
            }
            seen.process = Some(index);
        }
        observer.clr_event(&seen);
    }

    /// The span of the events of one of the CLR's providers.
    fn clr_span(&mut self, rundown: bool) -> &mut Span {
        if rundown { &mut self.rundown_span } else { &mut self.runtime_span }
    }

    /// Takes in an event of the CLR; `header` where it is looked at as a whole.
    pub(crate) fn clr_event(
        &mut self,
        head: &ClrHead,
        payload: &[u8],
        header: Option<&EventHeader>,
        timestamp: i64,
        observer: &mut impl StateObserver,
    ) {
        let &ClrHead { pid, tid, rundown, .. } = head;
        let pointers = head.pointers();
        let from = clr::decode_event(rundown, (head.id, head.version), payload, pointers);
        let mut seen = head.seen(timestamp);
        seen.payload = header.is_none_or(is_plain).then_some(payload);
        let Some(from) = from else {
            observer.clr_event(&seen);
            return;
        };
        seen.exact = from.exact;
        let index = self.process(pid);
        seen.process = Some(index);
        let span = self.clr_span(rundown);
        widen(span, timestamp);
        let since = span.map_or(0, |(first, _)| timestamp.saturating_sub(first));
        match from.event {
            clr::Event::Stack { stated, frames } => {
                self.resolver.frames(
                    &mut self.processes,
                    index,
                    Origin::ClrStack,
                    frames,
                    timestamp,
                );
                seen.stack = Some((stated, frames.len()));
                // A stack comes microseconds after its event.
                seen.begun = since.unsigned_abs() <= self.clock.frequency / 100;
            }
            clr::Event::Exception(at) => {
                self.resolver.stack(
                    &mut self.processes,
                    index,
                    Origin::Exception,
                    std::iter::once(at),
                    timestamp,
                );
            }
            clr::Event::EntryPoint(at) => {
                self.resolver.stack(
                    &mut self.processes,
                    index,
                    Origin::EntryPoint,
                    std::iter::once(at),
                    timestamp,
                );
            }
            _ => {}
        }
        observer.clr_event(&seen);
        if let Some(process) = self.processes.get_mut(index) {
            let mut code = None;
            if let (Some(names), Some(_)) = (&mut self.names, header) {
                let clr = (index, process.instance_of(&from));
                code = names.learn(clr, &from, timestamp);
            }
            process.clr_event(&from, code, timestamp, tid);
        }
    }

    fn kernel_event(
        &mut self,
        event: kernel::Event<'_>,
        record: &Record<'_>,
        timestamp: i64,
        observer: &mut impl StateObserver,
    ) {
        match event {
            kernel::Event::Sample { address, tid } => self.sample(address, tid, timestamp),
            kernel::Event::Stack { at, pid, frames, .. } => {
                observer.kernel_stack(at, record.timestamp());
                let process = self.process(pid);
                self.resolver.frames(
                    &mut self.processes,
                    process,
                    Origin::KernelStack,
                    frames,
                    timestamp,
                );
            }
            kernel::Event::StackKey { at, pid, key, .. } => {
                observer.kernel_stack(at, record.timestamp());
                let process = self.process(pid);
                self.keys.used(key, process, timestamp);
                if let Some(process) = self.processes.get_mut(process) {
                    process.tally(Origin::KernelStack).stacks += 1;
                }
            }
            kernel::Event::StackDefinition { key, last: true, frames } => {
                while let Some((process, key_use)) = self.keys.take(key) {
                    if let Some(process) = self.processes.get_mut(process) {
                        self.resolver.keyed(process, key_use, frames);
                    }
                }
            }
            // A definition at the first use comes before the others; those wait for the next.
            kernel::Event::StackDefinition { last: false, .. } => {}
            kernel::Event::Image(change, image) => self.image(change, &image, timestamp),
            kernel::Event::Thread(change, thread) => {
                let kernel::Thread { pid, tid, .. } = thread;
                match change {
                    Change::Start => self.threads.start(tid, pid, timestamp),
                    Change::End => self.threads.end(tid, pid, timestamp),
                    Change::RundownStart | Change::RundownEnd => self.threads.seen(tid, pid),
                }
                if matches!(change, Change::Start | Change::End) {
                    self.sampled.remove(tid);
                    observer.thread_changed(tid);
                }
                self.changed(|| MachineChange::Thread(life(change), tid));
                self.describe(&thread);
            }
            kernel::Event::ThreadName(thread) => {
                self.threads.seen(thread.tid, thread.pid);
                self.changed(|| MachineChange::Thread(Life::Listed, thread.tid));
                self.describe(&thread);
            }
            kernel::Event::Process(change, process) => {
                self.process_event(change, &process, timestamp);
            }
            _ => {}
        }
    }

    /// Takes in a sample of what a processor was doing.
    #[inline]
    pub(crate) fn sample(&mut self, address: u64, tid: u32, time: i64) {
        let Some(process) = self.sampled.get(tid).or_else(|| self.process_of_sample(tid)) else {
            let none = Sighting { count: 0, first: time, last: time, in_image: false };
            let sighting = self.unattributed.entry((tid, address)).or_insert(none);
            (sighting.count, sighting.last) = (sighting.count + 1, time);
            return;
        };
        let address = std::iter::once(address);
        self.resolver.stack(&mut self.processes, process, Origin::Sample, address, time);
    }

    /// Index of the process of a thread that was not sampled before.
    #[inline(never)]
    fn process_of_sample(&mut self, tid: u32) -> Option<usize> {
        let pid = if tid == 0 { Some(0) } else { self.threads.pid_of(tid) };
        let is_full = self.unattributed.len() >= MAX_UNATTRIBUTED;
        let process = self.process(pid.or(is_full.then_some(0))?);
        if pid.is_some() {
            self.sampled.insert(tid, process);
        }
        Some(process)
    }

    /// Keeps what an event states of a thread.
    fn describe(&mut self, thread: &kernel::Thread<'_>) {
        let name = thread.name().filter(|_| self.names.is_some());
        let name = name.map(|name| names::text(name).into_boxed_str());
        let name = name.filter(|name| !name.is_empty());
        self.threads.describe(thread.tid, thread.start_address().unwrap_or(0), name);
    }

    fn image(&mut self, change: Change, image: &kernel::Image<'_>, timestamp: i64) {
        let &kernel::Image { pid, base, size, .. } = image;
        let path = image.path().unwrap_or_default();
        let from = if change == Change::Start { Some(timestamp) } else { None };
        let kernel = pid == 0 || pid == SYSTEM;
        let process = self.process(pid);
        // Listed again, it is the image that it was.
        let known = self.processes.get_mut(process).and_then(|p| p.images.now(base));
        let known = known.filter(|tag| {
            change != Change::Start && self.images.get(tag.id).is_some_and(|i| i.base == base)
        });
        let tag = known.unwrap_or_else(|| {
            let id = self.images.add(pid, base, path);
            let instance = if kernel { self.images.add_kernel(id) } else { 0 };
            Tag { id, instance, ..Tag::default() }
        });
        if let Some(names) = &mut self.names {
            names.image(tag.id, path);
        }
        self.changed(|| MachineChange::Image(life(change), process, tag.id));
        let own = self.processes.get_mut(process).map(|p| &mut p.images);
        for ranges in own.into_iter().chain(kernel.then_some(&mut self.resolver.kernel)) {
            if change == Change::End {
                ranges.remove(base, size, timestamp, tag);
            } else {
                ranges.add(base, size, from, tag);
            }
        }
    }

    fn process_event(&mut self, change: Change, event: &kernel::Process<'_>, timestamp: i64) {
        let pid = event.pid;
        if change == Change::Start {
            // The id may have been another process's before.
            let reused = self.by_pid.get(&pid).and_then(|&p| self.processes.get(p));
            if reused.is_some_and(|p| p.ended.is_some()) {
                self.by_pid.remove(&pid);
                self.recent.clear();
                self.sampled.clear();
            }
        }
        let index = self.process(pid);
        self.changed(|| MachineChange::Process(life(change), index));
        let Some(process) = self.processes.get_mut(index) else { return };
        process.learn(event, self.names.is_some());
        match change {
            Change::Start => process.started = Some(timestamp),
            Change::End => {
                process.ended = Some(timestamp);
                process.exit_status = event.exit_status();
                process.code.clear(timestamp);
                process.images.clear(timestamp);
            }
            Change::RundownStart | Change::RundownEnd => {}
        }
    }

    #[inline]
    fn changed(&mut self, change: impl FnOnce() -> MachineChange) {
        if let Some(changes) = &mut self.changes {
            changes.push(change());
        }
    }

    /// Index of the process that has this id now; it is added if there is none.
    pub(crate) fn process(&mut self, pid: u32) -> usize {
        if let Some(index) = self.recent.get(pid) {
            return index;
        }
        let known = self.by_pid.get(&pid).copied();
        let index = known.unwrap_or_else(|| {
            if self.processes.len() >= MAX_PROCESSES {
                return self.others();
            }
            self.processes.push(Process::new(pid));
            self.by_pid.insert(pid, self.processes.len() - 1);
            self.processes.len() - 1
        });
        self.recent.insert(pid, index);
        index
    }

    /// Index of the process that stands for all beyond the limit.
    #[cold]
    fn others(&mut self) -> usize {
        if let Some(&others) = self.by_pid.get(&OTHERS) {
            return others;
        }
        self.processes.push(Process::new(OTHERS));
        self.by_pid.insert(OTHERS, self.processes.len() - 1);
        self.processes.len() - 1
    }

    /// Stacks whose key was never defined.
    #[must_use]
    pub fn undefined_stacks(&self) -> u64 {
        self.keys.undefined()
    }

    /// The first loss, if any, that may have happened within a span.
    #[must_use]
    pub fn lost_in(&self, from: Option<i64>, to: Option<i64>) -> Option<&Loss> {
        self.losses.iter().find(|loss| loss.touches(from, to))
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
