//! Seconds between two times.

use core::fmt;

use etl_format::FileTime;
use etl_format::constants::FILETIME_PER_SECOND;

/// The seconds from the start of a trace to an event, to 100 ns: `1.5000000`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds {
    /// In units of 100 ns.
    units: i64,
}

impl Seconds {
    /// The seconds from `start` to `time`.
    pub fn between(start: FileTime, time: FileTime) -> Self {
        Seconds {
            units: time.get().saturating_sub(start.get()),
        }
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.units < 0 { "-" } else { "" };
        let units = self.units.unsigned_abs();
        let per_second = FILETIME_PER_SECOND.unsigned_abs();
        write!(f, "{sign}{}.{:07}", units / per_second, units % per_second)
    }
}
