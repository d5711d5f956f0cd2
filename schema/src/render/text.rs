//! Values as text on one line.

use super::digits::{decimal, hex_bytes, hexadecimal, signed};
use super::names::split;
use super::plan::{FieldPlan, plans_of_fields, plans_of_value};
use super::time::{filetime, system_time};
use super::values::{bits, name_with, shown_bytes, sid, socket_address, status_name, until_nul};
use super::{MAX_LEN, Renderer};
use crate::decode::{Fields, Utf16, Value};
use crate::escape::{self, escape_line, mark_quotes};
use crate::model::{Field, OutType, Shown};
use std::fmt::{Display, LowerExp};
use std::io::Write;

/// Elements of an array that the text form shows.
const SHOWN: usize = 8;

impl Renderer<'_> {
    /// Writes fields as ` Name=value`, after values the names that they have.
    pub fn text_fields(&self, out: &mut Vec<u8>, fields: &mut Fields<'_>) {
        let plans = plans_of_fields(fields);
        Text::new(*self, Quotes::Written, plans, out).fields(out, fields);
    }

    /// Writes one value: text in quotes, after values and bits the names that they have
    /// (`2(Forced)`), addresses in hexadecimal.
    ///
    /// ```
    /// use etl_schema::{Field, InType, decode::Value, render::Renderer};
    ///
    /// let mut text = Vec::new();
    /// let field = Field::new("Path", InType::Ansi);
    /// Renderer::new().text_value(&mut text, &field, Value::Ansi(b"C:\\\x1b[2J"));
    /// assert_eq!(text, br#""C:\\u{1b}[2J""#);
    /// ```
    pub fn text_value(&self, out: &mut Vec<u8>, field: &Field, value: Value<'_>) {
        let text = Text::new(*self, Quotes::Written, plans_of_value(&value), out);
        text.value(out, field, &Shown::of(field), value);
    }

    /// Writes one value as in running text: without quotes, names instead of values.
    pub fn unquoted_value(&self, out: &mut Vec<u8>, field: &Field, value: Value<'_>) {
        self.names_alone()
            .unquoted(out, field, &Shown::of(field), value);
    }

    /// Writes one value without quotes.
    pub(super) fn unquoted(
        &self,
        out: &mut Vec<u8>,
        field: &Field,
        shown: &Shown,
        value: Value<'_>,
    ) {
        let text = Text::new(*self, Quotes::Omitted, plans_of_value(&value), out);
        text.value(out, field, shown, value);
    }
}

/// Whether text has quotes around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Written,
    Omitted,
}

/// What the values of one event share.
#[derive(Clone, Copy)]
struct Text<'r> {
    renderer: Renderer<'r>,
    quotes: Quotes,
    /// For the fields and for the members of values.
    plans: &'r [FieldPlan],
    /// Length of the output after which arrays end.
    end: usize,
}

impl<'r> Text<'r> {
    fn new(renderer: Renderer<'r>, quotes: Quotes, plans: &'r [FieldPlan], out: &[u8]) -> Self {
        Text {
            renderer,
            quotes,
            plans,
            end: out.len().saturating_add(MAX_LEN),
        }
    }

    fn fields(&self, out: &mut Vec<u8>, fields: &mut Fields<'_>) {
        // Within a structure text is quoted, also if the value itself has no quotes.
        let members = Text {
            quotes: Quotes::Written,
            ..*self
        };
        while let Some((field, number, value)) = fields.next_numbered() {
            let Some(plan) = self.plans.get(number) else {
                return;
            };
            out.push(b' ');
            escape_line(out, &field.name);
            out.push(b'=');
            members.value(out, field, &plan.shown, value);
        }
    }

    fn value(&self, out: &mut Vec<u8>, field: &Field, shown: &Shown, value: Value<'_>) {
        if self.renderer.names_alone && map_name(out, field, value) {
            return;
        }
        self.number(out, field, shown, value);
        if let (Some(names), None) = (self.renderer.names, &field.map)
            && let Some(meaning) = shown.meaning
            && names.has(meaning)
        {
            let bits = bits(field, value);
            if let Some(name) = bits.and_then(|bits| names.name(meaning, bits)) {
                out.push(b'(');
                escape_line(out, &name);
                out.push(b')');
            }
        }
        if !self.renderer.names_alone && field.map.is_some() {
            let start = out.len();
            out.push(b'(');
            if map_name(out, field, value) {
                out.push(b')');
            } else {
                out.truncate(start);
            }
        }
    }

