//! Stacks joined to the events they belong to.
//!
//! A stack is recorded apart from its event in most cases:
//! - the kernel logs it after the event, and names the event by time and thread; its parts in the
//!   kernel and in the process come as two records, the second when the thread returns to the
//!   process;
//! - instead of addresses, the kernel may log a key, and the addresses of the key when it goes out
//!   of use;
//! - extended data has it, or a key, or one of two parts that share a match id;
//! - the CLR logs it as the next event of the same provider on the thread.
//!
//! Events wait in a queue, in time order, until their stack is complete or a limit is reached.

mod held;

use etl_format::{Guid, ProcessId, ThreadId, Ticks};
use std::collections::VecDeque;

use etl_format::constants::{PointerSize, hook};
use etl_format::cursor::Bytes;
use etl_format::read::{ExtendedItem, Header, Record};
use etl_schema::providers::{DOTNET_SAMPLE_PROFILER, UNIVERSAL_EVENTS};
use etl_schema::views::clr::ClrProvider;
use etl_schema::views::{clr, kernel};
use foldhash::HashMap;

use self::held::{Held, Joined, JoinedStacks, Kinds, SampledCode};
use crate::files::Timeline;
use crate::machine::{Machine, event_name};
use crate::observe::{EventKind, EventRef, Frames, Joins, Observer, Sample, Stack};

/// Events that are held. Each takes 48 bytes, its stack apart.
const MAX_EVENTS: usize = 1 << 20;
/// Addresses that are held.
const MAX_ADDRESSES: usize = 1 << 22;
/// Keys whose stacks are held.
const MAX_KEYS: usize = 1 << 18;
/// Threads whose last event of the CLR is held.
const MAX_THREADS: usize = 1 << 18;
/// Events after which an event without any part of its stack is released.
const WINDOW: usize = 1 << 12;
/// Events of one time that are searched for the event of a stack: the last of them.
const MAX_SAME_TIME: usize = 1 << 12;
/// The place of an event that is not held.
const NOWHERE: u64 = u64::MAX;
/// Events of one time that are not held.
const MAX_PASSED: usize = 1 << 6;

/// The idle process and the process of the kernel. Their stacks have only frames of the kernel.
const KERNEL_PROCESSES: [ProcessId; 2] = [ProcessId::new(0), ProcessId::new(4)];

/// A part of a stack.
#[derive(Clone, Copy, Debug)]
enum Part<'a> {
    /// Its addresses, innermost first.
    Addresses(&'a [u64]),
    /// The key of its addresses, and whether they lie in the process.
    Key(u64, bool),
}

/// The type of a sample of .NET that has no valid stack. The other types say whether the thread was
/// in managed code.
const SAMPLE_FAILED: u32 = 0;

/// The first address of the kernel.
fn kernel_begins(is_wide: bool) -> u64 {
    if is_wide { 1 << 63 } else { 1 << 31 }
}

/// Whether the pointers of a record have eight bytes.
fn is_wide(record: &Record<'_>) -> bool {
    record.pointer_size() == Some(PointerSize::P8)
}

/// Whether an event of a provider of samples is one. The runtime takes samples of all managed
/// threads, waiting ones included; one_collect records the samples of `perf`, of running threads.
fn is_sample(record: &Record<'_>, provider: Guid) -> bool {
    if provider == DOTNET_SAMPLE_PROFILER {
        return record.payload().u32_at(0) != Some(SAMPLE_FAILED);
    }
    event_name(record) == Some(b"cpu")
}

/// The addresses behind a key.
#[derive(Debug)]
struct Definition {
    addresses: Box<[u64]>,
    /// The first address of the kernel.
    kernel: u64,
}

/// A session's number for a stack, or for the parts of one stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct StackKey {
    session: usize,
    key: u64,
}

/// A thread that logs events of one of the CLR's providers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct ClrThread {
    tid: ThreadId,
    provider: ClrProvider,
}

/// The event that a record of a stack names.
#[derive(Clone, Copy, Debug)]
struct Named {
    session: usize,
    time: Ticks,
    tid: ThreadId,
}

