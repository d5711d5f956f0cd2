//! The CLR's stacks and the events that they belong to (E9 in docs/protocol.md).

use etl_analysis::machine::Counted;
use etl_format::{ThreadId, Ticks};
use etl_schema::views::clr::ClrProvider;
use foldhash::HashMap;

use super::missing_stacks::{
    ByKind, EventsWithoutStacks, Kind, MissingStacks, PendingStack, StacksEnabledUntil,
};

/// Threads whose last event is kept.
const MAX_THREADS: usize = 1 << 20;

/// Slots for threads of recent events; a power of two.
const RECENT: usize = 256;

/// A thread with events of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Thread {
    tid: ThreadId,
    provider: ClrProvider,
}

impl Thread {
    /// The slot among the recent threads. Thread ids are multiples of four.
    fn slot(self) -> usize {
        (self.tid.get() as usize / 2 + self.provider as usize) % RECENT
    }
}

/// A recent thread.
#[derive(Clone, Copy, Debug)]
struct RecentThread {
    thread: Thread,
    /// Its index among the last events.
    index: u32,
}

/// The last event of a CLR provider on a thread.
#[derive(Clone, Copy, Debug, Default)]
struct LastEvent {
    state: LastState,
    /// Index of its process.
    process: usize,
    /// Whether a stack came on this thread.
    proven: bool,
    /// The event, if a stack should follow it.
    pending: Option<PendingStack>,
}

/// What a stack means that follows on a thread.
#[derive(Clone, Copy, Debug, Default)]
enum LastState {
    /// There is no event yet: the event of the stack is missing, or on another thread.
    #[default]
    NoEvent,
    /// The last event is not a stack: the stack belongs to it.
    Event,
    /// The last event is a stack: the event of the next stack is missing, or on another thread.
    Stack,
}

/// The thread and the process of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventOwner {
    /// The thread.
    pub tid: ThreadId,
    /// The provider.
    pub provider: ClrProvider,
    /// Index of the process.
    pub process: usize,
}

/// A stack of the CLR.
#[derive(Clone, Copy, Debug)]
pub struct LoggedStack {
    /// The number of addresses that it states.
    pub stated: u32,
    /// The number of addresses that it has.
    pub actual: usize,
    /// The time at which it was logged.
    pub timestamp: Ticks,
    /// Whether the events of its provider began just before.
    pub is_at_start: bool,
}

/// Counts of stacks, by how they match their events.
#[derive(Clone, Debug, Default)]
pub struct StackPairs {
    /// The index of each thread in `last`.
    threads: HashMap<Thread, u32>,
    /// Threads of recent events, by the lowest bits of their id.
    recent: Vec<Option<RecentThread>>,
    /// The last event of each thread. All threads beyond the limit share the first place.
    last: Vec<LastEvent>,
    /// The thread that uses the first place.
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
    /// Stacks that have fewer addresses than they state.
    pub truncated: Counted,
    /// Stacks that have more addresses than they state.
    pub overlong: Counted,
    /// Kernel stacks that come before their event.
    pub early: Counted,
}

impl StackPairs {
    /// Adds an event of a CLR provider that is not a stack, with its kind if a stack should follow.
    #[inline]
    pub fn event(&mut self, owner: EventOwner, kind: Option<Kind>, timestamp: Ticks) {
        let Some(last) = self.last_mut(owner) else {
            return;
        };
        let before = *last;
        let proven = before.proven && before.process == owner.process;
        let pending = kind.map(|kind| PendingStack {
            kind,
            timestamp,
            proven,
        });
        *last = LastEvent {
            state: LastState::Event,
            process: owner.process,
            proven,
            pending,
        };
        if let Some(pending) = before.pending {
            self.missing.without_stack(before.process, pending);
        }
    }

