//! The times and threads of selected events, for the stacks that are logged after them.

use std::collections::VecDeque;

use etl_format::{ThreadId, Ticks};
use foldhash::{HashSet, HashSetExt as _};

/// Any thread.
const ANY_THREAD: ThreadId = ThreadId::UNKNOWN;

/// The time and the thread of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SelectedEvent {
    timestamp: Ticks,
    thread: ThreadId,
}

/// The latest selected events, up to a number.
#[derive(Debug)]
pub(super) struct SelectedEvents {
    events: HashSet<SelectedEvent>,
    /// The same events, the oldest first.
    order: VecDeque<SelectedEvent>,
    max: usize,
    /// Events up to this time may have been forgotten.
    horizon: Ticks,
}

impl SelectedEvents {
    pub fn new(max: usize) -> Self {
        SelectedEvents {
            events: HashSet::new(),
            order: VecDeque::new(),
            max,
            horizon: Ticks::MIN,
        }
    }

    /// Adds an event of these threads; without threads, any thread may log its stack.
    pub fn add(&mut self, timestamp: Ticks, threads: impl Iterator<Item = ThreadId>) {
        let mut has_threads = false;
        for thread in threads {
            has_threads = true;
            self.insert(SelectedEvent { timestamp, thread });
        }
        if !has_threads {
            self.insert(SelectedEvent {
                timestamp,
                thread: ANY_THREAD,
            });
        }
    }

    fn insert(&mut self, event: SelectedEvent) {
        if !self.events.insert(event) {
            return;
        }
        self.order.push_back(event);
        if self.order.len() > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.events.remove(&oldest);
            self.horizon = self.horizon.max(oldest.timestamp);
        }
    }

    /// Whether the event of a stack was selected. An event that may have been forgotten is treated
    /// as selected: a stack without its event does no harm.
    pub fn contains(&self, timestamp: Ticks, thread: ThreadId) -> bool {
        let event = SelectedEvent { timestamp, thread };
        let any_thread = SelectedEvent {
            timestamp,
            thread: ANY_THREAD,
        };
        timestamp <= self.horizon
            || self.events.contains(&event)
            || self.events.contains(&any_thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_events_are_treated_as_selected() {
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
