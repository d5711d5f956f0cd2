//! Message strings with inserts.

use super::Renderer;
use super::digits::{decimal, signed};
use super::plan::{FieldPlan, plans_of_fields};
use super::values::until_nul;
use crate::decode::{Fields, Value};
use crate::escape::escape_line;
use crate::model::{Field, SchemaSource, Shown};
use std::io::Write;

/// Widest that a format may pad a value.
const MAX_WIDTH: usize = 256;

/// Bytes that a message may become: its inserts may be many, and each as long as a payload.
const MAX_MESSAGE: usize = 1 << 18;

impl Renderer<'_> {
    /// Writes a message with its inserts replaced by the values of the fields.
    ///
    /// In manifests `%1` is the first field, in WPP messages (schemas from
    /// [`SchemaSource::Tmf`]) `%10` is; for smaller numbers see [`Renderer::wpp_message`]. An
    /// insert may have a printf format, `%1!08x!`; `%n` is a line break, `%t` a tab, `%%` a
    /// percent sign, `%0` ends the message of a manifest. Inserts without a field stay as they
    /// are. A message that has become longer than 256 KiB ends there, with an ellipsis.
    ///
    /// ```
    /// use etl_format::{Guid, constants::PointerSize};
    /// use etl_schema::decode::Decoder;
    /// use etl_schema::render::Renderer;
    /// use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource};
    ///
    /// let identity = Identity::Modern { id: 1, version: 0 };
    /// let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::Manifest);
    /// schema.fields = vec![Field::new("Code", InType::UInt8)];
    /// let decoder = Decoder::new(schema.into());
    /// let fields = decoder.fields(&[11], PointerSize::P8);
    /// let mut text = Vec::new();
    /// Renderer::new().message(&mut text, "failed with %1!04x!", &fields);
    /// assert_eq!(text, b"failed with 000b");
    /// ```
    pub fn message(&self, out: &mut Vec<u8>, text: &str, fields: &Fields<'_>) {
        self.writer(fields, Form::Escaped).whole(out, text);
    }

    /// Writes a message as [`Renderer::message`] does, as UTF-8 with nothing escaped: for formats
    /// that escape it themselves. An unpaired surrogate becomes U+FFFD.
    pub fn plain_message(&self, out: &mut Vec<u8>, text: &str, fields: &Fields<'_>) {
        self.writer(fields, Form::Plain).whole(out, text);
    }

    /// Writes a WPP message as [`Renderer::plain_message`] does, with what its record contains:
    /// `%1` to `%9` are the parts of the prefix, nothing if the record lacks one; `%0`, the place
    /// of the whole prefix, is written as nothing.
    pub fn wpp_message(
        &self,
        out: &mut Vec<u8>,
        text: &str,
        prefix: &Prefix<'_>,
        fields: &Fields<'_>,
    ) {
        let mut writer = self.writer(fields, Form::Plain);
        writer.wpp = Some(Some(prefix));
        writer.whole(out, text);
    }

    fn writer<'f, 'a>(&'f self, fields: &'f Fields<'a>, form: Form) -> Writer<'f, 'a> {
        let is_wpp = fields.schema().source == SchemaSource::Tmf;
        Writer {
            renderer: self.names_alone(),
            plans: plans_of_fields(fields),
            wpp: is_wpp.then_some(None),
            fields,
            form,
            rest: fields.clone(),
            next: 0,
        }
    }
}

/// The values in the record of a WPP message besides its arguments, for the inserts `%1` to `%9`.
/// `tracefmt` puts these before every message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prefix<'a> {
    /// `%1`: the friendly name of the message GUID.
    pub component: &'a str,
    /// `%2`: the name of the message: its source file and line.
    pub source: &'a str,
    /// `%3`: the thread.
    pub thread: Option<u32>,
    /// `%4`: the time, as it is to be shown.
    pub time: &'a str,
    /// `%5`: the time spent in kernel mode. Records of messages do not contain it.
    pub kernel_time: Option<u32>,
    /// `%6`: the time spent in user mode. Records of messages do not contain it.
    pub user_time: Option<u32>,
    /// `%7`: the sequence number.
    pub sequence: Option<u32>,
    /// `%8`: the process.
    pub process: Option<u32>,
    /// `%9`: the processor.
    pub processor: Option<u32>,
}

impl<'a> Prefix<'a> {
    /// The part with this number.
    fn part(&self, number: usize) -> Option<Part<'a>> {
        let number = match number {
            1 => return Some(Part::Text(self.component)),
            2 => return Some(Part::Text(self.source)),
            4 => return Some(Part::Text(self.time)),
            3 => self.thread,
            5 => self.kernel_time,
            6 => self.user_time,
            7 => self.sequence,
            8 => self.process,
            9 => self.processor,
            _ => return None,
        };
        Some(number.map_or(Part::Text(""), Part::Number))
    }
}

/// A part of a prefix.
enum Part<'a> {
    Text(&'a str),
    Number(u32),
}

/// Whether characters are escaped on which a terminal could act.
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
}

/// Writes a message.
struct Writer<'f, 'a> {
    renderer: Renderer<'f>,
    plans: &'a [FieldPlan],
    /// `Some` for a message of WPP, with the values in its record.
    wpp: Option<Option<&'f Prefix<'f>>>,
    fields: &'f Fields<'a>,
    form: Form,
    /// The fields from this one on.
    rest: Fields<'a>,
    next: usize,
}

