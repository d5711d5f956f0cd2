//! The times and threads of selected events, for the stacks that are logged after them.

use std::collections::VecDeque;

use foldhash::{HashSet, HashSetExt as _};

/// Any thread.
const ANY_THREAD: u32 = u32::MAX;

/// The latest selected events, up to a number.
#[derive(Debug)]
pub(super) struct SelectedEvents {
    known: HashSet<(i64, u32)>,
    order: VecDeque<(i64, u32)>,
    max: usize,
    /// Events up to this time may have been forgotten.
    horizon: i64,
}

impl SelectedEvents {
    pub fn new(max: usize) -> Self {
        SelectedEvents { known: HashSet::new(), order: VecDeque::new(), max, horizon: i64::MIN }
    }

    /// Adds an event of these threads; without threads, any thread may log its stack.
    pub fn add(&mut self, timestamp: i64, threads: impl Iterator<Item = u32>) {
        let mut any = true;
        for thread in threads {
            any = false;
            self.insert((timestamp, thread));
        }
        if any {
            self.insert((timestamp, ANY_THREAD));
        }
    }

    fn insert(&mut self, event: (i64, u32)) {
        if !self.known.insert(event) {
            return;
        }
        self.order.push_back(event);
        if self.order.len() > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
            self.horizon = self.horizon.max(oldest.0);
        }
    }

    /// Whether the event of a stack was selected. An event that may have been forgotten counts as
    /// selected: one stack too many does no harm.
    pub fn contains(&self, timestamp: i64, thread: u32) -> bool {
        timestamp <= self.horizon
            || self.known.contains(&(timestamp, thread))
            || self.known.contains(&(timestamp, ANY_THREAD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_events_count_as_selected() {
        let mut events = SelectedEvents::new(2);
        events.add(10, [1].into_iter());
        events.add(20, [].into_iter());
        assert!(events.contains(10, 1) && !events.contains(10, 2) && events.contains(20, 7));
        events.add(30, [1, 2].into_iter());
        // 10 and 20 are forgotten.
        assert!(events.contains(20, 3) && events.contains(15, 9));
        assert!(!events.contains(25, 1) && events.contains(30, 1) && events.contains(30, 2));
    }
}
