//! Rendering of values as text and as JSON, into a buffer of the caller, without allocating.
//!
//! Text is escaped: no character of a trace that a terminal could act on reaches it. JSON keeps
//! everything, lone surrogates included, as `\udXXX`.

use crate::decode::{Fields, Sid, Utf16, Value};
use crate::escape;
use crate::model::{Field, MapKind, OutType, Shown, ValueMap};
use etl_format::constants::PointerSize;
use etl_format::cursor::Bytes;
use std::fmt::{Display, LowerExp};
use std::io::Write;
use std::net::{SocketAddrV4, SocketAddrV6};

mod digits;
mod json;
mod message;
mod names;
mod plain;
mod readable;
mod status;
mod time;

pub use crate::escape::{escape_json, escape_line, is_terminal_unsafe};
pub use crate::model::{Meaning, is_hexadecimal};
pub use digits::{decimal, hex_bytes, hexadecimal, signed};
pub use json::{
    json_fields, json_fields_in_csv, json_fields_lossy, json_fields_with, json_value,
    json_value_lossy,
};
pub use message::{Prefix, message, plain_message, wpp_message};
pub use names::Names;
pub use plain::{plain_names, plain_value, plain_value_with};
pub use readable::readable_text;
pub use status::{hresult, ntstatus, win32};
pub use time::{filetime, system_time, time_of};

/// Elements of an array that the text form shows.
const SHOWN: usize = 8;

/// Bytes that the arrays of one payload may become. No payload of 64 KiB comes near it by its
/// values; members of structs bring their names with every element, and those may be of any length.
pub const MAX_LEN: usize = 16 << 20;

/// Writes fields as ` Name=value`, after values the names that they have.
///
/// Arrays of structs end early where they have become 16 MiB.
pub fn text_fields(out: &mut Vec<u8>, fields: &mut Fields<'_>) {
    text_fields_with(out, fields, None);
}

/// As [`text_fields`], with the names that the trace has for values.
pub fn text_fields_with(out: &mut Vec<u8>, fields: &mut Fields<'_>, names: Option<&dyn Names>) {
    Text { names, ..Text::new(out, true) }.fields(out, fields);
}

/// As [`unquoted_value`], with what is known of the field.
fn unquoted_shown(out: &mut Vec<u8>, field: &Field, shown: &Shown, value: Value<'_>) {
    Text { names_alone: true, ..Text::new(out, false) }.value(out, field, shown, value);
}

/// Writes one value: text in quotes, after values and bits the names that they have (`2(Forced)`),
/// addresses in hexadecimal.
pub fn text_value(out: &mut Vec<u8>, field: &Field, value: Value<'_>) {
    Text::new(out, true).value(out, field, &Shown::of(field), value);
}

/// Writes one value as it stands in running text: without quotes, names in place of values.
pub fn unquoted_value(out: &mut Vec<u8>, field: &Field, value: Value<'_>) {
    unquoted_shown(out, field, &Shown::of(field), value);
}

struct Text<'n> {
    quotes: bool,
    /// Whether a value that has a name is written by its name alone.
    names_alone: bool,
    /// Length of the output after which arrays end.
    end: usize,
    names: Option<&'n dyn Names>,
}

impl Text<'_> {
    fn new(out: &[u8], quotes: bool) -> Self {
        Text { quotes, names_alone: false, end: out.len().saturating_add(MAX_LEN), names: None }
    }

    fn fields(&self, out: &mut Vec<u8>, fields: &mut Fields<'_>) {
        while let Some((field, member, value)) = fields.next_member() {
            out.push(b' ');
            escape_line(out, &field.name);
            out.push(b'=');
            // Within a struct text is quoted, however its own value would stand.
            Text { quotes: true, ..*self }.value(out, field, &member.shown, value);
        }
    }

    fn value(&self, out: &mut Vec<u8>, field: &Field, shown: &Shown, value: Value<'_>) {
        let name_of = |out: &mut Vec<u8>| match (&field.map, bits(field, value)) {
            (Some(map), Some(bits)) => name(out, map, bits),
            _ => false,
        };
        if self.names_alone && name_of(out) {
            return;
        }
        self.number(out, field, shown, value);
        if let (Some(names), None) = (self.names, &field.map)
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
        if !self.names_alone && field.map.is_some() {
            let start = out.len();
            out.push(b'(');
            if name_of(out) {
                out.push(b')');
            } else {
                out.truncate(start);
            }
        }
    }

    /// A value without the name that a map has for it.
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
                let (path, rest) = names::split(self.names, until_nul(field, text));
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
        if !self.quotes {
            f(out);
            return;
        }
        out.push(b'"');
        let start = out.len();
        f(out);
        // Quotes within are rare: escape them only where there are some.
        let quotes = out.iter().skip(start).filter(|b| **b == b'"').count();
        if quotes > 0 {
            let text = out.split_off(start);
            for byte in text {
                if byte == b'"' {
                    out.push(b'\\');
                }
                out.push(byte);
            }
        }
        out.push(b'"');
    }
}

