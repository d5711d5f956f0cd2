//! FILETIME and SYSTEMTIME values as ISO 8601.

use super::digits::padded;
use crate::decode::{SystemTime, Value};
use crate::model::{Field, is_time};
use etl_format::constants::FILETIME_PER_SECOND;

/// The time of a value as a FILETIME, at most `i64::MAX`: of a FILETIME, of a SYSTEMTIME as if it
/// were UTC, and of a number that is printed as a time. `None` for other values.
#[must_use]
pub fn time_of(field: &Field, value: Value<'_>) -> Option<i64> {
    let ticks = match value {
        Value::SystemTime(time) => return Some(ticks(time)),
        Value::FileTime(ticks) => ticks,
        Value::Int(_) | Value::UInt(_) if is_time(field) => value.bits(8)?,
        _ => return None,
    };
    Some(i64::try_from(ticks).unwrap_or(i64::MAX))
}

/// A SYSTEMTIME as a FILETIME: the inverse of [`date`].
fn ticks(time: SystemTime) -> i64 {
    let [year, month, _, day, hour, minute, second, ms] = time.0.map(i64::from);
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let year = year - 1600;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day = 365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - FROM_MARCH;
    let second = ((day * 24 + hour) * 60 + minute) * 60 + second;
    second
        .saturating_mul(FILETIME_PER_SECOND)
        .saturating_add(ms * (FILETIME_PER_SECOND / 1_000))
}

/// Days from 1600-03-01 to 1601-01-01.
const FROM_MARCH: i64 = 306;

/// Writes a FILETIME (100 ns since 1601) as UTC in ISO 8601, to its 100 ns:
/// `2020-07-29T00:07:10.6935923Z`. Proleptic Gregorian calendar, integers only, no limit.
pub fn filetime(out: &mut Vec<u8>, ticks: u64) {
    let seconds = ticks / 10_000_000;
    let fraction = ticks % 10_000_000;
    let second = seconds % 86_400;
    let Date { year, month, day } = date(seconds / 86_400);
    for (n, width, end) in [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (second / 3_600, 2, b':'),
        (second / 60 % 60, 2, b':'),
        (second % 60, 2, b'.'),
        (fraction, 7, b'Z'),
    ] {
        padded(out, n, width);
        out.push(end);
    }
}

/// A date of the Gregorian calendar.
struct Date {
    year: u64,
    month: u64,
    day: u64,
}

/// The date that is a number of days after 1601-01-01.
///
/// Years are counted from March 1st, so that the leap day is the last day of a year: 1601-01-01 is
/// 306 days after 1600-03-01, with which a cycle of 400 years begins.
fn date(days: u64) -> Date {
    let days = days + 306;
    let era = days / 146_097;
    let day = days % 146_097;
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = 1600 + era * 400 + year;
    if month < 10 {
        Date {
            year,
            month: month + 3,
            day,
        }
    } else {
        Date {
            year: year + 1,
            month: month - 9,
            day,
        }
    }
}

/// Writes a SYSTEMTIME as `2020-07-29T00:07:10.693`, without a zone: only its writer knows it.
pub fn system_time(out: &mut Vec<u8>, time: SystemTime) {
    let [year, month, _, day, hour, minute, second, ms] = time.0;
    for (n, width, end) in [
        (year, 4, Some(b'-')),
        (month, 2, Some(b'-')),
        (day, 2, Some(b'T')),
        (hour, 2, Some(b':')),
        (minute, 2, Some(b':')),
        (second, 2, Some(b'.')),
        (ms, 3, None),
    ] {
        padded(out, n.into(), width);
        out.extend(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::InType;

    #[test]
    fn time_of_a_system_time_has_its_digits() {
        let field = Field::new("F", InType::SystemTime);
        let of = |time| time_of(&field, Value::SystemTime(SystemTime(time)));
        assert_eq!(of([1601, 1, 1, 1, 0, 0, 0, 0]), Some(0));
        assert_eq!(
            of([2020, 7, 3, 29, 0, 7, 10, 693]),
            Some(132_404_548_306_930_000)
        );
        assert_eq!(
            of([2000, 2, 2, 29, 0, 0, 0, 0]),
            of([2000, 3, 3, 0, 0, 0, 0, 0])
        );
        assert_eq!(of([u16::MAX; 8]), Some(i64::MAX));
        assert!(of([0; 8]) < Some(0));
    }
}