    /// The last event of a thread.
    #[inline]
    fn last_mut(&mut self, owner: EventOwner) -> Option<&mut LastEvent> {
        let thread = Thread {
            tid: owner.tid,
            provider: owner.provider,
        };
        let index = match self.recent.get(thread.slot()) {
            Some(Some(recent)) if recent.thread == thread => recent.index,
            _ => self.look_up(thread),
        };
        self.last.get_mut(index as usize)
    }

    /// The index of a thread, which is added if there is none.
    #[inline(never)]
    fn look_up(&mut self, thread: Thread) -> u32 {
        if self.recent.is_empty() {
            self.recent.resize(RECENT, None);
            self.last.push(LastEvent::default());
        }
        let next = self.last.len() as u32;
        let index = match self.threads.get(&thread) {
            Some(&index) => index,
            None if self.threads.len() < MAX_THREADS => {
                self.threads.insert(thread, next);
                self.last.push(LastEvent::default());
                next
            }
            None => {
                if self.beyond.replace(thread) != Some(thread)
                    && let Some(shared) = self.last.first_mut()
                {
                    *shared = LastEvent::default();
                }
                return 0;
            }
        };
        if let Some(recent) = self.recent.get_mut(thread.slot()) {
            *recent = Some(RecentThread { thread, index });
        }
        index
    }

    /// Adds a stack.
    pub fn stack(&mut self, owner: EventOwner, stack: LoggedStack) {
        let timestamp = stack.timestamp;
        let Some(last) = self.last_mut(owner) else {
            return;
        };
        let state = last.state;
        let event = last.pending.filter(|_| last.process == owner.process);
        *last = LastEvent {
            state: LastState::Stack,
            process: owner.process,
            proven: true,
            pending: None,
        };
        self.missing
            .stack(owner.process, owner.provider, event, timestamp);
        match state {
            LastState::Event => self.paired += 1,
            LastState::Stack => self.unpaired.add(timestamp),
            LastState::NoEvent if stack.is_at_start => self.before_trace.add(timestamp),
            LastState::NoEvent => self.strayed.add(timestamp),
        }
        let stated = usize::try_from(stack.stated).unwrap_or(usize::MAX);
        if stack.actual < stated {
            self.truncated.add(timestamp);
        } else if stack.actual > stated {
            self.overlong.add(timestamp);
        }
    }

    /// Adds a stack of the kernel that was logged at `timestamp`.
    pub fn kernel_stack(&mut self, event_time: Ticks, timestamp: Ticks) {
        if event_time > timestamp {
            self.early.add(timestamp);
        }
    }

    /// Ends a thread: its id may be another thread's from now on.
    pub fn forget(&mut self, tid: ThreadId) {
        for provider in [ClrProvider::Runtime, ClrProvider::Rundown] {
            let Some(&index) = self.threads.get(&Thread { tid, provider }) else {
                continue;
            };
            let Some(last) = self.last.get_mut(index as usize) else {
                continue;
            };
            let last = std::mem::take(last);
            if let Some(pending) = last.pending {
                self.missing.without_stack(last.process, pending);
            }
        }
    }

    /// Events whose stack is missing, by process and kind: see [`MissingStacks::missing`].
    #[must_use]
    pub fn missing(&self, delay: i64, enabled_until: StacksEnabledUntil) -> ByKind {
        let pending = self
            .last
            .iter()
            .filter_map(|last| Some((last.process, last.pending?)));
        self.missing.missing(pending, delay, enabled_until)
    }

    /// Events before the first stack of their process, and after the last one: see
    /// [`MissingStacks::before_first`] and [`MissingStacks::after_last`].
    pub fn at_ends(&self) -> Vec<EventsWithoutStacks> {
        let mut out = self.missing.before_first();
        out.extend(self.missing.after_last());
        out
    }

