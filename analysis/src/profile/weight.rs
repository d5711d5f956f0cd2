//! The weights of samples: their number, and the time between them.

use etl_format::Ticks;
use std::ops::{Add, AddAssign};

use etl_format::constants::hook;
use etl_format::cursor::Bytes;
use etl_format::read::Record;
use etl_schema::providers::DOTNET_SAMPLE_PROFILER;

use crate::counted::Span;

/// The source of samples by time.
const BY_TIME: u32 = 0;
/// The interval of the sampling thread of .NET in 100 ns: no event states it.
const DOTNET_INTERVAL: u32 = 10_000;
/// Offset of the interval in the payload.
const INTERVAL: usize = 4;
/// Offset of the interval before, in the payload of the event that changes it.
const OLD_INTERVAL: usize = 8;

/// A number of samples, and the time that they represent. The weight with more time is greater.
///
/// ```
/// use etl_analysis::profile::Weight;
///
/// let one = Weight { time: 10_000, samples: 1 };
/// assert_eq!(one + one, Weight { time: 20_000, samples: 2 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight {
    /// The intervals between them, in 100 ns; 0 if the recording states none.
    pub time: u64,
    /// How many samples.
    pub samples: u64,
}

impl Add for Weight {
    type Output = Weight;

    fn add(self, other: Weight) -> Weight {
        Weight {
            samples: self.samples + other.samples,
            time: self.time.saturating_add(other.time),
        }
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
    /// The times from which on they are used, and the intervals in 100 ns.
    list: Vec<(Ticks, u32)>,
    /// Whether the sampling thread of .NET takes the samples.
    is_of_dotnet: bool,
}

impl Intervals {
    /// Keeps the interval that a record states. Returns whether it is the first one.
    pub fn record(&mut self, record: &Record<'_>, time: Ticks) -> bool {
        if record.is_event() {
            return self.event(record);
        }
        let Some(hook @ (hook::SET_INTERVAL | hook::COLLECTION_START | hook::COLLECTION_END)) =
            record.hook()
        else {
            return false;
        };
        let payload = record.payload();
        if payload.u32_at(0) != Some(BY_TIME) {
            return false;
        }
        let Some(interval) = interval_at(payload, INTERVAL) else {
            return false;
        };
        let is_first = self.list.is_empty();
        // The end of sampling states the interval that was used before.
        if hook == hook::COLLECTION_END && !is_first {
            return false;
        }
        if is_first
            && hook == hook::SET_INTERVAL
            && let Some(old) = interval_at(payload, OLD_INTERVAL)
        {
            self.list.push((Ticks::MIN, old));
        }
        if self.list.last().is_none_or(|&(_, last)| last != interval) {
            self.list.push((time, interval));
        }
        is_first
    }

    /// Keeps the interval of the sampling thread of .NET. Returns whether it is the first one.
    fn event(&mut self, record: &Record<'_>) -> bool {
        if !self.list.is_empty() || record.provider() != Some(DOTNET_SAMPLE_PROFILER) {
            return false;
        }
        self.list.push((Ticks::MIN, DOTNET_INTERVAL));
        self.is_of_dotnet = true;
        true
    }

    /// Whether the samples are of all threads, also of threads that wait.
    #[must_use]
    pub fn are_of_all_threads(&self) -> bool {
        self.is_of_dotnet
    }

    /// The intervals in a span of time, in 100 ns.
    #[must_use]
    pub fn between(&self, span: Span) -> Vec<u32> {
        let first = self.count_until(span.first).saturating_sub(1);
        let end = self.count_until(span.last).max(first + 1);
        let stated = self.list.get(first..end).unwrap_or_default();
        let mut intervals: Vec<u32> = stated.iter().map(|&(_, interval)| interval).collect();
        intervals.sort_unstable();
        intervals.dedup();
        intervals
    }

    /// How many intervals are stated up to a time.
    fn count_until(&self, time: Ticks) -> usize {
        self.list.partition_point(|&(since, _)| since <= time)
    }

    /// The weight of a sample at a time.
    #[must_use]
    pub fn weight(&self, time: Ticks) -> Weight {
        // The session states the interval only after its first samples.
        let index = self.count_until(time).saturating_sub(1);
        let stated = self.list.get(index);
        Weight {
            samples: 1,
            time: stated.map_or(0, |&(_, interval)| interval.into()),
        }
    }
}

/// The interval at an offset of a payload, in 100 ns.
fn interval_at(payload: &[u8], offset: usize) -> Option<u32> {
    payload.u32_at(offset).filter(|&interval| interval > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_has_the_intervals_of_the_time() {
        let intervals = Intervals {
            list: vec![
                (Ticks::new(10), 7),
                (Ticks::new(20), 3),
                (Ticks::new(30), 9),
            ],
            ..Intervals::default()
        };
        for (span, expected) in [
            ((0, 5), &[7][..]),
            ((0, 19), &[7]),
            ((12, 20), &[3, 7]),
            ((20, 29), &[3]),
            ((0, 40), &[3, 7, 9]),
            ((35, 40), &[9]),
        ] {
            let span = Span::new(Ticks::new(span.0), Ticks::new(span.1));
            assert_eq!(intervals.between(span), expected, "{span:?}");
        }
        assert!(
            Intervals::default()
                .between(Span::new(Ticks::new(0), Ticks::new(1)))
                .is_empty()
        );
    }
}
