//! Events that wait for their stacks, and what has come of these.
//!
//! A thread that waits in the kernel gets the part of a stack in its process only when it returns
//! there, so the events of many seconds may be held. What is held of each is small, and the memory
//! of stacks is used again.

use etl_format::{ThreadId, Ticks};
use etl_schema::views::kernel::Interrupt;
use foldhash::fast::RandomState;
use indexmap::IndexMap;

use crate::keys::ProcessIndex;
use crate::observe::{EventKind, EventRef};

/// Addresses of a stack. A record has at most this many, and a stack one or two records. Keys can
/// define many times as many.
const MAX_FRAMES: usize = 1 << 13;
/// Keys of a stack that are not defined yet: one for each part, with some to spare.
const MAX_OPEN_KEYS: usize = 16;
/// Addresses for which memory is kept when a stack is released.
const MAX_KEPT: usize = 1 << 9;

/// The number of a missing process, thread, address or stack.
const NONE: u32 = u32::MAX;

/// What a sample found on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampledCode {
    /// The instruction pointer.
    pub address: u64,
    pub interrupt: Option<Interrupt>,
}

/// An event that waits for its stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub number: u64,
    pub time: Ticks,
    /// The instruction pointer, if it is a sample.
    address: u64,
    process: u32,
    tid: ThreadId,
    file: u32,
    kind: u32,
    /// Index of what has come of its stack; [`NONE`] if nothing has.
    stack: u32,
    pub processor: u16,
    is_sample: bool,
    /// What interrupted the thread of a sample.
    interrupt: Option<Interrupt>,
    /// Whether its stack has only frames of the kernel.
    pub kernel_only: bool,
}

/// A number that fits into 32 bits, or nothing.
fn narrow(value: Option<usize>) -> u32 {
    value
        .and_then(|value| u32::try_from(value).ok())
        .unwrap_or(NONE)
}

fn wide(value: u32) -> Option<usize> {
    usize::try_from(value).ok().filter(|_| value != NONE)
}

impl Held {
    /// `kind` is the number of its kind.
    pub fn new(
        event: &EventRef,
        kind: u32,
        sample: Option<SampledCode>,
        kernel_only: bool,
    ) -> Self {
        Held {
            number: event.number,
            time: event.time,
            address: sample.map_or(0, |sample| sample.address),
            process: narrow(event.process.map(ProcessIndex::get)),
            tid: event.tid.unwrap_or(ThreadId::new(NONE)),
            file: narrow(Some(event.file)),
            kind,
            stack: NONE,
            processor: event.processor,
            is_sample: sample.is_some(),
            interrupt: sample.and_then(|sample| sample.interrupt),
            kernel_only,
        }
    }

    /// The event, of a session.
    pub fn event(&self, kinds: &Kinds, session: usize) -> EventRef {
        EventRef {
            number: self.number,
            file: self.file(),
            session,
            time: self.time,
            kind: kinds
                .0
                .get_index(self.kind as usize)
                .map_or(EventKind::Other, |(kind, _)| *kind),
            process: wide(self.process).map(ProcessIndex::new),
            tid: self.tid(),
            processor: self.processor,
        }
    }

    pub fn file(&self) -> usize {
        wide(self.file).unwrap_or(usize::MAX)
    }

    pub fn tid(&self) -> Option<ThreadId> {
        Some(self.tid).filter(|&tid| tid != NONE)
    }

    pub fn sample(&self) -> Option<SampledCode> {
        if !self.is_sample {
            return None;
        }
        Some(SampledCode {
            address: self.address,
            interrupt: self.interrupt,
        })
    }

    /// Whether nothing of its stack has come.
    pub fn lacks_stack(&self) -> bool {
        self.stack == NONE
    }

    /// Sets its thread and its process, if it has none: its stack states them.
    pub fn ran_on(&mut self, tid: ThreadId, process: impl FnOnce() -> Option<ProcessIndex>) {
        if self.tid == NONE {
            self.tid = tid;
        }
        self.belongs_to(process);
    }

    /// Sets its process, if it has none.
    pub fn belongs_to(&mut self, process: impl FnOnce() -> Option<ProcessIndex>) {
        if self.process == NONE {
            self.process = narrow(process().map(ProcessIndex::get));
        }
    }
}

/// A key that is not defined yet.
#[derive(Clone, Copy, Debug)]
struct OpenKey {
    key: u64,
    /// How many addresses in the kernel and in the process come before its addresses.
    kernel: usize,
    user: usize,
}

/// What has come of a stack.
#[derive(Clone, Debug, Default)]
pub(super) struct Joined {
    /// Addresses in the kernel, innermost first.
    pub kernel: Vec<u64>,
    /// Addresses in the process, innermost first.
    pub user: Vec<u64>,
    /// Keys that are not defined yet, in the order of their parts.
    keys: Vec<OpenKey>,
    /// Whether it has a part that lies in the kernel, and one in the process.
    has: [bool; 2],
    /// Whether the limits left no space for a part.
    is_cut: bool,
}

