//! Values that a script gives to fields, as the fields' types want them.

use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_schema::InType;
use etl_schema::encode::OwnedValue;
use kdl::KdlValue;

use super::process::sid;

/// A value for a field of a type; `text` is the value's text with its variables filled in. What
/// does not go with the type stays what it is, for the encoder to say so.
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
        // A parameter or a variable makes a number out of a text.
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
    if let Some(number) = whole(text) {
        return u64::try_from(number).ok();
    }
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

/// Bytes in hexadecimal digits, as the truth writes them.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let digits = digits.filter(|d| d.len().is_multiple_of(2))?;
    let pair = |pair: &[u8]| pair.iter().fold(0u8, |byte, digit| byte << 4 | digit);
    Some(digits.chunks(2).map(pair).collect())
}