/// How well an event fits a record of a stack, from worst to best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fit {
    /// It has no thread.
    NoThread,
    /// It has no thread, and is of the processor of the record.
    Processor,
    /// It is of the thread.
    Thread,
}

/// An event that may be the one a record of a stack names. The greatest is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Candidate {
    fit: Fit,
    /// Whether it has no such part yet.
    is_free: bool,
    /// Its index in the events that are held.
    index: usize,
}

/// Joins stacks to events.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    /// In the order of their numbers, so of their times.
    held: VecDeque<Held>,
    /// How many were held before these: the place of an event is its index plus this.
    shown: u64,
    stacks: JoinedStacks,
    kinds: Kinds,
    /// Stacks by session and key, as long as the key is in use. A session may write a stack into
    /// another file than its event.
    keys: HashMap<StackKey, Definition>,
    /// Places of the events whose stacks have a key that is not defined yet.
    undefined: HashMap<StackKey, Vec<u64>>,
    /// Place of the last event of one of the CLR's providers, by thread.
    clr: HashMap<ClrThread, u64>,
    /// Place of the event with the first part of a stack, by its match id.
    matches: HashMap<StackKey, u64>,
    /// The last events that are not held, all of one time.
    passed: Vec<EventRef>,
    /// Addresses that are read.
    space: Vec<u64>,
}

/// What `record` is, with the process and the thread that it is about.
pub(crate) fn event_of(
    record: &Record<'_>,
    number: u64,
    file: usize,
    time: Ticks,
    machine: &Machine,
) -> EventRef {
    let mut tid = record.known_thread_id();
    let mut process = record
        .known_process_id()
        .and_then(|pid| machine.index_of(pid));
    let kind = if let Some(hook) = record.hook() {
        if hook == hook::SAMPLE
            && let Some(sample) = kernel::sample(record)
        {
            tid = Some(ThreadId::new(sample.tid));
            process = None;
        }
        EventKind::Kernel { hook }
    } else if let Some(header) = record.event() {
        EventKind::Event {
            provider: header.provider,
            id: header.descriptor.id,
        }
    } else if let Header::Full(header) = record.header() {
        EventKind::Classic {
            class: header.class,
            opcode: header.opcode,
        }
    } else {
        EventKind::Other
    };
    process = process.or_else(|| machine.process_of_thread(tid?));
    EventRef {
        number,
        file,
        session: machine.session_of(file),
        time,
        kind,
        process,
        tid,
        processor: record.processor(),
    }
}

impl Joiner {
    /// Takes in a record that is `event`, after the machine, and shows what is complete.
    pub fn record<O: Observer>(
        &mut self,
        record: &Record<'_>,
        event: EventRef,
        timeline: &Timeline,
        machine: &Machine,
        observer: &mut O,
    ) {
        match event.kind {
            EventKind::Kernel { hook } if hook >> 8 == hook::STACK >> 8 => {
                self.kernel_stack(record, event, timeline, machine);
            }
            EventKind::Event {
                provider: provider @ (DOTNET_SAMPLE_PROFILER | UNIVERSAL_EVENTS),
                ..
            } if is_sample(record, provider) => self.eventpipe_sample(record, event, machine),
            // The stacks of the kernel do not depend on these events.
            EventKind::Event { .. } if !O::JOINS.has(Joins::All) => {}
            EventKind::Event { provider, id } => match ClrProvider::from_guid(provider) {
                Some(provider) if clr::is_stack(provider, id) => {
                    self.clr_stack(record, event, provider)
                }
                provider => {
                    let place = self.hold(event, None, machine);
                    self.extended(record, event.session, place);
                    if let Some(provider) = provider
                        && let Some(tid) = event.tid
                    {
                        let thread = ClrThread { tid, provider };
                        if self.clr.len() < MAX_THREADS || self.clr.contains_key(&thread) {
                            self.clr.insert(thread, place);
                        }
                    }
                }
            },
            EventKind::Kernel { hook: hook::SAMPLE } => {
                if let Some(kernel::Sample {
                    address, interrupt, ..
                }) = kernel::sample(record)
                {
                    let passed = std::mem::take(&mut self.passed);
                    for before in passed
                        .into_iter()
                        .filter(|before| before.time == event.time)
                    {
                        self.hold(before, None, machine);
                    }
                    let sampled = SampledCode { address, interrupt };
                    self.hold(event, Some(sampled), machine);
                }
            }
            EventKind::Kernel { .. } if O::JOINS.has(Joins::Kernel) => {
                self.hold(event, None, machine);
            }
            EventKind::Kernel { .. } => self.pass(event, machine),
            EventKind::Classic { .. } | EventKind::Other => {}
        }
        self.release(machine, observer);
    }

