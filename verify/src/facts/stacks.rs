//! The CLR's stack events: each follows the event it belongs to, on the same thread (rule E9).

use foldhash::HashMap;

use super::process::Counted;

/// The last event of a CLR provider on a thread.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// Whether it has its stack already, or is one.
    taken: bool,
}

/// How the CLR's stacks stand to their events.
#[derive(Clone, Debug, Default)]
pub struct StackPairs {
    threads: HashMap<(u32, bool), Last>,
    /// What is true of the thread of the last event, instead of what `threads` has of it: events come
    /// in bunches.
    current: Option<((u32, bool), Last)>,
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
    /// An event of a CLR provider that is no stack.
    pub fn event(&mut self, tid: u32, rundown: bool) {
        self.put((tid, rundown), Last { taken: false });
    }

    /// Notes the last event of a thread; gives the one before it.
    #[inline]
    fn put(&mut self, thread: (u32, bool), last: Last) -> Option<Last> {
        if let Some((current, before)) = &mut self.current
            && *current == thread
        {
            return Some(std::mem::replace(before, last));
        }
        if let Some((other, before)) = self.current.replace((thread, last)) {
            self.threads.insert(other, before);
        }
        self.threads.get(&thread).copied()
    }

    /// A stack event that says it has `stated` addresses and holds `held`; `begun` if the session has just begun.
    pub fn stack(
        &mut self,
        thread: (u32, bool),
        (stated, held): (u32, usize),
        stamp: i64,
        begun: bool,
    ) {
        match self.put(thread, Last { taken: true }) {
            Some(Last { taken: false }) => self.paired += 1,
            Some(Last { taken: true }) => self.unpaired.add(stamp),
            None if begun => self.headless.add(stamp),
            None => self.strayed.add(stamp),
        }
        let stated = usize::try_from(stated).unwrap_or(usize::MAX);
        if held < stated {
            self.truncated.add(stamp);
        } else if held > stated {
            self.overlong.add(stamp);
        }
    }

    /// A stack that the kernel took of an event at `of`, and logged at `stamp`.
    pub fn kernel(&mut self, of: i64, stamp: i64) {
        if of > stamp {
            self.early.add(stamp);
        }
    }

    /// A thread has ended.
    pub fn forget(&mut self, tid: u32) {
        self.current.take_if(|((current, _), _)| *current == tid);
        self.threads.remove(&(tid, false));
        self.threads.remove(&(tid, true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_belongs_to_the_event_before_it_on_its_thread() {
        let mut pairs = StackPairs::default();
        pairs.stack((1, false), (2, 2), 10, true);
        pairs.event(1, false);
        pairs.event(2, false);
        pairs.stack((1, false), (2, 2), 11, false);
        pairs.stack((2, false), (3, 2), 12, false);
        pairs.stack((2, false), (2, 2), 13, false);
        pairs.stack((3, false), (2, 2), 14, false);
        assert_eq!((pairs.paired, pairs.headless.count), (2, 1));
        assert_eq!(pairs.unpaired, Counted { count: 1, first: Some(13) });
        assert_eq!(pairs.strayed, Counted { count: 1, first: Some(14) });
        assert_eq!(pairs.truncated, Counted { count: 1, first: Some(12) });
    }
}
