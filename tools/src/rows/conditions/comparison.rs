//! A field or a column, an operator and a value.

use core::cmp::Ordering;

use etl_schema::decode::Value;
use etl_schema::render::{self, Names};
use etl_schema::{Field, MapKind};

use super::path::Path;
use super::pattern::Pattern;
use crate::rows::columns::{Cell, Column, FIELD_PREFIX};
use crate::rows::row::Row;

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    /// The id of the process or its name, with `.exe` or without.
    Process,
    /// The id of the thread or its name.
    Thread,
    Column(Column),
    /// A decoded field, whatever the case of its letters.
    Field(Path),
}

impl Subject {
    fn new(name: &str) -> Self {
        match name {
            "process" => Subject::Process,
            "thread" => Subject::Thread,
            _ => match Column::ALL.iter().find(|column| column.name() == name) {
                Some(column) => Subject::Column(*column),
                None => Subject::Field(Path::new(name.strip_prefix(FIELD_PREFIX).unwrap_or(name))),
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Like,
}

/// Operators, those first that begin as others do.
const OPERATORS: [(&str, Operator); 8] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("~", Operator::Like),
];

/// A comparison with a value.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    subject: Subject,
    operator: Operator,
    /// The value as text, as a pattern, and as a number.
    text: String,
    pattern: Pattern,
    number: Option<f64>,
    integer: Option<i128>,
}

impl Comparison {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let at = text.find(['!', '<', '>', '=', '~'])?;
        let (name, rest) = text.split_at_checked(at)?;
        let (sign, operator) = OPERATORS.into_iter().find(|(sign, _)| rest.starts_with(sign))?;
        let value = rest.strip_prefix(sign)?.trim();
        let name = name.trim();
        let integer = match value.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok(),
            None => value.parse().ok(),
        };
        (!name.is_empty()).then(|| Comparison {
            subject: Subject::new(name),
            operator,
            text: value.to_lowercase(),
            pattern: Pattern::new(value),
            number: value.parse().ok().or(integer.map(|n| n as f64)),
            integer,
        })
    }

    /// The field that is compared, without the places of elements: `Values.Size`.
    pub(super) fn field(&self) -> Option<&str> {
        match &self.subject {
            Subject::Field(path) => Some(path.members()),
            _ => None,
        }
    }

    /// Whether an event fulfils the condition; none does that has no such field.
    pub(super) fn admits(&self, row: &Row<'_>, scratch: &mut Vec<u8>) -> bool {
        match &self.subject {
            Subject::Process => self.admits_id(row.process_id, row.process_name()),
            Subject::Thread => self.admits_id(row.thread_id, row.thread_name()),
            Subject::Column(column) => self.admits_column(row, *column, scratch),
            Subject::Field(path) => {
                let Some(fields) = &row.fields else { return false };
                let names = row.names();
                let names = names.as_ref().map(|names| names as &dyn Names);
                path.any(fields, &mut |field, value| self.holds(field, value, names, scratch))
            }
        }
    }

    fn admits_id(&self, id: Option<u32>, name: &str) -> bool {
        let Some(id) = id else { return false };
        self.is_true(self.order_of(id.into()), |is| !name.is_empty() && is_name(name, is))
    }

    fn admits_column(&self, row: &Row<'_>, column: Column, scratch: &mut Vec<u8>) -> bool {
        let mut text = Vec::new();
        let order = match row.cell(column) {
            Cell::Number(n) | Cell::Hex(n) => self.order_of(n.into()),
            Cell::Signed(n) => self.order_of(n.into()),
            Cell::Hook(n) => self.order_of(n.into()),
            _ => None,
        };
        row.write_column(&mut text, column, scratch, |out, text| out.extend(text.as_bytes()));
        if text.is_empty() {
            return false;
        }
        self.is_true(order, |is| is(&String::from_utf8_lossy(&text)))
    }

    fn order_of(&self, number: i128) -> Option<Ordering> {
        let exact = self.integer.map(|wanted| number.cmp(&wanted));
        exact.or_else(|| (number as f64).partial_cmp(&self.number?))
    }

    /// Whether the condition holds for something with this order to the value, where both are
    /// numbers, and with texts: `any` asks for each of them, the one that is printed first.
    fn is_true(
        &self,
        order: Option<Ordering>,
        any: impl FnOnce(&mut dyn FnMut(&str) -> bool) -> bool,
    ) -> bool {
        use Ordering::{Equal, Greater, Less};
        match self.operator {
            Operator::Equal => {
                order == Some(Equal) || any(&mut |text| text.to_lowercase() == self.text)
            }
            Operator::NotEqual => {
                order != Some(Equal) && !any(&mut |text| text.to_lowercase() == self.text)
            }
            Operator::Like => any(&mut |text| self.pattern.matches(text)),
            // Times are compared as they are written.
            operator => {
                let order = order.or_else(|| {
                    let mut first = None;
                    any(&mut |text| {
                        first.get_or_insert_with(|| text.to_lowercase().cmp(&self.text));
                        true
                    });
                    first
                });
                order.is_some_and(|order| match operator {
                    Operator::Less => order == Less,
                    Operator::AtMost => order != Greater,
                    Operator::Greater => order == Greater,
                    _ => order != Less,
                })
            }
        }
    }

    /// Whether a field with this value fulfils the condition: an array does if an element does.
    fn holds(
        &self,
        field: &Field,
        value: Value<'_>,
        names: Option<&dyn Names>,
        scratch: &mut Vec<u8>,
    ) -> bool {
        if let Value::Array(items) = value {
            return items.iter().any(|item| self.holds(field, item, names, scratch));
        }
        let order = match value {
            Value::Float(n) => self.number.and_then(|number| f64::from(n).partial_cmp(&number)),
            Value::Double(n) => self.number.and_then(|number| n.partial_cmp(&number)),
            // Status codes are printed without a sign.
            Value::Int(n) if render::is_status(field) => self.order_of((n as u32).into()),
            Value::Int(n) => self.order_of(n.into()),
            other => other.as_u64().and_then(|n| self.order_of(n.into())),
        };
        self.is_true(order, |is| any_text(field, value, names, scratch, is))
    }
}

