//! Conditions on what an event says: its name, its fields, and their text.

use etl_schema::decode::Value;
use etl_schema::render::{self, Names};
use etl_schema::{Field, MapKind};

use super::Row;

/// Selects events by their names and fields. The default selects all.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Names of events, with `*` and `?`; one must match.
    events: Vec<Pattern>,
    /// All must hold.
    fields: Vec<FieldCondition>,
    /// What the fields, the message or the readable text must contain, in small letters.
    text: Option<String>,
}

/// A condition on a field that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected FIELD OP VALUE with =, !=, <, <=, >, >= or ~, such as `ProcessId = 4`")]
pub struct NoCondition;

impl Conditions {
    /// Conditions from names of events (`GC*`), conditions on fields (`ProcessId = 4`), and text.
    ///
    /// # Errors
    /// For a condition on a field that has another form.
    pub fn new<T: AsRef<str>>(
        events: &[T],
        fields: &[T],
        text: Option<&str>,
    ) -> Result<Self, NoCondition> {
        Ok(Conditions {
            events: events.iter().map(|name| Pattern::new(name.as_ref())).collect(),
            fields: fields
                .iter()
                .map(|text| FieldCondition::parse(text.as_ref()).ok_or(NoCondition))
                .collect::<Result<_, _>>()?,
            text: text.map(str::to_lowercase),
        })
    }

    /// Whether it selects all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.fields.is_empty() && self.text.is_none()
    }

    /// Whether the name of an event is selected.
    #[must_use]
    pub fn admit_name(&self, name: &str) -> bool {
        self.events.is_empty() || self.events.iter().any(|pattern| pattern.matches(name))
    }

    pub(super) fn admit(&self, row: &Row<'_>, scratch: &mut Vec<u8>) -> bool {
        self.admit_name(row.event_name())
            && self.fields.iter().all(|condition| condition.admits(row, scratch))
            && self.text.as_ref().is_none_or(|text| contains(row, text, scratch))
    }
}

/// Whether what a row shows of the payload contains a text, whatever the case of its letters.
fn contains(row: &Row<'_>, text: &str, scratch: &mut Vec<u8>) -> bool {
    let has = |shown: &str| shown.to_lowercase().contains(text);
    if has(row.payload_text) || row.message(scratch).is_some_and(has) {
        return true;
    }
    let Some(fields) = &row.fields else { return false };
    scratch.clear();
    let names = row.names();
    render::text_fields_with(scratch, &mut fields.clone(), names.as_ref().map(|n| n as &dyn Names));
    has(&String::from_utf8_lossy(scratch))
}

/// Text with `*` for any characters and `?` for a single one, whatever the case of letters.
#[derive(Clone, Debug)]
struct Pattern(Vec<char>);

impl Pattern {
    fn new(text: &str) -> Self {
        Pattern(text.to_lowercase().chars().collect())
    }

    fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.to_lowercase().chars().collect();
        // Where the last `*` is in the pattern, and how much of the text it stands for so far.
        let (mut at, mut from, mut star) = (0, 0, None);
        while from < text.len() {
            match self.0.get(at) {
                Some('*') => {
                    star = Some((at, from));
                    at += 1;
                }
                Some(c) if *c == '?' || Some(c) == text.get(from) => {
                    at += 1;
                    from += 1;
                }
                _ => {
                    let Some((pattern, taken)) = star else { return false };
                    (at, from) = (pattern + 1, taken + 1);
                    star = Some((pattern, taken + 1));
                }
            }
        }
        self.0.iter().skip(at).all(|c| *c == '*')
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

/// A field, an operator and a value.
#[derive(Clone, Debug)]
struct FieldCondition {
    field: String,
    operator: Operator,
    /// As text, as a pattern, and as a number.
    text: String,
    pattern: Pattern,
    number: Option<f64>,
    integer: Option<i128>,
}

/// Operators, those first that begin as others do.
const OPERATORS: [(&str, Operator); 7] = [
    ("!=", Operator::NotEqual),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("~", Operator::Like),
];

impl FieldCondition {
    fn parse(text: &str) -> Option<Self> {
        let at = text.find(['!', '<', '>', '=', '~'])?;
        let (field, rest) = text.split_at_checked(at)?;
        let (sign, operator) = OPERATORS.into_iter().find(|(sign, _)| rest.starts_with(sign))?;
        let value = rest.strip_prefix(sign)?.trim();
        let field = field.trim();
        let integer = match value.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok(),
            None => value.parse().ok(),
        };
        (!field.is_empty()).then(|| FieldCondition {
            field: field.to_owned(),
            operator,
            text: value.to_lowercase(),
            pattern: Pattern::new(value),
            number: value.parse().ok().or(integer.map(|n| n as f64)),
            integer,
        })
    }