impl<'f, 'a> Writer<'f, 'a> {
    /// The field with an index, and its value. Most messages name fields in their order.
    fn field(&mut self, index: usize) -> Option<(&'a Field, &'a Shown, Value<'a>)> {
        if index < self.next {
            self.rest = self.fields.clone();
            self.next = 0;
        }
        while self.next < index {
            self.rest.next()?;
            self.next += 1;
        }
        self.next += 1;
        let (field, number, value) = self.rest.next_numbered()?;
        let plan = self.plans.get(number)?;
        Some((field, &plan.shown, value))
    }

    /// Writes the value of a field.
    fn value(&self, out: &mut Vec<u8>, field: &Field, shown: &Shown, value: Value<'_>) {
        use Value::{Ansi, Array, Char, Struct, Utf8, Utf16};
        if let Form::Escaped = self.form {
            return self.renderer.unquoted(out, field, shown, value);
        }
        if let Utf16(text) = value
            && let Some(ascii) = until_nul(field, text).ascii()
        {
            out.extend(ascii);
            return;
        }
        match value {
            Utf16(_) | Ansi(_) | Utf8(_) | Char(_) | Array(_) | Struct(_) => {
                self.renderer
                    .chars(field, value, &mut Vec::new(), &mut |c| {
                        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
                        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    });
            }
            value => self.renderer.unquoted(out, field, shown, value),
        }
    }

    fn whole(mut self, out: &mut Vec<u8>, text: &str) {
        let mut rest = text;
        let start = out.len();
        while let Some((before, after)) = rest.split_once('%') {
            if out.len().saturating_sub(start) > MAX_MESSAGE {
                out.extend_from_slice("\u{2026}".as_bytes());
                return;
            }
            self.form.text(out, before);
            rest = self.insert(out, after);
            if rest.is_empty() {
                return;
            }
        }
        self.form.text(out, rest);
    }

    /// Writes the replacement of a `%`; returns the text after it.
    fn insert<'t>(&mut self, out: &mut Vec<u8>, after: &'t str) -> &'t str {
        // Messages of manifests have at most 99 inserts, and end at a zero.
        let max_digits = match self.wpp {
            Some(_) => 3,
            None if after.starts_with('0') => 1,
            None => 2,
        };
        let digits = after.bytes().take_while(u8::is_ascii_digit);
        let digits = digits.take(max_digits).count();
        let Some((number, rest)) = after.split_at_checked(digits) else {
            return self.letter(out, after);
        };
        if number.is_empty() {
            return self.letter(out, after);
        }
        let index: usize = number.parse().unwrap_or(usize::MAX);
        if index == 0 {
            // The place of the prefix, or the end of the message.
            return if self.wpp.is_some() { rest } else { "" };
        }
        let mut format = None;
        let mut rest = rest;
        if let Some(formatted) = rest.strip_prefix('!')
            && let Some((text, after)) = formatted.split_once('!')
        {
            format = Some(Format::parse(text));
            rest = after;
        }
        let first = if self.wpp.is_some() { 10 } else { 1 };
        let field = index.checked_sub(first).and_then(|index| self.field(index));
        let part = self.wpp.flatten().and_then(|prefix| prefix.part(index));
        let start = out.len();
        match (field, part) {
            (Some((field, shown, value)), _) => {
                if !write_formatted(out, format.as_ref(), value) {
                    self.value(out, field, shown, value);
                }
            }
            (None, Some(Part::Text(text))) => self.form.text(out, text),
            (None, Some(Part::Number(n))) => {
                if !write_formatted(out, format.as_ref(), Value::UInt(n.into())) {
                    decimal(out, n.into());
                }
            }
            (None, None) => {
                out.push(b'%');
                out.extend(number.as_bytes());
                return rest;
            }
        }
        if let Some(format) = format {
            format.pad(out, start);
        }
        rest
    }

    /// Writes the replacement of a `%` that no number follows.
    fn letter<'t>(&self, out: &mut Vec<u8>, after: &'t str) -> &'t str {
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
                self.form.text(out, c.encode_utf8(&mut [0; 4]));
            }
            None => out.push(b'%'),
        }
        chars.as_str()
    }
}

/// Writes a number by its format; returns false if there is no format for a number, or the value is
/// not a number.
fn write_formatted(out: &mut Vec<u8>, format: Option<&Format>, value: Value<'_>) -> bool {
    match format {
        Some(format) => format.number(out, value),
        None => false,
    }
}

/// The parts of a printf format that apply to values of events.
struct Format {
    left: bool,
    zeros: bool,
    prefix: bool,
    width: usize,
    /// Whether it asks for 64 bits: `I64`, `ll`.
    is_wide: bool,
    kind: u8,
}

impl Format {
    fn parse(text: &str) -> Self {
        let flags = text.bytes().take_while(|b| b"-+ #0".contains(b)).count();
        let (flags, rest) = text.split_at_checked(flags).unwrap_or_default();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let width = rest.get(..digits).unwrap_or_default();
        let width: usize = width.parse().unwrap_or(0);
        Format {
            left: flags.contains('-'),
            zeros: flags.contains('0') && !flags.contains('-'),
            prefix: flags.contains('#'),
            width: width.min(MAX_WIDTH),
            is_wide: rest.contains("I64") || rest.contains("ll"),
            kind: rest.bytes().last().unwrap_or(b's'),
        }
    }

    /// Writes a number; returns false if the format or the value is not a number.
    fn number(&self, out: &mut Vec<u8>, value: Value<'_>) -> bool {
        let bits = match value {
            // Without a size, printf prints 32 bits of a negative number. Numbers that need more
            // bits are printed whole.
            Value::Int(n) if !self.is_wide && i32::try_from(n).is_ok() => {
                u64::from(n as i32 as u32)
            }
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
