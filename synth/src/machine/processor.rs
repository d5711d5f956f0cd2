//! Processors: the running thread of each, and the threads that wait for it.
//!
//! One thread runs at a time. A thread that has work takes the processor at once; the one
//! that ran before waits, and continues with its remaining time afterwards.

use std::collections::VecDeque;

use crate::time::Nanos;

/// A thread on a processor, and when it is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    thread: usize,
    until: Nanos,
}

/// Why a thread leaves its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaveReason {
    /// It has no more work, and waits.
    Waits,
    /// Another thread takes the processor: it is ready to continue.
    Preempted,
    /// It has ended.
    Ended,
}

/// A processor goes from one thread to another; `None` is the idle thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    pub at: Nanos,
    pub old: Option<(usize, LeaveReason)>,
    pub new: Option<usize>,
}

/// A logical processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Processor {
    /// The time up to which it was simulated: nothing on it happens before.
    pub horizon: Nanos,
    current: Option<Slice>,
    /// Interrupted threads, and their remaining time.
    ready: VecDeque<(usize, Nanos)>,
}

impl Processor {
    /// The thread that has the processor.
    pub fn current(&self) -> Option<usize> {
        self.current.map(|slice| slice.thread)
    }

    /// When the thread that has the processor is finished.
    pub fn until(&self) -> Option<Nanos> {
        self.current.map(|slice| slice.until)
    }

    /// Whether a thread has the processor, or waits for it.
    pub fn has(&self, thread: usize) -> bool {
        self.current() == Some(thread) || self.ready.iter().any(|(t, _)| *t == thread)
    }

    /// The next switch up to a time because a thread is finished; a `busy` thread has more work and
    /// stays.
    pub fn settle(&mut self, at: Nanos, busy: impl Fn(usize) -> bool) -> Option<Switch> {
        let slice = self
            .current
            .filter(|slice| slice.until <= at && !busy(slice.thread))?;
        Some(self.leave(slice.until, LeaveReason::Waits, slice.thread))
    }

    /// A thread takes the processor; its remaining time is added.
    pub fn enter(&mut self, thread: usize, at: Nanos) -> Option<Switch> {
        if let Some(current) = self.current.filter(|slice| slice.thread == thread) {
            self.current = Some(Slice {
                thread,
                until: current.until.max(at),
            });
            return None;
        }
        let waiting = self.ready.iter().position(|(t, _)| *t == thread);
        let left = waiting
            .and_then(|place| self.ready.remove(place))
            .map_or(0, |(_, left)| left);
        let old = self.current.map(|slice| {
            self.ready
                .push_back((slice.thread, slice.until.saturating_sub(at)));
            (slice.thread, LeaveReason::Preempted)
        });
        self.current = Some(Slice {
            thread,
            until: at.saturating_add(left),
        });
        Some(Switch {
            at,
            old,
            new: Some(thread),
        })
    }

    /// The thread that has the processor computes for this additional time.
    pub fn compute(&mut self, thread: usize, time: Nanos) {
        if let Some(slice) = self.current.as_mut().filter(|slice| slice.thread == thread) {
            slice.until = slice.until.saturating_add(time);
        }
    }

    /// A thread has ended. Returns a switch if it had the processor.
    pub fn end(&mut self, thread: usize, at: Nanos) -> Option<Switch> {
        self.ready.retain(|(t, _)| *t != thread);
        self.current.filter(|slice| slice.thread == thread)?;
        Some(self.leave(at, LeaveReason::Ended, thread))
    }

    fn leave(&mut self, at: Nanos, why: LeaveReason, thread: usize) -> Switch {
        let at = at.max(self.horizon);
        let next = self.ready.pop_front();
        self.current = next.map(|(thread, left)| Slice {
            thread,
            until: at.saturating_add(left),
        });
        Switch {
            at,
            old: Some((thread, why)),
            new: next.map(|(thread, _)| thread),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_keeps_the_remaining_time_of_the_interrupted_thread() {
        let mut p = Processor::default();
        let idle = |_| false;
        assert_eq!(
            p.enter(1, 100),
            Some(Switch {
                at: 100,
                old: None,
                new: Some(1)
            })
        );
        p.compute(1, 60);
        // Thread 2 comes at 120, when thread 1 has 40 left, and computes for 10.
        let taken = p.enter(2, 120);
        assert_eq!(
            taken,
            Some(Switch {
                at: 120,
                old: Some((1, LeaveReason::Preempted)),
                new: Some(2)
            })
        );
        p.compute(2, 10);
        assert!(p.has(1) && p.has(2) && !p.has(3));
        assert_eq!(p.settle(129, idle), None);
        assert_eq!(p.settle(130, |t| t == 2), None, "it has more to do");
        let back = p.settle(400, idle);
        assert_eq!(
            back,
            Some(Switch {
                at: 130,
                old: Some((2, LeaveReason::Waits)),
                new: Some(1)
            })
        );
        assert_eq!((p.current(), p.settle(169, idle)), (Some(1), None));
        let out = p.settle(400, idle);
        assert_eq!(
            out,
            Some(Switch {
                at: 170,
                old: Some((1, LeaveReason::Waits)),
                new: None
            })
        );
        assert_eq!(p.settle(400, idle), None);
    }

    #[test]
    fn end_frees_the_processor_at_once() {
        let mut p = Processor::default();
        p.enter(1, 0);
        p.compute(1, 100);
        p.enter(2, 10);
        p.compute(2, 100);
        assert_eq!(p.end(1, 20), None, "it waited");
        assert_eq!(
            p.end(2, 30),
            Some(Switch {
                at: 30,
                old: Some((2, LeaveReason::Ended)),
                new: None
            })
        );
    }
}
