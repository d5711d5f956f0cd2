//! Values as JSON.

use super::Renderer;
use super::digits::{decimal, hex_bytes, hexadecimal, signed};
use super::names::split;
use super::plan::{FieldPlan, plans_of_fields, plans_of_value};
use super::time::{filetime, system_time};
use super::values::{bits, name_with, shown_bytes, sid, socket_address, status_name, until_nul};
use crate::decode::{Fields, Utf16, Value};
use crate::escape::{are_plain, is_plain, json_char, json_text, mark_quotes};
use crate::model::{Field, Meaning, OutType, Shown};
use std::borrow::Cow;
use std::io::Write;

impl Renderer<'_> {
    /// Writes the fields as a JSON object, in payload order. Names that occur twice are written
    /// twice. A value with a name is followed by a member `FIELD_name` with the name.
    pub fn json_fields(&self, out: &mut Vec<u8>, fields: &mut Fields<'_>) {
        let json = Json::new(*self, plans_of_fields(fields), out);
        fields_to(out, fields, &json);
    }

    /// Writes the fields as [`Renderer::json_fields`] does, for a quoted value of CSV: each quote
    /// is doubled.
    ///
    /// ```
    /// use etl_format::{Guid, constants::PointerSize};
    /// use etl_schema::decode::Decoder;
    /// use etl_schema::render::Renderer;
    /// use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource};
    ///
    /// let identity = Identity::Modern { id: 1, version: 0 };
    /// let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::Manifest);
    /// schema.fields = vec![Field::new("Count", InType::UInt8)];
    /// let decoder = Decoder::new(schema.into());
    /// let mut value = Vec::new();
    /// Renderer::new().csv_fields(&mut value, &mut decoder.fields(&[7], PointerSize::P8));
    /// assert_eq!(value, br#"{""Count"":7}"#);
    /// ```
    pub fn csv_fields(&self, out: &mut Vec<u8>, fields: &mut Fields<'_>) {
        let json = Json {
            csv: true,
            ..Json::new(*self, plans_of_fields(fields), out)
        };
        fields_to(out, fields, &json);
    }

    /// Writes one value: integers as numbers also if they have a name, addresses, GUIDs, times,
    /// SIDs and bytes as text. Eight-bit text that is not UTF-8 keeps its other bytes as the
    /// characters U+0080 to U+00FF.
    ///
    /// ```
    /// use etl_schema::{Field, InType, decode::Value, render::Renderer};
    ///
    /// let mut json = Vec::new();
    /// let field = Field::new("Address", InType::Pointer);
    /// Renderer::new().json_value(&mut json, &field, Value::Pointer(0x7ff0));
    /// assert_eq!(json, br#""0x7ff0""#);
    /// ```
    pub fn json_value(&self, out: &mut Vec<u8>, field: &Field, value: Value<'_>) {
        let json = Json::new(*self, plans_of_value(&value), out);
        value_to(out, field, &Shown::of(field), value, &json);
    }
}

/// What the values of a payload share.
#[derive(Clone, Copy)]
struct Json<'r> {
    renderer: Renderer<'r>,
    /// For the fields and for the members of values.
    plans: &'r [FieldPlan],
    /// Length of the output after which arrays end.
    end: usize,
    /// Whether the object is written into a quoted value of CSV.
    csv: bool,
}

impl<'r> Json<'r> {
    fn new(renderer: Renderer<'r>, plans: &'r [FieldPlan], out: &[u8]) -> Self {
        let end = out.len().saturating_add(super::MAX_LEN);
        Json {
            renderer,
            plans,
            end,
            csv: false,
        }
    }

    #[inline(always)]
    fn quote(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        if self.csv {
            out.push(b'"');
        }
    }

    /// Something in quotes that has none itself.
    #[inline(always)]
    fn quoted(&self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        self.quote(out);
        write(out);
        self.quote(out);
    }

    /// A text in quotes.
    fn text(&self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        self.quoted(out, |out| {
            let start = out.len();
            write(out);
            if self.csv {
                mark_quotes(out, start, b'"');
            }
        });
    }

    /// What precedes a value of a member: a comma, a name in quotes, and a colon.
    #[inline(always)]
    fn key(&self, out: &mut Vec<u8>, plan: &FieldPlan, key: &[u8]) {
        match key {
            key if !self.csv => out.extend_from_slice(key),
            [b',', b'"', name @ .., b'"', b':'] => {
                out.push(b',');
                self.name(out, plan, name);
            }
            [b'"', name @ .., b'"', b':'] => self.name(out, plan, name),
            _ => {}
        }
    }