    /// A sample of an EventPipe stream: the event has its stack.
    fn eventpipe_sample(&mut self, record: &Record<'_>, event: EventRef, machine: &Machine) {
        let innermost = record.extended().find_map(|item| match item {
            ExtendedItem::Stack(stack) => stack.addresses().next(),
            _ => None,
        });
        if let Some(address) = innermost {
            let sampled = SampledCode {
                address,
                interrupt: None,
            };
            let place = self.hold(event, Some(sampled), machine);
            self.extended(record, event.session, place);
        }
    }

    /// An event whose stack is not asked for. One at the time of a sample is held all the same: a
    /// stack names its event by time, so only this shows whose it is.
    fn pass(&mut self, event: EventRef, machine: &Machine) {
        if self.held.back().is_some_and(|last| last.time == event.time) {
            self.hold(event, None, machine);
            return;
        }
        if self
            .passed
            .first()
            .is_some_and(|first| first.time != event.time)
        {
            self.passed.clear();
        }
        if self.passed.len() < MAX_PASSED {
            self.passed.push(event);
        }
    }

    /// Holds an event until its stack has come. Returns its place; [`NOWHERE`] if no stack is
    /// expected.
    fn hold(&mut self, event: EventRef, sample: Option<SampledCode>, machine: &Machine) -> u64 {
        let (kind, is_expected) = self.kinds.count(event.kind, 2 * WINDOW);
        if sample.is_none() && !is_expected {
            return NOWHERE;
        }
        let pid = event
            .process
            .and_then(|index| machine.process(index))
            .map(|p| p.pid);
        let kernel_only = pid.is_some_and(|pid| KERNEL_PROCESSES.contains(&pid));
        let place = self.shown + self.held.len() as u64;
        self.held
            .push_back(Held::new(&event, kind, sample, kernel_only));
        place
    }

    /// The kernel's records of stacks.
    fn kernel_stack(
        &mut self,
        record: &Record<'_>,
        event: EventRef,
        timeline: &Timeline,
        machine: &Machine,
    ) {
        let session = event.session;
        let kernel = kernel_begins(is_wide(record));
        let mut addresses = std::mem::take(&mut self.space);
        addresses.clear();
        match kernel::decode(record) {
            Some(kernel::Event::Stack {
                at, tid, frames, ..
            }) => {
                addresses.extend(frames.iter());
                let user = addresses.iter().any(|&address| address < kernel);
                let named = Named {
                    session,
                    time: timeline.timestamp(event.file, Ticks::new(at)),
                    tid: ThreadId::new(tid),
                };
                if let Some(index) = self.find(named, user, record, machine) {
                    self.attach(session, index, Part::Addresses(&addresses), kernel);
                }
            }
            Some(kernel::Event::StackKey {
                at, tid, key, user, ..
            }) => {
                let named = Named {
                    session,
                    time: timeline.timestamp(event.file, Ticks::new(at)),
                    tid: ThreadId::new(tid),
                };
                let user = match self.keys.get(&StackKey { session, key }) {
                    Some(defined) => defined.addresses.iter().any(|at| *at < defined.kernel),
                    None => user,
                };
                if let Some(index) = self.find(named, user, record, machine) {
                    self.attach(session, index, Part::Key(key, user), kernel);
                }
            }
            Some(kernel::Event::StackDefinition { key, last, frames }) => {
                addresses.extend(frames.iter());
                self.define(StackKey { session, key }, &addresses, kernel, last);
            }
            _ => {}
        }
        self.space = addresses;
    }