/// The bits of the number in a field, as many as the field has; `None` of what is no number.
#[must_use]
pub fn bits(field: &Field, value: Value<'_>) -> Option<u64> {
    value.bits(field.in_type().map_or(8, |of| of.width(PointerSize::P8)))
}

/// The text that a field shows: a buffer of fixed length says what is before its first NUL.
#[must_use]
pub fn until_nul<'a>(field: &Field, text: Utf16<'a>) -> Utf16<'a> {
    use crate::model::Length;
    match field.length {
        Length::Fixed(_) | Length::Field(_) | Length::Rest => text.before_nul(),
        _ => text,
    }
}

/// As [`until_nul`], of text of 8-bit units.
#[must_use]
pub fn shown_bytes<'a>(field: &Field, bytes: &'a [u8]) -> &'a [u8] {
    use crate::model::Length;
    match field.length {
        Length::Fixed(_) | Length::Field(_) => bytes.split(|b| *b == 0).next().unwrap_or_default(),
        _ => bytes,
    }
}

/// The name of a value: of a combination of bits the names with `|` between, and what has no name
/// in hexadecimal. `write` writes names with its own escaping. Writes nothing and returns `false`
/// when nothing of the value has a name.
fn name_with(
    out: &mut Vec<u8>,
    map: &ValueMap,
    value: u64,
    write: impl Fn(&mut Vec<u8>, &str),
) -> bool {
    if let Some(name) = map.get(value) {
        write(out, name);
        return true;
    }
    if map.kind() != MapKind::Bits || map.bits(value).next().is_none() {
        return false;
    }
    for (i, name) in map.bits(value).enumerate() {
        if i > 0 {
            out.push(b'|');
        }
        write(out, name);
    }
    let rest = map.unnamed(value);
    if rest != 0 {
        out.push(b'|');
        hexadecimal(out, rest);
    }
    true
}

fn name(out: &mut Vec<u8>, map: &ValueMap, value: u64) -> bool {
    name_with(out, map, value, escape_line)
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

/// The name of a status code, for the common ones; `None` where the numbers of the field are none.
#[must_use]
pub fn status_name(field: &Field, code: u64) -> Option<&'static str> {
    let code = u32::try_from(code).ok()?;
    match field.out {
        OutType::Win32Error => win32(code),
        OutType::NtStatus => ntstatus(code),
        OutType::HResult => hresult(code),
        _ => None,
    }
}

/// Writes a number with a fraction: a very large or small one with an exponent.
fn float(out: &mut Vec<u8>, value: f64, whole: &dyn Display, exponent: &dyn LowerExp) {
    let is_plain = !value.is_finite() || value == 0.0 || (1e-5..1e16).contains(&value.abs());
    let _ = if is_plain { write!(out, "{whole}") } else { write!(out, "{exponent:e}") };
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
    if units.iter().all(|&[low, high]| high == 0 && escape::is_plain(low)) {
        out.extend(units.iter().map(|&[low, _]| low));
        return;
    }
    escape::escape_chars(out, text.chars());
}

/// Eight-bit text: UTF-8 where it is valid, other bytes as the characters U+0080 to U+00FF.
fn ansi(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        escape_line(out, chunk.valid());
        escape::escape_chars(out, chunk.invalid().iter().map(|byte| Ok(char::from(*byte))));
    }
}

/// Writes `S-1-5-18`; bytes that are no SID as hexadecimal digits.
pub fn sid(out: &mut Vec<u8>, sid: Sid<'_>) {
    let Some((head, rest)) = sid.0.split_first_chunk::<8>() else { return hex_bytes(out, sid.0) };
    let [revision, _, authority @ ..] = *head;
    let authority = authority.iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
    let _ = write!(out, "S-{revision}-{authority}");
    for part in rest.chunks_exact(4) {
        out.push(b'-');
        decimal(out, part.u32_at(0).unwrap_or(0).into());
    }
}

/// Writes a `sockaddr` as `1.2.3.4:80` or `[::1]:80`; `false` when it is neither IPv4 nor IPv6.
pub fn socket_address(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    const INET: u16 = 2;
    const INET6: u16 = 23;
    let port = bytes.u16_at(2).map(u16::swap_bytes);
    let written = match (bytes.u16_at(0), port) {
        (Some(INET), Some(port)) => {
            bytes.array::<4>(4).map(|a| write!(out, "{}", SocketAddrV4::new(a.into(), port)))
        }
        (Some(INET6), Some(port)) => bytes
            .array::<16>(8)
            .zip(bytes.u32_at(24).or(Some(0)))
            .map(|(a, scope)| write!(out, "{}", SocketAddrV6::new(a.into(), port, 0, scope))),
        _ => None,
    };
    written.is_some_and(|r| r.is_ok())
}

#[cfg(test)]
mod tests;
