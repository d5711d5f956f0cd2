//! The CLR's stack events: each follows the event it belongs to, on the same thread (rule E9).

use foldhash::HashMap;

use super::missing_stacks::{Bare, ByKind, Kind, Waits};
use etl_analysis::machine::Counted;

/// Most threads whose last event is remembered.
const THREADS: usize = 1 << 20;

/// The last event of a CLR provider on a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    /// Whether it has its stack already, or is one; `None` if there is none yet.
    taken: Option<bool>,
    /// Index of the process that it is of.
    process: usize,
    /// Whether a stack came on this thread.
    proven: bool,
    /// The event, if a stack should follow it.
    waits: Option<Waits>,
}

/// Whose an event is: what has a stack is followed by it on the same thread.
#[derive(Clone, Copy, Debug)]
pub struct Whose {
    /// The thread.
    pub tid: u32,
    /// Whether the event is the rundown provider's.
    pub rundown: bool,
    /// Index of the process.
    pub process: usize,
}

/// How the CLR's stacks stand to their events.
#[derive(Clone, Debug, Default)]
pub struct StackPairs {
    threads: HashMap<(u32, bool), Last>,
    /// What is true of the thread of the last event, instead of what `threads` has of it: events come
    /// in bunches.
    current: ((u32, bool), Last),
    /// Events without their stack.
    bare: Bare,
    /// Stacks that follow an event.
    pub paired: u64,
    /// Stacks that follow another stack: their event is missing, or is another thread's.
    pub unpaired: Counted,
    /// Stacks that are the first thing of their thread, when the session had just begun: their event may have been
    /// before the trace.
    pub headless: Counted,
    /// Stacks that are the first thing of their thread, later on: they are another thread's, or their event is missing.
    pub strayed: Counted,
    /// Stacks that hold fewer addresses than they say.
    pub truncated: Counted,
    /// Stacks that hold more addresses than they say.
    pub overlong: Counted,
    /// Kernel stacks of events that come later than the stack.
    pub early: Counted,
}

impl StackPairs {
    /// An event of a CLR provider that is no stack; `kind` where a stack should follow it.
    #[inline]
    pub fn event(&mut self, whose: Whose, kind: Option<Kind>, timestamp: i64) {
        let last = self.last(whose);
        let (before, process) = (last.waits, last.process);
        if process != whose.process {
            *last = Last::default();
        }
        let proven = last.proven;
        let waits = kind.map(|kind| Waits { kind, timestamp, proven });
        *last = Last { taken: Some(false), process: whose.process, proven, waits };
        if let Some(before) = before {
            self.bare.none(process, before);
        }
    }

    /// What is remembered of a thread.
    #[inline]
    fn last(&mut self, whose: Whose) -> &mut Last {
        let thread = (whose.tid, whose.rundown);
        if self.current.0 != thread {
            let next = self.threads.get(&thread).copied().unwrap_or_default();
            let (other, before) = std::mem::replace(&mut self.current, (thread, next));
            if before.taken.is_some() && self.threads.len() < THREADS {
                self.threads.insert(other, before);
            }
        }
        &mut self.current.1
    }

    /// A stack event that says it has `stated` addresses and holds `held`; `begun` if the session has just begun.
    pub fn stack(
        &mut self,
        whose: Whose,
        (stated, held): (u32, usize),
        timestamp: i64,
        begun: bool,
    ) {
        let last = self.last(whose);
        let (taken, of) = (last.taken, last.waits.filter(|_| last.process == whose.process));
        *last = Last { taken: Some(true), process: whose.process, proven: true, waits: None };
        self.bare.stack(whose.process, whose.rundown, of, timestamp);
        match taken {
            Some(false) => self.paired += 1,
            Some(true) => self.unpaired.add(timestamp),
            None if begun => self.headless.add(timestamp),
            None => self.strayed.add(timestamp),
        }
        let stated = usize::try_from(stated).unwrap_or(usize::MAX);
        if held < stated {
            self.truncated.add(timestamp);
        } else if held > stated {
            self.overlong.add(timestamp);
        }
    }