    /// Whether a field of this name fulfils the condition; none does where the event has none.
    fn admits(&self, row: &Row<'_>, scratch: &mut Vec<u8>) -> bool {
        let Some(fields) = &row.fields else { return false };
        let mut named =
            fields.clone().filter(|(field, _)| field.name.eq_ignore_ascii_case(&self.field));
        named.any(|(field, value)| self.holds(field, value, scratch))
    }

    fn holds(&self, field: &Field, value: Value<'_>, scratch: &mut Vec<u8>) -> bool {
        use std::cmp::Ordering::{Equal, Greater, Less};
        if let Value::Array(items) = value {
            return items.iter().any(|item| self.holds(field, item, scratch));
        }
        let order = match value {
            Value::Float(n) => self.number.and_then(|number| f64::from(n).partial_cmp(&number)),
            Value::Double(n) => self.number.and_then(|number| n.partial_cmp(&number)),
            Value::Int(n) => self.integer.map(|number| i128::from(n).cmp(&number)),
            other => other.as_u64().zip(self.integer).map(|(n, number)| i128::from(n).cmp(&number)),
        };
        let equal = |scratch: &mut Vec<u8>| {
            order == Some(Equal)
                || self.is_named(field, value)
                || self.text_of(field, value, scratch) == self.text
        };
        match self.operator {
            Operator::Equal => equal(scratch),
            Operator::NotEqual => !equal(scratch),
            Operator::Like => {
                let text = self.text_of(field, value, scratch);
                self.pattern.matches(&text)
                    || self.has_name(field, value, |n| self.pattern.matches(n))
            }
            // Times are compared as they are written.
            operator => {
                let order =
                    order.unwrap_or_else(|| self.text_of(field, value, scratch).cmp(&self.text));
                match operator {
                    Operator::Less => order == Less,
                    Operator::AtMost => order != Greater,
                    Operator::Greater => order == Greater,
                    _ => order != Less,
                }
            }
        }
    }

    fn is_named(&self, field: &Field, value: Value<'_>) -> bool {
        self.has_name(field, value, |name| name.to_lowercase() == self.text)
    }

    /// Whether a map names the value, or one of its bits, and `is` holds for a name.
    fn has_name(&self, field: &Field, value: Value<'_>, is: impl Fn(&str) -> bool) -> bool {
        let (Some(map), Some(bits)) = (&field.map, value.bits(8)) else { return false };
        map.get(bits).is_some_and(&is) || map.kind() == MapKind::Bits && map.bits(bits).any(is)
    }

    /// A value as text in small letters.
    fn text_of(&self, field: &Field, value: Value<'_>, scratch: &mut Vec<u8>) -> String {
        let mut text = String::new();
        render::plain_value(field, value, scratch, &mut |c| {
            text.extend(c.unwrap_or(char::REPLACEMENT_CHARACTER).to_lowercase());
        });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name) in [
            ("GC*", "GCStart"),
            ("*load*", "ModuleLoad_V2"),
            ("method?oad", "MethodLoad"),
            ("*", ""),
            ("a*b*c", "aXbbYc"),
        ] {
            assert!(Pattern::new(pattern).matches(name), "{pattern} {name}");
        }
        for (pattern, name) in [("GC", "GCStart"), ("?", ""), ("a*b", "abc")] {
            assert!(!Pattern::new(pattern).matches(name), "{pattern} {name}");
        }
    }

    #[test]
    fn conditions_on_fields_are_read() {
        for (text, field, operator, value) in [
            ("ProcessId = 4", "ProcessId", Operator::Equal, "4"),
            ("A!=b c", "A", Operator::NotEqual, "b c"),
            ("Size>=0x10", "Size", Operator::AtLeast, "0x10"),
            ("Path ~ *.dll", "Path", Operator::Like, "*.dll"),
            ("Empty =", "Empty", Operator::Equal, ""),
        ] {
            let read = FieldCondition::parse(text).unwrap();
            assert_eq!((&*read.field, read.operator, &*read.text), (field, operator, value));
        }
        assert!(FieldCondition::parse("= 4").is_none() && FieldCondition::parse("A 4").is_none());
    }

    #[test]
    fn values_are_compared_as_what_they_are() {
        use etl_schema::InType;
        let field = Field::new("F", InType::UInt32);
        let holds = |condition: &str, value| {
            FieldCondition::parse(condition).unwrap().holds(&field, value, &mut Vec::new())
        };
        assert!(holds("F=0x10", Value::UInt(16)) && holds("F>9", Value::UInt(10)));
        assert!(!holds("F>9", Value::UInt(9)) && holds("F<-1", Value::Int(-2)));
        assert!(holds("F>=1.5", Value::Double(1.5)) && !holds("F=a", Value::UInt(1)));
        assert!(holds("F~S*", Value::Ansi(b"svchost")) && holds("F!=x", Value::Ansi(b"y")));
    }
}
