//! The CLR's stacks and the events that they belong to (E9 in docs/protocol.md).

use etl_format::{ThreadId, Ticks};
use foldhash::HashMap;

use super::missing_stacks::{ByKind, Kind, MissingStacks, PendingStack};
use etl_analysis::machine::Counted;

/// Threads whose last event is kept.
const MAX_THREADS: usize = 1 << 20;

/// Slots for threads of recent events; a power of two.
const RECENT: usize = 256;

/// The id of a thread, and whether the events are the rundown provider's.
type Thread = (ThreadId, bool);

/// The last event of a CLR provider on a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    /// Whether it has its stack already, or is one; `None` if there is no event yet.
    taken: Option<bool>,
    /// Index of its process.
    process: usize,
    /// Whether a stack came on this thread.
    proven: bool,
    /// The event, if a stack should follow it.
    pending: Option<PendingStack>,
}

/// The thread and the process of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventOwner {
    /// The thread.
    pub tid: ThreadId,
    /// Whether the event is the rundown provider's.
    pub rundown: bool,
    /// Index of the process.
    pub process: usize,
}

/// The slot of a thread; ids are multiples of four.
fn slot((tid, rundown): Thread) -> usize {
    (tid.get() as usize / 2 + usize::from(rundown)) % RECENT
}

/// Counts of stacks, by how they match their events.
#[derive(Clone, Debug, Default)]
pub struct StackPairs {
    /// The index of each thread in `last`.
    threads: HashMap<Thread, u32>,
    /// Threads of recent events, by the lowest bits of their id: their index in `last`.
    recent: Vec<Option<(Thread, u32)>>,
    /// The last event of each thread. The first place is for the last thread beyond the limit.
    last: Vec<Last>,
    /// That thread.
    beyond: Option<Thread>,
    /// Events without their stack.
    missing: MissingStacks,
    /// Stacks that follow an event.
    pub paired: u64,
    /// Stacks that follow another stack: their event is missing, or has another thread.
    pub unpaired: Counted,
    /// Stacks that are the first event of their thread just after the session began: their event
    /// may have been before the trace.
    pub before_trace: Counted,
    /// Stacks that are the first event of their thread later: they belong to another thread, or
    /// their event is missing.
    pub strayed: Counted,
    /// Stacks that hold fewer addresses than they state.
    pub truncated: Counted,
    /// Stacks that hold more addresses than they state.
    pub overlong: Counted,
    /// Kernel stacks of events that come later than the stack.
    pub early: Counted,
}

impl StackPairs {
    /// Adds an event of a CLR provider that is no stack; `kind` if a stack should follow it.
    #[inline]
    pub fn event(&mut self, owner: EventOwner, kind: Option<Kind>, timestamp: Ticks) {
        let Some(last) = self.last(owner) else { return };
        let (before, process) = (last.pending, last.process);
        let proven = last.proven && process == owner.process;
        let pending = kind.map(|kind| PendingStack {
            kind,
            timestamp,
            proven,
        });
        *last = Last {
            taken: Some(false),
            process: owner.process,
            proven,
            pending,
        };
        if let Some(before) = before {
            self.missing.without_stack(process, before);
        }
    }

    /// The last event of a thread.
    #[inline]
    fn last(&mut self, owner: EventOwner) -> Option<&mut Last> {
        let thread = (owner.tid, owner.rundown);
        let index = match self.recent.get(slot(thread)) {
            Some(&Some((recent, index))) if recent == thread => index,
            _ => self.look_up(thread),
        };
        self.last.get_mut(index as usize)
    }

    /// The index of a thread; it is added if there is none.
    #[inline(never)]
    fn look_up(&mut self, thread: Thread) -> u32 {
        if self.recent.is_empty() {
            self.recent.resize(RECENT, None);
            self.last.push(Last::default());
        }
        let next = self.last.len() as u32;
        let index = match self.threads.get(&thread) {
            Some(&index) => index,
            None if self.threads.len() < MAX_THREADS => {
                self.threads.insert(thread, next);
                self.last.push(Last::default());
                next
            }
            None => {
                if self.beyond.replace(thread) != Some(thread)
                    && let Some(place) = self.last.first_mut()
                {
                    *place = Last::default();
                }
                return 0;
            }
        };
        if let Some(recent) = self.recent.get_mut(slot(thread)) {
            *recent = Some((thread, index));
        }
        index
    }

