//! What a trace says, gathered in one pass in time order.
//!
//! # Who owns an address
//! A method's code, or an image, is there from its load to its unload. What a rundown enumerates
//! has been there since before the trace, unless its load was seen (rules S1 and S7). An address is
//! looked up at the moment it was seen; if no named method covers it then, it waits, once per process
//! and address, for a rundown that may come later, and is decided at the end of the trace.

pub mod activity;
mod addresses;
pub mod bare;
mod chunks;
pub mod clr;
pub mod enable;
mod finish;
pub mod frames;
pub mod images;
pub mod infer;
pub mod instance;
pub mod kernel;
mod keys;
mod kinds;
pub mod loss;
pub mod payload;
mod process;
mod ranges;
mod recent;
mod repeats;
mod sampled;
mod seen;
mod sizes;
pub mod source;
pub mod stacks;
mod steps;
mod texts;
pub mod told;
mod waiting;

use etl_format::Clock;
use etl_format::constants::{EventFlags, PointerSize};
use etl_format::read::{EventHeader, ExtendedItem, Record};
use etl_schema::tables::Profile;
use foldhash::HashMap;

use activity::Activities;
use bare::Kind;
use clr::ClrEvent;
use enable::{Admission, Enabled};
use images::Images;
use kernel::{Change, KernelEvent};
use keys::Keys;
use kinds::Kinds;
use loss::Loss;
use payload::Payloads;
use recent::Recents;
use repeats::Repeats;
use sampled::Sampled;
use sizes::Sizes;
use source::{FileFacts, Timeline};
use stacks::{StackPairs, Whose};
use steps::{ClrHead, Light};
use told::Told;

pub use finish::Offender;
pub use instance::{Bracket, Clr, Known, ModuleFacts, Things};
pub use process::{Cause, Counted, MethodSigns, Origin, Pending, Process, Sight, Tallies, Tally};
pub use ranges::{Added, History, Range, Ranges, Tag};
pub(crate) use steps::{AtOnce, Steps};
pub use waiting::Waiting;

/// The kernel's process, whose images every process sees.
const SYSTEM: u32 = 4;

/// Where addresses of a 64-bit kernel begin; no managed code is there.
const KERNEL_SPACE: u64 = 0xffff_8000_0000_0000;

/// Frames of a stack that is told by key, which counts for every process that used the key. The kernel
/// takes 192.
const MOST_KEYED: usize = 512;

/// Places for processes that were asked for a moment ago; a power of two.
const NEAR: usize = 64;

/// Most samples of threads without a known process that are put by, by thread and address; others
/// count for the idle process.
const HOMELESS: usize = 1 << 20;

/// Processes that are told apart; all others count as one. A machine has some hundreds.
const PROCESSES: usize = 1 << 16;

/// The id under which processes count that are not told apart.
const OTHERS: u32 = u32::MAX;

/// Timestamps of the first and the last of some records.
pub type Span = Option<(i64, i64)>;

/// The kind of an event, if a stack should follow it.
fn kind_of(head: &ClrHead) -> Option<Kind> {
    head.stacked.then_some(Kind { rundown: head.rundown, id: head.id })
}

#[inline]
fn widen(span: &mut Span, timestamp: i64) {
    match span {
        Some((first, last)) => (*first, *last) = (timestamp.min(*first), timestamp.max(*last)),
        None => *span = Some((timestamp, timestamp)),
    }
}

