//! Values of fields in scripts, converted to the types of the fields.

use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_schema::InType;
use etl_schema::encode::OwnedValue;
use kdl::KdlValue;

/// A value for a field of a type; `text` is the value as text with its variables filled in. A value
/// that does not fit the type stays as it is, and the encoder reports it.
pub(super) fn value(of: Option<InType>, given: &KdlValue, text: String) -> OwnedValue {
    let number = |n: i128| match (u64::try_from(n), i64::try_from(n)) {
        (Ok(n), _) => OwnedValue::UInt(n),
        (_, Ok(n)) => OwnedValue::Int(n),
        _ => OwnedValue::Text(n.to_string()),
    };
    let read = match (of, given) {
        (_, KdlValue::Null) => Some(OwnedValue::Auto),
        (Some(InType::Float), _) => text.parse().ok().map(OwnedValue::Float),
        (Some(InType::Double), _) => text.parse().ok().map(OwnedValue::Double),
        (_, KdlValue::Integer(n)) => Some(number(*n)),
        (_, KdlValue::Float(n)) => Some(OwnedValue::Double(*n)),
        (_, KdlValue::Bool(b)) => Some(OwnedValue::Bool(*b)),
        (Some(InType::Boolean), _) => text.parse().ok().map(OwnedValue::Bool),
        (Some(InType::Guid), _) => text.parse().ok().map(OwnedValue::Guid),
        (Some(InType::Sid | InType::WbemSid), _) => sid(&text).map(OwnedValue::Sid),
        (Some(InType::FileTime), _) => file_time(&text).map(OwnedValue::FileTime),
        (Some(InType::SystemTime), _) => system_time(&text).map(OwnedValue::SystemTime),
        (Some(InType::Binary), _) => bytes(&text).map(OwnedValue::Binary),
        (Some(InType::Utf16 | InType::Ansi), _) => None,
        // A parameter or a variable is text.
        _ => whole(&text).map(number),
    };
    read.unwrap_or(OwnedValue::Text(text))
}

fn whole(text: &str) -> Option<i128> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(i128::from),
        None => text.parse().ok(),
    }
}

fn file_time(text: &str) -> Option<u64> {
    match whole(text) {
        Some(number) => u64::try_from(number).ok(),
        None => utc_time(text),
    }
}

/// A time in UTC as FILETIME.
pub(super) fn utc_time(text: &str) -> Option<u64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_nanosecond() / 100 + i128::from(FILETIME_UNIX_EPOCH)).ok()
}

/// Year, month, day of the week, day, hour, minute, second, millisecond; UTC.
fn system_time(text: &str) -> Option<[u16; 8]> {
    let time: jiff::Timestamp = text.parse().ok()?;
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

/// Bytes in hexadecimal digits, as in the truth.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let digits = digits.filter(|d| d.len().is_multiple_of(2))?;
    let pair = |pair: &[u8]| pair.iter().fold(0u8, |byte, digit| byte << 4 | digit);
    Some(digits.chunks(2).map(pair).collect())
}

/// A SID from its text, or from the name of a system account.
pub(super) fn sid(text: &str) -> Option<Vec<u8>> {
    let text = match text {
        "system" => "S-1-5-18",
        "local-service" => "S-1-5-19",
        "network-service" => "S-1-5-20",
        other => other,
    };
    let mut parts = text.strip_prefix("S-1-")?.split('-');
    let authority: u64 = parts.next()?.parse().ok().filter(|a| *a < 1 << 48)?;
    let parts: Option<Vec<u32>> = parts.map(|p| p.parse().ok()).collect();
    let parts = parts.filter(|p| (1..=15).contains(&p.len()))?;
    let mut sid = vec![1, u8::try_from(parts.len()).ok()?];
    sid.extend(authority.to_be_bytes().get(2..)?);
    parts.iter().for_each(|part| sid.extend(part.to_le_bytes()));
    Some(sid)
}
