//! Numbers as people write them.

/// Parses a decimal number, or a hexadecimal number after `0x`. `None` if the text is not such a
/// number, or the number does not fit.
///
/// ```
/// assert_eq!(etl_format::parse_number("0x2A"), Some(42u8));
/// assert_eq!(etl_format::parse_number::<u64>("+42"), None);
/// ```
#[must_use]
pub fn parse_number<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = hexadecimal.unwrap_or(text);
    // The standard library also accepts a sign.
    if digits.starts_with('+') {
        return None;
    }
    let radix = if hexadecimal.is_some() { 16 } else { 10 };
    let number = u64::from_str_radix(digits, radix).ok()?;
    T::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::parse_number;

    #[test]
    fn parse_number_takes_decimal_and_hexadecimal_digits_alone() {
        for (text, number) in [("0", 0), ("255", 255), ("0xff", 255), ("0XFF", 255)] {
            assert_eq!(parse_number(text), Some(number as u8), "{text}");
        }
        for text in [
            "", "0x", "+1", "0x+1", "-1", "1.0", " 1", "ff", "0xg", "256", "0x100",
        ] {
            assert_eq!(parse_number::<u8>(text), None, "{text}");
        }
        assert_eq!(parse_number("18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_number::<u64>("18446744073709551616"), None);
    }
}
