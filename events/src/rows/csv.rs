//! CSV: the columns that are written, and a record as one line of them.

use std::ops::RangeInclusive;

use etl_schema::Field;
use etl_schema::decode::{Fields, Value};
use etl_schema::render::{self, Names, Renderer, hex_bytes};

use super::row::Row;
use super::shared::{csv_values, is_shared};
use crate::columns::{Column, FIELD_PREFIX, write_kind};
use crate::event::Event;

/// The number of columns that are written if none are selected.
const DEFAULT_COLUMNS: usize = 24;

/// The most columns of a line; further fields are left out.
const MAX_COLUMNS: usize = 1 << 10;

/// The columns of CSV, in order.
#[derive(Clone, Debug)]
pub struct Columns {
    columns: Vec<Selected>,
    /// Whether they were selected by name: then each is filled, the payload as well.
    named: bool,
    /// Whether any of them needs the schema of the event.
    pub(super) need_schema: bool,
}

#[derive(Clone, Debug)]
enum Selected {
    Known(Column),
    /// Consecutive columns whose values all rows of an event share.
    Shared(RangeInclusive<Column>),
    /// A decoded field, by name.
    Field {
        name: String,
        /// Its index among the fields with this name.
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
        for column in Column::ALL.iter().skip(1).take(DEFAULT_COLUMNS) {
            columns.push(*column);
        }
        columns
    }
}

impl Columns {
    /// The columns with these names. Other names select decoded fields.
    ///
    /// # Errors
    /// For an empty name.
    pub fn new(names: &[String]) -> Result<Self, EmptyColumnName> {
        use Column::{
            ChannelName, Event, Fields, Keywords, LevelName, Message, OpcodeName, PayloadText,
            TaskName,
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
            if let Some(column) = Column::ALL.iter().find(|column| column.name() == name) {
                columns.push(*column);
                columns.need_schema |= matches!(
                    column,
                    Event
                        | Fields
                        | Message
                        | PayloadText
                        | Keywords
                        | OpcodeName
                        | TaskName
                        | LevelName
                        | ChannelName
                );
                continue;
            }
            let field = name.strip_prefix(FIELD_PREFIX);
            columns.columns.push(Selected::Field {
                name: field.unwrap_or(name).to_owned(),
                nth: 0,
                prefixed: field.is_some(),
                seen: false,
            });
            columns.need_schema = true;
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

    /// Whether any of them shows values that only the whole trace contains: names of processes and
    /// threads, or the thread that ran.
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
        let mut columns = self.columns.iter();
        if !columns.any(|column| matches!(column, Selected::Known(Column::File))) {
            self.columns.insert(0, Selected::Known(Column::File));
        }
    }

    /// Adds a column for each of the fields. The first replaces the column with all fields.
    pub(super) fn add_fields(&mut self, fields: &[Field]) {
        for (index, field) in fields.iter().enumerate() {
            let before = fields
                .iter()
                .take(index)
                .filter(|before| before.name == field.name);
            self.add_field(&field.name, before.count());
        }
    }

    fn add_field(&mut self, field: &str, which: usize) {
        if self.columns.len() >= MAX_COLUMNS || self.has_field(field, which) {
            return;
        }
        let new = Selected::Field {
            name: field.to_owned(),
            nth: which,
            prefixed: Column::ALL.iter().any(|column| column.name() == field),
            seen: true,
        };
        let mut columns = self.columns.iter_mut();
        if let Some(all_fields) =
            columns.find(|column| matches!(column, Selected::Known(Column::Fields)))
        {
            *all_fields = new;
            return;
        }
        let mut columns = self.columns.iter();
        match columns.rposition(|column| matches!(column, Selected::Field { .. })) {
            Some(last_field) => self.columns.insert(last_field + 1, new),
            None => self.columns.push(new),
        }
    }

    fn has_field(&self, field: &str, which: usize) -> bool {
        self.columns.iter().any(|column| match column {
            Selected::Field { name, nth, .. } => name == field && *nth == which,
            _ => false,
        })
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
                    let number = if *nth > 0 {
                        format!("#{}", *nth + 1)
                    } else {
                        String::new()
                    };
                    escape(out, &format!("{prefix}{name}{number}"));
                }
            }
        }
        out.push(b'\n');
    }

    /// Notes which fields the events of another writer had.
    pub(super) fn merge(&mut self, other: &Columns) {
        for (column, other) in self.columns.iter_mut().zip(&other.columns) {
            if let Selected::Field { seen, .. } = column
                && let Selected::Field {
                    seen: seen_by_other,
                    ..
                } = other
            {
                *seen |= seen_by_other;
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
                    if let Some(fields) = &row.event.fields
                        && let Some((field, value)) = find(fields, name, *nth)
                    {
                        *seen = true;
                        write_field(out, row.event, field, value, scratch);
                    }
                }
            }
        }
    }
}

