//! The value of a condition: text, and the number, time, address or GUID that it is.

use core::cmp::Ordering;
use core::net::IpAddr;

use etl_format::Guid;
use etl_format::constants::{FILETIME_PER_SECOND, FILETIME_UNIX_EPOCH};
use etl_schema::Field;
use etl_schema::decode::Value;
use etl_schema::render;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::pattern::Pattern;

/// The value with which fields are compared.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    /// In lower case.
    text: String,
    pattern: Pattern,
    guid: Option<Guid>,
    ordered: Option<Ordered>,
}

/// A value that others can be less or greater than.
#[derive(Clone, Copy, Debug)]
enum Ordered {
    Integer(i128),
    Number(f64),
    /// A FILETIME.
    Time(i64),
    Address(IpAddr),
}

impl Operand {
    pub(super) fn new(text: &str) -> Self {
        Operand {
            text: text.to_lowercase(),
            pattern: Pattern::new(text),
            guid: Guid::parse(text).ok(),
            ordered: Ordered::parse(text),
        }
    }

    /// Whether values can be less or greater than it.
    pub(super) fn has_order(&self) -> bool {
        self.ordered.is_some()
    }

    /// Whether it is the same as a text, case-insensitively. GUIDs may have braces.
    pub(super) fn is(&self, text: &str) -> bool {
        text.to_lowercase() == self.text
            || self.guid.is_some_and(|guid| Guid::parse(text) == Ok(guid))
    }

    /// Whether it matches a text as a pattern.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.pattern.matches(text)
    }

    /// How a number compares with it.
    pub(super) fn order_of(&self, number: i128) -> Option<Ordering> {
        match self.ordered? {
            Ordered::Integer(wanted) => Some(number.cmp(&wanted)),
            Ordered::Number(wanted) => (number as f64).partial_cmp(&wanted),
            _ => None,
        }
    }

    fn order_of_float(&self, number: f64) -> Option<Ordering> {
        match self.ordered? {
            Ordered::Integer(wanted) => number.partial_cmp(&(wanted as f64)),
            Ordered::Number(wanted) => number.partial_cmp(&wanted),
            _ => None,
        }
    }

    /// How the time of an event compares with it: with a number, its seconds since `start`.
    pub(super) fn order_of_time(&self, filetime: i64, start: i64) -> Option<Ordering> {
        let seconds = match self.ordered? {
            Ordered::Time(wanted) => return Some(filetime.cmp(&wanted)),
            Ordered::Integer(wanted) => wanted as f64,
            Ordered::Number(wanted) => wanted,
            Ordered::Address(_) => return None,
        };
        let since = i128::from(filetime) - i128::from(start);
        Some(since.cmp(&((seconds * FILETIME_PER_SECOND as f64).round() as i128)))
    }

    /// How the value of a field compares with it.
    pub(super) fn order_of_value(&self, field: &Field, value: Value<'_>) -> Option<Ordering> {
        match (self.ordered?, value) {
            (Ordered::Time(wanted), _) => Some(render::time_of(field, value)?.cmp(&wanted)),
            (Ordered::Address(IpAddr::V4(wanted)), Value::Ipv4(address)) => {
                Some(address.cmp(&wanted))
            }
            (Ordered::Address(IpAddr::V6(wanted)), Value::Ipv6(address)) => {
                Some(address.cmp(&wanted))
            }
            (Ordered::Address(_), _) => None,
            (_, Value::Float(number)) => self.order_of_float(number.into()),
            (_, Value::Double(number)) => self.order_of_float(number),
            // Numbers that are printed as hexadecimal have no sign.
            (_, Value::Int(_)) if field.is_hexadecimal() => {
                self.order_of(render::bits(field, value)?.into())
            }
            (_, Value::Int(number)) => self.order_of(number.into()),
            (_, value) => self.order_of(value.as_u64()?.into()),
        }
    }
}

impl Ordered {
    fn parse(text: &str) -> Option<Self> {
        let integer = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => i128::from_str_radix(digits, 16),
            None => text.parse(),
        };
        if let Ok(integer) = integer {
            return Some(Ordered::Integer(integer));
        }
        if let Ok(number) = text.parse::<f64>()
            && !number.is_nan()
        {
            return Some(Ordered::Number(number));
        }
        if let Ok(address) = text.parse() {
            return Some(Ordered::Address(address));
        }
        Some(Ordered::Time(filetime(text)?))
    }
}

/// The FILETIME of a time in ISO 8601; a time without an offset is in UTC.
fn filetime(text: &str) -> Option<i64> {
    let time: Timestamp = match text.parse() {
        Ok(time) => time,
        Err(_) => {
            let time: DateTime = text.parse().ok()?;
            time.to_zoned(TimeZone::UTC).ok()?.timestamp()
        }
    };
    let since_1970 = i64::try_from(time.as_nanosecond().div_euclid(100)).ok()?;
    since_1970.checked_add(FILETIME_UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use etl_schema::decode::SystemTime;
    use etl_schema::{InType, OutType};

    use super::*;

    #[test]
    fn operand_has_the_order_of_what_its_text_is() {
        for text in [
            "5",
            "-1",
            "1.5",
            "0x10",
            "0Xff",
            "10.0.0.4",
            "fe80::1",
            "2024-01-17",
        ] {
            assert!(Operand::new(text).has_order(), "{text}");
        }
        for text in ["", "1K", "Warning", "NaN", "0x", "10.0.0", "2024-13-01"] {
            assert!(!Operand::new(text).has_order(), "{text}");
        }
    }

    #[test]
    fn filetime_reads_what_rows_print_and_offsets() {
        let time = filetime("2024-01-17T21:20:00Z");
        for text in [
            "2024-01-17T21:20:00.0000000Z",
            "2024-01-17T22:20+01:00",
            "2024-01-17 21:20:00",
        ] {
            assert_eq!(filetime(text), time, "{text}");
        }
        assert_eq!(filetime("1601-01-01T00:00:00.0000001Z"), Some(1));
    }

    #[test]
    fn times_of_every_type_are_compared_as_times() {
        const TIME: u64 = 133_500_000_000_000_000;
        let mut printed = Vec::new();
        render::filetime(&mut printed, TIME);
        let printed = String::from_utf8(printed).unwrap();
        let operand = Operand::new(&printed);
        let date = Field::new("F", InType::UInt64).with_out(OutType::DateTime);
        let time = Field::new("F", InType::FileTime);
        for at in [TIME - 1, TIME, TIME + 1] {
            for value in [Value::FileTime(at), Value::Int(at as i64), Value::UInt(at)] {
                let field = if matches!(value, Value::FileTime(_)) {
                    &time
                } else {
                    &date
                };
                assert_eq!(operand.order_of_value(field, value), Some(at.cmp(&TIME)));
            }
        }
        assert_eq!(
            operand.order_of_value(&Field::new("F", InType::UInt64), Value::UInt(7)),
            None
        );
        let field = Field::new("F", InType::SystemTime);
        let value = |ms| Value::SystemTime(SystemTime([2024, 2, 4, 29, 23, 59, 58, ms]));
        let operand = Operand::new("2024-02-29T23:59:58.007");
        assert_eq!(
            operand.order_of_value(&field, value(7)),
            Some(Ordering::Equal)
        );
        assert_eq!(
            operand.order_of_value(&field, value(6)),
            Some(Ordering::Less)
        );
    }
}
