//! Values as JSON.

use super::digits::{decimal, hex_bytes, hexadecimal, signed};
use super::escape::{escape_json, is_plain, json_char, json_text};
use super::{filetime, name_with, shown, shown_bytes, sid, socket_address, system_time, width};
use crate::decode::{Fields, Utf16, Value};
use crate::model::{Field, OutType};
use std::io::Write;

/// Writes the fields as a JSON object, in payload order. Names that come twice come twice. A value
/// with a name in a map is followed by a member `FIELD_name` with the name.
///
/// Arrays are given up to 16 MiB of text in all: their members' names come with every element, so
/// that a payload could ask for far more.
pub fn json_fields(out: &mut Vec<u8>, fields: &mut Fields<'_>) {
    let end = out.len().saturating_add(super::MAX_LEN);
    fields_to(out, fields, end);
}

fn fields_to(out: &mut Vec<u8>, fields: &mut Fields<'_>, end: usize) {
    out.push(b'{');
    let mut first = true;
    for (field, value) in fields {
        if !first {
            out.push(b',');
        }
        first = false;
        escape_json(out, &field.name);
        out.push(b':');
        value_to(out, field, value, end);
        if field.map.is_some() {
            name_to(out, field, value);
        }
    }
    out.push(b'}');
}

/// The name of a value as a member of its own.
fn name_to(out: &mut Vec<u8>, field: &Field, value: Value<'_>) {
    let (Some(map), Some(bits)) = (&field.map, value.bits(width(field))) else { return };
    let start = out.len();
    out.extend(b",\"");
    json_text(out, &field.name);
    out.extend(b"_name\":\"");
    if name_with(out, map, bits, json_text) {
        out.push(b'"');
    } else {
        out.truncate(start);
    }
}

/// Writes one value: integers as numbers whatever map they have, addresses, GUIDs, times, SIDs and
/// bytes as text. Eight-bit text that is no UTF-8 keeps its other bytes as the characters U+0080 to
/// U+00FF.
pub fn json_value(out: &mut Vec<u8>, field: &Field, value: Value<'_>) {
    let end = out.len().saturating_add(super::MAX_LEN);
    value_to(out, field, value, end);
}

fn value_to(out: &mut Vec<u8>, field: &Field, value: Value<'_>, end: usize) {
    match value {
        Value::Null => out.extend(b"null"),
        Value::Bool(b) => out.extend(if b { &b"true"[..] } else { b"false" }),
        Value::Int(n) => signed(out, n),
        Value::UInt(n) => decimal(out, n),
        Value::Pointer(p) => quoted(out, |out| hexadecimal(out, p)),
        // What JSON has no number for is written as text.
        Value::Float(f) if f.is_finite() => drop(write!(out, "{f:?}")),
        Value::Float(f) => quoted(out, |out| drop(write!(out, "{f}"))),
        Value::Double(f) if f.is_finite() => drop(write!(out, "{f:?}")),
        Value::Double(f) => quoted(out, |out| drop(write!(out, "{f}"))),
        Value::Char(unit) => utf16(out, Utf16::new(&unit.to_le_bytes())),
        Value::Guid(g) => quoted(out, |out| out.extend(g.to_ascii())),
        Value::FileTime(t) => quoted(out, |out| filetime(out, t)),
        Value::SystemTime(t) => quoted(out, |out| system_time(out, t)),
        Value::Sid(s) => quoted(out, |out| sid(out, s)),
        Value::Utf16(text) => utf16(out, shown(field, text)),
        Value::Ansi(bytes) | Value::Utf8(bytes) => ansi(out, shown_bytes(field, bytes)),
        Value::Binary(bytes) => quoted(out, |out| {
            if field.out != OutType::SocketAddress || !socket_address(out, bytes) {
                hex_bytes(out, bytes);
            }
        }),
        Value::Ipv4(a) => quoted(out, |out| drop(write!(out, "{a}"))),
        Value::Ipv6(a) => quoted(out, |out| drop(write!(out, "{a}"))),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if out.len() > end {
                    break;
                }
                if i > 0 {
                    out.push(b',');
                }
                value_to(out, field, item, end);
            }
            out.push(b']');
        }
        Value::Struct(members) => fields_to(out, &mut members.fields(), end),
    }
}

fn quoted(out: &mut Vec<u8>, f: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    f(out);
    out.push(b'"');
}

/// UTF-16 as a JSON string; a lone surrogate stays what it is.
fn utf16(out: &mut Vec<u8>, text: Utf16<'_>) {
    out.push(b'"');
    let units = text.bytes().as_chunks::<2>().0;
    // Most text is plain; its low bytes go in one piece.
    if units.iter().all(|&[low, high]| high == 0 && is_plain(low)) {
        out.extend(units.iter().map(|&[low, _]| low));
    } else {
        for c in text.chars() {
            match c {
                Ok(c) if c.is_ascii() && is_plain(c as u8) => out.push(c as u8),
                Ok(c) => json_char(out, c),
                Err(lone) => drop(write!(out, "\\u{lone:04x}")),
            }
        }
    }
    out.push(b'"');
}

fn ansi(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        json_text(out, chunk.valid());
        chunk.invalid().iter().for_each(|b| json_char(out, char::from(*b)));
    }
    out.push(b'"');
}
