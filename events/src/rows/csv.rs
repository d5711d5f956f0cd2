//! CSV: the columns that are written, and a record as one line of them.

use std::ops::RangeInclusive;

use etl_schema::Field;
use etl_schema::decode::{Fields, Value};
use etl_schema::render::{self, Names, Renderer, hex_bytes};

use super::row::Row;
use super::shared::{csv_values, is_shared};
use crate::columns::{Column, FIELD_PREFIX, write_kind};
use crate::event::Event;

/// Columns that are written when none are selected.
const DEFAULT_COLUMNS: usize = 24;

/// Columns of a line; events with more fields have the rest left out.
const MAX_COLUMNS: usize = 1 << 10;

/// The columns of CSV, in order.
#[derive(Clone, Debug)]
pub struct Columns {
    columns: Vec<Selected>,
    /// Whether they were selected by name: then each is filled, the payload too.
    named: bool,
    /// Whether any of them needs the schema of the event.
    pub(super) need_schema: bool,
}

#[derive(Clone, Debug)]
enum Selected {
    Known(Column),
    /// Columns that follow each other, with what all rows of an event have in common.
    Shared(RangeInclusive<Column>),
    /// A decoded field, by name.
    Field {
        name: String,
        /// Which one of several of this name, from 0.
        nth: usize,
        /// Whether the name came with [`FIELD_PREFIX`].
        prefixed: bool,
        /// Whether any event had it.
        seen: bool,
    },
}

/// A column was selected by an empty name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a column without a name")]
pub struct EmptyColumnName;

impl Default for Columns {
    fn default() -> Self {
        let mut columns = Columns {
            columns: Vec::new(),
            named: false,
            need_schema: true,
        };
        let known = Column::ALL.iter().skip(1).take(DEFAULT_COLUMNS);
        known.for_each(|column| columns.push(*column));
        columns
    }
}

impl Columns {
    /// The columns with these names. A name that is no column's is that of a decoded field.
    ///
    /// # Errors
    /// For an empty name.
    pub fn new(names: &[String]) -> Result<Self, EmptyColumnName> {
        use Column::{
            Event, Fields, Keywords, LevelName, Message, OpcodeName, PayloadText, TaskName,
        };
        let mut columns = Columns {
            columns: Vec::new(),
            named: true,
            need_schema: false,
        };
        for name in names {
            if name.trim().is_empty() {
                return Err(EmptyColumnName);
            }
            let known = Column::ALL.iter().find(|column| column.name() == name);
            columns.need_schema |= match known {
                None | Some(Event | Fields | Message | PayloadText | Keywords) => true,
                Some(column) => matches!(column, OpcodeName | TaskName | LevelName),
            };
            if let Some(column) = known {
                columns.push(*column);
            } else {
                let field = name.strip_prefix(FIELD_PREFIX);
                columns.columns.push(Selected::Field {
                    name: field.unwrap_or(name).to_owned(),
                    nth: 0,
                    prefixed: field.is_some(),
                    seen: false,
                });
            }
        }
        Ok(columns)
    }

    fn push(&mut self, column: Column) {
        match self.columns.last_mut() {
            Some(Selected::Shared(run))
                if is_shared(column) && *run.end() as usize + 1 == column as usize =>
            {
                *run = *run.start()..=column;
            }
            _ if is_shared(column) => self.columns.push(Selected::Shared(column..=column)),
            _ => self.columns.push(Selected::Known(column)),
        }
    }

    /// Whether any of them shows what the trace as a whole says: names, or who ran.
    pub(super) fn show_context(&self) -> bool {
        use Column::{Fields, Message, Pid, Process, Thread, Tid};
        self.columns.iter().any(|column| match column {
            Selected::Field { .. } => true,
            Selected::Known(Pid | Process | Tid | Thread | Fields | Message) => true,
            Selected::Known(_) | Selected::Shared(_) => false,
        })
    }

    /// Puts the name of the file before the other columns.
    pub(super) fn add_file(&mut self) {
        let is_file = |c: &Selected| matches!(c, Selected::Known(Column::File));
        if !self.columns.iter().any(is_file) {
            self.columns.insert(0, Selected::Known(Column::File));
        }
    }

