//! FILETIME and SYSTEMTIME values as ISO 8601.

use super::digits::padded;
use crate::decode::SystemTime;

/// Writes a FILETIME (100 ns since 1601) as UTC in ISO 8601, to its 100 ns:
/// `2020-07-29T00:07:10.6935923Z`. Proleptic Gregorian calendar, integers only, no limit.
pub fn filetime(out: &mut Vec<u8>, ticks: u64) {
    let (seconds, fraction) = (ticks / 10_000_000, ticks % 10_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
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

/// Year, month and day of a number of days after 1601-01-01.
///
/// Counted from a March 1st, so that the leap day comes last in a year: 1601-01-01 is 306 days
/// after 1600-03-01, with which a cycle of 400 years begins.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 306;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (1600 + era * 400 + year + next, month, day)
}

/// Writes a SYSTEMTIME as `2020-07-29T00:07:10.693`: no zone, it is its writer's.
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
