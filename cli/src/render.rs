//! Decoded fields as JSON and as text.

use etl_format::clock::iso_utc;
use etl_format::cursor::Bytes;
use etl_schema::decode::{Fields, SystemTime, Utf16, Value};
use etl_schema::{Field, MapKind, ValueMap};

use crate::escape;
use crate::output::{decimal, hex, hexadecimal, signed};

/// Items of an array that the text form shows.
const SHOWN: usize = 8;

/// Writes the fields as a JSON object.
pub(crate) fn json_fields(out: &mut Vec<u8>, fields: &mut Fields<'_>) {
    out.push(b'{');
    let mut first = true;
    for (field, value) in fields {
        if !first {
            out.push(b',');
        }
        first = false;
        escape::json(out, &field.name);
        out.push(b':');
        json(out, value);
    }
    out.push(b'}');
}

fn json(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Int(n) => signed(out, n),
        Value::UInt(n) => decimal(out, n),
        Value::Pointer(p) => quoted(out, |out| hexadecimal(out, p)),
        // What JSON has no number for is written as text.
        Value::Float(f) if f.is_finite() => out.extend(format!("{f:?}").as_bytes()),
        Value::Float(f) => quoted(out, |out| out.extend(f.to_string().as_bytes())),
        Value::Double(f) if f.is_finite() => out.extend(format!("{f:?}").as_bytes()),
        Value::Double(f) => quoted(out, |out| out.extend(f.to_string().as_bytes())),
        Value::Bool(b) => out.extend(if b { &b"true"[..] } else { b"false" }),
        Value::Guid(g) => quoted(out, |out| out.extend(g.to_ascii())),
        Value::Utf16(text) => json_utf16(out, text),
        Value::Char(unit) => json_utf16(out, Utf16::new(&unit.to_le_bytes())),
        Value::Null => out.extend(b"null"),
        Value::Ipv4(a) => quoted(out, |out| out.extend(a.to_string().as_bytes())),
        Value::Ipv6(a) => quoted(out, |out| out.extend(a.to_string().as_bytes())),
        Value::Ansi(bytes) | Value::Utf8(bytes) => {
            escape::json(out, &String::from_utf8_lossy(bytes))
        }
        Value::Binary(bytes) => quoted(out, |out| hex(out, bytes)),
        Value::FileTime(t) => quoted(out, |out| out.extend(iso_utc(t.cast_signed()).as_bytes())),
        Value::SystemTime(SystemTime(parts)) => quoted(out, |out| system_time(out, parts)),
        Value::Sid(s) => quoted(out, |out| sid(out, s.0)),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                json(out, item);
            }
            out.push(b']');
        }
        Value::Struct(members) => json_fields(out, &mut members.fields()),
    }
}

fn quoted(out: &mut Vec<u8>, f: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    f(out);
    out.push(b'"');
}

/// UTF-16LE code units as a JSON string; an unpaired surrogate stays what it is.
fn json_utf16(out: &mut Vec<u8>, text: Utf16<'_>) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            Ok(c) if (' '..='~').contains(&c) && c != '"' && c != '\\' => out.push(c as u8),
            Ok(c) => escape::json_char(out, c),
            Err(lone) => {
                out.extend(format!("\\u{lone:04x}").as_bytes());
            }
        }
    }
    out.push(b'"');
}

/// Writes the fields as ` Name=value`, names of values where they have some.
pub(crate) fn text_fields(out: &mut Vec<u8>, fields: &mut Fields<'_>) {
    for (field, value) in fields {
        out.push(b' ');
        escape::line(out, &field.name);
        out.push(b'=');
        text(out, field, value);
    }
}

fn text(out: &mut Vec<u8>, field: &Field, value: Value<'_>) {
    match value {
        Value::UInt(n) => match field.map.as_ref().and_then(|map| name_of(map, n)) {
            Some(name) => escape::line(out, &name),
            // Ids and addresses are what large numbers are.
            None if n > u64::from(u32::MAX) => hexadecimal(out, n),
            None => decimal(out, n),
        },
        Value::Int(n) => signed(out, n),
        Value::Pointer(p) => hexadecimal(out, p),
        Value::Float(f) => out.extend(f.to_string().as_bytes()),
        Value::Bool(b) => out.extend(if b { &b"true"[..] } else { b"false" }),
        Value::Guid(g) => out.extend(g.to_ascii()),
        Value::Utf16(units) => quoted(out, |out| text_utf16(out, units)),
        Value::Char(unit) => quoted(out, |out| text_utf16(out, Utf16::new(&unit.to_le_bytes()))),
        Value::Null => out.extend(b"null"),
        Value::Double(f) => out.extend(f.to_string().as_bytes()),
        Value::Ipv4(a) => out.extend(a.to_string().as_bytes()),
        Value::Ipv6(a) => out.extend(a.to_string().as_bytes()),
        Value::Ansi(bytes) | Value::Utf8(bytes) => {
            quoted(out, |out| escape::line(out, &String::from_utf8_lossy(bytes)));
        }
        Value::Binary(bytes) => hex(out, bytes),
        Value::FileTime(t) => out.extend(iso_utc(t.cast_signed()).as_bytes()),
        Value::SystemTime(SystemTime(parts)) => system_time(out, parts),
        Value::Sid(s) => sid(out, s.0),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate().take(SHOWN) {
                if i > 0 {
                    out.push(b',');
                }
                text(out, field, item);
            }
            if items.len() > SHOWN {
                out.extend(format!(",... {} in all", items.len()).as_bytes());
            }
            out.push(b']');
        }
        Value::Struct(members) => {
            out.push(b'{');
            text_fields(out, &mut members.fields());
            out.extend(b" }");
        }
    }
}

/// UTF-16 text within quotes; an unpaired surrogate is escaped.
fn text_utf16(out: &mut Vec<u8>, text: Utf16<'_>) {
    for c in text.chars() {
        match c {
            Ok('"') => out.extend(b"\\\""),
            Ok(c) => escape::line(out, c.encode_utf8(&mut [0; 4])),
            Err(lone) => out.extend(format!("\\u{{{lone:x}}}").as_bytes()),
        }
    }
}

/// The name of a value; of a combination of bits the names with `|` between, and what has no name in
/// hexadecimal. `None` when nothing of it has a name.
fn name_of(map: &ValueMap, value: u64) -> Option<String> {
    if let Some(name) = map.get(value) {
        return Some(name.to_owned());
    }
    let mut names: Vec<_> = match map.kind() {
        MapKind::Values => return None,
        MapKind::Bits => map.bits(value).map(str::to_owned).collect(),
    };
    if names.is_empty() {
        return None;
    }
    match map.unnamed(value) {
        0 => {}
        rest => names.push(format!("{rest:#x}")),
    }
    Some(names.join("|"))
}

/// Year, month, day of week, day, hour, minute, second, millisecond, in the zone of their writer.
fn system_time(out: &mut Vec<u8>, [year, month, _, day, hour, minute, second, ms]: [u16; 8]) {
    let text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}");
    out.extend(text.as_bytes());
}

/// `S-1-5-18`; bytes that are no SID come as hexadecimal digits.
fn sid(out: &mut Vec<u8>, bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_first_chunk::<8>() else { return hex(out, bytes) };
    let [revision, _, authority @ ..] = *head;
    let authority = authority.iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
    out.extend(format!("S-{revision}-{authority}").as_bytes());
    for part in rest.chunks_exact(4) {
        out.push(b'-');
        decimal(out, part.u32_at(0).unwrap_or(0).into());
    }
}