    /// Events of processes without any stack: see [`MissingStacks::of_processes_without`].
    pub fn without_any(&self) -> Vec<EventsWithoutStacks> {
        self.missing.of_processes_without()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClrProvider::{Rundown, Runtime};

    /// A stack with all addresses that it states.
    fn whole(timestamp: i64) -> LoggedStack {
        LoggedStack {
            stated: 2,
            actual: 2,
            timestamp: Ticks::new(timestamp),
            is_at_start: false,
        }
    }

    #[test]
    fn stack_belongs_to_the_event_before_it_on_its_thread() {
        let of = |tid| EventOwner {
            tid,
            provider: Runtime,
            process: 0,
        };
        let mut pairs = StackPairs::default();
        pairs.stack(
            of(ThreadId::new(1)),
            LoggedStack {
                is_at_start: true,
                ..whole(10)
            },
        );
        pairs.event(of(ThreadId::new(1)), None, Ticks::new(10));
        pairs.event(of(ThreadId::new(2)), None, Ticks::new(10));
        pairs.stack(of(ThreadId::new(1)), whole(11));
        pairs.stack(
            of(ThreadId::new(2)),
            LoggedStack {
                stated: 3,
                ..whole(12)
            },
        );
        pairs.stack(of(ThreadId::new(2)), whole(13));
        pairs.stack(of(ThreadId::new(3)), whole(14));
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
            ids().flat_map(|tid| {
                [Runtime, Rundown].map(|provider| EventOwner {
                    tid: ThreadId::new(tid),
                    provider,
                    process: 0,
                })
            })
        };
        let mut pairs = StackPairs::default();
        owners().for_each(|owner| pairs.event(owner, None, Ticks::new(10)));
        owners().for_each(|owner| pairs.stack(owner, whole(11)));
        assert_eq!((pairs.paired, pairs.strayed.count), (24, 0));
        ids().for_each(|tid| pairs.forget(ThreadId::new(tid)));
        owners().for_each(|owner| pairs.stack(owner, whole(12)));
        assert_eq!(
            (pairs.paired, pairs.unpaired.count, pairs.strayed.count),
            (24, 0, 24)
        );
    }

    #[test]
    fn threads_beyond_the_limit_pair_one_after_the_other() {
        let of = |tid| EventOwner {
            tid,
            provider: Runtime,
            process: 0,
        };
        let mut pairs = StackPairs::default();
        (0..MAX_THREADS as u32)
            .for_each(|tid| pairs.event(of(ThreadId::new(tid)), None, Ticks::new(10)));
        for tid in [1 << 24, 1 << 25, 1 << 24] {
            pairs.event(of(ThreadId::new(tid)), None, Ticks::new(11));
            pairs.stack(of(ThreadId::new(tid)), whole(12));
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
            provider: Runtime,
            process,
        };
        let jit = Kind::with_stack(Runtime, 145, 1);
        let mut pairs = StackPairs::default();
        let found = |pairs: &StackPairs| {
            pairs
                .missing(10, StacksEnabledUntil::default())
                .into_iter()
                .map(|(key, counted)| (key.process, key.kind.id, counted.count))
                .collect::<Vec<_>>()
        };
        let nothing: Vec<(usize, u16, u64)> = Vec::new();
        // Before the first stack of its thread it is unknown whether it has any.
        pairs.event(of(ThreadId::new(1), 0), jit, Ticks::new(100));
        pairs.event(of(ThreadId::new(1), 0), jit, Ticks::new(200));
        pairs.stack(of(ThreadId::new(1), 0), whole(201));
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
        pairs.stack(of(ThreadId::new(2), 0), whole(501));
        assert_eq!(found(&pairs), vec![(0, 145, 1)]);
        // A thread that ends right after its event has none either.
        pairs.event(of(ThreadId::new(2), 0), jit, Ticks::new(600));
        pairs.forget(ThreadId::new(2));
        pairs.event(of(ThreadId::new(3), 0), jit, Ticks::new(700));
        pairs.stack(of(ThreadId::new(3), 0), whole(701));
        assert_eq!(found(&pairs), vec![(0, 145, 2)]);
    }
}
