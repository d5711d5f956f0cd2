//! The times and threads of selected events, for the stacks that are logged after them.

use etl_format::{ThreadId, Ticks};
use std::collections::VecDeque;

use foldhash::{HashSet, HashSetExt as _};

/// Any thread.
const ANY_THREAD: ThreadId = ThreadId::UNKNOWN;

/// The latest selected events, up to a number.
#[derive(Debug)]
pub(super) struct SelectedEvents {
    known: HashSet<(Ticks, ThreadId)>,
    order: VecDeque<(Ticks, ThreadId)>,
    max: usize,
    /// Events up to this time may have been forgotten.
    horizon: Ticks,
}

impl SelectedEvents {
    pub fn new(max: usize) -> Self {
        SelectedEvents {
            known: HashSet::new(),
            order: VecDeque::new(),
            max,
            horizon: Ticks::MIN,
        }
    }

    /// Adds an event of these threads; without threads, any thread may log its stack.
    pub fn add(&mut self, timestamp: Ticks, threads: impl Iterator<Item = ThreadId>) {
        let mut any = true;
        for thread in threads {
            any = false;
            self.insert((timestamp, thread));
        }
        if any {
            self.insert((timestamp, ANY_THREAD));
        }
    }

    fn insert(&mut self, event: (Ticks, ThreadId)) {
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
    pub fn contains(&self, timestamp: Ticks, thread: ThreadId) -> bool {
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
        events.add(Ticks::new(10), [ThreadId::new(1)].into_iter());
        events.add(Ticks::new(20), [].into_iter());
        assert!(
            events.contains(Ticks::new(10), ThreadId::new(1))
                && !events.contains(Ticks::new(10), ThreadId::new(2))
                && events.contains(Ticks::new(20), ThreadId::new(7))
        );
        events.add(Ticks::new(30), [1, 2].map(ThreadId::new).into_iter());
        // 10 and 20 are forgotten.
        assert!(
            events.contains(Ticks::new(20), ThreadId::new(3))
                && events.contains(Ticks::new(15), ThreadId::new(9))
        );
        assert!(
            !events.contains(Ticks::new(25), ThreadId::new(1))
                && events.contains(Ticks::new(30), ThreadId::new(1))
                && events.contains(Ticks::new(30), ThreadId::new(2))
        );
    }
}