    /// Has a column for each of the fields, in place of the one for all of them.
    pub(super) fn add_fields(&mut self, fields: &[Field]) {
        for (at, field) in fields.iter().enumerate() {
            let before = fields
                .iter()
                .take(at)
                .filter(|before| before.name == field.name);
            self.add_field(&field.name, before.count());
        }
    }

    fn add_field(&mut self, field: &str, which: usize) {
        let is_field = |c: &Selected| match c {
            Selected::Field { name, nth, .. } => (name.as_str(), *nth) == (field, which),
            _ => false,
        };
        if self.columns.len() >= MAX_COLUMNS || self.columns.iter().any(is_field) {
            return;
        }
        let prefixed = Column::ALL.iter().any(|column| column.name() == field);
        let column = Selected::Field {
            name: field.to_owned(),
            nth: which,
            prefixed,
            seen: true,
        };
        let all = |c: &Selected| matches!(c, Selected::Known(Column::Fields));
        if let Some(all) = self.columns.iter_mut().find(|c| all(c)) {
            *all = column;
        } else {
            let is_any = |c: &Selected| matches!(c, Selected::Field { .. });
            let last = self.columns.iter().rposition(is_any);
            self.columns
                .insert(last.map_or(self.columns.len(), |last| last + 1), column);
        }
    }

    pub(super) fn write_header(&self, out: &mut Vec<u8>) {
        for (i, column) in self.columns.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            match column {
                Selected::Known(column) => escape(out, column.name()),
                Selected::Shared(run) => {
                    let all = Column::ALL.iter().filter(|column| run.contains(column));
                    let names: Vec<_> = all.map(|column| column.name()).collect();
                    out.extend(names.join(",").as_bytes());
                }
                Selected::Field {
                    name,
                    nth,
                    prefixed,
                    ..
                } => {
                    let prefix = if *prefixed { FIELD_PREFIX } else { "" };
                    let again = if *nth > 0 {
                        format!("#{}", *nth + 1)
                    } else {
                        String::new()
                    };
                    escape(out, &format!("{prefix}{name}{again}"));
                }
            }
        }
        out.push(b'\n');
    }

    /// Takes over which fields the events of another writer had.
    pub(super) fn merge(&mut self, other: &Columns) {
        for pair in self.columns.iter_mut().zip(&other.columns) {
            if let (Selected::Field { seen, .. }, Selected::Field { seen: other, .. }) = pair {
                *seen |= other;
            }
        }
    }

    /// Fields that no event had.
    pub(super) fn without_values(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter_map(|column| match column {
            Selected::Field {
                name, seen: false, ..
            } => Some(name.as_str()),
            _ => None,
        })
    }

    /// Writes a record as a line without its end.
    pub(super) fn write(
        &mut self,
        out: &mut Vec<u8>,
        row: &Row<'_>,
        payload_bytes: bool,
        scratch: &mut Vec<u8>,
    ) {
        for (i, column) in self.columns.iter_mut().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            match column {
                Selected::Known(Column::Payload) => {
                    if payload_bytes || self.named {
                        hex_bytes(out, row.event.payload());
                    }
                }
                Selected::Known(Column::Fields) => write_fields(out, row.event),
                Selected::Known(column) => row.write_column(out, *column, scratch, escape),
                Selected::Shared(run) => write_shared(out, row.event, run),
                Selected::Field {
                    name, nth, seen, ..
                } => {
                    let fields = row.event.fields.as_ref();
                    let found = fields.and_then(|fields| find(fields, name, *nth));
                    if let Some((field, value)) = found {
                        *seen = true;
                        let mut text = Vec::new();
                        let names = row.event.names();
                        let names = names.as_ref().map(|names| names as &dyn Names);
                        let sink = &mut |c| text.push(c);
                        Renderer::new()
                            .names(names)
                            .chars(field, value, scratch, sink);
                        escape_chars(out, text.iter().copied());
                    }
                }
            }
        }
    }
}

