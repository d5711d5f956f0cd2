//! How many allocation events come between collections.

use etl_analysis::machine::Counted;
use etl_format::Ticks;

/// After this number of collections of a CLR, a missing event is not an accident.
const MIN_COLLECTIONS: u64 = 10;
/// After this number of allocations, a missing collection is not an accident.
const MIN_ALLOCATED: u64 = 200;
/// How many times as many allocations may come after the last collection as ever came between two.
const MAX_GROWTH: u64 = 10;

/// The number of allocation events between collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rate {
    collections: u64,
    /// The largest number between two collections.
    max: u64,
    /// The number since the last collection.
    since: u64,
    /// Time of the last collection.
    last: Option<Ticks>,
}

impl Rate {
    /// Adds an allocation event.
    pub fn allocation(&mut self) {
        self.since += 1;
    }

    /// Adds a collection.
    pub fn collection(&mut self, timestamp: Ticks) {
        if self.collections > 0 {
            self.max = self.max.max(self.since);
        }
        self.collections += 1;
        self.since = 0;
        self.last = Some(timestamp);
    }

    /// Whether so many allocations after the last collection must have caused another.
    fn is_exceeded(self) -> bool {
        self.collections >= MIN_COLLECTIONS
            && self.max > 0
            && self.since >= MIN_ALLOCATED
            && self.since > MAX_GROWTH * self.max
    }

    /// Allocation events after the last collection, if they must have caused another.
    pub fn uncollected(&self) -> Counted {
        if !self.is_exceeded() {
            return Counted::default();
        }
        Counted {
            count: self.since,
            first: self.last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncollected_needs_far_more_allocations_than_ever() {
        let mut rate = Rate::default();
        let allocate = |rate: &mut Rate, times: u64| (0..times).for_each(|_| rate.allocation());
        for number in 1..=10 {
            allocate(&mut rate, 30);
            rate.collection(Ticks::new(number));
        }
        allocate(&mut rate, 300);
        assert_eq!(rate.uncollected(), Counted::default());
        allocate(&mut rate, 1);
        assert_eq!(
            rate.uncollected(),
            Counted {
                count: 301,
                first: Some(Ticks::new(10))
            }
        );
    }
}
