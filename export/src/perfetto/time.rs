//! The clock of the written trace: nanoseconds that are never negative.

use etl_format::constants::{ClockType, FILETIME_UNIX_EPOCH};
use etl_format::{Clock, FileTime, Ticks};

const NANOS_PER_SECOND: u64 = 1_000_000_000;
const NANOS_PER_FILETIME: i64 = 100;

/// How ticks of a recording become nanoseconds: since the boot of the machine for the performance
/// counter and the cycle counter, otherwise since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceTime {
    clock: Clock,
    is_calendar: bool,
    /// Nanoseconds of a tick, if that is a whole number.
    nanos_per_tick: Option<u64>,
}

impl TraceTime {
    pub fn new(clock: Clock) -> Self {
        let is_whole = NANOS_PER_SECOND.is_multiple_of(clock.frequency);
        TraceTime {
            clock,
            is_calendar: clock.kind == ClockType::SYSTEM_TIME,
            nanos_per_tick: is_whole.then(|| NANOS_PER_SECOND / clock.frequency),
        }
    }

    /// Nanoseconds of a timestamp.
    #[inline]
    pub fn nanos(&self, time: Ticks) -> u64 {
        if self.is_calendar {
            return unix_nanos(self.clock.time(time));
        }
        let ticks = u64::try_from(time.get()).unwrap_or(0);
        match self.nanos_per_tick {
            Some(nanos) => ticks.saturating_mul(nanos),
            None => {
                let nanos = u128::from(ticks) * u128::from(NANOS_PER_SECOND)
                    / u128::from(self.clock.frequency);
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
        }
    }

    /// Nanoseconds of a duration.
    pub fn duration_nanos(&self, ticks: u64) -> u64 {
        let nanos = u128::from(ticks) * u128::from(NANOS_PER_SECOND);
        u64::try_from(nanos / u128::from(self.clock.frequency)).unwrap_or(u64::MAX)
    }

    /// The start of the recording on the clock of the written trace.
    pub fn start(&self) -> u64 {
        self.nanos(self.clock.start_timestamp)
    }

    /// The start of the recording in nanoseconds since 1970.
    pub fn unix_start(&self) -> u64 {
        unix_nanos(self.clock.time(self.clock.start_timestamp))
    }
}

/// Nanoseconds since 1970.
fn unix_nanos(time: FileTime) -> u64 {
    let units = time.get().saturating_sub(FILETIME_UNIX_EPOCH);
    u64::try_from(units.saturating_mul(NANOS_PER_FILETIME)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(counter.nanos(Ticks::new(3)), 300);
        assert_eq!(counter.nanos(Ticks::new(-1)), 0);
        assert_eq!(counter.start(), 5_000);
        assert_eq!(counter.unix_start(), 7_000_000_000);
        let odd = time(ClockType::QPC, Ticks::new(3_000_000), 3_000_000);
        let nanos = [1, 2, 3].map(|ticks| odd.nanos(Ticks::new(ticks)));
        assert_eq!(nanos, [333, 666, 1_000]);
        assert_eq!(odd.start(), 1_000_000_000);
        assert_eq!(odd.unix_start(), 7_000_000_000);
        let cycles = time(ClockType::CPU_CYCLE, Ticks::new(0), 0);
        assert_eq!(cycles.nanos(Ticks::new(2_000)), 1_000);
        let calendar = time(ClockType::SYSTEM_TIME, Ticks::new(start), 0);
        assert_eq!(calendar.start(), 7_000_000_000);
        assert_eq!(calendar.unix_start(), 7_000_000_000);
    }
}
