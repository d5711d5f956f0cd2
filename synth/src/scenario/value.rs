//! Values of fields in scripts, converted to the types of the fields.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_schema::encode::OwnedValue;
use etl_schema::{Field, InType, Length, MapKind, OutType};
use kdl::KdlValue;

use crate::time::system_time;

/// A value for a field; `text` is the value as text with its variables filled in. A value of
/// another type stays as it is, and the encoder reports it; `None` if the encoder would write it.
pub(super) fn value(field: &Field, given: &KdlValue, text: String) -> Option<OwnedValue> {
    let field_type = field.in_type();
    let read = match (field_type, given) {
        (_, KdlValue::Null) => Some(OwnedValue::Auto),
        (Some(InType::Float), _) => {
            let number: f32 = text.parse().ok()?;
            // Digits of a number that is too large are read as infinity.
            if number.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) {
                return None;
            }
            return Some(OwnedValue::Float(number));
        }
        (Some(InType::Double), _) => text.parse().ok().map(OwnedValue::Double),
        (Some(InType::SystemTime), KdlValue::Integer(n)) => u64::try_from(*n)
            .ok()
            .and_then(file_time_parts)
            .map(OwnedValue::SystemTime),
        (Some(InType::Boolean), KdlValue::Integer(n)) if !matches!(n, 0 | 1) => return None,
        (_, KdlValue::Integer(n)) => Some(whole_number(*n)),
        (_, KdlValue::Float(n)) => Some(OwnedValue::Double(*n)),
        (_, KdlValue::Bool(b)) => Some(OwnedValue::Bool(*b)),
        (Some(InType::Boolean), _) => match &*text {
            "0" => Some(OwnedValue::Bool(false)),
            "1" => Some(OwnedValue::Bool(true)),
            text => text.parse().ok().map(OwnedValue::Bool),
        },
        (Some(InType::Guid), _) => text.parse().ok().map(OwnedValue::Guid),
        (Some(InType::Sid | InType::WbemSid), _) => sid(&text).map(OwnedValue::Sid),
        (Some(InType::FileTime), _) => file_time(&text).map(OwnedValue::FileTime),
        (Some(InType::SystemTime), _) => {
            let parts = file_time(&text).and_then(file_time_parts);
            parts.map(OwnedValue::SystemTime)
        }
        (Some(InType::Binary), _) => match text.parse() {
            Ok(address) if field.out == OutType::Ipv6 => Some(OwnedValue::Ipv6(address)),
            _ => return binary(field, &text).map(OwnedValue::Binary),
        },
        (Some(InType::Utf16 | InType::Ansi), _) => None,
        // A parameter or a variable is text.
        _ => whole(&text)
            .map(whole_number)
            .or_else(|| named(field, &text)),
    };
    Some(read.unwrap_or(OwnedValue::Text(text)))
}

/// A number by its name in the field's map (`|` between bits), or as an IPv4 address.
fn named(field: &Field, text: &str) -> Option<OwnedValue> {
    if field.in_type() == Some(InType::UInt32)
        && let Ok(address) = text.parse::<Ipv4Addr>()
    {
        // What readers see in it: many tables do not say that it is an address.
        return Some(match field.out {
            OutType::Ipv4 => OwnedValue::Ipv4(address),
            _ => OwnedValue::UInt(u32::from_le_bytes(address.octets()).into()),
        });
    }
    let map = field.map.as_deref()?;
    let words = text.split('|').map(str::trim);
    let words: Vec<&str> = if map.kind() == MapKind::Bits {
        words.collect()
    } else {
        vec![text]
    };
    let mut number = 0;
    for word in words {
        let mut entries = map.entries().iter();
        number |= entries
            .find(|entry| entry.name.eq_ignore_ascii_case(word))?
            .value;
    }
    Some(OwnedValue::UInt(number))
}

/// A whole number; as text if it has more than 64 bits.
fn whole_number(number: i128) -> OwnedValue {
    match (u64::try_from(number), i64::try_from(number)) {
        (Ok(number), _) => OwnedValue::UInt(number),
        (_, Ok(number)) => OwnedValue::Int(number),
        _ => OwnedValue::Text(number.to_string()),
    }
}

/// Bytes: hexadecimal digits, an IPv6 address, or an address and a port as a socket address.
fn binary(field: &Field, text: &str) -> Option<Vec<u8>> {
    let is_ipv6 = field.length == Length::Fixed(16);
    if is_ipv6 && let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(address.octets().to_vec());
    }
    bytes(text).or_else(|| text.parse().ok().map(socket_address))
}

/// Families of socket addresses in Windows.
const AF_INET: u16 = 2;
const AF_INET6: u16 = 23;

/// `sockaddr_in` or `sockaddr_in6`.
fn socket_address(address: SocketAddr) -> Vec<u8> {
    let (family, mut rest) = match address {
        SocketAddr::V4(v4) => (AF_INET, [&v4.ip().octets()[..], &[0; 8]].concat()),
        SocketAddr::V6(v6) => {
            let flow = v6.flowinfo().to_be_bytes();
            let scope = v6.scope_id().to_le_bytes();
            (AF_INET6, [&flow[..], &v6.ip().octets(), &scope].concat())
        }
    };
    let mut out = family.to_le_bytes().to_vec();
    out.extend(address.port().to_be_bytes());
    out.append(&mut rest);
    out
}

fn whole(text: &str) -> Option<i128> {
    etl_format::parse_number::<u64>(text)
        .map(i128::from)
        .or_else(|| text.parse().ok())
}

fn file_time(text: &str) -> Option<u64> {
    match whole(text) {
        Some(number) => u64::try_from(number).ok(),
        None => utc_time(text),
    }
}

/// A FILETIME as SYSTEMTIME.
fn file_time_parts(time: u64) -> Option<[u16; 8]> {
    let since_1970 = i128::from(time) - i128::from(FILETIME_UNIX_EPOCH);
    system_time(jiff::Timestamp::from_nanosecond(since_1970 * 100).ok()?)
}

/// A time in UTC as FILETIME.
pub(super) fn utc_time(text: &str) -> Option<u64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_nanosecond() / 100 + i128::from(FILETIME_UNIX_EPOCH)).ok()
}

/// Bytes in hexadecimal digits, as in the truth; with `-` or `:` between bytes in an address.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    let separator = [':', '-']
        .into_iter()
        .find(|by| text.contains(*by) && text.split(*by).all(|byte| byte.len() == 2));
    let digits = text.chars().filter(|c| Some(*c) != separator);
    let digits: Option<Vec<u8>> = digits
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
        .collect();
    let digits = digits.filter(|d| d.len().is_multiple_of(2))?;
    let pairs = digits.chunks(2);
    Some(
        pairs
            .map(|pair| pair.iter().fold(0u8, |byte, digit| byte << 4 | digit))
            .collect(),
    )
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