    /// Writes a value without its name in a map.
    fn number(&self, out: &mut Vec<u8>, field: &Field, shown: &Shown, value: Value<'_>) {
        match value {
            Value::Null => out.extend(b"null"),
            Value::Bool(b) => out.extend(if b { &b"true"[..] } else { b"false" }),
            Value::UInt(n) => unsigned(out, field, shown, n),
            Value::Int(n) => integer(out, field, shown, n),
            Value::Pointer(p) => hexadecimal(out, p),
            Value::Float(f) => float(out, f64::from(f), &f, &f),
            Value::Double(f) => float(out, f, &f, &f),
            Value::Char(unit) => {
                self.quoted(out, |out| utf16(out, Utf16::new(&unit.to_le_bytes())));
            }
            Value::Guid(g) => out.extend(g.to_ascii()),
            Value::FileTime(t) => filetime(out, t),
            Value::SystemTime(t) => system_time(out, t),
            Value::Sid(s) => sid(out, s),
            Value::Utf16(text) => self.quoted(out, |out| {
                let (path, rest) = split(self.renderer.names, until_nul(field, text));
                escape_line(out, path);
                utf16(out, rest);
            }),
            Value::Ansi(bytes) | Value::Utf8(bytes) => {
                self.quoted(out, |out| ansi(out, shown_bytes(field, bytes)));
            }
            Value::Binary(bytes) if field.out == OutType::SocketAddress => {
                if !socket_address(out, bytes) {
                    hex_bytes(out, bytes);
                }
            }
            Value::Binary(bytes) => hex_bytes(out, bytes),
            Value::Ipv4(a) => drop(write!(out, "{a}")),
            Value::Ipv6(a) => drop(write!(out, "{a}")),
            Value::Array(items) => {
                out.push(b'[');
                for (i, item) in items.iter().enumerate().take(SHOWN) {
                    if out.len() > self.end {
                        break;
                    }
                    if i > 0 {
                        out.push(b',');
                    }
                    self.value(out, field, shown, item);
                }
                if items.len() > SHOWN {
                    let _ = write!(out, ",... {} in all", items.len());
                }
                out.push(b']');
            }
            Value::Struct(members) => {
                out.push(b'{');
                self.fields(out, &mut members.fields());
                out.extend(b" }");
            }
        }
    }

    fn quoted(&self, out: &mut Vec<u8>, f: impl FnOnce(&mut Vec<u8>)) {
        if self.quotes == Quotes::Omitted {
            f(out);
            return;
        }
        out.push(b'"');
        let start = out.len();
        f(out);
        mark_quotes(out, start, b'\\');
        out.push(b'"');
    }
}

/// Writes the name of a value in the map of its field; returns whether there is one.
fn map_name(out: &mut Vec<u8>, field: &Field, value: Value<'_>) -> bool {
    match (&field.map, bits(field, value)) {
        (Some(map), Some(bits)) => name_with(out, map, bits, escape_line),
        _ => false,
    }
}

fn unsigned(out: &mut Vec<u8>, field: &Field, shown: &Shown, n: u64) {
    match (field.out, field.in_type()) {
        (OutType::Win32Error | OutType::NtStatus | OutType::HResult, _) => {
            status_text(out, n, status_name(field, n));
        }
        _ if shown.time => filetime(out, n),
        _ if shown.hexadecimal => hexadecimal(out, n),
        _ => decimal(out, n),
    }
}

/// Writes a number with a fraction: a very large or small one with an exponent.
fn float(out: &mut Vec<u8>, value: f64, whole: &dyn Display, exponent: &dyn LowerExp) {
    let is_plain = !value.is_finite() || value == 0.0 || (1e-5..1e16).contains(&value.abs());
    let _ = if is_plain {
        write!(out, "{whole}")
    } else {
        write!(out, "{exponent:e}")
    };
}

fn integer(out: &mut Vec<u8>, field: &Field, shown: &Shown, n: i64) {
    let bits = bits(field, Value::Int(n)).unwrap_or_default();
    if shown.hexadecimal {
        unsigned(out, field, shown, bits);
    } else if shown.time {
        filetime(out, bits);
    } else {
        signed(out, n);
    }
}

fn status_text(out: &mut Vec<u8>, code: u64, name: Option<&str>) {
    hexadecimal(out, code);
    if let Some(name) = name {
        out.push(b'(');
        out.extend(name.as_bytes());
        out.push(b')');
    }
}

fn utf16(out: &mut Vec<u8>, text: Utf16<'_>) {
    let units = text.bytes().as_chunks::<2>().0;
    if units
        .iter()
        .all(|&[low, high]| high == 0 && escape::is_plain(low))
    {
        out.extend(units.iter().map(|&[low, _]| low));
        return;
    }
    escape::escape_chars(out, text.chars());
}

/// Eight-bit text: valid UTF-8, and other bytes as the characters U+0080 to U+00FF.
fn ansi(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        escape_line(out, chunk.valid());
        escape::escape_chars(
            out,
            chunk.invalid().iter().map(|byte| Ok(char::from(*byte))),
        );
    }
}
