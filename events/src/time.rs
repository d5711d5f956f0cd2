//! Times as users write them.

use std::fmt;
use std::str::FromStr;

use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_format::{Clock, FileTime, Ticks};
use jiff::Timestamp;

/// Units of a FILETIME in a second.
const UNITS_PER_SECOND: f64 = 1e7;

/// A time as a user writes it: relative to the start of the recording, or in UTC.
///
/// ```
/// use etl_events::time::TimePoint;
///
/// assert_eq!("1.5".parse(), Ok(TimePoint::SinceStart(15_000_000)));
/// assert_eq!("250ms".parse(), Ok(TimePoint::SinceStart(2_500_000)));
/// assert!(matches!("2020-07-29T00:07:01Z".parse(), Ok(TimePoint::Utc(_))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimePoint {
    /// 100 ns since the start of the recording.
    SinceStart(i64),
    /// A time in UTC.
    Utc(FileTime),
}

impl TimePoint {
    /// Seconds since the start of the recording, rounded to the 100 ns of a FILETIME.
    #[must_use]
    pub fn since_start(seconds: f64) -> Self {
        TimePoint::SinceStart((seconds * UNITS_PER_SECOND).round() as i64)
    }

    /// The same time in ticks of a clock. `start` is the start of the recording, which several
    /// traces share.
    #[must_use]
    pub fn ticks(self, start: FileTime, clock: &Clock) -> Ticks {
        let time = match self {
            TimePoint::SinceStart(since) => FileTime::new(start.get().saturating_add(since)),
            TimePoint::Utc(time) => time,
        };
        clock.ticks_at(time)
    }
}

impl FromStr for TimePoint {
    type Err = TimePointError;

    /// Parses seconds (`1.5`), a duration (`250ms`, `20us`, `100ns`, `2s`), or UTC
    /// (`2020-07-29T00:07:01Z`).
    fn from_str(text: &str) -> Result<Self, TimePointError> {
        if let Some(seconds) = parse_seconds(text) {
            return if seconds < 0.0 {
                Err(TimePointError::BeforeStart)
            } else {
                Ok(TimePoint::since_start(seconds))
            };
        }
        let time: Timestamp = text.parse().map_err(|_| TimePointError::NotATime)?;
        let units = time.as_nanosecond() / 100 + i128::from(FILETIME_UNIX_EPOCH);
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        Ok(TimePoint::Utc(FileTime::new(units)))
    }
}

/// A number of seconds, or a duration with a unit.
fn parse_seconds(text: &str) -> Option<f64> {
    let mut number = text;
    let mut size = 1.0;
    for (unit, seconds) in [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("s", 1.0)] {
        if let Some(before) = text.strip_suffix(unit) {
            number = before;
            size = seconds;
            break;
        }
    }
    let value: f64 = number.trim_end().parse().ok()?;
    let seconds = value * size;
    seconds.is_finite().then_some(seconds)
}

/// Why a text is not a [`TimePoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimePointError {
    /// A negative number of seconds.
    BeforeStart,
    /// Neither seconds, nor a duration, nor a time in UTC.
    NotATime,
}

impl fmt::Display for TimePointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimePointError::BeforeStart => "the time is before the start of the trace",
            TimePointError::NotATime => {
                "expected seconds since the start of the trace (1.5), a duration (250ms), or UTC \
                 (2020-07-29T00:07:01Z)"
            }
        })
    }
}

impl std::error::Error for TimePointError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_point_is_seconds_a_duration_or_utc() {
        for (text, units) in [
            ("0", 0),
            ("1.5", 15_000_000),
            ("2s", 20_000_000),
            ("250 ms", 2_500_000),
            ("20us", 200),
            ("149ns", 1),
        ] {
            assert_eq!(text.parse(), Ok(TimePoint::SinceStart(units)), "{text}");
        }
        let epoch = FileTime::new(FILETIME_UNIX_EPOCH);
        assert_eq!("1970-01-01T00:00:00Z".parse(), Ok(TimePoint::Utc(epoch)));
        let parse = |text: &str| text.parse::<TimePoint>();
        assert_eq!(parse("-1"), Err(TimePointError::BeforeStart));
        for text in ["", "now", "inf", "1.5 h", "2020-07-29"] {
            assert_eq!(parse(text), Err(TimePointError::NotATime), "{text}");
        }
    }

    #[test]
    fn ticks_count_from_the_start_of_the_recording() {
        let start = FileTime::new(FILETIME_UNIX_EPOCH);
        let clock = Clock::assumed(Ticks::new(0));
        let since = TimePoint::SinceStart(5).ticks(start, &clock);
        let utc = TimePoint::Utc(FileTime::new(FILETIME_UNIX_EPOCH + 5));
        assert_eq!(utc.ticks(start, &clock), since);
    }
}