/// What a trace says.
#[derive(Debug)]
pub struct Facts {
    /// The files.
    pub files: Vec<FileFacts>,
    /// The clock of the timestamps.
    pub clock: Clock,
    /// What was lost.
    pub losses: Vec<Loss>,
    /// Processes, in the order in which they appeared. A process id may come more than once.
    pub processes: Vec<Process>,
    /// Records read.
    pub records: u64,
    /// Timestamps of the first and the last record.
    pub span: Span,
    /// Timestamps of the first and the last event of the runtime provider.
    pub runtime_span: Span,
    /// Timestamps of the first and the last event of the rundown provider.
    pub rundown_span: Span,
    /// Timestamps of the first and the last kernel record.
    pub kernel_span: Span,
    /// Addresses that resolved to nothing, the most frequent first.
    pub offenders: Vec<Offender>,
    /// What the sessions were enabled with, and what was seen.
    pub admission: Admission,
    /// Images, and what a merge tells of them.
    pub images: Images,
    /// How the CLR's stacks stand to their events.
    pub stacks: StackPairs,
    /// Activities.
    pub activities: Activities,
    /// Payloads that do not fit.
    pub payloads: Payloads,
    /// What things are called, if somebody wants to know: see [`Facts::keep_names`].
    pub told: Option<Told>,
    timeline: Timeline,
    /// The kinds of the last events.
    kinds: Kinds,
    /// Payloads of the CLR that are looked at with its events.
    sizes: Sizes,
    by_pid: HashMap<u32, usize>,
    /// Processes that were asked for a moment ago, and their indices, by the lowest bits of their ids.
    near: [Option<(u32, usize)>; NEAR],
    threads: HashMap<u32, u32>,
    /// Processes of the threads that were sampled a moment ago.
    sampled: Sampled,
    /// The thread of the last event: it has its process.
    last_thread: Option<u32>,
    /// Threads whose process has been told: see [`seen::Seen`].
    told_threads: Vec<Option<u32>>,
    /// Samples of threads whose process is not known yet, by thread and address.
    homeless: HashMap<(u32, u64), Sight>,
    /// Uses of stack keys that are not defined yet.
    keys: Keys,
    /// For how many addresses there is room yet.
    room: usize,
    /// Kernel addresses, shared by all processes.
    kernel: Ranges,
    /// What addresses resolved to a moment ago.
    recent: Recents,
    /// Stacks that were seen a moment ago.
    repeats: Repeats,
}

impl Facts {
    /// Nothing yet, on a timeline, with what the user told of the sessions.
    #[must_use]
    pub fn new(timeline: Timeline, told: &[Enabled]) -> Self {
        Facts {
            files: Vec::new(),
            clock: timeline.clock(),
            losses: Vec::new(),
            processes: Vec::new(),
            records: 0,
            span: None,
            runtime_span: None,
            rundown_span: None,
            kernel_span: None,
            offenders: Vec::new(),
            admission: Admission::new(told, &timeline.clock()),
            images: Images::default(),
            stacks: StackPairs::default(),
            activities: Activities::default(),
            payloads: Payloads::default(),
            told: None,
            timeline,
            kinds: Kinds::default(),
            sizes: Sizes::default(),
            by_pid: HashMap::default(),
            near: [None; NEAR],
            threads: HashMap::default(),
            sampled: Sampled::default(),
            last_thread: None,
            told_threads: vec![None; seen::THREADS],
            homeless: HashMap::default(),
            keys: Keys::default(),
            room: waiting::MOST,
            kernel: Ranges::default(),
            recent: Recents::default(),
            repeats: Repeats::default(),
        }
    }

    /// Compares payloads with these tables, and not with those of the shipped runtimes.
    #[must_use]
    pub fn with_tables(self, tables: Profile) -> Self {
        Facts { payloads: Payloads::new(tables), sizes: Sizes::new(tables), ..self }
    }

    /// Keeps the names of methods, modules, assemblies and domains, and of images, from now on. The
    /// [`Tag`]s of code then bear the number of a method in [`Told`] instead of its id.
    pub fn keep_names(&mut self) {
        self.told = Some(Told::default());
    }

    /// Images of the kernel by address.
    pub(crate) fn kernel_images(&self) -> &Ranges {
        &self.kernel
    }

    /// What the files say of themselves.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Takes in the next record of a file.
    pub fn record(&mut self, record: &Record<'_>, source: usize) {
        let timestamp = self.timeline.timestamp(source, record.timestamp());
        let mut seen = self.take_seen();
        seen.record(record, timestamp, &mut AtOnce { facts: self, source });
        self.give_back(seen);
    }

    /// Takes in what a record says of who owns addresses, and which addresses it names.
    fn owners(&mut self, record: &Record<'_>, timestamp: i64, source: usize) {
        if let Some(header) = record.event() {
            self.event(record, &header, timestamp);
        } else if record.is_kernel() {
            if let Some(event) = kernel::decode(record) {
                self.kernel_event(event, record, timestamp);
            } else if record.hook() == Some(0) {
                self.session(record, source);
            }
        } else {
            self.images.identity(record);
        }
    }