/// Whether `is` holds with any of the texts that a value has: as it is printed, without the names
/// that the trace has for it, and these names alone.
fn any_text(
    field: &Field,
    value: Value<'_>,
    names: Option<&dyn Names>,
    scratch: &mut Vec<u8>,
    is: &mut dyn FnMut(&str) -> bool,
) -> bool {
    let mut text = |names: Option<&dyn Names>| {
        let mut text = String::new();
        render::plain_value_with(field, value, names, scratch, &mut |c| {
            text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
        });
        text
    };
    let printed = text(names);
    if is(&printed) {
        return true;
    }
    let plain = text(None);
    if plain != printed && is(&plain) {
        return true;
    }
    let Some(bits) = render::bits(field, value) else { return false };
    if render::status_name(field, bits).is_some_and(&mut *is) {
        return true;
    }
    if let Some(map) = &field.map {
        return map.get(bits).is_some_and(&mut *is)
            || map.kind() == MapKind::Bits && map.bits(bits).any(&mut *is);
    }
    let name = names.zip(field.meaning()).and_then(|(names, of)| names.name(of, bits));
    name.is_some_and(|name| is_name(&name, is))
}

/// Whether `is` holds for a name, with `.exe` or without.
fn is_name(name: &str, is: &mut dyn FnMut(&str) -> bool) -> bool {
    const EXE: &str = ".exe";
    let end = name.len().saturating_sub(EXE.len());
    let stem = name.split_at_checked(end).filter(|(_, end)| end.eq_ignore_ascii_case(EXE));
    is(name) || stem.is_some_and(|(stem, _)| is(stem))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use etl_schema::decode::Utf16;
    use etl_schema::render::Meaning;
    use etl_schema::{InType, OutType};

    use super::*;

    #[test]
    fn conditions_are_read() {
        let field = |name: &str| Subject::Field(Path::new(name));
        for (text, subject, operator, value) in [
            ("ProcessId = 4", field("ProcessId"), Operator::Equal, "4"),
            ("A!=b c", field("A"), Operator::NotEqual, "b c"),
            ("A == b", field("A"), Operator::Equal, "b"),
            ("A= =b", field("A"), Operator::Equal, "=b"),
            ("Size>=0x10", field("Size"), Operator::AtLeast, "0x10"),
            ("Path ~ *.dll", field("Path"), Operator::Like, "*.dll"),
            ("Empty =", field("Empty"), Operator::Equal, ""),
            ("process = Orders.exe", Subject::Process, Operator::Equal, "orders.exe"),
            ("thread ~ GC*", Subject::Thread, Operator::Like, "gc*"),
            ("level < 4", Subject::Column(Column::Level), Operator::Less, "4"),
            ("Level < 4", field("Level"), Operator::Less, "4"),
            ("fields.level < 4", field("level"), Operator::Less, "4"),
        ] {
            let read = Comparison::parse(text).unwrap();
            assert_eq!((read.subject, read.operator, &*read.text), (subject, operator, value));
        }
        assert!(Comparison::parse("= 4").is_none() && Comparison::parse("A 4").is_none());
    }

    fn holds(condition: &str, field: &Field, value: Value<'_>, names: Option<&dyn Names>) -> bool {
        Comparison::parse(condition).unwrap().holds(field, value, names, &mut Vec::new())
    }

    #[test]
    fn values_are_compared_as_what_they_are() {
        let field = Field::new("F", InType::UInt32);
        let holds = |condition: &str, value| holds(condition, &field, value, None);
        assert!(holds("F=0x10", Value::UInt(16)) && holds("F>9", Value::UInt(10)));
        assert!(!holds("F>9", Value::UInt(9)) && holds("F<-1", Value::Int(-2)));
        assert!(holds("F>=1.5", Value::Double(1.5)) && !holds("F=a", Value::UInt(1)));
        assert!(holds("F>99.5", Value::UInt(1143)) && !holds("F<99.5", Value::UInt(1143)));
        assert!(holds("F=255.0", Value::UInt(255)) && holds("F<1e10", Value::Int(-2)));
        assert!(holds("F~S*", Value::Ansi(b"svchost")) && holds("F!=x", Value::Ansi(b"y")));
        assert!(holds("F<=b", Value::Ansi(b"a")) && !holds("F<=b", Value::Ansi(b"c")));
    }

    /// A trace in which process 7 is `Orders.exe` and volume 2 is `C:`.
    struct Known;

    const DEVICE: &str = r"\Device\HarddiskVolume2";

    impl Names for Known {
        fn has(&self, meaning: Meaning) -> bool {
            meaning == Meaning::Process
        }

        fn name(&self, meaning: Meaning, value: u64) -> Option<Cow<'_, str>> {
            (self.has(meaning) && value == 7).then_some(Cow::Borrowed("Orders.exe"))
        }

        fn path(&self, text: Utf16<'_>) -> Option<(usize, &str)> {
            text.to_string().starts_with(DEVICE).then_some((DEVICE.len(), "C:"))
        }
    }

    #[test]
    fn status_codes_have_names_and_two_signs() {
        let status = Field::new("ExitStatus", InType::Int32).with_out(OutType::NtStatus);
        let holds = |condition: &str, value| holds(condition, &status, Value::Int(value), None);
        assert!(holds("ExitStatus = STATUS_ACCESS_VIOLATION", -0x3fff_fffb));
        assert!(holds("ExitStatus = 0xc0000005", -0x3fff_fffb) && holds("ExitStatus = 259", 259));
        assert!(holds("ExitStatus ~ *pending*", 259) && !holds("ExitStatus != 0x103", 259));
    }

    #[test]
    fn ids_have_the_names_of_processes() {
        let pid = Field::new("ProcessId", InType::UInt32).with_out(OutType::Pid);
        let holds =
            |condition: &str, value| holds(condition, &pid, Value::UInt(value), Some(&Known));
        for condition in
            ["ProcessId=7", "ProcessId=orders.EXE", "ProcessId=Orders", "ProcessId~Ord*"]
        {
            assert!(holds(condition, 7) && !holds(condition, 8), "{condition}");
        }
        assert!(!holds("ProcessId != Orders.exe", 7) && holds("ProcessId != Orders.exe", 8));
    }

    #[test]
    fn paths_are_compared_with_their_drive_and_with_their_device() {
        let field = Field::new("FileName", InType::Utf16);
        let path: Vec<u8> =
            format!(r"{DEVICE}\a\b.dll").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let holds = |condition: &str| {
            holds(condition, &field, Value::Utf16(Utf16::new(&path)), Some(&Known))
        };
        assert!(holds(r"FileName = c:\A\b.dll") && holds(r"FileName ~ C:\*"));
        assert!(holds(r"FileName ~ \Device\*") && !holds(r"FileName != C:\a\b.dll"));
        assert!(holds(r"FileName < D:") && !holds(r"FileName = \a\b.dll"));
    }
}