    #[inline(always)]
    fn name(&self, out: &mut Vec<u8>, plan: &FieldPlan, name: &[u8]) {
        if plan.is_escaped {
            self.text(out, |out| out.extend_from_slice(name));
        } else {
            self.quoted(out, |out| out.extend_from_slice(name));
        }
        out.push(b':');
    }

    /// Whether the trace has names for values of this meaning.
    #[inline(always)]
    fn has_names(&self, meaning: Option<Meaning>) -> bool {
        match (self.renderer.names, meaning) {
            (Some(names), Some(meaning)) => names.has(meaning),
            _ => false,
        }
    }
}

fn fields_to(out: &mut Vec<u8>, fields: &mut Fields<'_>, json: &Json<'_>) {
    out.push(b'{');
    let start = out.len();
    while let Some((field, number, value)) = fields.next_numbered() {
        let Some(plan) = json.plans.get(number) else {
            break;
        };
        let key = if out.len() == start {
            plan.key.get(1..)
        } else {
            Some(&*plan.key)
        };
        json.key(out, plan, key.unwrap_or_default());
        value_to(out, field, &plan.shown, value, json);
        if plan.is_named || json.has_names(plan.shown.meaning) {
            names_to(out, field, plan, value, json);
        }
    }
    out.push(b'}');
}

/// Writes the names of a value as a separate member: a text, or an array of texts for an array.
fn names_to(out: &mut Vec<u8>, field: &Field, plan: &FieldPlan, value: Value<'_>, json: &Json<'_>) {
    let start = out.len();
    json.key(out, plan, &plan.name_key);
    let meaning = plan.shown.meaning;
    let any = match value {
        Value::Array(items) => {
            let mut any = false;
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if !any && i >= MAX_UNNAMED {
                    break;
                }
                if i > 0 {
                    out.push(b',');
                }
                any |= name_to(out, field, meaning, item, json);
            }
            out.push(b']');
            any
        }
        value => name_to(out, field, meaning, value, json),
    };
    if !any {
        out.truncate(start);
    }
}

/// The number of elements without names after which the names of an array are given up.
const MAX_UNNAMED: usize = 16;

/// The name of one value, or `null`; returns whether it has one.
fn name_to(
    out: &mut Vec<u8>,
    field: &Field,
    meaning: Option<Meaning>,
    value: Value<'_>,
    json: &Json<'_>,
) -> bool {
    let start = out.len();
    if let Some(bits) = bits(field, value) {
        let mut has_name = false;
        json.text(out, |out| {
            if let Some(map) = &field.map {
                has_name = name_with(out, map, bits, json_text);
                return;
            }
            let name = match (status_name(field, bits), json.renderer.names, meaning) {
                (Some(name), ..) => Some(Cow::Borrowed(name)),
                (None, Some(names), Some(meaning)) => names.name(meaning, bits),
                _ => None,
            };
            json_text(out, name.as_deref().unwrap_or_default());
            has_name = name.is_some();
        });
        if has_name {
            return true;
        }
        out.truncate(start);
    }
    out.extend(b"null");
    false
}