    fn event(&mut self, record: &Record<'_>, header: &EventHeader, timestamp: i64) {
        let (pid, tid) = (header.process_id, header.thread_id);
        if self.last_thread != Some(tid) {
            self.threads.entry(tid).or_insert(pid);
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
                stacked: Kind::with_stack(rundown, id, version).is_some(),
                wide: record.pointer_size() == Some(PointerSize::P8),
            };
            self.clr_event(&head, record.payload(), Some(header), timestamp);
        }
        if header.flags.has(EventFlags::EXTENDED_INFO) {
            for item in record.extended() {
                if let ExtendedItem::Stack(stack) = item {
                    let process = self.process(pid);
                    self.stack(process, Origin::ExtendedStack, stack.addresses(), timestamp);
                }
            }
        }
    }

    /// Takes in an event of the CLR of which no field matters.
    fn light(&mut self, Light { head, short }: Light, timestamp: i64) {
        if !head.known {
            self.threads.entry(head.tid).or_insert(head.pid);
        }
        let ClrHead { pid, tid, rundown, .. } = head;
        if short {
            self.stacks.event(Whose { tid, rundown, process: usize::MAX }, None, timestamp);
            return;
        }
        let process = self.process(pid);
        widen(if rundown { &mut self.rundown_span } else { &mut self.runtime_span }, timestamp);
        self.stacks.event(Whose { tid, rundown, process }, kind_of(&head), timestamp);
        if let Some(process) = self.processes.get_mut(process) {
            process.clr_seen(rundown, timestamp);
        }
    }

    /// Takes in an event of the CLR; `header` where it is looked at as a whole.
    fn clr_event(
        &mut self,
        head: &ClrHead,
        payload: &[u8],
        header: Option<&EventHeader>,
        timestamp: i64,
    ) {
        let &ClrHead { pid, tid, rundown, .. } = head;
        let pointers = Some(head.pointers());
        let from = clr::decode_event(rundown, (head.id, head.version), payload, pointers);
        if header.is_none_or(sizes::is_plain) {
            self.sizes.event(head, payload, from.is_some_and(|from| from.whole), timestamp);
        }
        let Some(from) = from else {
            self.stacks.event(Whose { tid, rundown, process: usize::MAX }, None, timestamp);
            return;
        };
        let index = self.process(pid);
        let whose = Whose { tid, rundown, process: index };
        let span = if rundown { &mut self.rundown_span } else { &mut self.runtime_span };
        widen(span, timestamp);
        let since = span.map_or(0, |(first, _)| timestamp.saturating_sub(first));
        match from.event {
            ClrEvent::Stack(stated) => {
                let frames = clr::stack_frames(payload, pointers);
                self.frames(index, Origin::ClrStack, frames, timestamp);
                // A stack comes microseconds after its event.
                let begun = since.unsigned_abs() <= self.clock.frequency / 100;
                self.stacks.stack(whose, (stated, frames.len()), timestamp, begun);
            }
            ClrEvent::Exception(at) => {
                self.stack(index, Origin::Exception, std::iter::once(at), timestamp);
            }
            ClrEvent::EntryPoint(at) => {
                self.stack(index, Origin::EntryPoint, std::iter::once(at), timestamp);
            }
            _ => {}
        }
        if !matches!(from.event, ClrEvent::Stack(_)) {
            self.stacks.event(whose, kind_of(head), timestamp);
        }
        if let Some(process) = self.processes.get_mut(index) {
            let mut code = None;
            if let (Some(told), Some(header)) = (&mut self.told, header) {
                let clr = (index, process.instance_of(&from));
                code = told.learn(clr, &from, header, payload, timestamp);
            }
            process.clr_event(&from, code, timestamp, tid);
        }
    }

    fn kernel_event(&mut self, event: KernelEvent<'_>, record: &Record<'_>, timestamp: i64) {
        match event {
            KernelEvent::Sample { address, tid } => self.sample(address, tid, timestamp),
            KernelEvent::Stack { at, pid, frames } => {
                self.stacks.kernel(at, record.timestamp());
                let process = self.process(pid);
                self.frames(process, Origin::KernelStack, frames, timestamp);
            }
            KernelEvent::StackKey { at, pid, key } => {
                self.stacks.kernel(at, record.timestamp());
                let process = self.process(pid);
                self.keys.used(key, process, timestamp);
                if let Some(process) = self.processes.get_mut(process) {
                    process.tally(Origin::KernelStack).stacks += 1;
                }
            }
            KernelEvent::StackDefinition { key, last, frames } => {
                // A definition at the first use comes before the others; those wait for the next.
                if last {
                    while let Some((process, key_use)) = self.keys.take(key) {
                        self.keyed(process, key_use, frames);
                    }
                }
            }
            KernelEvent::Image { change, pid, base, size, path } => {
                self.image(change, (pid, base, size), path, timestamp);
            }
            KernelEvent::Thread { change, pid, tid } => match change {
                Change::End | Change::Start => {
                    self.threads.insert(tid, pid);
                    self.sampled.forget(tid);
                    self.stacks.forget(tid);
                }
                _ => {
                    self.threads.entry(tid).or_insert(pid);
                }
            },
            KernelEvent::Process { change, pid, name } => {
                self.process_event(change, pid, name, timestamp)
            }
        }
    }

    fn image(
        &mut self,
        change: Change,
        (pid, base, size): (u32, u64, u64),
        path: &[u8],
        timestamp: i64,
    ) {
        let from = if change == Change::Start { Some(timestamp) } else { None };
        let kernel = pid == 0 || pid == SYSTEM;
        let process = self.process(pid);
        // Told again, it is the image that it was.
        let known = self.processes.get_mut(process).and_then(|p| p.images.now(base));
        let known = known.filter(|tag| {
            change != Change::Start && self.images.get(tag.id).is_some_and(|i| i.base == base)
        });
        let tag = known.unwrap_or_else(|| {
            let id = self.images.add(pid, base, path);
            let instance = if kernel { self.images.add_kernel(id) } else { 0 };
            Tag { id, instance, ..Tag::default() }
        });
        if let Some(told) = &mut self.told {
            told.image(tag.id, path);
        }
        let own = self.processes.get_mut(process).map(|p| &mut p.images);
        for ranges in own.into_iter().chain(kernel.then_some(&mut self.kernel)) {
            if change == Change::End {
                ranges.remove(base, size, timestamp, tag);
            } else {
                ranges.add(base, size, from, tag);
            }
        }
    }

    fn process_event(&mut self, change: Change, pid: u32, name: &[u8], timestamp: i64) {
        if change == Change::Start {
            // The id may have been another process's before.
            let reused = self.by_pid.get(&pid).and_then(|&p| self.processes.get(p));
            if reused.is_some_and(|p| p.ended.is_some()) {
                self.by_pid.remove(&pid);
                self.near = [None; NEAR];
                self.sampled = Sampled::default();
            }
        }
        let index = self.process(pid);
        let Some(process) = self.processes.get_mut(index) else { return };
        if !name.is_empty() {
            process.name = String::from_utf8_lossy(name).into_owned();
        }
        match change {
            Change::Start => process.started = Some(timestamp),
            Change::End => {
                process.ended = Some(timestamp);
                process.code.clear(timestamp);
                process.images.clear(timestamp);
            }
            Change::AtStart | Change::AtEnd => {}
        }
    }

    /// Index of the process that has this id now.
    fn process(&mut self, pid: u32) -> usize {
        // Ids are multiples of four.
        let near = (pid >> 2) as usize & (NEAR - 1);
        if let Some(Some((known, index))) = self.near.get(near)
            && *known == pid
        {
            return *index;
        }
        let known = self.by_pid.get(&pid).copied();
        let index = known.unwrap_or_else(|| {
            if self.processes.len() >= PROCESSES {
                return self.others();
            }
            self.processes.push(Process::new(pid));
            self.by_pid.insert(pid, self.processes.len() - 1);
            self.processes.len() - 1
        });
        if let Some(near) = self.near.get_mut(near) {
            *near = Some((pid, index));
        }
        index
    }

    /// Index of the process that stands for all that are not told apart.
    #[cold]
    fn others(&mut self) -> usize {
        if let Some(&others) = self.by_pid.get(&OTHERS) {
            return others;
        }
        self.processes.push(Process::new(OTHERS));
        self.by_pid.insert(OTHERS, self.processes.len() - 1);
        self.processes.len() - 1
    }

    /// Stacks told by a key that was never defined.
    #[must_use]
    pub fn undefined_stacks(&self) -> u64 {
        self.keys.undefined()
    }

    /// The first loss, if any, that may have happened within a span.
    #[must_use]
    pub fn lost_in(&self, from: Option<i64>, to: Option<i64>) -> Option<&Loss> {
        self.losses.iter().find(|loss| loss.touches(from, to))
    }

    /// The name of a provider, or its GUID.
    #[must_use]
    pub fn provider_name(&self, provider: etl_format::Guid) -> String {
        match provider {
            clr::RUNTIME => "Microsoft-Windows-DotNETRuntime".to_owned(),
            clr::RUNDOWN => "Microsoft-Windows-DotNETRuntimeRundown".to_owned(),
            _ => {
                let name = self.payloads.store().provider_name(provider);
                name.map_or_else(|| provider.to_string(), str::to_owned)
            }
        }
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
