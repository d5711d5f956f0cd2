//! A field or a column, an operator and a value.

use core::cmp::Ordering;

use etl_format::{ProcessId, ThreadId};
use etl_schema::decode::Value;
use etl_schema::render::{self, Names, Renderer};
use etl_schema::{Field, MapKind};

use super::operand::Operand;
use super::path::Path;
use super::{NoCondition, push_value};
use crate::columns::{Cell, Column, FIELD_PREFIX, write_column};
use crate::event::Event;

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    /// The id of the process or its name, with `.exe` or without.
    Process,
    /// The id of the thread or its name.
    Thread,
    Column(Column),
    /// A decoded field, by its name in any case of ASCII letters.
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

impl Operator {
    /// Whether it asks for less or greater.
    const fn is_of_order(self) -> bool {
        matches!(
            self,
            Operator::Less | Operator::AtMost | Operator::Greater | Operator::AtLeast
        )
    }
}

/// The signs of operators. A longer sign comes before its beginning.
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

/// The characters of operators.
const SIGNS: [char; 5] = ['!', '<', '>', '=', '~'];

/// A comparison with a value.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    subject: Subject,
    operator: Operator,
    operand: Operand,
}

impl Comparison {
    pub(super) fn parse(text: &str) -> Result<Self, NoCondition> {
        let Some(parts) = Parts::split(text) else {
            return Err(NoCondition::Form(text.to_owned()));
        };
        let Parts {
            name,
            sign,
            operator,
            value,
        } = parts;
        if name.is_empty() {
            return Err(NoCondition::Form(text.to_owned()));
        }
        let quoted = unquote(value);
        let is_one_text = quoted.is_some_and(|quoted| !quoted.contains('"'));
        if !is_one_text && is_several(value) {
            return Err(NoCondition::Several(text.to_owned()));
        }
        let operand = Operand::new(quoted.unwrap_or(value));
        // `<>` and `=>` are not operators, but the compiler's names begin like them: `<>c.Main`.
        if let Some(rest) = value.strip_prefix(['<', '>'])
            && (operator.is_of_order() || Operand::new(rest.trim()).has_order())
        {
            return Err(NoCondition::Form(text.to_owned()));
        }
        if operator.is_of_order() && !operand.has_order() {
            return Err(NoCondition::NoOrder {
                operator: sign,
                value: value.to_owned(),
            });
        }
        Ok(Comparison {
            subject: Subject::new(name),
            operator,
            operand,
        })
    }

    /// The field that is compared, without the indices of elements: `Values.Size`.
    pub(super) fn field(&self) -> Option<&str> {
        match &self.subject {
            Subject::Field(path) => Some(path.members()),
            _ => None,
        }
    }

    /// Whether an event fulfils the condition; none does that has no such field.
    pub(super) fn admits(&self, event: &Event<'_>, scratch: &mut Vec<u8>) -> bool {
        match &self.subject {
            Subject::Process => self.admits_id(event.pid().map(ProcessId::get), event.process()),
            Subject::Thread => self.admits_id(event.tid().map(ThreadId::get), event.thread()),
            Subject::Column(column) => self.admits_column(event, *column, scratch),
            Subject::Field(path) => {
                let Some(fields) = &event.fields else {
                    return false;
                };
                let names = event.names();
                let names = names.as_ref().map(|names| names as &dyn Names);
                path.any(fields, &mut |field, value| {
                    self.holds(field, value, names, scratch)
                })
            }
        }
    }

    fn admits_id(&self, id: Option<u32>, name: Option<&str>) -> bool {
        let Some(id) = id else { return false };
        self.is_true(self.operand.order_of(id.into()), |is| {
            name.is_some_and(|name| is_name(name, is))
        })
    }

    fn admits_column(&self, event: &Event<'_>, column: Column, scratch: &mut Vec<u8>) -> bool {
        if column == Column::Time {
            return self.admits_time(event);
        }
        let order = match event.cell(column) {
            Cell::Number(n) | Cell::Hex(n) => self.operand.order_of(n.into()),
            Cell::Signed(n) => self.operand.order_of(n.into()),
            Cell::Hook(n) => self.operand.order_of(n.into()),
            _ => None,
        };
        let mut text = Vec::new();
        write_column(&mut text, event, column, scratch, |out, text| {
            out.extend(text.as_bytes())
        });
        if text.is_empty() {
            return false;
        }
        self.is_true(order, |is| {
            is(&String::from_utf8_lossy(&text))
                || column == Column::Keywords && event.keyword_names().iter().any(|name| is(name))
        })
    }

    /// Compares the time: in UTC, and in seconds since the start.
    fn admits_time(&self, event: &Event<'_>) -> bool {
        let time = event.time();
        let order = self
            .operand
            .order_of_time(time.get(), event.origin.start.get());
        self.is_true(order, |is| {
            is(&time.to_string()) || is(&event.seconds().to_string())
        })
    }

