//! Future tasks in the order of their times. Tasks of the same time have an order of their own,
//! which does not depend on when they were planned: a task more or less leaves the order of the
//! others unchanged.

use std::collections::BTreeMap;

use crate::time::Nanos;

/// The order of tasks of the same time: by kind, then by number.
pub(crate) type Rank = (u8, usize);

/// The queue of future tasks.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// By time, then by rank, then in the order in which they were planned.
    tasks: BTreeMap<(Nanos, Rank, u64), T>,
    planned: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { tasks: BTreeMap::new(), planned: 0 }
    }
}

impl<T> Queue<T> {
    /// Adds a task at a time.
    pub fn push(&mut self, at: Nanos, rank: Rank, what: T) {
        self.tasks.insert((at, rank, self.planned), what);
        self.planned += 1;
    }

    /// The next task and its time.
    pub fn pop(&mut self) -> Option<(Nanos, T)> {
        self.tasks.pop_first().map(|((at, ..), what)| (at, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pop_orders_by_time_then_rank_then_order_of_push() {
        let mut queue = Queue::default();
        for (at, rank, what) in
            [(5, 1, 'a'), (1, 9, 'b'), (5, 0, 'c'), (0, 3, 'd'), (5, 1, 'e'), (5, 0, 'f')]
        {
            queue.push(at, (0, rank), what);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, c)| c).collect();
        assert_eq!(order, "dbcfae");
    }
}