    /// The index of the event that a record of a stack names, by preference one that has no such
    /// part yet.
    fn find(
        &mut self,
        named: Named,
        user: bool,
        record: &Record<'_>,
        machine: &Machine,
    ) -> Option<usize> {
        let Named { session, time, tid } = named;
        let mut first = self.first_at(time);
        if self
            .held
            .get(first + MAX_SAME_TIME)
            .is_some_and(|held| held.time == time)
        {
            let end = time
                .checked_add(1)
                .map_or(self.held.len(), |after| self.first_at(after));
            first = end.saturating_sub(MAX_SAME_TIME);
        }
        let mut best: Option<Candidate> = None;
        for (index, held) in self.held.range(first..).enumerate() {
            if held.time != time {
                break;
            }
            if machine.session_of(held.file()) != session {
                continue;
            }
            let fit = match held.tid() {
                Some(of) if of == tid => Fit::Thread,
                Some(_) => continue,
                // The thread that ran on the processor then.
                None if held.processor == record.processor() => Fit::Processor,
                None => Fit::NoThread,
            };
            let candidate = Candidate {
                fit,
                is_free: !self.stacks.has_part(held, user),
                index: first + index,
            };
            best = best.max(Some(candidate));
        }
        let index = best?.index;
        self.held
            .get_mut(index)?
            .ran_on(tid, || machine.process_of_thread(tid));
        Some(index)
    }

    /// Index of the first held event that is not before a time: in most cases one of the last.
    fn first_at(&self, time: Ticks) -> usize {
        let mut end = self.held.len();
        let mut step = 8;
        loop {
            let start = end.saturating_sub(step);
            if start == 0 || self.held.get(start).is_some_and(|held| held.time < time) {
                let mut low = start;
                let mut high = end;
                while low < high {
                    let middle = low.midpoint(high);
                    match self.held.get(middle) {
                        Some(held) if held.time < time => low = middle + 1,
                        _ => high = middle,
                    }
                }
                return low;
            }
            end = start;
            step *= 2;
        }
    }

    fn attach(&mut self, session: usize, index: usize, part: Part<'_>, kernel: u64) {
        let Some(held) = self.held.get_mut(index) else {
            return;
        };
        let key = match part {
            Part::Addresses(addresses) => {
                self.stacks
                    .change(held, |stack| stack.add(addresses, kernel));
                None
            }
            Part::Key(key, user) => match self.keys.get(&StackKey { session, key }) {
                Some(defined) => {
                    self.stacks
                        .change(held, |stack| stack.add(&defined.addresses, defined.kernel));
                    None
                }
                None => {
                    self.stacks.change(held, |stack| stack.add_key(key, user));
                    Some(key)
                }
            },
        };
        if let Some(key) = key {
            let place = self.shown + index as u64;
            self.undefined
                .entry(StackKey { session, key })
                .or_default()
                .push(place);
        }
        self.kinds.has_stack(held);
    }

    /// Defines a key; with `last`, the key goes out of use.
    fn define(&mut self, key: StackKey, addresses: &[u64], kernel: u64, last: bool) {
        for place in self.undefined.remove(&key).unwrap_or_default() {
            let Some(index) = self.index_of(place) else {
                continue;
            };
            let Some(held) = self.held.get_mut(index) else {
                continue;
            };
            // Thousands of stacks may wait for the same key.
            if self.stacks.addresses > MAX_ADDRESSES {
                self.stacks.change(held, Joined::cut);
            } else {
                self.stacks
                    .change(held, |stack| stack.define(key.key, addresses, kernel));
            }
        }
        if last {
            self.keys.remove(&key);
        } else if self.keys.len() < MAX_KEYS {
            let addresses = addresses.into();
            self.keys.insert(key, Definition { addresses, kernel });
        }
    }

