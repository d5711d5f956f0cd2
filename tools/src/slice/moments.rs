//! Moments of events that were kept, for the stacks that are logged after them.

use std::collections::{HashSet, VecDeque};

/// Stands for any thread.
const ANY: u32 = u32::MAX;

/// The latest moments, up to a number.
#[derive(Debug)]
pub(super) struct Moments {
    known: HashSet<(i64, u32)>,
    order: VecDeque<(i64, u32)>,
    most: usize,
    /// Moments up to this one may have been forgotten.
    horizon: i64,
}

impl Moments {
    pub fn new(most: usize) -> Self {
        Moments { known: HashSet::new(), order: VecDeque::new(), most, horizon: i64::MIN }
    }

    /// An event of these threads was kept; of no thread, where it names none.
    pub fn keep(&mut self, timestamp: i64, threads: impl Iterator<Item = u32>) {
        let mut any = true;
        for thread in threads {
            any = false;
            self.add((timestamp, thread));
        }
        if any {
            self.add((timestamp, ANY));
        }
    }

    fn add(&mut self, moment: (i64, u32)) {
        if !self.known.insert(moment) {
            return;
        }
        self.order.push_back(moment);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
            self.horizon = self.horizon.max(oldest.0);
        }
    }

    /// Whether the event of a stack was kept. One that was so long ago that it may be forgotten
    /// counts as kept: a stack too many does no harm.
    pub fn kept(&self, timestamp: i64, thread: u32) -> bool {
        timestamp <= self.horizon
            || self.known.contains(&(timestamp, thread))
            || self.known.contains(&(timestamp, ANY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_moments_are_forgotten_in_favour_of_keeping() {
        let mut moments = Moments::new(2);
        moments.keep(10, [1].into_iter());
        moments.keep(20, [].into_iter());
        assert!(moments.kept(10, 1) && !moments.kept(10, 2) && moments.kept(20, 7));
        moments.keep(30, [1, 2].into_iter());
        // 10 and 20 had to go.
        assert!(moments.kept(20, 3) && moments.kept(15, 9));
        assert!(!moments.kept(25, 1) && moments.kept(30, 1) && moments.kept(30, 2));
    }
}
