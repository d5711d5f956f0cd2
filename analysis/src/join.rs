//! Stacks joined to the events they belong to.
//!
//! A stack is recorded apart from its event in most cases:
//! - the kernel logs it after the event, and names the event by time and thread; its parts in the
//!   kernel and in the process come as two records, the second when the thread returns to the
//!   process;
//! - instead of addresses, the kernel may log a key, and what it stands for when the key goes out
//!   of use;
//! - extended data holds it, or a key, or one of two parts that share a match id;
//! - the CLR logs it as the next event of the same provider on the thread.
//!
//! Events wait in a queue, in time order, until their stack is complete or a limit is reached.

use std::collections::VecDeque;
use std::sync::Arc;

use etl_format::constants::{PointerSize, hook};
use etl_format::read::{ExtendedItem, Header, Record};
use etl_schema::views::{clr, kernel};
use foldhash::HashMap;

use crate::files::Timeline;
use crate::machine::Machine;
use crate::observe::{EventKind, EventRef, Frames, Observer, Sample, Stack};

/// Events that are held. Each takes some 150 bytes, its stack apart.
const MAX_EVENTS: usize = 1 << 20;
/// Addresses that are held.
const MAX_ADDRESSES: usize = 1 << 22;
/// Keys whose stacks are held.
const MAX_KEYS: usize = 1 << 18;
/// Threads whose last event of the CLR is held.
const MAX_THREADS: usize = 1 << 18;
/// Events after which a stack is not expected any more where none of it has come.
const WINDOW: usize = 1 << 12;

/// The idle process and the one of the kernel: they have no part outside of it.
const KERNEL_PROCESSES: [u32; 2] = [0, 4];

/// A part of a stack.
#[derive(Clone, Debug)]
enum Part {
    /// Its addresses.
    Addresses(Addresses),
    /// The key that stands for them, and whether they are known to lie in the process.
    Key(u64, bool),
}

/// Addresses of a stack, innermost first.
#[derive(Clone, Debug)]
struct Addresses {
    list: Arc<[u64]>,
    /// Where the kernel begins.
    kernel: u64,
}

impl Addresses {
    /// Addresses in memory of their own; `space` is overwritten.
    fn new(list: impl Iterator<Item = u64>, wide: bool, space: &mut Vec<u64>) -> Self {
        space.clear();
        space.extend(list);
        Addresses { list: space.as_slice().into(), kernel: if wide { 1 << 63 } else { 1 << 31 } }
    }

    /// Whether any of them lies in the process.
    fn has_user(&self) -> bool {
        self.list.iter().any(|&address| address < self.kernel)
    }
}

/// An event that waits for its stack.
#[derive(Debug)]
struct Held {
    event: EventRef,
    /// The instruction pointer, if it is a sample.
    sample: Option<u64>,
    parts: Vec<Part>,
    /// Whether it is known to have no part in the process.
    kernel_only: bool,
}

impl Held {
    /// Whether nothing more of its stack is to come.
    fn is_complete(&self) -> bool {
        let user = |part: &Part| matches!(part, Part::Addresses(a) if a.has_user());
        let known = self.parts.iter().all(|part| matches!(part, Part::Addresses(_)));
        known && !self.parts.is_empty() && (self.kernel_only || self.parts.iter().any(user))
    }

    /// Whether it has a part that lies in the process, or, if not `user`, in the kernel.
    fn has_part(&self, user: bool) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Addresses(addresses) => addresses.has_user() == user,
            Part::Key(_, of_user) => *of_user == user,
        })
    }
}

/// How many events of a kind came without a stack, as long as none had one.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    without: usize,
    stacked: bool,
}

/// Joins stacks to events.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    /// In the order of their numbers, so of their times.
    held: VecDeque<Held>,
    /// Addresses of the held stacks.
    addresses: usize,
    /// Stacks by file and key, as long as the key is in use.
    keys: HashMap<(usize, u64), Addresses>,
    /// Numbers of the events whose stacks have a key that is not defined yet.
    undefined: HashMap<(usize, u64), Vec<u64>>,
    /// Number of the last event of one of the CLR's providers, by thread.
    clr: HashMap<(u32, bool), u64>,
    /// Number of the event with the first part of a stack, by file and match id.
    matches: HashMap<(usize, u64), u64>,
    kinds: HashMap<EventKind, Kind>,
    /// For what an observer is shown, and for addresses that are read.
    kernel: Vec<u64>,
    user: Vec<u64>,
}

