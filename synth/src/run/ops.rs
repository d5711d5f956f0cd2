//! What a thread still has to do.

use std::collections::VecDeque;

use crate::clr::ClrOp;

use super::Op;

/// Different things that a thread may have waiting. A program that gets more to do than it can takes no
/// more on, so that a scenario that asks too much of a thread needs no more memory the longer it lasts.
pub(crate) const MOST_WAITING: usize = 65_536;

/// Operations in their order; what comes many times in a row stands there once.
#[derive(Debug, Default)]
pub(crate) struct Ops(VecDeque<(Op, u32)>);

impl Ops {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it takes on no more work.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST_WAITING
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds an operation so many times, behind everything else.
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

    /// Adds operations before everything else, in their order.
    pub fn put_first(&mut self, ops: Vec<Op>) {
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

/// Whether two operations that follow each other are the same; asked only of what is quickly compared.
fn repeats(one: &Op, other: &Op) -> bool {
    let simple = |op: &Op| {
        matches!(
            op,
            Op::Clr(
                _,
                ClrOp::Allocate
                    | ClrOp::Throw(_)
                    | ClrOp::Contend
                    | ClrOp::Stub
                    | ClrOp::Enqueue
                    | ClrOp::IoEnqueue
                    | ClrOp::TakeHandle(_)
                    | ClrOp::FreeHandle
            )
        )
    };
    simple(one) && one == other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_many_times_takes_one_place_and_comes_out_in_order() {
        let of = |op| Op::Clr(0, op);
        let mut ops = Ops::default();
        ops.push(of(ClrOp::Allocate), 1_000_000);
        ops.push(of(ClrOp::Allocate), 2);
        ops.push(of(ClrOp::Contend), 1);
        ops.push(Op::Compute(5), 2);
        ops.push(Op::Compute(5), 1);
        assert_eq!(ops.entries(), 4);
        ops.put_first(vec![Op::Compute(1), Op::Compute(2)]);
        assert_eq!(ops.pop(), Some(Op::Compute(1)));
        assert_eq!(ops.pop(), Some(Op::Compute(2)));
        for _ in 0..1_000_002 {
            assert_eq!(ops.pop(), Some(of(ClrOp::Allocate)));
        }
        assert_eq!(ops.pop(), Some(of(ClrOp::Contend)));
        for _ in 0..3 {
            assert_eq!(ops.pop(), Some(Op::Compute(5)));
        }
        assert_eq!(ops.pop(), None);
    }

    #[test]
    fn no_more_is_taken_on_than_there_is_room_for() {
        let mut ops = Ops::default();
        let mut taken = 0;
        for _ in 0..MOST_WAITING {
            for op in [Op::Clr(0, ClrOp::Allocate), Op::Clr(0, ClrOp::Contend)] {
                if !ops.is_full() {
                    ops.push(op, 100);
                    taken += 1;
                }
            }
        }
        assert_eq!((ops.entries(), taken), (MOST_WAITING, MOST_WAITING));
    }
}