    /// Adds a stack that states `stated` addresses and holds `held`; `begun` if the session has
    /// just begun.
    pub fn stack(
        &mut self,
        owner: EventOwner,
        (stated, held): (u32, usize),
        timestamp: Ticks,
        begun: bool,
    ) {
        let Some(last) = self.last(owner) else { return };
        let (taken, of) = (
            last.taken,
            last.pending.filter(|_| last.process == owner.process),
        );
        *last = Last {
            taken: Some(true),
            process: owner.process,
            proven: true,
            pending: None,
        };
        self.missing
            .stack(owner.process, owner.rundown, of, timestamp);
        match taken {
            Some(false) => self.paired += 1,
            Some(true) => self.unpaired.add(timestamp),
            None if begun => self.before_trace.add(timestamp),
            None => self.strayed.add(timestamp),
        }
        let stated = usize::try_from(stated).unwrap_or(usize::MAX);
        if held < stated {
            self.truncated.add(timestamp);
        } else if held > stated {
            self.overlong.add(timestamp);
        }
    }

    /// Adds a stack that the kernel logged at `timestamp` for an event at `of`.
    pub fn kernel(&mut self, of: Ticks, timestamp: Ticks) {
        if of > timestamp {
            self.early.add(timestamp);
        }
    }

    /// Ends a thread: its id may be another thread's from now on.
    pub fn forget(&mut self, tid: ThreadId) {
        for rundown in [false, true] {
            let index = self.threads.get(&(tid, rundown)).copied();
            let last = index.and_then(|index| self.last.get_mut(index as usize));
            if let Some(Last {
                process,
                pending: Some(pending),
                ..
            }) = last.map(std::mem::take)
            {
                self.missing.without_stack(process, pending);
            }
        }
    }

    /// Events without their stack, by process and kind: see [`MissingStacks::found`].
    #[must_use]
    pub fn missing(&self, soon: i64, all: [Option<Ticks>; 2]) -> ByKind {
        let waiting = self
            .last
            .iter()
            .filter_map(|last| Some((last.process, last.pending?)));
        self.missing.found(waiting, soon, all)
    }

