//! Durations as people write them.

use crate::machine::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// `1.5s`, `20ms`, `3us`, `7ns`: the largest unit that leaves no more than three decimals.
#[must_use]
pub fn duration(at: Nanos) -> String {
    let (unit, name) = match at {
        0 => return "0s".to_owned(),
        _ if at.is_multiple_of(MILLISECOND) && at >= SECOND => (SECOND, "s"),
        _ if at.is_multiple_of(MICROSECOND) && at >= MILLISECOND => (MILLISECOND, "ms"),
        _ if at >= MICROSECOND => (MICROSECOND, "us"),
        _ => (1, "ns"),
    };
    let (whole, part) = (at / unit, at % unit * 1000 / unit);
    if part == 0 {
        return format!("{whole}{name}");
    }
    format!("{whole}.{part:03}").trim_end_matches('0').to_owned() + name
}

/// Reads what [`duration`] writes, and `min` and `h`; a bare number counts seconds.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Nanos> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
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

/// Names that devices have on Windows, whatever stands behind a dot.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Why a name cannot be that of a file beside the others on every system; `None` if it can.
#[must_use]
pub fn no_file_name(name: &str) -> Option<&'static str> {
    let bare = name.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let port = bare.strip_prefix("com").or_else(|| bare.strip_prefix("lpt"));
    let device = DEVICES.contains(&&*bare)
        || port.is_some_and(|n| n.len() == 1 && n.starts_with(|c: char| c.is_ascii_digit()));
    if name.is_empty() {
        Some("it is empty")
    } else if name.contains(['/', '\\', ':']) || name == "." || name == ".." {
        Some("it has a directory")
    } else if name.contains(['<', '>', '"', '|', '?', '*']) || name.contains(char::is_control) {
        Some("it has a character that Windows has in no name")
    } else if name.ends_with(['.', ' ']) {
        Some("it ends with a dot or a blank, which Windows drops")
    } else if device {
        Some("it is that of a device on Windows")
    } else if name.len() > 200 {
        Some("it is longer than 200 bytes")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_come_back() {
        for (text, nanos) in [
            ("0s", 0),
            ("2s", 2 * SECOND),
            ("1.5s", 3 * SECOND / 2),
            ("20ms", 20 * MILLISECOND),
            ("1.001ms", 1_001_000),
            ("7us", 7_000),
            ("7ns", 7),
        ] {
            assert_eq!(duration(nanos), text);
            assert_eq!(parse_duration(text), Some(nanos));
        }
        assert_eq!(parse_duration("3"), Some(3 * SECOND));
        assert_eq!(parse_duration("2min"), Some(120 * SECOND));
        for wrong in ["", "s", "1.2.3s", "1x", "-1s", "99999999999999h"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn files_have_names_that_every_system_takes() {
        for fine in [
            "a.etl",
            "part%d.etl",
            "a.etl_4312",
            "x {mmddhhmm}.etl",
            "common.etl",
            "com10.etl",
            "..a",
        ] {
            assert_eq!(no_file_name(fine), None, "{fine}");
        }
        for (name, why) in [
            ("", "empty"),
            ("../a.etl", "directory"),
            ("..", "directory"),
            ("a\\b", "directory"),
            ("C:a", "directory"),
            ("a?.etl", "character"),
            ("a\u{7}", "character"),
            ("a.etl.", "dot"),
            ("NUL.etl", "device"),
            ("com1", "device"),
        ] {
            assert!(no_file_name(name).is_some_and(|said| said.contains(why)), "{name}");
        }
    }
}
