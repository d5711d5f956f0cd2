//! What the formats share about values: names, texts up to their NUL, SIDs and socket addresses.

use super::digits::{decimal, hex_bytes, hexadecimal};
use super::status::{hresult, ntstatus, win32};
use crate::decode::{Sid, Utf16, Value};
use crate::model::{Field, Length, MapKind, OutType, ValueMap};
use etl_format::constants::PointerSize;
use etl_format::cursor::Bytes;
use std::io::Write;
use std::net::{SocketAddrV4, SocketAddrV6};

/// The bits of the number in a field, as many as the field has; `None` if it is not a number.
#[must_use]
pub fn bits(field: &Field, value: Value<'_>) -> Option<u64> {
    value.bits(field.in_type().map_or(8, |of| of.width(PointerSize::P8)))
}

/// The text of a field. In a buffer of fixed length it ends at the first NUL.
#[must_use]
pub fn until_nul<'a>(field: &Field, text: Utf16<'a>) -> Utf16<'a> {
    match field.length {
        Length::Fixed(_) | Length::Field(_) | Length::Rest => text.before_nul(),
        _ => text,
    }
}

/// As [`until_nul`], of text of 8-bit units.
#[must_use]
pub fn shown_bytes<'a>(field: &Field, bytes: &'a [u8]) -> &'a [u8] {
    match field.length {
        Length::Fixed(_) | Length::Field(_) => bytes.split(|b| *b == 0).next().unwrap_or_default(),
        _ => bytes,
    }
}

/// The name of a value: of a combination of bits the names with `|` between, and what has no name
/// in hexadecimal. `write` writes names with its own escaping. Writes nothing and returns `false`
/// when nothing of the value has a name.
pub(super) fn name_with(
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

/// The name of a status code, for the common ones; `None` if the field has no status codes.
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

/// Writes `S-1-5-18`; bytes that are not a SID as hexadecimal digits.
pub fn sid(out: &mut Vec<u8>, sid: Sid<'_>) {
    let Some((head, rest)) = sid.0.split_first_chunk::<8>() else {
        return hex_bytes(out, sid.0);
    };
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
        (Some(INET), Some(port)) => bytes
            .array::<4>(4)
            .map(|a| write!(out, "{}", SocketAddrV4::new(a.into(), port))),
        (Some(INET6), Some(port)) => bytes
            .array::<16>(8)
            .zip(bytes.u32_at(24).or(Some(0)))
            .map(|(a, scope)| write!(out, "{}", SocketAddrV6::new(a.into(), port, 0, scope))),
        _ => None,
    };
    written.is_some_and(|r| r.is_ok())
}