/// What `record` is, with the process and the thread that it is about.
pub(crate) fn event_of(
    record: &Record<'_>,
    number: u64,
    file: usize,
    time: i64,
    machine: &Machine,
) -> EventRef {
    let known = |id: Option<u32>| id.filter(|&id| id != u32::MAX);
    let mut tid = known(record.thread_id());
    let mut process = known(record.process_id()).and_then(|pid| machine.index_of(pid));
    let kind = if let Some(hook) = record.hook() {
        if hook == hook::SAMPLE
            && let Some((_, running)) = kernel::sample(record)
        {
            tid = Some(running);
            process = None;
        }
        EventKind::Kernel { hook }
    } else if let Some(header) = record.event() {
        EventKind::Event { provider: header.provider, id: header.descriptor.id }
    } else if let Header::Full(header) = record.header() {
        EventKind::Classic { class: header.class, opcode: header.opcode }
    } else {
        EventKind::Other
    };
    process = process.or_else(|| machine.process_of_thread(tid?));
    EventRef { number, file, time, kind, process, tid, processor: record.processor() }
}

/// Whether the pointers of a record have eight bytes.
fn is_wide(record: &Record<'_>) -> bool {
    record.pointer_size() == Some(PointerSize::P8)
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
        let file = event.file;
        match event.kind {
            EventKind::Kernel { hook } if hook >> 8 == hook::STACK >> 8 => {
                self.kernel_stack(record, file, timeline, machine);
            }
            // Their stacks are apart from those of the kernel.
            EventKind::Event { .. } if !O::JOINS_EVENT_STACKS => {}
            EventKind::Event { provider, id } => match clr::rundown_of(provider) {
                Some(rundown) if clr::is_stack(rundown, id) => {
                    self.clr_stack(record, event, rundown)
                }
                rundown => {
                    self.hold(event, None, machine);
                    self.extended(record, event);
                    if let (Some(rundown), Some(tid)) = (rundown, event.tid)
                        && (self.clr.len() < MAX_THREADS || self.clr.contains_key(&(tid, rundown)))
                    {
                        self.clr.insert((tid, rundown), event.number);
                    }
                }
            },
            EventKind::Kernel { hook: hook::SAMPLE } => {
                if let Some((address, _)) = kernel::sample(record) {
                    self.hold(event, Some(address), machine);
                }
            }
            EventKind::Kernel { .. } => self.hold(event, None, machine),
            EventKind::Classic { .. } | EventKind::Other => {}
        }
        self.release(machine, observer);
    }

    fn hold(&mut self, event: EventRef, sample: Option<u64>, machine: &Machine) {
        let kind = self.kinds.entry(event.kind).or_default();
        if sample.is_none() && !kind.stacked && kind.without > WINDOW {
            return;
        }
        let pid = event.process.and_then(|index| machine.processes.get(index)).map(|p| p.pid);
        let kernel_only = pid.is_some_and(|pid| KERNEL_PROCESSES.contains(&pid));
        self.held.push_back(Held { event, sample, parts: Vec::new(), kernel_only });
    }

    /// The kernel's records of stacks.
    fn kernel_stack(
        &mut self,
        record: &Record<'_>,
        file: usize,
        timeline: &Timeline,
        machine: &Machine,
    ) {
        let wide = is_wide(record);
        let (at, tid, part) = match kernel::decode(record) {
            Some(kernel::Event::Stack { at, tid, frames, .. }) => {
                let addresses = Addresses::new(frames.iter(), wide, &mut self.kernel);
                (at, tid, Part::Addresses(addresses))
            }
            Some(kernel::Event::StackKey { at, tid, key, user, .. }) => {
                (at, tid, self.part(file, key, user))
            }
            Some(kernel::Event::StackDefinition { key, last, frames }) => {
                let addresses = Addresses::new(frames.iter(), wide, &mut self.kernel);
                self.define((file, key), addresses, last);
                return;
            }
            _ => return,
        };
        let user = match &part {
            Part::Addresses(addresses) => addresses.has_user(),
            Part::Key(_, user) => *user,
        };
        if let Some(index) = self.find(timeline.timestamp(file, at), tid, user, record, file) {
            if let Some(held) = self.held.get_mut(index)
                && held.event.process.is_none()
            {
                held.event.process = machine.process_of_thread(tid);
            }
            self.attach(index, part);
        }
    }

    /// The event of a time and a thread, that has no such part yet.
    fn find(
        &self,
        time: i64,
        tid: u32,
        user: bool,
        record: &Record<'_>,
        file: usize,
    ) -> Option<usize> {
        let first = self.held.partition_point(|held| held.event.time < time);
        let there = self.held.range(first..).take_while(|held| held.event.time == time);
        let rank = |held: &Held| {
            let event = &held.event;
            let free = u8::from(!held.has_part(user));
            if event.file != file {
                None
            } else if event.tid == Some(tid) {
                Some((3, free))
            } else if event.tid.is_none() {
                // A record without a thread: the one that ran on the processor then.
                Some((if event.processor == record.processor() { 2 } else { 1 }, free))
            } else {
                None
            }
        };
        let ranked = there.enumerate().filter_map(|(at, held)| Some((rank(held)?, first + at)));
        ranked.max().map(|(_, index)| index)
    }

    /// The part of a stack with a key: its addresses, if they are defined.
    fn part(&self, file: usize, key: u64, user: bool) -> Part {
        let known = self.keys.get(&(file, key)).cloned();
        known.map_or(Part::Key(key, user), Part::Addresses)
    }

    fn attach(&mut self, index: usize, part: Part) {
        let Some(held) = self.held.get_mut(index) else { return };
        match &part {
            Part::Addresses(addresses) => self.addresses += addresses.list.len(),
            Part::Key(key, _) => {
                let waiting = self.undefined.entry((held.event.file, *key)).or_default();
                waiting.push(held.event.number);
            }
        }
        held.parts.push(part);
        self.kinds.entry(held.event.kind).or_default().stacked = true;
    }

    /// What a key stands for; with `last`, the key goes out of use.
    fn define(&mut self, key: (usize, u64), addresses: Addresses, last: bool) {
        for number in self.undefined.remove(&key).unwrap_or_default() {
            let Some(index) = self.index_of(number) else { continue };
            let Some(held) = self.held.get_mut(index) else { continue };
            for part in &mut held.parts {
                if matches!(part, Part::Key(of, _) if *of == key.1) {
                    *part = Part::Addresses(addresses.clone());
                }
            }
        }
        if last {
            self.keys.remove(&key);
        } else if self.keys.len() < MAX_KEYS {
            self.keys.insert(key, addresses);
        }
    }

    /// Stacks in extended data.
    fn extended(&mut self, record: &Record<'_>, event: EventRef) {
        for item in record.extended() {
            let (match_id, part) = match item {
                ExtendedItem::Stack(stack) => {
                    let addresses = Addresses::new(stack.addresses(), stack.wide, &mut self.kernel);
                    (stack.match_id, Part::Addresses(addresses))
                }
                ExtendedItem::StackKey { match_id, key, .. } => {
                    (match_id, self.part(event.file, key, true))
                }
                _ => continue,
            };
            let mut number = event.number;
            if match_id != 0 {
                match self.matches.remove(&(event.file, match_id)) {
                    Some(first) => number = first,
                    None if self.matches.len() < MAX_KEYS => {
                        self.matches.insert((event.file, match_id), number);
                    }
                    None => {}
                }
            }
            if let Some(index) = self.index_of(number) {
                self.attach(index, part);
            }
        }
    }

    /// A stack that the CLR logs after an event on the same thread.
    fn clr_stack(&mut self, record: &Record<'_>, event: EventRef, rundown: bool) {
        let Some(number) = event.tid.and_then(|tid| self.clr.remove(&(tid, rundown))) else {
            return;
        };
        let Some(clr::Event::Stack { frames, .. }) = clr::decode(record).map(|c| c.event) else {
            return;
        };
        if let Some(index) = self.index_of(number) {
            let wide = is_wide(record);
            let addresses = Addresses::new(frames.iter(), wide, &mut self.kernel);
            self.attach(index, Part::Addresses(addresses));
        }
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        self.held.binary_search_by_key(&number, |held| held.event.number).ok()
    }

    /// Shows what is complete, and what the limits leave no space for.
    fn release(&mut self, machine: &Machine, observer: &mut impl Observer) {
        while let Some(front) = self.held.front() {
            let full = self.held.len() > MAX_EVENTS || self.addresses > MAX_ADDRESSES;
            let late = front.parts.is_empty() && self.held.len() > WINDOW;
            if !full && !late && !front.is_complete() {
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

    fn show_first(&mut self, machine: &Machine, observer: &mut impl Observer) {
        let Some(Held { mut event, sample, parts, kernel_only }) = self.held.pop_front() else {
            return;
        };
        let (mut has_user, mut undefined) = (kernel_only, false);
        self.kernel.clear();
        self.user.clear();
        for part in &parts {
            let Part::Addresses(addresses) = part else {
                undefined = true;
                continue;
            };
            self.addresses = self.addresses.saturating_sub(addresses.list.len());
            has_user |= addresses.has_user();
            for &address in addresses.list.iter() {
                if address < addresses.kernel { &mut self.user } else { &mut self.kernel }
                    .push(address);
            }
        }
        if parts.is_empty() {
            let kind = self.kinds.entry(event.kind).or_default();
            kind.without = kind.without.saturating_add(1);
            if sample.is_none() {
                return;
            }
        }
        event.process = event.process.or_else(|| machine.process_of_thread(event.tid?));
        let is_partial = undefined || !parts.is_empty() && !has_user;
        let frames = Frames { kernel: &self.kernel, user: &self.user, is_partial };
        match sample {
            Some(address) => observer.sample(machine, &Sample { event, address, frames }),
            None => observer.stack(machine, &Stack { event, frames }),
        }
    }
}