    /// Events before the first stack of their process, and after the last one: see
    /// [`MissingStacks::before_first`] and [`MissingStacks::after_last`].
    pub fn at_ends(&self) -> impl Iterator<Item = (usize, bool, Counted)> + '_ {
        let after = self.missing.after_last().into_iter();
        let after = after.map(|((process, rundown), counted)| (process, rundown, counted));
        self.missing.before_first().chain(after)
    }

    /// Events of processes without any stack: see [`MissingStacks::of_processes_without`].
    pub fn without_any(&self) -> impl Iterator<Item = (usize, bool, Counted)> + '_ {
        self.missing.of_processes_without()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_belongs_to_the_event_before_it_on_its_thread() {
        let of = |tid| EventOwner {
            tid,
            rundown: false,
            process: 0,
        };
        let mut pairs = StackPairs::default();
        pairs.stack(of(ThreadId::new(1)), (2, 2), Ticks::new(10), true);
        pairs.event(of(ThreadId::new(1)), None, Ticks::new(10));
        pairs.event(of(ThreadId::new(2)), None, Ticks::new(10));
        pairs.stack(of(ThreadId::new(1)), (2, 2), Ticks::new(11), false);
        pairs.stack(of(ThreadId::new(2)), (3, 2), Ticks::new(12), false);
        pairs.stack(of(ThreadId::new(2)), (2, 2), Ticks::new(13), false);
        pairs.stack(of(ThreadId::new(3)), (2, 2), Ticks::new(14), false);
        assert_eq!((pairs.paired, pairs.before_trace.count), (2, 1));
        assert_eq!(
            pairs.unpaired,
            Counted {
                count: 1,
                first: Some(Ticks::new(13))
            }
        );
        assert_eq!(
            pairs.strayed,
            Counted {
                count: 1,
                first: Some(Ticks::new(14))
            }
        );
        assert_eq!(
            pairs.truncated,
            Counted {
                count: 1,
                first: Some(Ticks::new(12))
            }
        );
    }

    #[test]
    fn threads_that_share_a_slot_keep_their_events() {
        let ids = || (0..4).flat_map(|n| [8, 9, 12].map(|tid| tid + n * 2 * RECENT as u32));
        let owners = || {
            let of = |tid, rundown| EventOwner {
                tid,
                rundown,
                process: 0,
            };
            ids().flat_map(move |tid| [of(ThreadId::new(tid), false), of(ThreadId::new(tid), true)])
        };
        let mut pairs = StackPairs::default();
        owners().for_each(|owner| pairs.event(owner, None, Ticks::new(10)));
        owners().for_each(|owner| pairs.stack(owner, (2, 2), Ticks::new(11), false));
        assert_eq!((pairs.paired, pairs.strayed.count), (24, 0));
        ids().for_each(|tid| pairs.forget(ThreadId::new(tid)));
        owners().for_each(|owner| pairs.stack(owner, (2, 2), Ticks::new(12), false));
        assert_eq!(
            (pairs.paired, pairs.unpaired.count, pairs.strayed.count),
            (24, 0, 24)
        );
    }

    #[test]
    fn threads_beyond_the_limit_pair_one_after_the_other() {
        let of = |tid| EventOwner {
            tid,
            rundown: false,
            process: 0,
        };
        let mut pairs = StackPairs::default();
        (0..MAX_THREADS as u32)
            .for_each(|tid| pairs.event(of(ThreadId::new(tid)), None, Ticks::new(10)));
        for tid in [1 << 24, 1 << 25, 1 << 24] {
            pairs.event(of(ThreadId::new(tid)), None, Ticks::new(11));
            pairs.stack(of(ThreadId::new(tid)), (2, 2), Ticks::new(12), false);
        }
        assert_eq!(
            (pairs.paired, pairs.unpaired.count, pairs.strayed.count),
            (3, 0, 0)
        );
    }

    #[test]
    fn missing_counts_events_without_their_stack() {
        let of = |tid, process| EventOwner {
            tid,
            rundown: false,
            process,
        };
        let jit = Kind::with_stack(false, 145, 1);
        let mut pairs = StackPairs::default();
        let found = |pairs: &StackPairs| {
            pairs
                .missing(10, [None; 2])
                .into_iter()
                .map(|((p, k), c)| (p, k.id, c.count))
                .collect::<Vec<_>>()
        };
        let nothing: Vec<(usize, u16, u64)> = Vec::new();
        // Before the first stack of its thread it is unknown whether it has any.
        pairs.event(of(ThreadId::new(1), 0), jit, Ticks::new(100));
        pairs.event(of(ThreadId::new(1), 0), jit, Ticks::new(200));
        pairs.stack(of(ThreadId::new(1), 0), (1, 1), Ticks::new(201), false);
        assert_eq!(found(&pairs), nothing);
        // The stack may still come, or stacks may be disabled now.
        pairs.event(of(ThreadId::new(1), 0), jit, Ticks::new(300));
        assert_eq!(found(&pairs), nothing);
        pairs.event(of(ThreadId::new(1), 0), None, Ticks::new(310));
        assert_eq!(found(&pairs), nothing);
        // The thread's id goes to another process.
        pairs.event(of(ThreadId::new(1), 1), jit, Ticks::new(400));
        pairs.event(of(ThreadId::new(1), 1), jit, Ticks::new(401));
        // Another thread's stack proves it.
        pairs.event(of(ThreadId::new(2), 0), jit, Ticks::new(500));
        pairs.stack(of(ThreadId::new(2), 0), (1, 1), Ticks::new(501), false);
        assert_eq!(found(&pairs), vec![(0, 145, 1)]);
        // A thread that ends right after its event has none either.
        pairs.event(of(ThreadId::new(2), 0), jit, Ticks::new(600));
        pairs.forget(ThreadId::new(2));
        pairs.event(of(ThreadId::new(3), 0), jit, Ticks::new(700));
        pairs.stack(of(ThreadId::new(3), 0), (1, 1), Ticks::new(701), false);
        assert_eq!(found(&pairs), vec![(0, 145, 2)]);
    }
}