impl Joined {
    /// Adds addresses, innermost first; the kernel begins at `kernel`.
    pub fn add(&mut self, addresses: &[u64], kernel: u64) {
        let addresses = self.fitting(addresses);
        let of_user = addresses
            .iter()
            .filter(|&&address| address < kernel)
            .count();
        self.kernel.reserve_exact(addresses.len() - of_user);
        self.user.reserve_exact(of_user);
        for &address in addresses {
            if address < kernel {
                &mut self.user
            } else {
                &mut self.kernel
            }
            .push(address);
        }
        self.mark(of_user > 0);
    }

    /// Adds the key of a part in the process or in the kernel.
    pub fn add_key(&mut self, key: u64, user: bool) {
        if self.keys.len() < MAX_OPEN_KEYS {
            self.keys.push(OpenKey {
                key,
                kernel: self.kernel.len(),
                user: self.user.len(),
            });
        } else {
            self.is_cut = true;
        }
        self.mark(user);
    }

    /// Of these addresses, those for which there is space.
    fn fitting<'a>(&mut self, addresses: &'a [u64]) -> &'a [u64] {
        let fitting = addresses
            .get(..MAX_FRAMES.saturating_sub(self.len()))
            .unwrap_or(addresses);
        self.is_cut |= fitting.len() < addresses.len();
        fitting
    }

    /// Defines the addresses of a key. They go to the place of the part, in any order of
    /// definitions.
    pub fn define(&mut self, key: u64, addresses: &[u64], kernel: u64) {
        while let Some(at) = self.keys.iter().position(|open| open.key == key) {
            let open = self.keys.remove(at);
            let before = (self.kernel.len(), self.user.len());
            if (open.kernel, open.user) == before {
                self.add(addresses, kernel);
            } else {
                let addresses = self.fitting(addresses);
                let of_kernel = addresses
                    .iter()
                    .copied()
                    .filter(|&address| address >= kernel);
                let of_user = addresses
                    .iter()
                    .copied()
                    .filter(|&address| address < kernel);
                self.kernel.splice(open.kernel..open.kernel, of_kernel);
                self.user.splice(open.user..open.user, of_user);
                self.mark(self.user.len() > before.1);
            }
            for after in self.keys.iter_mut().skip(at) {
                after.kernel += self.kernel.len() - before.0;
                after.user += self.user.len() - before.1;
            }
        }
    }

    /// Leaves out what is still to come of it.
    pub fn cut(&mut self) {
        self.keys.clear();
        self.is_cut = true;
    }

    /// Whether a part of it is missing: of a key that is not defined yet, or beyond the limits.
    pub fn is_partial(&self) -> bool {
        self.is_open() || self.is_cut
    }

    /// Whether keys are not defined yet.
    pub fn is_open(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether it has what comes last, or nothing more is taken in.
    fn has_end(&self) -> bool {
        self.is_cut || !self.user.is_empty()
    }

    fn mark(&mut self, user: bool) {
        if let Some(has) = self.has.get_mut(usize::from(user)) {
            *has = true;
        }
    }

    fn clear(&mut self) {
        let Joined {
            kernel,
            user,
            keys,
            has,
            is_cut,
        } = self;
        for addresses in [kernel, user] {
            addresses.clear();
            addresses.shrink_to(MAX_KEPT);
        }
        keys.clear();
        *has = [false; 2];
        *is_cut = false;
    }

    /// How many addresses it has.
    pub fn len(&self) -> usize {
        self.kernel.len() + self.user.len()
    }
}

/// The stacks of held events. Their memory is used again.
#[derive(Debug, Default)]
pub(super) struct JoinedStacks {
    list: Vec<Joined>,
    free: Vec<u32>,
    /// Addresses that are held.
    pub addresses: usize,
}

impl JoinedStacks {
    pub fn get(&self, held: &Held) -> Option<&Joined> {
        self.list.get(wide(held.stack)?)
    }

    /// Changes the stack of an event, an empty one at first.
    pub fn change(&mut self, held: &mut Held, change: impl FnOnce(&mut Joined)) {
        if held.lacks_stack() {
            held.stack = self.free.pop().unwrap_or_else(|| {
                self.list.push(Joined::default());
                narrow(self.list.len().checked_sub(1))
            });
        }
        if let Some(stack) = wide(held.stack).and_then(|at| self.list.get_mut(at)) {
            let before = stack.len();
            change(stack);
            self.addresses += stack.len() - before;
        }
    }