    /// Stacks in extended data of a record, whose event is at a place.
    fn extended(&mut self, record: &Record<'_>, session: usize, place: u64) {
        let mut addresses = std::mem::take(&mut self.space);
        for item in record.extended() {
            match item {
                ExtendedItem::Stack(stack) => {
                    addresses.clear();
                    addresses.extend(stack.addresses());
                    if let Some(index) = self.matched(session, stack.match_id, place) {
                        let kernel = kernel_begins(stack.wide);
                        self.attach(session, index, Part::Addresses(&addresses), kernel);
                    }
                }
                ExtendedItem::StackKey { match_id, key, .. } => {
                    if let Some(index) = self.matched(session, match_id, place) {
                        self.attach(session, index, Part::Key(key, true), kernel_begins(true));
                    }
                }
                _ => {}
            }
        }
        self.space = addresses;
    }

    /// The index of the event with the first part of a stack, else of the event at `place`.
    fn matched(&mut self, session: usize, match_id: u64, place: u64) -> Option<usize> {
        if match_id == 0 {
            return self.index_of(place);
        }
        let key = StackKey {
            session,
            key: match_id,
        };
        if let Some(first) = self.matches.remove(&key) {
            return self.index_of(first);
        }
        if self.matches.len() < MAX_KEYS {
            self.matches.insert(key, place);
        }
        self.index_of(place)
    }

    /// A stack that the CLR logs after an event on the same thread.
    fn clr_stack(&mut self, record: &Record<'_>, event: EventRef, provider: ClrProvider) {
        let Some(tid) = event.tid else {
            return;
        };
        let Some(place) = self.clr.remove(&ClrThread { tid, provider }) else {
            return;
        };
        let Some(clr::Event::Stack { frames, .. }) = clr::decode(record).map(|c| c.event) else {
            return;
        };
        if let Some(index) = self.index_of(place) {
            let mut addresses = std::mem::take(&mut self.space);
            addresses.clear();
            addresses.extend(frames.iter());
            let kernel = kernel_begins(is_wide(record));
            self.attach(event.session, index, Part::Addresses(&addresses), kernel);
            self.space = addresses;
        }
    }

    fn index_of(&self, place: u64) -> Option<usize> {
        usize::try_from(place.checked_sub(self.shown)?).ok()
    }

    /// Shows what is complete, and what the limits leave no space for.
    fn release(&mut self, machine: &Machine, observer: &mut impl Observer) {
        while let Some(front) = self.held.front() {
            let full = self.held.len() > MAX_EVENTS || self.stacks.addresses > MAX_ADDRESSES;
            let late = front.lacks_stack() && self.held.len() > WINDOW;
            if !full && !late && !self.stacks.is_complete(front) {
                return;
            }
            self.show_first(machine, observer);
        }
    }

    /// Shows everything: the recording ends.
    pub fn finish(&mut self, machine: &Machine, observer: &mut impl Observer) {
        while !self.held.is_empty() {
            self.show_first(machine, observer);
        }
    }

    fn show_first<O: Observer>(&mut self, machine: &Machine, observer: &mut O) {
        let Some(mut held) = self.held.pop_front() else {
            return;
        };
        self.shown += 1;
        if held.lacks_stack() && held.sample().is_none() {
            return;
        }
        let tid = held.tid();
        held.belongs_to(|| machine.process_of_thread(tid?));
        let event = held.event(&self.kinds, machine.session_of(held.file()));
        let stack = self.stacks.get(&held);
        let frames = stack.map_or(Frames::default(), |stack| Frames {
            kernel: &stack.kernel,
            user: &stack.user,
            is_partial: stack.is_partial() || !held.kernel_only && stack.user.is_empty(),
        });
        match held.sample() {
            Some(SampledCode { address, interrupt }) => observer.sample(
                machine,
                &Sample {
                    event,
                    address,
                    interrupt,
                    frames,
                },
            ),
            // An event that is held for its time alone is not asked for.
            None if !O::JOINS.has(Joins::Kernel) => {}
            None => observer.stack(machine, &Stack { event, frames }),
        }
        self.stacks.release(&held);
    }
}