    /// Whether the condition holds for something with this order to the operand, or with one of its
    /// texts. `any` returns whether a function is true for any of these texts.
    fn is_true(
        &self,
        order: Option<Ordering>,
        any: impl FnOnce(&mut dyn FnMut(&str) -> bool) -> bool,
    ) -> bool {
        match self.operator {
            Operator::Equal | Operator::NotEqual => {
                let is_equal =
                    order == Some(Ordering::Equal) || any(&mut |text| self.operand.is(text));
                is_equal == (self.operator == Operator::Equal)
            }
            Operator::Like => any(&mut |text| self.operand.matches(text)),
            Operator::Less => order.is_some_and(Ordering::is_lt),
            Operator::AtMost => order.is_some_and(Ordering::is_le),
            Operator::Greater => order.is_some_and(Ordering::is_gt),
            Operator::AtLeast => order.is_some_and(Ordering::is_ge),
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
            return items
                .iter()
                .any(|item| self.holds(field, item, names, scratch));
        }
        let order = self.operand.order_of_value(field, value);
        self.is_true(order, |is| any_text(field, value, names, scratch, is))
    }
}

/// The parts of a condition.
struct Parts<'t> {
    /// Empty if the text starts with the operator.
    name: &'t str,
    sign: &'static str,
    operator: Operator,
    value: &'t str,
}

impl<'t> Parts<'t> {
    /// Splits a text at its first operator.
    fn split(text: &'t str) -> Option<Self> {
        let (name, rest) = text.split_at_checked(text.find(SIGNS)?)?;
        let mut operators = OPERATORS.into_iter();
        let (sign, operator) = operators.find(|(sign, _)| rest.starts_with(sign))?;
        Some(Parts {
            name: name.trim(),
            sign,
            operator,
            value: rest.strip_prefix(sign)?.trim(),
        })
    }
}

/// The text between the quotes around it.
fn unquote(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"')
}

/// Whether another condition follows in a value: `600 and MethodSize < 700`.
fn is_several(value: &str) -> bool {
    let value = value.to_lowercase();
    [" and ", " or ", "&&", "||"]
        .iter()
        .any(|word| value.split(word).skip(1).any(starts_with_condition))
}

/// Whether a text starts with a field and an operator.
fn starts_with_condition(text: &str) -> bool {
    match Parts::split(text) {
        Some(parts) => !parts.name.is_empty() && !parts.name.contains(char::is_whitespace),
        None => false,
    }
}

/// Whether `is` holds for any text of a value: as it is printed, without the names of the trace for
/// it, and each name alone.
fn any_text(
    field: &Field,
    value: Value<'_>,
    names: Option<&dyn Names>,
    scratch: &mut Vec<u8>,
    is: &mut dyn FnMut(&str) -> bool,
) -> bool {
    let renderer = Renderer::new();
    let mut printed = String::new();
    push_value(&mut printed, renderer.names(names), field, value, scratch);
    if is(&printed) {
        return true;
    }
    let mut plain = String::new();
    push_value(&mut plain, renderer, field, value, scratch);
    if plain != printed && is(&plain) {
        return true;
    }
    let Some(bits) = render::bits(field, value) else {
        return false;
    };
    if let Some(name) = render::status_name(field, bits)
        && is(name)
    {
        return true;
    }
    if let Some(map) = &field.map {
        if map.get(bits).is_some_and(&mut *is) {
            return true;
        }
        if map.kind() != MapKind::Bits {
            return false;
        }
        let mut all_names = String::new();
        push_value(
            &mut all_names,
            renderer.names_alone(),
            field,
            value,
            scratch,
        );
        return map.bits(bits).any(&mut *is) || is(&all_names);
    }
    if let Some(names) = names
        && let Some(meaning) = field.meaning()
        && let Some(name) = names.name(meaning, bits)
    {
        return is_name(&name, is);
    }
    false
}