    /// The stack is not needed any more.
    pub fn release(&mut self, held: &Held) {
        if let Some(stack) = wide(held.stack).and_then(|at| self.list.get_mut(at)) {
            self.addresses = self.addresses.saturating_sub(stack.len());
            stack.clear();
            self.free.push(held.stack);
        }
    }

    /// Whether nothing more is to come of the stack of an event.
    pub fn is_complete(&self, held: &Held) -> bool {
        self.get(held)
            .is_some_and(|stack| !stack.is_open() && (held.kernel_only || stack.has_end()))
    }

    /// Whether the stack of an event has a part that lies in the process, or, if not `user`, in the
    /// kernel.
    pub fn has_part(&self, held: &Held, user: bool) -> bool {
        let has = self
            .get(held)
            .and_then(|stack| stack.has.get(usize::from(user)));
        has.copied().unwrap_or(false)
    }
}

/// Events of a kind.
#[derive(Debug, Default)]
struct Kind {
    /// How many were to be held.
    count: usize,
    /// Whether one had a stack.
    stacked: bool,
}

/// The kinds of the events that were to be held.
#[derive(Debug, Default)]
pub(super) struct Kinds(IndexMap<EventKind, Kind, RandomState>);

impl Kinds {
    /// Counts an event. Returns the number of its kind, and whether stacks of it are still
    /// expected: not after `most` events without any.
    pub fn count(&mut self, kind: EventKind, most: usize) -> (u32, bool) {
        let entry = self.0.entry(kind);
        let number = narrow(Some(entry.index()));
        let kind = entry.or_default();
        kind.count = kind.count.saturating_add(1);
        (number, kind.stacked || kind.count <= most)
    }

    /// An event of a kind has a stack.
    pub fn has_stack(&mut self, held: &Held) {
        if let Some((_, kind)) = self.0.get_index_mut(held.kind as usize) {
            kind.stacked = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_order_whichever_key_is_defined_first() {
        let kernel = 1 << 63;
        let parts: [&[u64]; 3] = [&[kernel + 1, kernel + 2], &[kernel + 3, 4], &[5]];
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let mut stack = Joined::default();
            (0..3).for_each(|key| stack.add_key(key, key > 0));
            for key in order {
                assert!(stack.is_open());
                stack.define(key, parts[key as usize], kernel);
            }
            assert!(!stack.is_open());
            assert_eq!(
                stack.kernel,
                [kernel + 1, kernel + 2, kernel + 3],
                "{order:?}"
            );
            assert_eq!(stack.user, [4, 5], "{order:?}");
        }
    }

    #[test]
    fn memory_of_a_released_stack_is_used_again() {
        let (mut stacks, mut kinds) = (JoinedStacks::default(), Kinds::default());
        let kind = EventKind::Kernel { hook: 0x0f2e };
        let (number, time, process) = (7, Ticks::new(-3), Some(ProcessIndex::new(2)));
        let tid = Some(ThreadId::new(8));
        let (file, session, processor) = (1, 0, 3);
        let event = EventRef {
            number,
            file,
            session,
            time,
            kind,
            process,
            tid,
            processor,
        };
        let (kind, _) = kinds.count(kind, 1);
        let sampled = Some(SampledCode {
            address: 0x1000,
            interrupt: Some(Interrupt::Dpc),
        });
        let mut held = Held::new(&event, kind, sampled, false);
        assert_eq!(
            (held.event(&kinds, 0), held.sample(), held.lacks_stack()),
            (event, sampled, true)
        );
        stacks.change(&mut held, |stack| stack.add(&[1, 2, 3], 3));
        assert_eq!((stacks.addresses, stacks.is_complete(&held)), (3, true));
        stacks.release(&held);
        let mut next = Held::new(
            &EventRef {
                process: None,
                tid: None,
                ..event
            },
            kind,
            None,
            false,
        );
        assert_eq!(
            next.event(&kinds, 0),
            EventRef {
                process: None,
                tid: None,
                ..event
            }
        );
        stacks.change(&mut next, |stack| stack.add_key(9, true));
        assert_eq!(
            (
                stacks.list.len(),
                stacks.addresses,
                stacks.is_complete(&next)
            ),
            (1, 0, false)
        );
    }

    #[test]
    fn keys_do_not_multiply_addresses_without_a_limit() {
        let mut stack = Joined::default();
        (0..1_000).for_each(|_| stack.add_key(7, true));
        assert_eq!(stack.keys.len(), MAX_OPEN_KEYS);
        assert!(stack.is_partial());
        stack.define(7, &[1; 1_000], 1 << 63);
        assert_eq!((stack.user.len(), stack.is_open()), (MAX_FRAMES, false));
        assert!(stack.is_partial());
        stack.clear();
        assert!(!stack.is_partial() && stack.user.capacity() <= MAX_KEPT);
    }
}