/// Writes the values of columns that follow each other and are shared.
fn write_shared(out: &mut Vec<u8>, event: &Event<'_>, columns: &RangeInclusive<Column>) {
    let head = event.head;
    let values = head.csv.get_or_init(|| {
        Box::new(csv_values(|out, column| match column {
            Column::Kind => write_kind(out, event.kind()),
            Column::Keywords => escape(out, &head.keyword_names().join("|")),
            column => head.cell(column).write(out, b"", escape),
        }))
    });
    let mut start = values.span(*columns.start() as usize).start;
    let end = values.span(*columns.end() as usize).end;
    let is_of_trace = head.provider.is_some() && head.provider_name.is_none();
    if is_of_trace && columns.contains(&Column::Provider) {
        let provider = values.span(Column::Provider as usize).start;
        out.extend_from_slice(values.slice(start..provider));
        escape(out, event.provider_name().unwrap_or_default());
        start = provider;
    }
    out.extend_from_slice(values.slice(start..end));
}

/// Writes the fields as a JSON object in quotes, which one without fields does not need.
fn write_fields(out: &mut Vec<u8>, event: &Event<'_>) {
    let Some(fields) = &event.fields else { return };
    let start = out.len();
    out.push(b'"');
    let names = event.names();
    let names = names.as_ref().map(|names| names as &dyn Names);
    Renderer::new()
        .names(names)
        .hex()
        .csv_fields(out, &mut fields.clone());
    if out.get(start..) == Some(b"\"{}") {
        out.remove(start);
    } else {
        out.push(b'"');
    }
}

/// The `nth` field with this name, exactly if there is one, else whatever the case of its letters.
fn find<'a>(fields: &Fields<'a>, name: &str, nth: usize) -> Option<(&'a Field, Value<'a>)> {
    let exact = fields
        .clone()
        .filter(|(field, _)| field.name == name)
        .nth(nth);
    let like = || {
        fields
            .clone()
            .filter(|(field, _)| field.name.eq_ignore_ascii_case(name))
    };
    exact.or_else(|| like().nth(nth))
}

/// Writes a field with the quotes that it needs. One that a spreadsheet would take for a formula
/// gets an apostrophe first. What could act on a terminal, and a backslash that would look like
/// such an escape, is written as `\u{..}`.
fn escape(out: &mut Vec<u8>, text: &str) {
    if !escape_ascii(out, text) {
        escape_chars(out, text.chars().map(Ok));
    }
}

/// As [`escape`], for printable ASCII that is no formula and has nothing to escape but quotes: what
/// most fields are. Returns false and writes nothing for anything else.
fn escape_ascii(out: &mut Vec<u8>, text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return true;
    };
    // Without an early end, many bytes are compared at a time.
    let (mut other, mut special) = (false, *last == b' ');
    for b in bytes {
        other |= !matches!(b, b' '..=b'~') | (*b == b'\\');
        special |= matches!(b, b',' | b'"');
    }
    if other || matches!(first, b' ' | b'=' | b'+' | b'-' | b'@') {
        return false;
    }
    if !special {
        out.extend_from_slice(bytes);
        return true;
    }
    out.push(b'"');
    for (index, piece) in bytes.split(|b| *b == b'"').enumerate() {
        if index > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(piece);
    }
    out.push(b'"');
    true
}

/// As [`escape`], of characters and unpaired surrogates.
fn escape_chars(out: &mut Vec<u8>, mut text: impl Iterator<Item = Result<char, u16>> + Clone) {
    let formula = is_formula(text.clone());
    let special =
        |c| matches!(c, Ok(c) if c == ',' || c == '"' || c == ' ' || render::is_terminal_unsafe(c));
    let quoted = formula || text.clone().any(|c| special(c) && c != Ok(' ')) || {
        // Spaces at an end are lost on some readers, but for quotes.
        let mut ends = text.clone();
        special(ends.next().unwrap_or(Err(0))) || special(ends.last().unwrap_or(Err(0)))
    };
    if quoted {
        out.push(b'"');
    }
    if formula {
        out.push(b'\'');
    }
    while let Some(c) = text.next() {
        match c {
            Ok('"') => out.extend(b"\"\""),
            Ok('\\') if text.clone().take(2).eq([Ok('u'), Ok('{')]) => out.extend(b"\\u{5c}"),
            Ok(c) if render::is_terminal_unsafe(c) => {
                out.extend(c.escape_unicode().map(|c| c as u8))
            }
            Ok(c) => out.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => out.extend(format!("\\u{{{lone:x}}}").as_bytes()),
        }
    }
    if quoted {
        out.push(b'"');
    }
}

