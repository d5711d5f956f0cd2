//! The operations that a thread has still to perform.

use std::collections::VecDeque;

use crate::clr::ClrOp;
use crate::model::{ClrWork, ImagePlan, RaisePlan};
use crate::time::Nanos;

use super::io_op::IoOp;

/// An operation of a thread. It is not interrupted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Op {
    /// The process and its first thread start.
    StartProcess,
    /// An image is loaded.
    LoadImage(ImagePlan),
    /// An image is unloaded, by its path.
    UnloadImage(String),
    /// Another thread of the process starts.
    StartThread(usize),
    /// A thread of the process ends.
    EndThread(usize),
    /// The thread computes for this time.
    Compute(Nanos),
    /// An event of a provider of the scenario is raised.
    Raise(Box<RaisePlan>),
    /// An `EventSource` writes its manifest.
    EmitManifest(usize),
    /// The stacks of the managed threads of a CLR are taken, which is suspended.
    SampleThreads(usize),
    /// An EventPipe session of the process states the process.
    DescribeProcess(usize),
    /// The rundown of an EventPipe session of the process is complete.
    EndEventPipe(usize),
    /// The process exits.
    EndProcess,
    /// An operation on a file or a connection.
    Io(IoOp),
    /// An operation of a CLR.
    Clr(usize, ClrOp),
}

/// Entries in the queue of a thread after which its process rejects work, so that the memory of an
/// overloaded scenario does not grow with its length.
const MAX_ENTRIES: usize = 65_536;

/// Operations in their order. Consecutive equal operations are one entry with a count.
#[derive(Debug, Default)]
pub(super) struct OpQueue(VecDeque<(Op, u32)>);

impl OpQueue {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the next operation starts a process.
    pub fn starts_process(&self) -> bool {
        matches!(self.0.front(), Some((Op::StartProcess, _)))
    }

    /// Whether the queue has the maximum number of entries.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_ENTRIES
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds an operation `times` times at the end.
    pub fn push(&mut self, op: Op, times: u32) {
        if times == 0 {
            return;
        }
        if let Some((last, count)) = self.0.back_mut()
            && repeats(last, &op)
            && let Some(sum) = count.checked_add(times)
        {
            *count = sum;
            return;
        }
        self.0.push_back((op, times));
    }

    /// Adds operations at the front, in their order.
    pub fn push_front(&mut self, ops: Vec<Op>) {
        for op in ops.into_iter().rev() {
            self.0.push_front((op, 1));
        }
    }

    /// The next operation.
    pub fn pop(&mut self) -> Option<Op> {
        match self.0.front_mut() {
            Some((op, times)) if *times > 1 => {
                *times -= 1;
                Some(op.clone())
            }
            _ => self.0.pop_front().map(|(op, _)| op),
        }
    }

    #[cfg(test)]
    pub fn entries(&self) -> usize {
        self.0.len()
    }
}

/// Whether two operations are equal. Only operations that are cheap to compare are merged.
fn repeats(one: &Op, other: &Op) -> bool {
    let Op::Clr(_, ClrOp::Work(work)) = one else {
        return false;
    };
    let once = matches!(
        work,
        ClrWork::Gc(_)
            | ClrWork::Press(_)
            | ClrWork::Pool(_)
            | ClrWork::IoPool(_)
            | ClrWork::Retire { .. }
            | ClrWork::Suspend(_)
            | ClrWork::Wait(_)
    );
    !once && one == other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_merges_equal_operations_and_pop_keeps_the_order() {
        let of = |op| Op::Clr(0, op);
        let mut ops = OpQueue::default();
        ops.push(of(ClrOp::Work(ClrWork::Allocate)), 1_000_000);
        ops.push(of(ClrOp::Work(ClrWork::Allocate)), 2);
        ops.push(of(ClrOp::Work(ClrWork::Contend)), 1);
        ops.push(Op::Compute(5), 2);
        ops.push(Op::Compute(5), 1);
        assert_eq!(ops.entries(), 4);
        ops.push_front(vec![Op::Compute(1), Op::Compute(2)]);
        assert_eq!(ops.pop(), Some(Op::Compute(1)));
        assert_eq!(ops.pop(), Some(Op::Compute(2)));
        for _ in 0..1_000_002 {
            assert_eq!(ops.pop(), Some(of(ClrOp::Work(ClrWork::Allocate))));
        }
        assert_eq!(ops.pop(), Some(of(ClrOp::Work(ClrWork::Contend))));
        for _ in 0..3 {
            assert_eq!(ops.pop(), Some(Op::Compute(5)));
        }
        assert_eq!(ops.pop(), None);
    }

    #[test]
    fn is_full_limits_the_entries() {
        let mut ops = OpQueue::default();
        let mut taken = 0;
        for _ in 0..MAX_ENTRIES {
            for op in [
                Op::Clr(0, ClrOp::Work(ClrWork::Allocate)),
                Op::Clr(0, ClrOp::Work(ClrWork::Contend)),
            ] {
                if !ops.is_full() {
                    ops.push(op, 100);
                    taken += 1;
                }
            }
        }
        assert_eq!((ops.entries(), taken), (MAX_ENTRIES, MAX_ENTRIES));
    }
}
