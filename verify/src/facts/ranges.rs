//! Who owns an address at which time.

use std::collections::BTreeMap;

/// A stretch of addresses that was owned for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// Address behind the last one.
    pub end: u64,
    /// Since when, as a raw stamp; `None` for since before the trace.
    pub from: Option<i64>,
    /// Until when; `None` for to the end of the trace.
    pub to: Option<i64>,
}

impl Range {
    fn covers(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// Whether it was owned at some moment of a span.
    fn lived_in(&self, first: i64, last: i64) -> bool {
        self.from.is_none_or(|from| from <= last) && self.to.is_none_or(|to| to >= first)
    }
}

/// Ranges of one kind in one address space.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    live: BTreeMap<u64, Range>,
    past: Vec<Range>,
    /// Ranges that began where another one was still alive.
    pub overlaps: u64,
    /// The range found last: frames of a stack, and samples, come in bunches.
    recent: Option<Range>,
}

impl Ranges {
    /// A range begins, or is found to have been there all along (`from` is `None`).
    ///
    /// What is told again (a rundown tells what a load told) changes nothing but, perhaps, since
    /// when it is known.
    pub fn add(&mut self, start: u64, size: u64, from: Option<i64>) {
        let end = start.saturating_add(size);
        if end == start {
            return;
        }
        if let Some(known) = self.live.get_mut(&start)
            && known.end == end
        {
            if from.is_none() {
                return;
            }
            // Loaded again at the same place: the unload in between was not seen.
            let mut ended = *known;
            ended.to = from;
            known.from = from;
            self.past.push(ended);
            self.recent = None;
            return;
        }
        let touched = self.live.range(..end).next_back().is_some_and(|(_, r)| r.end > start);
        self.overlaps += u64::from(touched);
        if let Some(mut replaced) = self.live.insert(start, Range { start, end, from, to: None }) {
            replaced.to = from;
            self.past.push(replaced);
        }
        self.recent = None;
    }

    /// The range that begins at `start` ends. One whose beginning was not seen has been there since
    /// before the trace.
    pub fn remove(&mut self, start: u64, size: u64, at: i64) {
        let ended = self.live.remove(&start).unwrap_or(Range {
            start,
            end: start.saturating_add(size),
            from: None,
            to: None,
        });
        self.past.push(Range { to: Some(at), ..ended });
        self.recent = None;
    }

    /// Everything ends, since the process does.
    pub fn clear(&mut self, at: i64) {
        for (_, range) in std::mem::take(&mut self.live) {
            self.past.push(Range { to: Some(at), ..range });
        }
        self.recent = None;
    }

    /// Whether a range that is alive now covers the address.
    pub fn covers_now(&mut self, address: u64) -> bool {
        if self.recent.is_some_and(|r| r.covers(address)) {
            return true;
        }
        let found = self.live.range(..=address).next_back().map(|(_, r)| *r);
        match found.filter(|r| r.covers(address)) {
            Some(range) => {
                self.recent = Some(range);
                true
            }
            None => false,
        }
    }

    /// Ranges alive now.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// All ranges there ever were, ready to be searched.
    #[must_use]
    pub fn history(&self) -> History {
        let mut ranges: Vec<_> = self.live.values().chain(&self.past).copied().collect();
        ranges.sort_unstable_by_key(|r| (r.start, r.end));
        let mut furthest = Vec::with_capacity(ranges.len());
        let mut end = 0;
        for range in &ranges {
            end = range.end.max(end);
            furthest.push(end);
        }
        History { ranges, furthest }
    }
}

/// All ranges that there ever were, by address.
#[derive(Clone, Debug, Default)]
pub struct History {
    ranges: Vec<Range>,
    /// The furthest end among the ranges up to each one.
    furthest: Vec<u64>,
}

impl History {
    /// Whether some range that lived in a span covers the address.
    #[must_use]
    pub fn covers(&self, address: u64, first: i64, last: i64) -> bool {
        let mut at = self.ranges.partition_point(|r| r.start <= address);
        while at > 0 {
            at -= 1;
            if self.furthest.get(at).is_none_or(|&end| end <= address) {
                return false;
            }
            let hit =
                self.ranges.get(at).is_some_and(|r| r.covers(address) && r.lived_in(first, last));
            if hit {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_who_lives_there_at_the_time() {
        let mut ranges = Ranges::default();
        ranges.add(0x1000, 0x100, Some(10));
        assert!(ranges.covers_now(0x10ff));
        assert!(!ranges.covers_now(0x1100));
        ranges.remove(0x1000, 0x100, 20);
        assert!(!ranges.covers_now(0x1000));
        let history = ranges.history();
        assert!(history.covers(0x1000, 5, 15));
        assert!(!history.covers(0x1000, 5, 9));
        assert!(!history.covers(0x1000, 21, 30));
    }

    #[test]
    fn what_is_enumerated_was_there_all_along() {
        let mut ranges = Ranges::default();
        ranges.add(0x1000, 0x100, None);
        assert!(ranges.history().covers(0x1000, i64::MIN, i64::MIN));
        // A load that was seen says since when, and the rundown after it does not change that.
        let mut ranges = Ranges::default();
        ranges.add(0x1000, 0x100, Some(10));
        ranges.add(0x1000, 0x100, None);
        assert!(!ranges.history().covers(0x1000, 1, 9));
    }

    #[test]
    fn a_small_range_inside_a_large_one_hides_nothing() {
        let mut ranges = Ranges::default();
        ranges.add(0x1000, 0x1000, None);
        ranges.add(0x1100, 0x10, None);
        assert_eq!(ranges.overlaps, 1);
        assert!(ranges.history().covers(0x1500, 0, 0));
        assert!(!ranges.history().covers(0x2000, 0, 0));
    }
}