fn write_field(
    out: &mut Vec<u8>,
    event: &Event<'_>,
    field: &Field,
    value: Value<'_>,
    scratch: &mut Vec<u8>,
) {
    let mut text = Vec::new();
    let names = event.names();
    let names = names.as_ref().map(|names| names as &dyn Names);
    let renderer = Renderer::new().names(names);
    renderer.chars(field, value, scratch, &mut |c| text.push(c));
    escape_chars(out, text.iter().copied());
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

/// Writes the fields as a JSON object in quotes. An object without fields does not need them.
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

/// The `nth` field with this name. If there is none, the case of ASCII letters is ignored.
fn find<'a>(fields: &Fields<'a>, name: &str, nth: usize) -> Option<(&'a Field, Value<'a>)> {
    let mut exact = fields.clone().filter(|(field, _)| field.name == name);
    if let Some(field) = exact.nth(nth) {
        return Some(field);
    }
    let mut similar = fields
        .clone()
        .filter(|(field, _)| field.name.eq_ignore_ascii_case(name));
    similar.nth(nth)
}

/// Writes a field of CSV with the quotes that it needs. A field that a spreadsheet would calculate
/// gets an apostrophe first. A character that could act on a terminal, and a backslash that would
/// look like such an escape, is written as `\u{..}`, so a field has one line.
///
/// ```
/// use etl_events::rows::write_csv_field;
///
/// let mut line = Vec::new();
/// for field in ["=1+1", "a\nb", "-1.5"] {
///     write_csv_field(&mut line, field);
///     line.push(b',');
/// }
/// assert_eq!(line, br#""'=1+1","a\u{a}b",-1.5,"#);
/// ```
pub fn escape(out: &mut Vec<u8>, text: &str) {
    if !escape_ascii(out, text) {
        escape_chars(out, text.chars().map(Ok));
    }
}

/// As [`escape`], for most fields: printable ASCII that is not a formula and has nothing to escape
/// but quotes. Returns false and writes nothing for other fields.
fn escape_ascii(out: &mut Vec<u8>, text: &str) -> bool {
    let bytes = text.as_bytes();
    let Some(first) = bytes.first() else {
        return true;
    };
    let mut needs_escapes = matches!(first, b' ' | b'=' | b'+' | b'-' | b'@');
    let mut needs_quotes = bytes.last() == Some(&b' ');
    // The loop has no early end, so that the compiler compares many bytes at a time.
    for byte in bytes {
        needs_escapes |= !matches!(byte, b' '..=b'~') | (*byte == b'\\');
        needs_quotes |= matches!(byte, b',' | b'"');
    }
    if needs_escapes {
        return false;
    }
    if !needs_quotes {
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

/// As [`escape`], for characters and unpaired surrogates.
fn escape_chars(out: &mut Vec<u8>, mut text: impl Iterator<Item = Char> + Clone) {
    let is_formula = is_formula(text.clone());
    let is_quoted = is_formula || needs_quotes(text.clone());
    if is_quoted {
        out.push(b'"');
    }
    if is_formula {
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
    if is_quoted {
        out.push(b'"');
    }
}

/// A character, or an unpaired surrogate.
type Char = Result<char, u16>;

/// Whether a field needs quotes. Some readers drop spaces at the ends of a field without them.
fn needs_quotes(text: impl Iterator<Item = Char> + Clone) -> bool {
    text.clone().any(is_special)
        || text.clone().next() == Some(Ok(' '))
        || text.last() == Some(Ok(' '))
}

/// Whether a field with this character needs quotes.
fn is_special(c: Char) -> bool {
    match c {
        Ok(c) => c == ',' || c == '"' || render::is_terminal_unsafe(c),
        Err(_) => false,
    }
}

/// Whether a spreadsheet would calculate with a field: after any white space it begins like a
/// formula, in half or full width, and is not just a number.
fn is_formula(text: impl Iterator<Item = Char> + Clone) -> bool {
    let first = text.clone().find(|c| !is_blank(*c));
    let Some(Ok('=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠')) = first else {
        return false;
    };
    let text: Option<String> = text.map(Result::ok).collect();
    match text {
        Some(text) => text.parse::<f64>().is_err(),
        None => true,
    }
}

fn is_blank(c: Char) -> bool {
    match c {
        Ok(c) => c.is_whitespace() || render::is_terminal_unsafe(c),
        Err(_) => false,
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
