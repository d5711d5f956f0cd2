//! Simulated time, and the clocks that sessions timestamp their events with.

use etl_format::constants::ClockType;

use crate::time::{Nanos, SECOND};

/// Ticks of the performance counter in a second on Windows 10 and later.
const COMMON_FREQUENCY: u64 = 10_000_000;

/// The clocks of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Ticks of the performance counter in a second.
    pub frequency: u64,
    /// Speed of the processors, for sessions that count their cycles.
    pub cpu_mhz: u32,
    /// Wall-clock time at simulated time 0, FILETIME.
    pub start: i64,
    /// How long the machine had been running at simulated time 0.
    pub uptime: Nanos,
}

impl Clock {
    /// The raw timestamp of a session whose clock is of this type.
    pub fn timestamp(&self, kind: ClockType, at: Nanos) -> i64 {
        match kind {
            ClockType::SYSTEM_TIME => self.filetime(at),
            ClockType::CPU_CYCLE => self.ticks(u64::from(self.cpu_mhz) * 1_000_000, at),
            _ => self.ticks(self.frequency, at),
        }
    }

    /// Ticks of a clock with this frequency since the machine was started.
    fn ticks(&self, frequency: u64, at: Nanos) -> i64 {
        // The common case is a division by a constant.
        if frequency == COMMON_FREQUENCY
            && let Some(since_boot) = self.uptime.checked_add(at)
        {
            return i64::try_from(since_boot / (SECOND / COMMON_FREQUENCY)).unwrap_or(i64::MAX);
        }
        // Most ticks are a whole number of nanoseconds: 64 bits suffice.
        if SECOND.is_multiple_of(frequency.max(1))
            && let Some(since_boot) = self.uptime.checked_add(at)
            && let Some(ticks) = since_boot.checked_div(SECOND / frequency.max(1))
        {
            return i64::try_from(ticks).unwrap_or(i64::MAX);
        }
        let since_boot = u128::from(self.uptime) + u128::from(at);
        i64::try_from(since_boot * u128::from(frequency) / u128::from(SECOND)).unwrap_or(i64::MAX)
    }

    /// Wall-clock time at a simulated time, FILETIME.
    pub fn filetime(&self, at: Nanos) -> i64 {
        self.start
            .saturating_add(i64::try_from(at / 100).unwrap_or(i64::MAX))
    }

    /// Month, day, hour and minute of the local time at a simulated time, as `mmddhhmm`. `bias` are
    /// the minutes that UTC is ahead of local time.
    pub fn month_to_minute(&self, at: Nanos, bias: i32) -> String {
        let ahead = i64::from(bias).saturating_mul(60 * 10_000_000);
        utc(self.filetime(at).saturating_sub(ahead))
            .strftime("%m%d%H%M")
            .to_string()
    }

    /// Wall-clock time at a simulated time, in UTC.
    pub fn wall_clock(&self, at: Nanos) -> jiff::Timestamp {
        utc(self.filetime(at))
    }

    /// When the machine was started, FILETIME.
    pub fn boot(&self) -> i64 {
        self.start
            .saturating_sub(i64::try_from(self.uptime / 100).unwrap_or(i64::MAX))
    }
}

fn utc(filetime: i64) -> jiff::Timestamp {
    let since = filetime.saturating_sub(etl_format::constants::FILETIME_UNIX_EPOCH);
    jiff::Timestamp::from_nanosecond(i128::from(since) * 100).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_clock_counts_in_its_own_unit() {
        let clock = Clock {
            frequency: 3_000_000,
            cpu_mhz: 2_000,
            start: 1_000_000,
            uptime: 2 * SECOND,
        };
        assert_eq!(clock.timestamp(ClockType::QPC, SECOND), 9_000_000);
        assert_eq!(clock.timestamp(ClockType::SYSTEM_TIME, SECOND), 11_000_000);
        assert_eq!(clock.timestamp(ClockType::CPU_CYCLE, 500), 4_000_001_000);
        assert_eq!(clock.boot(), 1_000_000 - 20_000_000);
        // A third of a nanosecond is not lost over a year.
        assert_eq!(
            clock.timestamp(ClockType::QPC, 31_536_000 * SECOND),
            94_608_006_000_000
        );
    }

    #[test]
    fn month_to_minute_is_in_local_time() {
        let start = 134_120_754_000_000_000; // 2026-01-05T08:30:00Z
        let clock = Clock {
            frequency: 1,
            cpu_mhz: 1,
            start,
            uptime: 0,
        };
        assert_eq!(clock.month_to_minute(60 * SECOND, 0), "01050831");
        assert_eq!(clock.month_to_minute(0, 9 * 60), "01042330");
        assert_eq!(clock.month_to_minute(0, -330), "01051400");
    }
}
