//! Future tasks in the order of their times; tasks of the same time in the order in which they
//! were planned. A task more or less leaves the order of the others unchanged.

use std::collections::BTreeMap;

use crate::time::Nanos;

/// The queue of future tasks.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// By time, then in the order in which they were planned.
    tasks: BTreeMap<(Nanos, u64), T>,
    planned: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            tasks: BTreeMap::new(),
            planned: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Adds a task at a time.
    pub fn push(&mut self, at: Nanos, what: T) {
        self.tasks.insert((at, self.planned), what);
        self.planned += 1;
    }

    /// The next task and its time.
    pub fn pop(&mut self) -> Option<(Nanos, T)> {
        self.tasks.pop_first().map(|((at, _), what)| (at, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pop_keeps_the_order_of_push_for_equal_times() {
        let mut queue = Queue::default();
        for (at, what) in [(5, 'a'), (1, 'b'), (5, 'c'), (0, 'd'), (5, 'e')] {
            queue.push(at, what);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, c)| c).collect();
        assert_eq!(order, "dbace");
    }
}
