//! The clock of the written trace: nanoseconds that are never negative.

use etl_format::constants::{ClockType, FILETIME_UNIX_EPOCH};
use etl_format::{Clock, Ticks};

const NANOS_PER_SECOND: u64 = 1_000_000_000;
const NANOS_PER_FILETIME: i64 = 100;

/// How ticks of a recording become nanoseconds. Those of the performance counter and of the cycle
/// counter count from the boot of the machine, others from 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceTime {
    clock: Clock,
    is_calendar: bool,
    /// Nanoseconds of a tick, where that is a whole number.
    whole: Option<u64>,
}

impl TraceTime {
    pub fn new(clock: Clock) -> Self {
        let is_whole = NANOS_PER_SECOND.is_multiple_of(clock.frequency);
        TraceTime {
            clock,
            is_calendar: clock.kind == ClockType::SYSTEM_TIME,
            whole: is_whole.then(|| NANOS_PER_SECOND / clock.frequency),
        }
    }

    /// Nanoseconds of a timestamp.
    #[inline]
    pub fn nanos(&self, ticks: i64) -> u64 {
        if self.is_calendar {
            return unix(self.clock.time(Ticks::new(ticks)).get());
        }
        let ticks = u64::try_from(ticks).unwrap_or(0);
        match self.whole {
            Some(nanos) => ticks.saturating_mul(nanos),
            None => {
                let nanos = u128::from(ticks) * u128::from(NANOS_PER_SECOND)
                    / u128::from(self.clock.frequency);
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
        }
    }

    /// Nanoseconds of a duration.
    pub fn nanos_of(&self, ticks: u64) -> u64 {
        let nanos = u128::from(ticks) * u128::from(NANOS_PER_SECOND);
        u64::try_from(nanos / u128::from(self.clock.frequency)).unwrap_or(u64::MAX)
    }

    /// A time on the clock of the trace, and in nanoseconds since 1970.
    pub fn reference(&self) -> (u64, u64) {
        let start = self.clock.start_timestamp;
        (self.nanos(start.get()), unix(self.clock.time(start).get()))
    }
}

fn unix(filetime: i64) -> u64 {
    let since = filetime
        .saturating_sub(FILETIME_UNIX_EPOCH)
        .saturating_mul(NANOS_PER_FILETIME);
    u64::try_from(since).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_format::FileTime;

    #[test]
    fn ticks_become_nanoseconds_of_one_clock() {
        let second = 10_000_000;
        let start = FILETIME_UNIX_EPOCH + 7 * second;
        let time = |kind, ticks, frequency| {
            TraceTime::new(Clock::new(
                kind,
                FileTime::new(start),
                ticks,
                frequency,
                2_000,
            ))
        };
        let counter = time(ClockType::QPC, Ticks::new(50), second);
        assert_eq!((counter.nanos(3), counter.nanos(-1)), (300, 0));
        assert_eq!(counter.reference(), (5_000, 7_000_000_000));
        let odd = time(ClockType::QPC, Ticks::new(3_000_000), 3_000_000);
        assert_eq!([1, 2, 3].map(|ticks| odd.nanos(ticks)), [333, 666, 1_000]);
        assert_eq!(odd.reference(), (1_000_000_000, 7_000_000_000));
        assert_eq!(
            time(ClockType::CPU_CYCLE, Ticks::new(0), 0).nanos(2_000),
            1_000
        );
        let calendar = time(ClockType::SYSTEM_TIME, Ticks::new(start), 0);
        assert_eq!(calendar.reference(), (7_000_000_000, 7_000_000_000));
    }
}
