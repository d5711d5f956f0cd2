//! Values as JSON. Numbers above 2^53 are written as they are: readers that keep only doubles have
//! to take care of themselves.

use std::io::Write;

use etl_schema::encode::OwnedValue;

/// Appends a string.
pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend(b"\\\""),
            '\\' => out.extend(b"\\\\"),
            '\n' => out.extend(b"\\n"),
            c if (c as u32) < 0x20 => put(out, format_args!("\\u{:04x}", c as u32)),
            c => {
                let mut buffer = [0; 4];
                out.extend(c.encode_utf8(&mut buffer).as_bytes());
            }
        }
    }
    out.push(b'"');
}

/// Appends what is formatted.
pub(super) fn put(out: &mut Vec<u8>, arguments: core::fmt::Arguments<'_>) {
    // Writing into a Vec does not fail.
    let _ = out.write_fmt(arguments);
}

/// Appends a value.
pub(super) fn value(out: &mut Vec<u8>, v: &OwnedValue) {
    match v {
        OwnedValue::Auto => out.extend(b"0"),
        OwnedValue::Null => out.extend(b"null"),
        OwnedValue::Bool(v) => put(out, format_args!("{v}")),
        OwnedValue::Int(v) => put(out, format_args!("{v}")),
        OwnedValue::UInt(v) | OwnedValue::Pointer(v) | OwnedValue::FileTime(v) => {
            put(out, format_args!("{v}"));
        }
        OwnedValue::Float(v) if v.is_finite() => put(out, format_args!("{v:?}")),
        OwnedValue::Double(v) if v.is_finite() => put(out, format_args!("{v:?}")),
        OwnedValue::Float(_) | OwnedValue::Double(_) => out.extend(b"null"),
        OwnedValue::Char(v) => put(out, format_args!("{v}")),
        OwnedValue::Guid(v) => put(out, format_args!("\"{v}\"")),
        OwnedValue::SystemTime(v) => put(out, format_args!("{v:?}")),
        OwnedValue::Text(v) => string(out, v),
        OwnedValue::Utf16(v) => string(out, &String::from_utf16_lossy(v)),
        OwnedValue::Ansi(v) | OwnedValue::Utf8(v) => string(out, &String::from_utf8_lossy(v)),
        OwnedValue::Sid(v) | OwnedValue::Binary(v) => {
            out.push(b'"');
            v.iter().for_each(|b| put(out, format_args!("{b:02x}")));
            out.push(b'"');
        }
        OwnedValue::Ipv4(v) => put(out, format_args!("\"{v}\"")),
        OwnedValue::Ipv6(v) => put(out, format_args!("\"{v}\"")),
        OwnedValue::Struct(list) | OwnedValue::Array(list) => {
            out.push(b'[');
            for (n, v) in list.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                value(out, v);
            }
            out.push(b']');
        }
    }
}