    /// A stack that the kernel took of an event at `of`, and logged at `timestamp`.
    pub fn kernel(&mut self, of: i64, timestamp: i64) {
        if of > timestamp {
            self.early.add(timestamp);
        }
    }

    /// A thread has begun or ended.
    pub fn forget(&mut self, tid: u32) {
        for rundown in [false, true] {
            let thread = (tid, rundown);
            let mut last = self.threads.remove(&thread);
            if self.current.0 == thread {
                last = Some(std::mem::take(&mut self.current.1));
            }
            if let Some(Last { process, waits: Some(waits), .. }) = last {
                self.bare.none(process, waits);
            }
        }
    }

    /// Events without their stack, by process and kind: see [`Bare::found`].
    #[must_use]
    pub fn bare(&self, soon: i64, all: [Option<i64>; 2]) -> ByKind {
        let (thread, last) = &self.current;
        let others = self.threads.iter().filter(|(other, _)| *other != thread).map(|(_, l)| l);
        let waiting = others.chain([last]).filter_map(|last| Some((last.process, last.waits?)));
        self.bare.found(waiting, soon, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_belongs_to_the_event_before_it_on_its_thread() {
        let of = |tid| Whose { tid, rundown: false, process: 0 };
        let mut pairs = StackPairs::default();
        pairs.stack(of(1), (2, 2), 10, true);
        pairs.event(of(1), None, 10);
        pairs.event(of(2), None, 10);
        pairs.stack(of(1), (2, 2), 11, false);
        pairs.stack(of(2), (3, 2), 12, false);
        pairs.stack(of(2), (2, 2), 13, false);
        pairs.stack(of(3), (2, 2), 14, false);
        assert_eq!((pairs.paired, pairs.headless.count), (2, 1));
        assert_eq!(pairs.unpaired, Counted { count: 1, first: Some(13) });
        assert_eq!(pairs.strayed, Counted { count: 1, first: Some(14) });
        assert_eq!(pairs.truncated, Counted { count: 1, first: Some(12) });
    }

    #[test]
    fn a_stack_that_does_not_come_is_missed() {
        let of = |tid, process| Whose { tid, rundown: false, process };
        let jit = Kind::with_stack(false, 145, 1);
        let mut pairs = StackPairs::default();
        let found = |pairs: &StackPairs| {
            pairs
                .bare(10, [None; 2])
                .into_iter()
                .map(|((p, k), c)| (p, k.id, c.count))
                .collect::<Vec<_>>()
        };
        let nothing: Vec<(usize, u16, u64)> = Vec::new();
        // Before the first stack of its thread nothing says that it has any.
        pairs.event(of(1, 0), jit, 100);
        pairs.event(of(1, 0), jit, 200);
        pairs.stack(of(1, 0), (1, 1), 201, false);
        assert_eq!(found(&pairs), nothing);
        // Nothing says yet that it does not come, or that stacks are still asked for.
        pairs.event(of(1, 0), jit, 300);
        assert_eq!(found(&pairs), nothing);
        pairs.event(of(1, 0), None, 310);
        assert_eq!(found(&pairs), nothing);
        // The thread's number goes to another process.
        pairs.event(of(1, 1), jit, 400);
        pairs.event(of(1, 1), jit, 401);
        // Another thread's stack does.
        pairs.event(of(2, 0), jit, 500);
        pairs.stack(of(2, 0), (1, 1), 501, false);
        assert_eq!(found(&pairs), vec![(0, 145, 1)]);
        // A thread that ends right after its event has none either.
        pairs.event(of(2, 0), jit, 600);
        pairs.forget(2);
        pairs.event(of(3, 0), jit, 700);
        pairs.stack(of(3, 0), (1, 1), 701, false);
        assert_eq!(found(&pairs), vec![(0, 145, 2)]);
    }
}
