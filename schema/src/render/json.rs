//! Values as JSON.

use super::digits::{decimal, hex_bytes, hexadecimal, signed};
use super::names::{Names, split};
use super::{
    filetime, name_with, shown_bytes, sid, socket_address, status_name, system_time, until_nul,
};
use crate::decode::{Fields, Member, Utf16, Value};
use crate::escape::{are_plain, is_plain, json_char, json_text};
use crate::model::{Field, Meaning, OutType, Shown};
use std::borrow::Cow;
use std::io::Write;

/// Writes the fields as a JSON object, in payload order. Names that come twice come twice. A value
/// with a name in a map is followed by a member `FIELD_name` with the name.
///
/// Arrays are given up to 16 MiB of text in all: their members' names come with every element, so
/// that a payload could ask for far more.
pub fn json_fields(out: &mut Vec<u8>, fields: &mut Fields<'_>) {
    fields_to(out, fields, Json::new(out));
}

/// As [`json_fields`], with the names that the trace has for values, in the same way; addresses,
/// masks and ids of 64 bits are hexadecimal text, as in [`super::text_fields`].
pub fn json_fields_with(out: &mut Vec<u8>, fields: &mut Fields<'_>, names: Option<&dyn Names>) {
    fields_to(out, fields, Json { hex: true, names, ..Json::new(out) });
}

/// As [`json_fields_with`], as it stands in a quoted value of CSV: each quote twice.
pub fn json_fields_in_csv(out: &mut Vec<u8>, fields: &mut Fields<'_>, names: Option<&dyn Names>) {
    fields_to(out, fields, Json { hex: true, names, csv: true, ..Json::new(out) });
}

/// As [`json_fields_with`], with U+FFFD in place of unpaired surrogates: readers of JSON that keep
/// text as UTF-8 refuse their escapes.
pub fn json_fields_lossy(out: &mut Vec<u8>, fields: &mut Fields<'_>, names: Option<&dyn Names>) {
    fields_to(out, fields, Json { hex: true, names, lossy: true, ..Json::new(out) });
}

/// Writes one value as [`json_fields_lossy`] does.
pub fn json_value_lossy(
    out: &mut Vec<u8>,
    field: &Field,
    value: Value<'_>,
    names: Option<&dyn Names>,
) {
    let json = Json { hex: true, names, lossy: true, ..Json::new(out) };
    value_to(out, field, &Shown::of(field), value, json);
}

/// What the values of a payload share.
#[derive(Clone, Copy)]
struct Json<'n> {
    /// Length of the output after which arrays end.
    end: usize,
    /// Whether addresses, masks and ids are hexadecimal.
    hex: bool,
    names: Option<&'n dyn Names>,
    /// Whether it stands in a quoted value of CSV.
    csv: bool,
    /// Whether U+FFFD takes the place of unpaired surrogates.
    lossy: bool,
}

impl Json<'_> {
    fn new(out: &[u8]) -> Self {
        let end = out.len().saturating_add(super::MAX_LEN);
        Json { end, hex: false, names: None, csv: false, lossy: false }
    }

    #[inline(always)]
    fn quote(self, out: &mut Vec<u8>) {
        out.push(b'"');
        if self.csv {
            out.push(b'"');
        }
    }

    /// Something in quotes that has none itself.
    #[inline(always)]
    fn quoted(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        self.quote(out);
        write(out);
        self.quote(out);
    }

    /// A text in quotes.
    fn text(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        self.quoted(out, |out| {
            let start = out.len();
            write(out);
            if self.csv {
                double_quotes(out, start);
            }
        });
    }

    /// What precedes a value of a member: a comma, a name in quotes, and a colon.
    #[inline(always)]
    fn key(self, out: &mut Vec<u8>, member: &Member, key: &[u8]) {
        match key {
            key if !self.csv => out.extend_from_slice(key),
            [b',', b'"', name @ .., b'"', b':'] => {
                out.push(b',');
                self.name(out, member, name);
            }
            [b'"', name @ .., b'"', b':'] => self.name(out, member, name),
            _ => {}
        }
    }

    #[inline(always)]
    fn name(self, out: &mut Vec<u8>, member: &Member, name: &[u8]) {
        let write = |out: &mut Vec<u8>| out.extend_from_slice(name);
        if member.is_escaped {
            self.text(out, write)
        } else {
            self.quoted(out, write)
        }
        out.push(b':');
    }
}

/// Doubles the quotes after `start`.
fn double_quotes(out: &mut Vec<u8>, start: usize) {
    if !out.get(start..).is_some_and(|text| text.contains(&b'"')) {
        return;
    }
    for byte in out.split_off(start) {
        if byte == b'"' {
            out.push(byte);
        }
        out.push(byte);
    }
}

