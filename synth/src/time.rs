//! Simulated time: its unit, and durations as text.

/// Nanoseconds of simulated time since the scenario began.
pub type Nanos = u64;

/// One second of simulated time.
pub const SECOND: Nanos = 1_000_000_000;

/// One millisecond of simulated time.
pub const MILLISECOND: Nanos = 1_000_000;

/// One microsecond of simulated time.
pub const MICROSECOND: Nanos = 1_000;

/// A time as SYSTEMTIME: year, month, day of the week, day, hour, minute, second, millisecond; UTC.
pub(crate) fn system_time(time: jiff::Timestamp) -> Option<[u16; 8]> {
    let time = time.to_zoned(jiff::tz::TimeZone::UTC);
    let parts = [
        time.year(),
        i16::from(time.month()),
        i16::from(time.weekday().to_sunday_zero_offset()),
        i16::from(time.day()),
        i16::from(time.hour()),
        i16::from(time.minute()),
        i16::from(time.second()),
        time.millisecond(),
    ];
    let mut out = [0; 8];
    for (to, from) in out.iter_mut().zip(parts) {
        *to = u16::try_from(from).ok()?;
    }
    Some(out)
}

/// Formats a duration in the largest unit that needs at most three decimals: `1.5s`, `20ms`,
/// `3us`, `7ns`.
///
/// ```
/// use etl_synth::{MILLISECOND, format_duration};
///
/// assert_eq!(format_duration(1_500 * MILLISECOND), "1.5s");
/// assert_eq!(format_duration(7), "7ns");
/// ```
#[must_use]
pub fn format_duration(at: Nanos) -> String {
    let (unit, name) = match at {
        0 => return "0s".to_owned(),
        _ if at.is_multiple_of(MILLISECOND) && at >= SECOND => (SECOND, "s"),
        _ if at.is_multiple_of(MICROSECOND) && at >= MILLISECOND => (MILLISECOND, "ms"),
        _ if at >= MICROSECOND => (MICROSECOND, "us"),
        _ => (1, "ns"),
    };
    let whole = at / unit;
    let part = at % unit * 1000 / unit;
    if part == 0 {
        return format!("{whole}{name}");
    }
    format!("{whole}.{part:03}")
        .trim_end_matches('0')
        .to_owned()
        + name
}

/// Parses what [`format_duration`] writes, and the units `min` and `h`. A number without a unit is
/// in seconds.
///
/// ```
/// use etl_synth::{MILLISECOND, SECOND, parse_duration};
///
/// assert_eq!(parse_duration("20ms"), Some(20 * MILLISECOND));
/// assert_eq!(parse_duration("1.5min"), Some(90 * SECOND));
/// assert_eq!(parse_duration("soon"), None);
/// ```
#[must_use]
pub fn parse_duration(text: &str) -> Option<Nanos> {
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split)?;
    let unit = match unit.trim() {
        "" | "s" => SECOND,
        "ms" => MILLISECOND,
        "us" | "µs" => MICROSECOND,
        "ns" => 1,
        "min" => 60 * SECOND,
        "h" => 3600 * SECOND,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || part.len() > 9 {
        return None;
    }
    let mut nanos = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut scale = unit;
    for digit in part.bytes() {
        scale /= 10;
        nanos = nanos.checked_add(u64::from(digit.checked_sub(b'0')?).checked_mul(scale)?)?;
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_duration_reads_what_format_duration_writes() {
        for (text, nanos) in [
            ("0s", 0),
            ("2s", 2 * SECOND),
            ("1.5s", 3 * SECOND / 2),
            ("20ms", 20 * MILLISECOND),
            ("1.001ms", 1_001_000),
            ("7us", 7_000),
            ("7ns", 7),
        ] {
            assert_eq!(format_duration(nanos), text);
            assert_eq!(parse_duration(text), Some(nanos));
        }
        assert_eq!(parse_duration("3"), Some(3 * SECOND));
        assert_eq!(parse_duration("2min"), Some(120 * SECOND));
        for wrong in ["", "s", "1.2.3s", "1x", "-1s", "99999999999999h"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }
}