/// Whether `is` holds for a name, with `.exe` or without.
fn is_name(name: &str, is: &mut dyn FnMut(&str) -> bool) -> bool {
    const EXE: &str = ".exe";
    if is(name) {
        return true;
    }
    let stem_len = name.len().saturating_sub(EXE.len());
    match name.split_at_checked(stem_len) {
        Some((stem, end)) => end.eq_ignore_ascii_case(EXE) && is(stem),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use etl_format::Guid;
    use etl_schema::Meaning;
    use etl_schema::decode::Utf16;
    use etl_schema::render::PathStart;
    use etl_schema::{InType, MapEntry, OutType, ValueMap};

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
            (
                "process = Orders.exe",
                Subject::Process,
                Operator::Equal,
                "orders.exe",
            ),
            ("thread ~ GC*", Subject::Thread, Operator::Like, "gc*"),
            (
                "level < 4",
                Subject::Column(Column::Level),
                Operator::Less,
                "4",
            ),
            ("Level < 4", field("Level"), Operator::Less, "4"),
            ("fields.level < 4", field("level"), Operator::Less, "4"),
        ] {
            let read = Comparison::parse(text).unwrap();
            assert_eq!((read.subject, read.operator), (subject, operator));
            assert!(read.operand.is(value), "{text}");
        }
    }

    #[test]
    fn conditions_that_could_not_hold_are_refused() {
        let refused = |text: &str| Comparison::parse(text).unwrap_err();
        for text in [
            "= 4",
            "A 4",
            "A <> 633",
            "A => 5",
            "A =< 10.0.0.1",
            "A !~ b",
        ] {
            assert_eq!(refused(text), NoCondition::Form(text.into()), "{text}");
        }
        for text in [
            "A > 600 and A < 700",
            "A = b AND c ~ d",
            "A=1&&B=2",
            "A = b or c=d",
            "A = \"b\" and c = \"d\"",
        ] {
            assert_eq!(refused(text), NoCondition::Several(text.into()), "{text}");
        }
        for (text, operator, value) in [
            ("A >= 1K", ">=", "1K"),
            ("level < Warning", "<", "Warning"),
            ("A>", ">", ""),
        ] {
            assert_eq!(
                refused(text),
                NoCondition::NoOrder {
                    operator,
                    value: value.into()
                }
            );
        }
        for text in [
            "A = <>c.Main",
            "A=<Main>$",
            "A = read and write",
            "A ~ * or more",
            "A = \"a && b=c\"",
            "A = x|y",
        ] {
            assert!(Comparison::parse(text).is_ok(), "{text}");
        }
    }

    fn holds(condition: &str, field: &Field, value: Value<'_>, names: Option<&dyn Names>) -> bool {
        Comparison::parse(condition)
            .unwrap()
            .holds(field, value, names, &mut Vec::new())
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
        assert!(!holds("F<5", Value::Ansi(b"4")) && !holds("F>5", Value::Ansi(b"x")));
        let address = |last| Value::Ipv4([10, 0, 0, last].into());
        assert!(holds("F > 10.0.0.4", address(10)) && !holds("F > 10.0.0.10", address(4)));
        assert!(holds("F = 10.0.0.4", address(4)) && !holds("F < ::", address(4)));
    }

    #[test]
    fn quotes_around_a_value_and_braces_around_a_guid_are_ignored() {
        let field = Field::new("F", InType::UInt32);
        let holds = |condition: &str, value| holds(condition, &field, value, None);
        assert!(holds("F=\"a b\"", Value::Ansi(b"a b")) && !holds("F=\"a\"", Value::Ansi(b"b")));
        assert!(holds("F=\"\"a\"\"", Value::Ansi(b"\"a\"")) && holds("F=\"\"", Value::Ansi(b"")));
        let guid = Guid::parse("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4").unwrap();
        let braces = format!("{{{}}}", guid.to_string().to_uppercase());
        assert!(holds(&format!("F = {braces}"), Value::Guid(guid)));
        assert!(holds(
            &format!("F = {guid}"),
            Value::Ansi(braces.as_bytes())
        ));
        assert!(!holds(&format!("F != {braces}"), Value::Guid(guid)));
    }

    #[test]
    fn flags_are_compared_with_each_name_and_all_printed_names() {
        let entry = |value, name: &'static str| MapEntry {
            value,
            name: name.into(),
        };
        let entries = vec![entry(1, "Bit1"), entry(2, "Bit2"), entry(4, "High")];
        let map = ValueMap::new("Bits", MapKind::Bits, entries);
        let field = Field::new("F", InType::UInt32).with_map(std::sync::Arc::new(map));
        let holds = |condition: &str| holds(condition, &field, Value::UInt(0x13), None);
        assert!(holds("F = bit2") && holds("F = Bit1|Bit2|0x10") && holds("F ~ bit1|*"));
        assert!(!holds("F = Bit1|Bit2") && !holds("F = High") && !holds("F != Bit1|Bit2|0x10"));
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

        fn path(&self, text: Utf16<'_>) -> Option<PathStart<'_>> {
            let start = PathStart {
                units: DEVICE.len(),
                name: "C:",
            };
            text.to_string().starts_with(DEVICE).then_some(start)
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
        for condition in [
            "ProcessId=7",
            "ProcessId=orders.EXE",
            "ProcessId=Orders",
            "ProcessId~Ord*",
        ] {
            assert!(holds(condition, 7) && !holds(condition, 8), "{condition}");
        }
        assert!(!holds("ProcessId != Orders.exe", 7) && holds("ProcessId != Orders.exe", 8));
    }

    #[test]
    fn paths_are_compared_with_their_drive_and_with_their_device() {
        let field = Field::new("FileName", InType::Utf16);
        let path: Vec<u8> = format!(r"{DEVICE}\a\b.dll")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let holds = |condition: &str| {
            holds(
                condition,
                &field,
                Value::Utf16(Utf16::new(&path)),
                Some(&Known),
            )
        };
        assert!(holds(r"FileName = c:\A\b.dll") && holds(r"FileName ~ C:\*"));
        assert!(holds(r"FileName ~ \Device\*") && !holds(r"FileName != C:\a\b.dll"));
        assert!(!holds(r"FileName = \a\b.dll"));
    }
}
