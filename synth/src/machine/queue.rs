//! Future tasks in the order of their times; tasks of the same time in the order in which they
//! were planned.

use core::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::time::Nanos;

/// The task queue of the simulation.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    planned: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Nanos,
    order: u64,
    what: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { heap: BinaryHeap::new(), planned: 0 }
    }
}

impl<T> Queue<T> {
    /// Plans a task for a time.
    pub fn push(&mut self, at: Nanos, what: T) {
        let order = self.planned;
        self.planned = self.planned.wrapping_add(1);
        self.heap.push(Reverse(Entry { at, order, what }));
    }

    /// The next task and its time.
    pub fn pop(&mut self) -> Option<(Nanos, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
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
