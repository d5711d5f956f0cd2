//! Reverses TraceEvent's formatting.

use etl_schema::decode::Value;
use etl_schema::{Field, InType, MapKind, render};

/// Whether TraceEvent prints a value as `text`. Text of more than 20 characters is cut and ends
/// with three dots; numbers have commas between thousands, or are hexadecimal; all integers are
/// signed.
pub fn equal(text: &str, field: &Field, value: Value<'_>) -> bool {
    if let Some(map) = &field.map
        && let Some(bits) = value.bits(width(field))
    {
        let names: Vec<_> = match map.kind() {
            MapKind::Values => map.get(bits).into_iter().collect(),
            MapKind::Bits => map.bits(bits).collect(),
            MapKind::Patterns => Vec::new(),
        };
        let zero = names.is_empty() && bits == 0 && text == "None";
        if zero
            || (!names.is_empty() && cut_equal(&letters(text), &letters(&names.join(",")), text))
        {
            return true;
        }
    }
    match value {
        Value::Bool(b) => text == if b { "True" } else { "False" },
        Value::Int(_) | Value::UInt(_) | Value::Pointer(_) | Value::Char(_) => {
            let bits = value.bits(width(field)).or(match value {
                Value::Char(unit) => Some(unit.into()),
                _ => None,
            });
            bits.is_some_and(|bits| integer(text, bits, width(field)))
        }
        Value::FileTime(ticks) => {
            let mut out = Vec::new();
            render::filetime(&mut out, ticks);
            time(text, &String::from_utf8(out).unwrap())
        }
        Value::Utf16(s) => cut_equal(text, &s.before_nul().to_string(), text),
        Value::Ansi(s) | Value::Utf8(s) => cut_equal(text, &String::from_utf8_lossy(s), text),
        Value::Guid(g) => cut_equal(text, &g.to_string(), text),
        Value::Binary(bytes) => {
            let mut out = Vec::new();
            let address = render::socket_address(&mut out, bytes);
            address && cut_equal(text, &String::from_utf8(out).unwrap(), text)
        }
        Value::Ipv4(a) => cut_equal(text, &a.to_string(), text),
        Value::Ipv6(a) => cut_equal(text, &a.to_string(), text),
        _ => false,
    }
}

/// Whether `text` is `whole`, or its first 20 characters if `shown` ends with dots.
pub fn cut_equal(text: &str, whole: &str, shown: &str) -> bool {
    match shown.strip_suffix("...") {
        Some(start) if start.chars().count() == 20 => {
            let start = text.strip_suffix("...").unwrap_or(text);
            whole.starts_with(start) && whole.len() > start.len()
        }
        _ => text == whole,
    }
}

/// The letters and digits of a name: only other characters differ between ours and theirs.
fn letters(text: &str) -> String {
    text.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

fn width(field: &Field) -> usize {
    match field.in_type() {
        Some(InType::Int8 | InType::UInt8) => 1,
        Some(InType::Int16 | InType::UInt16) => 2,
        Some(InType::Int32 | InType::UInt32 | InType::HexInt32 | InType::Boolean) => 4,
        _ => 8,
    }
}

/// Whether `text` is the number with these bits, signed or not.
pub fn integer(text: &str, bits: u64, width: usize) -> bool {
    if text.ends_with("...") {
        return cut_equal(text, &thousands(bits.cast_signed()), text);
    }
    let plain = text.replace(',', "");
    let number = match plain.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(i128::from),
        None => match plain.as_str() {
            "True" => Some(1),
            "False" => Some(0),
            digits => digits.parse().ok(),
        },
    };
    number.is_some_and(|n| (n - i128::from(bits)).rem_euclid(1 << (8 * width)) == 0)
}

fn thousands(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::from(if n < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `20/07/29 00:07:10.69...` is the start of `2020-07-29T00:07:10.6935923Z`.
pub fn time(text: &str, iso: &str) -> bool {
    let theirs = text
        .trim_end_matches("...")
        .replace('/', "-")
        .replace(' ', "T");
    text.ends_with("...") && iso.get(2..).is_some_and(|iso| iso.starts_with(&theirs))
}

#[test]
fn undone_reverses_the_formatting() {
    assert!(integer("-1", 0xffff_ffff, 4) && integer("83,951,626", 83_951_626, 4));
    assert!(!integer("-1", 0xffff, 4) && integer("0x00187000", 0x18_7000, 8));
    assert!(integer("-2,305,843,009,213,6...", 0xe000_0000_0000_0000, 8));
    assert_eq!(thousands(-1_234_567), "-1,234,567");
    assert!(time(
        "20/07/29 00:07:10.69...",
        "2020-07-29T00:07:10.6935923Z"
    ));
    assert!(!time(
        "20/07/29 00:07:10.69...",
        "2020-07-29T00:07:10.7035923Z"
    ));
    let cut = "System.Diagnostics.P...";
    assert!(cut_equal(cut, "System.Diagnostics.Process", cut) && !cut_equal(cut, "System", cut));
}
