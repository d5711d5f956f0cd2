//! Timestamps, and calendar time as Windows counts it.

use core::fmt;
use core::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

/// Units of a `FILETIME` in a second.
const UNITS_PER_SECOND: i64 = 10_000_000;
/// 1970-01-01 in units of a `FILETIME`.
const UNIX_EPOCH: i64 = 116_444_736_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// The years of a `SYSTEMTIME`. Times in later ones do not fit into a `FILETIME`.
const YEARS: RangeInclusive<i64> = 1601..=30_827;

/// A timestamp in ticks of the clock of the traced machine.
///
/// [`TraceHeader::frequency`](crate::TraceHeader::frequency) is the number of ticks in a second,
/// and [`TraceHeader::file_time`](crate::TraceHeader::file_time) converts to UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(i64);

impl Ticks {
    /// A number of ticks.
    #[must_use]
    pub const fn new(ticks: i64) -> Self {
        Ticks(ticks)
    }

    /// The number of ticks.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A time in UTC: units of 100 ns since 1601, as Windows' `FILETIME`, with a sign.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use etl_nettrace::FileTime;
///
/// let time = FileTime::new(116_444_736_000_000_000 + 7);
/// let expected = SystemTime::UNIX_EPOCH + Duration::from_nanos(700);
/// assert_eq!(time.to_system_time(), Some(expected));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileTime(i64);

impl FileTime {
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

    /// The same time as the standard library counts it; `None` if this system cannot represent it.
    #[must_use]
    pub fn to_system_time(self) -> Option<SystemTime> {
        let units = self.0.abs_diff(UNIX_EPOCH);
        let per_second = UNITS_PER_SECOND.unsigned_abs();
        let nanos = (units % per_second) as u32 * 100;
        let distance = Duration::new(units / per_second, nanos);
        if self.0 >= UNIX_EPOCH {
            SystemTime::UNIX_EPOCH.checked_add(distance)
        } else {
            SystemTime::UNIX_EPOCH.checked_sub(distance)
        }
    }

    /// This time, later by a number of ticks of a clock; `None` if the frequency is not positive or
    /// the time does not fit. Rounds towards the past.
    pub(crate) fn add_ticks(self, ticks: i128, frequency: i64) -> Option<FileTime> {
        if frequency <= 0 {
            return None;
        }
        let units = (ticks * i128::from(UNITS_PER_SECOND)).div_euclid(frequency.into());
        let units = units.checked_add(self.0.into())?;
        i64::try_from(units).ok().map(FileTime)
    }

    /// The time of a `SYSTEMTIME`: year, month, day of the week, day, hour, minute, second and
    /// millisecond, 16 bits each. `None` if it is not a date of the years 1601 to 30827.
    pub(crate) fn from_system_time_parts(parts: [u16; 8]) -> Option<FileTime> {
        let [year, month, _, day, hour, minute, second, milli] = parts.map(i64::from);
        let is_time = hour < 24 && minute < 60 && second < 60 && milli < 1000;
        let is_date = YEARS.contains(&year) && (1..=12).contains(&month) && day >= 1;
        if !is_time || !is_date || day > days_in_month(year, month) {
            return None;
        }
        let seconds = days_since_1601(year, month, day) * SECONDS_PER_DAY
            + hour * 3600
            + minute * 60
            + second;
        Some(FileTime(seconds * UNITS_PER_SECOND + milli * 10_000))
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1601-01-01 to a date of the Gregorian calendar.
fn days_since_1601(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day comes last; 1601-01-01 is 584,694 days after
    // 0000-03-01.
    let is_before_march = month <= 2;
    let year = if is_before_march { year - 1 } else { year };
    let month = if is_before_march {
        month + 9
    } else {
        month - 3
    };
    let days_before_month = (153 * month + 2) / 5;
    365 * year + year / 4 - year / 100 + year / 400 + days_before_month + day - 1 - 584_694
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_time(parts: [u16; 8]) -> Option<i64> {
        FileTime::from_system_time_parts(parts).map(FileTime::get)
    }

    #[test]
    fn known_dates_have_their_file_time() {
        assert_eq!(file_time([1601, 1, 1, 1, 0, 0, 0, 0]), Some(0));
        assert_eq!(file_time([1970, 1, 4, 1, 0, 0, 0, 0]), Some(UNIX_EPOCH));
        let leap_day = UNIX_EPOCH + 951_782_400 * UNITS_PER_SECOND;
        assert_eq!(file_time([2000, 2, 2, 29, 0, 0, 0, 0]), Some(leap_day));
        let next = leap_day + SECONDS_PER_DAY * UNITS_PER_SECOND;
        assert_eq!(file_time([2000, 3, 3, 1, 0, 0, 0, 0]), Some(next));
        assert!(file_time([30_827, 12, 0, 31, 23, 59, 59, 999]).is_some());
        let later = 132_404_548_306_930_000;
        assert_eq!(file_time([2020, 7, 3, 29, 0, 7, 10, 693]), Some(later));
    }

    #[test]
    fn dates_that_do_not_exist_have_none() {
        for parts in [
            [2023, 2, 0, 29, 0, 0, 0, 0],
            [1900, 2, 0, 29, 0, 0, 0, 0],
            [2024, 13, 0, 1, 0, 0, 0, 0],
            [2024, 0, 0, 1, 0, 0, 0, 0],
            [2024, 1, 0, 0, 0, 0, 0, 0],
            [2024, 1, 0, 1, 24, 0, 0, 0],
            [2024, 1, 0, 1, 0, 0, 0, 1000],
            [1600, 12, 0, 31, 0, 0, 0, 0],
            [30_828, 1, 0, 1, 0, 0, 0, 0],
            [0; 8],
        ] {
            assert_eq!(file_time(parts), None, "{parts:?}");
        }
    }

    #[test]
    fn ticks_are_rounded_towards_the_past() {
        let start = FileTime::new(100);
        assert_eq!(start.add_ticks(-1, 1_000_000_000), Some(FileTime::new(99)));
        assert_eq!(
            start.add_ticks(199, 1_000_000_000),
            Some(FileTime::new(101))
        );
        assert_eq!(start.add_ticks(3, 10_000_000), Some(FileTime::new(103)));
        assert_eq!(start.add_ticks(1, 0), None);
        assert_eq!(start.add_ticks(i64::MAX.into(), 1), None);
    }
}
