//! Members of JSON objects.

use etl_schema::render::{decimal, escape_json};

use crate::columns::Column;

/// Writes the beginning of a member.
#[inline(always)]
pub(super) fn key(out: &mut Vec<u8>, column: Column) {
    out.extend_from_slice(column.json_key().as_bytes());
}

/// Writes quotes around the output of `write`.
#[inline(always)]
pub(super) fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

/// Writes a text as a member, unless it is empty.
pub(super) fn text_member(out: &mut Vec<u8>, column: Column, text: &str) {
    if !text.is_empty() {
        key(out, column);
        escape_json(out, text);
    }
}

/// Writes a number as a member, if there is one.
pub(super) fn number<T: Into<u64>>(out: &mut Vec<u8>, column: Column, value: Option<T>) {
    if let Some(value) = value {
        key(out, column);
        decimal(out, value.into());
    }
}