fn value_to(out: &mut Vec<u8>, field: &Field, shown: &Shown, value: Value<'_>, json: &Json<'_>) {
    match value {
        Value::Null => out.extend(b"null"),
        Value::Bool(b) => out.extend(if b { &b"true"[..] } else { b"false" }),
        Value::Int(_)
            if json.renderer.hex
                && shown.hexadecimal
                && let Some(bits) = bits(field, value) =>
        {
            json.quoted(out, |out| hexadecimal(out, bits));
        }
        Value::Int(n) if shown.time => {
            json.quoted(out, |out| filetime(out, n.cast_unsigned()));
        }
        Value::Int(n) => signed(out, n),
        Value::UInt(n) if shown.time => {
            json.quoted(out, |out| filetime(out, n));
        }
        Value::UInt(n) if json.renderer.hex && shown.hexadecimal => {
            json.quoted(out, |out| hexadecimal(out, n))
        }
        Value::UInt(n) => decimal(out, n),
        Value::Pointer(p) => json.quoted(out, |out| hexadecimal(out, p)),
        // JSON has no infinite numbers: they are written as text.
        Value::Float(f) if f.is_finite() => finite(out, f64::from(f), &f),
        Value::Float(f) => json.quoted(out, |out| drop(write!(out, "{f}"))),
        Value::Double(f) if f.is_finite() => finite(out, f, &f),
        Value::Double(f) => json.quoted(out, |out| drop(write!(out, "{f}"))),
        Value::Char(unit) => {
            let unit = unit.to_le_bytes();
            json.text(out, |out| {
                utf16(out, "", Utf16::new(&unit), json.renderer.lossy)
            });
        }
        Value::Guid(g) => json.quoted(out, |out| out.extend(g.to_ascii())),
        Value::FileTime(t) => json.quoted(out, |out| filetime(out, t)),
        Value::SystemTime(t) => json.quoted(out, |out| system_time(out, t)),
        Value::Sid(s) => json.quoted(out, |out| sid(out, s)),
        Value::Utf16(text) => {
            let (path, rest) = split(json.renderer.names, until_nul(field, text));
            json.text(out, |out| utf16(out, path, rest, json.renderer.lossy));
        }
        Value::Ansi(bytes) | Value::Utf8(bytes) => {
            json.text(out, |out| ansi(out, shown_bytes(field, bytes)));
        }
        Value::Binary(bytes) => json.quoted(out, |out| {
            if field.out != OutType::SocketAddress || !socket_address(out, bytes) {
                hex_bytes(out, bytes);
            }
        }),
        Value::Ipv4(a) => json.quoted(out, |out| drop(write!(out, "{a}"))),
        Value::Ipv6(a) => json.quoted(out, |out| drop(write!(out, "{a}"))),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if out.len() > json.end {
                    break;
                }
                if i > 0 {
                    out.push(b',');
                }
                value_to(out, field, shown, item, json);
            }
            out.push(b']');
        }
        Value::Struct(members) => fields_to(out, &mut members.fields(), json),
    }
}

/// Writes a number with a fraction, which is `.0` for whole numbers. They are the most frequent,
/// and are written faster as integers.
fn finite(out: &mut Vec<u8>, value: f64, exact: &dyn std::fmt::Debug) {
    const WHOLE: f64 = 1e7;
    let whole = value as i64;
    if value.abs() < WHOLE && whole as f64 == value && (whole != 0 || value.is_sign_positive()) {
        signed(out, whole);
        out.extend(b".0");
    } else {
        let _ = write!(out, "{exact:?}");
    }
}

/// Writes `before` and UTF-16 as the inside of a JSON string. A lone surrogate is escaped, or
/// becomes U+FFFD.
fn utf16(out: &mut Vec<u8>, before: &str, text: Utf16<'_>, lossy: bool) {
    json_text(out, before);
    // Most text is ASCII, and nearly all of it plain: then eight characters go in one piece.
    let mut rest = text.bytes();
    while let Some((units, after)) = rest.split_first_chunk::<16>()
        && let Some(bytes) = ascii(*units)
    {
        if are_plain(bytes) {
            out.extend_from_slice(&bytes.to_le_bytes());
        } else {
            bytes
                .to_le_bytes()
                .iter()
                .for_each(|byte| json_char(out, char::from(*byte)));
        }
        rest = after;
    }
    for c in Utf16::new(rest).chars() {
        match c {
            Ok(c) if c.is_ascii() && is_plain(c as u8) => out.push(c as u8),
            Ok(c) => json_char(out, c),
            Err(_) if lossy => json_char(out, char::REPLACEMENT_CHARACTER),
            Err(lone) => drop(write!(out, "\\u{lone:04x}")),
        }
    }
}

/// Eight units of UTF-16 as the bytes of a word, if all of them are ASCII.
#[inline]
const fn ascii(units: [u8; 16]) -> Option<u64> {
    /// The low bytes of four units.
    const fn low(word: u64) -> u64 {
        let pairs = (word | word >> 8) & 0x0000_ffff_0000_ffff;
        (pairs | pairs >> 16) & 0xffff_ffff
    }
    let units = u128::from_le_bytes(units);
    let first = units as u64;
    let second = (units >> 64) as u64;
    if (first | second) & 0xff80_ff80_ff80_ff80 != 0 {
        return None;
    }
    Some(low(first) | low(second) << 32)
}

fn ansi(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        json_text(out, chunk.valid());
        chunk
            .invalid()
            .iter()
            .for_each(|b| json_char(out, char::from(*b)));
    }
}