fn fields_to(out: &mut Vec<u8>, fields: &mut Fields<'_>, json: Json<'_>) {
    out.push(b'{');
    let start = out.len();
    while let Some((field, member, value)) = fields.next_member() {
        let key = if out.len() == start { member.key.get(1..) } else { Some(&*member.key) };
        json.key(out, member, key.unwrap_or_default());
        value_to(out, field, &member.shown, value, json);
        let has_names = |meaning| json.names.is_some_and(|names| names.has(meaning));
        if member.is_named || member.shown.meaning.is_some_and(has_names) {
            names_to(out, field, member, value, json);
        }
    }
    out.push(b'}');
}

/// The names of a value as a member of its own: a text, or for an array one for each element.
fn names_to(out: &mut Vec<u8>, field: &Field, member: &Member, value: Value<'_>, json: Json<'_>) {
    let start = out.len();
    json.key(out, member, &member.name_key);
    let meaning = member.shown.meaning;
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

/// Elements of an array without names after which no others are looked for.
const MAX_UNNAMED: usize = 16;

/// The name of one value, or `null`; returns whether it has one.
fn name_to(
    out: &mut Vec<u8>,
    field: &Field,
    meaning: Option<Meaning>,
    value: Value<'_>,
    json: Json<'_>,
) -> bool {
    let start = out.len();
    if let Some(bits) = super::bits(field, value) {
        let mut has = false;
        json.text(out, |out| match (&field.map, json.names) {
            (Some(map), _) => has = name_with(out, map, bits, json_text),
            (None, names) => {
                let of_trace = || names.zip(meaning).and_then(|(names, of)| names.name(of, bits));
                let name = status_name(field, bits).map(Cow::Borrowed).or_else(of_trace);
                json_text(out, name.as_deref().unwrap_or_default());
                has = name.is_some();
            }
        });
        if has {
            return true;
        }
        out.truncate(start);
    }
    out.extend(b"null");
    false
}

/// Writes one value: integers as numbers whatever map they have, addresses, GUIDs, times, SIDs and
/// bytes as text. Eight-bit text that is no UTF-8 keeps its other bytes as the characters U+0080 to
/// U+00FF.
pub fn json_value(out: &mut Vec<u8>, field: &Field, value: Value<'_>) {
    value_to(out, field, &Shown::of(field), value, Json::new(out));
}

fn value_to(out: &mut Vec<u8>, field: &Field, shown: &Shown, value: Value<'_>, json: Json<'_>) {
    match value {
        Value::Null => out.extend(b"null"),
        Value::Bool(b) => out.extend(if b { &b"true"[..] } else { b"false" }),
        Value::Int(_)
            if json.hex
                && shown.hexadecimal
                && let Some(bits) = super::bits(field, value) =>
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
        Value::UInt(n) if json.hex && shown.hexadecimal => {
            json.quoted(out, |out| hexadecimal(out, n))
        }
        Value::UInt(n) => decimal(out, n),
        Value::Pointer(p) => json.quoted(out, |out| hexadecimal(out, p)),
        // What JSON has no number for is written as text.
        Value::Float(f) if f.is_finite() => finite(out, f64::from(f), &f),
        Value::Float(f) => json.quoted(out, |out| drop(write!(out, "{f}"))),
        Value::Double(f) if f.is_finite() => finite(out, f, &f),
        Value::Double(f) => json.quoted(out, |out| drop(write!(out, "{f}"))),
        Value::Char(unit) => {
            let unit = unit.to_le_bytes();
            json.text(out, |out| utf16(out, "", Utf16::new(&unit), json.lossy));
        }
        Value::Guid(g) => json.quoted(out, |out| out.extend(g.to_ascii())),
        Value::FileTime(t) => json.quoted(out, |out| filetime(out, t)),
        Value::SystemTime(t) => json.quoted(out, |out| system_time(out, t)),
        Value::Sid(s) => json.quoted(out, |out| sid(out, s)),
        Value::Utf16(text) => {
            let (path, rest) = split(json.names, until_nul(field, text));
            json.text(out, |out| utf16(out, path, rest, json.lossy));
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

/// Writes a number with a fraction, `.0` where it is whole: then that need not be found out digit
/// by digit.
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

/// UTF-16 after another text as the inside of a JSON string; a lone surrogate stays what it is, or
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
            bytes.to_le_bytes().iter().for_each(|byte| json_char(out, char::from(*byte)));
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
    let (first, second) = (units as u64, (units >> 64) as u64);
    if (first | second) & 0xff80_ff80_ff80_ff80 != 0 {
        return None;
    }
    Some(low(first) | low(second) << 32)
}

fn ansi(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        json_text(out, chunk.valid());
        chunk.invalid().iter().for_each(|b| json_char(out, char::from(*b)));
    }
}
