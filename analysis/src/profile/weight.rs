//! How much samples count for.

use std::ops::{Add, AddAssign};

use etl_format::constants::hook;
use etl_format::cursor::Bytes;
use etl_format::read::Record;

/// Source of samples by time, and offset of the interval after it.
const BY_TIME: u32 = 0;
const INTERVAL: usize = 4;

/// A number of samples, and the time that they stand for. The one with more time is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight {
    /// The intervals between them, in 100 ns; 0 where the recording states none.
    pub time: u64,
    /// How many samples.
    pub samples: u64,
}

impl Add for Weight {
    type Output = Weight;

    fn add(self, other: Weight) -> Weight {
        Weight { samples: self.samples + other.samples, time: self.time.saturating_add(other.time) }
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Weight) {
        *self = *self + other;
    }
}

/// The intervals of samples that a recording states.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    /// Since when, and the interval in 100 ns.
    list: Vec<(i64, u32)>,
}

impl Intervals {
    /// Takes in a record; returns whether it is the first that states an interval.
    pub fn record(&mut self, record: &Record<'_>, time: i64) -> bool {
        let Some(hook::SET_INTERVAL | hook::COLLECTION_START) = record.hook() else { return false };
        let payload = record.payload();
        let interval = payload.u32_at(INTERVAL).filter(|&interval| interval > 0);
        let Some(interval) = interval.filter(|_| payload.u32_at(0) == Some(BY_TIME)) else {
            return false;
        };
        let is_first = self.list.is_empty();
        if self.list.last().is_none_or(|&(_, last)| last != interval) {
            self.list.push((time, interval));
        }
        is_first
    }

    /// The weight of a sample at a time.
    #[must_use]
    pub fn weight(&self, time: i64) -> Weight {
        let after = self.list.partition_point(|&(since, _)| since <= time);
        // The session states the interval only after its first samples.
        let stated = self.list.get(after.saturating_sub(1));
        Weight { samples: 1, time: stated.map_or(0, |&(_, interval)| interval.into()) }
    }

    /// The interval that was stated last, in 100 ns.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        self.list.last().map(|&(_, interval)| interval)
    }
}
