//! Times of a profile: since the first event of the recording, in 100 ns.

use etl_analysis::Machine;
use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_format::{Clock, FileTime, Ticks};

#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    clock: Clock,
    /// The time of the first event.
    start: FileTime,
    /// The time of the last event.
    end: FileTime,
}

/// A time of 100 ns in milliseconds.
pub(super) fn to_millis(time: u64) -> f64 {
    time as f64 / 1e4
}

impl Times {
    pub fn new(machine: &Machine) -> Self {
        let clock = *machine.clock();
        let span = machine.span().unwrap_or_default();
        Times {
            clock,
            start: clock.time(span.first),
            end: clock.time(span.last),
        }
    }

    /// The time of a timestamp.
    #[inline]
    pub fn since_start(&self, timestamp: Ticks) -> u64 {
        let since = self
            .clock
            .time(timestamp)
            .get()
            .saturating_sub(self.start.get());
        u64::try_from(since).unwrap_or(0)
    }

    /// Ticks in milliseconds.
    pub fn millis(&self, ticks: u64) -> f64 {
        let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
        self.clock.duration(Ticks::new(0), Ticks::new(ticks)) as f64 / 1e4
    }

    /// The length of the recording.
    pub fn duration(&self) -> u64 {
        u64::try_from(self.end.get().saturating_sub(self.start.get())).unwrap_or(0)
    }

    /// The beginning of the recording, since 1970.
    pub fn unix_start(&self) -> u64 {
        u64::try_from(self.start.get().saturating_sub(FILETIME_UNIX_EPOCH)).unwrap_or(0)
    }
}