/// Whether a spreadsheet would calculate with a field: after any white space it begins as a formula
/// does, in half or full width, and is not just a number.
fn is_formula(text: impl Iterator<Item = Result<char, u16>> + Clone) -> bool {
    let begins = |c| matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠');
    let mut after = text.clone();
    let space =
        |c: &Result<char, u16>| c.is_ok_and(|c| c.is_whitespace() || render::is_terminal_unsafe(c));
    let is_like_one = after
        .find(|c| !space(c))
        .is_some_and(|c| c.is_ok_and(begins));
    is_like_one && {
        let number: Option<String> = text.map(Result::ok).collect();
        number.is_none_or(|number| number.parse::<f64>().is_err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        escape(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escape_leaves_nothing_that_acts_on_a_terminal() {
        let text = escaped("a\x1b]0;pwned\x07\u{9b}31m\u{202e}b\r\u{7f}");
        assert!(!text.chars().any(render::is_terminal_unsafe), "{text:?}");
    }

    #[test]
    fn escape_defuses_formulas() {
        for (text, field) in [
            ("=1+1", "\"'=1+1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("-1.5", "-1.5"),
            ("-1e300", "-1e300"),
            ("-inf", "-inf"),
            ("-", "\"'-\""),
            ("-cmd|x", "\"'-cmd|x\""),
            (" =1", "\"' =1\""),
            ("\u{a0}\u{3000}+1x", "\"'\u{a0}\u{3000}+1x\""),
            ("\t@x", "\"'\\u{9}@x\""),
            ("\u{feff}=x", "\"'\\u{feff}=x\""),
            ("＝1+1", "\"'＝1+1\""),
            ("＋1", "\"'＋1\""),
            ("－1", "\"'－1\""),
            ("＠x", "\"'＠x\""),
            ("a=1", "a=1"),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
            ("plain text", "plain text"),
            ("space ", "\"space \""),
            ("", ""),
        ] {
            assert_eq!(escaped(text), field, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn escape_ascii_writes_what_escape_chars_writes(
            text in prop_oneof!["[ -~]{0,12}", "[-=+@ ,\"a1.]{0,6}", ".{0,6}"],
        ) {
            let mut long = Vec::new();
            escape_chars(&mut long, text.chars().map(Ok));
            prop_assert_eq!(escaped(&text).into_bytes(), long);
        }
    }

    /// The text of a field, with every `\u{..}` resolved as the documentation says.
    fn unescaped(field: &str) -> String {
        let mut out = String::new();
        let mut rest = field;
        while let Some((before, after)) = rest.split_once("\\u{") {
            let (digits, after) = after.split_once('}').unwrap();
            out.push_str(before);
            out.push(char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap());
            rest = after;
        }
        out + rest
    }

    #[test]
    fn escape_is_reversible() {
        for text in [
            "C:\\users\\u",
            "\\u{1b}",
            "\x1b\\u{5c}u",
            "\\\\u{x",
            "a\u{202e}b",
            "\\",
        ] {
            assert_eq!(unescaped(escaped(text).trim_matches('"')), text, "{text:?}");
        }
        assert_eq!(
            escaped(r"C:\Windows\System32\user32.dll"),
            r"C:\Windows\System32\user32.dll"
        );
        assert_eq!(escaped(r"\\u{41}\u"), r"\\u{5c}u{41}\u");
        let mut out = Vec::new();
        escape_chars(&mut out, [Ok('a'), Err(0xd800)].into_iter());
        assert_eq!(out, b"a\\u{d800}");
    }
}
