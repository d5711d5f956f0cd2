//! Message strings with inserts.

use super::digits::{decimal, signed};
use super::{bare_value, escape_line, plain_value};
use crate::decode::{Fields, Value};
use crate::model::{Field, SchemaSource};
use std::io::Write;

/// Widest that a format may pad a value.
const MAX_WIDTH: usize = 256;

/// Writes a message with its inserts replaced by the fields' values.
///
/// In manifests `%1` is the first field, in WPP messages (`SchemaSource::Tmf`) `%10` is. An insert
/// may have a printf format, `%1!08x!`; `%n` is a line break, `%t` a tab, `%%` a percent sign, `%0`
/// ends the message. Inserts without a field stay as they are.
pub fn message(out: &mut Vec<u8>, text: &str, source: SchemaSource, fields: &Fields<'_>) {
    whole(out, text, source, fields, Form::Escaped);
}

/// As [`message`], but as UTF-8 with nothing escaped, for formats that bring their own escaping;
/// unpaired surrogates become U+FFFD.
pub fn plain_message(out: &mut Vec<u8>, text: &str, source: SchemaSource, fields: &Fields<'_>) {
    whole(out, text, source, fields, Form::Plain);
}

/// Whether what a terminal could act on is escaped.
#[derive(Clone, Copy)]
enum Form {
    Escaped,
    Plain,
}

impl Form {
    fn text(self, out: &mut Vec<u8>, text: &str) {
        match self {
            Form::Escaped => escape_line(out, text),
            Form::Plain => out.extend_from_slice(text.as_bytes()),
        }
    }

    fn value(self, out: &mut Vec<u8>, field: &Field, value: Value<'_>) {
        match self {
            Form::Escaped => bare_value(out, field, value),
            Form::Plain => plain_value(field, value, &mut Vec::new(), &mut |c| {
                let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }),
        }
    }
}

fn whole(out: &mut Vec<u8>, text: &str, source: SchemaSource, fields: &Fields<'_>, form: Form) {
    let first = if source == SchemaSource::Tmf { 10 } else { 1 };
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        form.text(out, before);
        rest = insert(out, after, first, fields, form);
        if rest.is_empty() {
            return;
        }
    }
    form.text(out, rest);
}

/// What a `%` stands for; returns the text behind it.
fn insert<'t>(
    out: &mut Vec<u8>,
    after: &'t str,
    first: usize,
    fields: &Fields<'_>,
    form: Form,
) -> &'t str {
    let digits = after.bytes().take_while(u8::is_ascii_digit).take(3).count();
    let Some((number, rest)) = after.split_at_checked(digits).filter(|_| digits > 0) else {
        let mut chars = after.chars();
        match chars.next() {
            Some('n') => out.push(b'\n'),
            Some('t') => out.push(b'\t'),
            Some('b') => out.push(b' '),
            Some('r') => {}
            Some(c @ ('%' | '.' | '!')) => out.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            // Unknown: both stay.
            Some(c) => {
                out.push(b'%');
                form.text(out, c.encode_utf8(&mut [0; 4]));
            }
            None => out.push(b'%'),
        }
        return chars.as_str();
    };
    let index: usize = number.parse().unwrap_or(usize::MAX);
    if index == 0 {
        return "";
    }
    let format = rest.strip_prefix('!').and_then(|r| r.split_once('!'));
    let (format, rest) = format.map_or((None, rest), |(format, rest)| (Some(format), rest));
    let field = index.checked_sub(first).and_then(|at| fields.clone().nth(at));
    match (field, format.map(Format::parse)) {
        (Some((field, value)), format) => {
            let start = out.len();
            if !format.as_ref().is_some_and(|f| f.number(out, value)) {
                form.value(out, field, value);
            }
            if let Some(format) = format {
                format.pad(out, start);
            }
        }
        (None, _) => {
            out.push(b'%');
            out.extend(number.as_bytes());
        }
    }
    rest
}

/// A printf format, as far as it makes sense here.
struct Format {
    left: bool,
    zeros: bool,
    prefix: bool,
    width: usize,
    kind: u8,
}

impl Format {
    fn parse(text: &str) -> Self {
        let flags = text.bytes().take_while(|b| b"-+ #0".contains(b)).count();
        let (flags, rest) = text.split_at_checked(flags).unwrap_or_default();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let width = rest.get(..digits).and_then(|w| w.parse().ok()).unwrap_or(0usize);
        Format {
            left: flags.contains('-'),
            zeros: flags.contains('0') && !flags.contains('-'),
            prefix: flags.contains('#'),
            width: width.min(MAX_WIDTH),
            kind: rest.bytes().last().unwrap_or(b's'),
        }
    }

    /// Writes a number; `false` when the format asks for none or the value is none.
    fn number(&self, out: &mut Vec<u8>, value: Value<'_>) -> bool {
        let bits = match value {
            // printf sees 32 bits of a negative number, and all of those that need more.
            Value::Int(n) if i32::try_from(n).is_ok() => u64::from(n as i32 as u32),
            Value::Int(n) => n as u64,
            _ => match value.as_u64() {
                Some(n) => n,
                None => return false,
            },
        };
        let prefix = if self.prefix { "0x" } else { "" };
        match self.kind {
            b'd' | b'i' => match value.as_i64() {
                Some(n) => signed(out, n),
                None => decimal(out, bits),
            },
            b'u' => decimal(out, bits),
            b'x' => drop(write!(out, "{prefix}{bits:x}")),
            b'X' => drop(write!(out, "{prefix}{bits:X}")),
            b'o' => drop(write!(out, "{bits:o}")),
            b'p' => drop(write!(out, "0x{bits:x}")),
            b'c' => {
                let c = u32::try_from(bits).ok().and_then(char::from_u32);
                escape_line(out, c.unwrap_or('\u{fffd}').encode_utf8(&mut [0; 4]));
            }
            _ => return false,
        }
        true
    }

    /// Pads what was written since `start`.
    fn pad(&self, out: &mut Vec<u8>, start: usize) {
        let have = out.len().saturating_sub(start);
        let missing = self.width.saturating_sub(have);
        if missing == 0 {
            return;
        }
        let filler = if self.zeros { b'0' } else { b' ' };
        out.resize(out.len() + missing, filler);
        if !self.left
            && let Some(written) = out.get_mut(start..)
        {
            written.rotate_right(missing);
        }
    }
}
