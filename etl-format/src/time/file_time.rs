//! Calendar time as Windows counts it.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::constants::{FILETIME_PER_SECOND, FILETIME_UNIX_EPOCH};

const NANOS_PER_UNIT: i128 = 100;
const SECONDS_PER_DAY: i64 = 86_400;

/// A time in UTC: units of 100 ns since 1601, as Windows' `FILETIME`, with a sign.
///
/// `Display` prints ISO 8601, to 100 ns. With the feature `serde` it is serialized as this text.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use etl_format::FileTime;
///
/// let time = FileTime::new(132_404_548_306_935_923);
/// assert_eq!(time.to_string(), "2020-07-29T00:07:10.6935923Z");
///
/// let later = time.checked_add(Duration::from_secs(20)).ok_or("too late")?;
/// assert_eq!(later.duration_since(time), Some(Duration::from_secs(20)));
///
/// let system_time = time.to_system_time().ok_or("not in the range of this system")?;
/// assert_eq!(FileTime::try_from(system_time)?, time);
/// assert_eq!(FileTime::UNIX_EPOCH.to_system_time(), Some(SystemTime::UNIX_EPOCH));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileTime(i64);

impl FileTime {
    /// 1970-01-01, the beginning of Unix time.
    pub const UNIX_EPOCH: FileTime = FileTime(FILETIME_UNIX_EPOCH);

    /// A time in units of 100 ns since 1601.
    #[must_use]
    pub const fn new(units: i64) -> Self {
        FileTime(units)
    }

    /// Units of 100 ns since 1601.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// A later time, rounded down to 100 ns; `None` if it does not fit into 64 bits.
    #[must_use]
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        self.0.checked_add_unsigned(units(duration)?).map(FileTime)
    }

    /// An earlier time; `None` if it does not fit into 64 bits. The duration is rounded down to
    /// 100 ns.
    #[must_use]
    pub fn checked_sub(self, duration: Duration) -> Option<Self> {
        self.0.checked_sub_unsigned(units(duration)?).map(FileTime)
    }

    /// The time from an earlier time to this one; `None` if `earlier` is later.
    #[must_use]
    pub fn duration_since(self, earlier: FileTime) -> Option<Duration> {
        if self < earlier {
            return None;
        }
        let units = self.0.abs_diff(earlier.0);
        let per_second = FILETIME_PER_SECOND.unsigned_abs();
        let nanos = (units % per_second) as u32 * NANOS_PER_UNIT as u32;
        Some(Duration::new(units / per_second, nanos))
    }

    /// The same time as a `SystemTime`; `None` if this system cannot represent it.
    #[must_use]
    pub fn to_system_time(self) -> Option<SystemTime> {
        match self.duration_since(FileTime::UNIX_EPOCH) {
            Some(since) => SystemTime::UNIX_EPOCH.checked_add(since),
            None => SystemTime::UNIX_EPOCH.checked_sub(FileTime::UNIX_EPOCH.duration_since(self)?),
        }
    }
}

/// A duration in units of 100 ns, rounded down.
fn units(duration: Duration) -> Option<u64> {
    u64::try_from(duration.as_nanos() / NANOS_PER_UNIT.unsigned_abs()).ok()
}

/// A [`SystemTime`] is too far from 1601 for a [`FileTime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time does not fit into 64 bits of 100 ns since 1601")]
#[non_exhaustive]
pub struct OutOfRange;

/// Rounds towards the past, to 100 ns.
impl TryFrom<SystemTime> for FileTime {
    type Error = OutOfRange;

    fn try_from(time: SystemTime) -> Result<Self, OutOfRange> {
        let nanos = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => i128::try_from(since.as_nanos()),
            Err(before) => i128::try_from(before.duration().as_nanos()).map(|nanos| -nanos),
        };
        let nanos = nanos.map_err(|_| OutOfRange)?;
        let units = nanos.div_euclid(NANOS_PER_UNIT) + i128::from(FILETIME_UNIX_EPOCH);
        i64::try_from(units).map(FileTime).map_err(|_| OutOfRange)
    }
}

/// ISO 8601, for example `2020-07-29T00:07:10.6935923Z`. Years before 1601 follow the proleptic
/// Gregorian calendar.
impl fmt::Display for FileTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(FILETIME_PER_SECOND);
        let fraction = self.0.rem_euclid(FILETIME_PER_SECOND);
        let second = seconds.rem_euclid(SECONDS_PER_DAY);
        // Days are counted from a March 1st, so that the leap day comes last in a year; 1601-01-01
        // is 584,694 days after 0000-03-01.
        let days = seconds.div_euclid(SECONDS_PER_DAY) + 584_694;
        let era = days.div_euclid(146_097);
        let day = days.rem_euclid(146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        // March is month 0; January and February are in the next calendar year.
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let is_next_year = month >= 10;
        let month = if is_next_year { month - 9 } else { month + 3 };
        let year = era * 400 + year + i64::from(is_next_year);
        let hour = second / 3_600;
        let minute = second / 60 % 60;
        let second = second % 60;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z"
        )
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for FileTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn display_of_known_dates() {
        for (units, text) in [
            (0, "1601-01-01T00:00:00.0000000Z"),
            (FILETIME_UNIX_EPOCH, "1970-01-01T00:00:00.0000000Z"),
            (
                FILETIME_UNIX_EPOCH + 951_782_400 * 10_000_000,
                "2000-02-29T00:00:00.0000000Z",
            ),
            (
                FILETIME_UNIX_EPOCH + 951_868_800 * 10_000_000,
                "2000-03-01T00:00:00.0000000Z",
            ),
            (132_404_548_306_935_923, "2020-07-29T00:07:10.6935923Z"),
            (-1, "1600-12-31T23:59:59.9999999Z"),
        ] {
            assert_eq!(FileTime::new(units).to_string(), text);
        }
    }

    #[test]
    fn arithmetic_is_checked() {
        let unit = Duration::from_nanos(100);
        assert_eq!(FileTime::new(i64::MAX).checked_add(unit), None);
        assert_eq!(FileTime::new(i64::MIN).checked_sub(unit), None);
        assert_eq!(FileTime::new(0).checked_add(Duration::MAX), None);
        assert_eq!(FileTime::new(7).checked_sub(unit), Some(FileTime::new(6)));
        assert_eq!(FileTime::new(7).duration_since(FileTime::new(8)), None);
        let all = FileTime::new(i64::MAX).duration_since(FileTime::new(i64::MIN));
        assert_eq!(all.and_then(units), Some(u64::MAX));
    }

    proptest! {
        #[test]
        fn system_time_converts_back(units: i64) {
            let time = FileTime::new(units);
            prop_assert!(!time.to_string().is_empty());
            if let Some(system_time) = time.to_system_time() {
                prop_assert_eq!(FileTime::try_from(system_time), Ok(time));
            }
        }
    }
}
