//! Values as characters, for formats with their own escaping.

use super::Renderer;
use super::names::split;
use super::values::{shown_bytes, until_nul};
use crate::decode::{Utf16, Value, ansi_chars};
use crate::model::{Field, Shown};
use std::cell::Cell;

impl Renderer<'_> {
    /// Passes the characters of one value to `sink`, in order and not escaped: text as in the
    /// payload (an unpaired surrogate is passed as `Err` with its code unit; bytes that are not
    /// UTF-8 as the characters U+0080 to U+00FF), everything else as [`Renderer::text_value`]
    /// writes it. Arrays are `[a,b]` with all their elements up to [`super::MAX_LEN`] characters,
    /// structs `{Name=a,Other=b}`.
    ///
    /// `scratch` is memory for values that are not text; the caller keeps it so that nothing is
    /// allocated.
    ///
    /// ```
    /// use etl_schema::{Field, InType, decode::Value, render::Renderer};
    ///
    /// let field = Field::new("Name", InType::Ansi);
    /// let mut scratch = Vec::new();
    /// let mut text = String::new();
    /// Renderer::new().chars(&field, Value::Ansi(b"a\tb"), &mut scratch, &mut |c| {
    ///     text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
    /// });
    /// assert_eq!(text, "a\tb");
    /// ```
    pub fn chars(
        &self,
        field: &Field,
        value: Value<'_>,
        scratch: &mut Vec<u8>,
        sink: &mut dyn FnMut(Result<char, u16>),
    ) {
        let count = Cell::new(0usize);
        let counting_sink = &mut |c| {
            count.set(count.get().saturating_add(1));
            sink(c);
        };
        characters(field, value, *self, scratch, counting_sink, &count);
    }
}

fn characters(
    field: &Field,
    value: Value<'_>,
    renderer: Renderer<'_>,
    scratch: &mut Vec<u8>,
    sink: &mut dyn FnMut(Result<char, u16>),
    count: &Cell<usize>,
) {
    match value {
        Value::Utf16(text) => {
            let (path, rest) = split(renderer.names, until_nul(field, text));
            path.chars().map(Ok).chain(rest.chars()).for_each(sink);
        }
        Value::Char(unit) => Utf16::new(&unit.to_le_bytes()).chars().for_each(sink),
        Value::Ansi(bytes) | Value::Utf8(bytes) => {
            ansi_chars(shown_bytes(field, bytes)).for_each(|c| sink(Ok(c)));
        }
        Value::Array(items) => {
            sink(Ok('['));
            for (i, item) in items.iter().enumerate() {
                if count.get() > super::MAX_LEN {
                    break;
                }
                if i > 0 {
                    sink(Ok(','));
                }
                characters(field, item, renderer, scratch, sink, count);
            }
            sink(Ok(']'));
        }
        Value::Struct(members) => {
            sink(Ok('{'));
            for (i, (member, value)) in members.fields().enumerate() {
                if i > 0 {
                    sink(Ok(','));
                }
                member.name.chars().for_each(|c| sink(Ok(c)));
                sink(Ok('='));
                characters(member, value, renderer, scratch, sink, count);
            }
            sink(Ok('}'));
        }
        value => {
            scratch.clear();
            renderer.unquoted(scratch, field, &Shown::of(field), value);
            String::from_utf8_lossy(scratch)
                .chars()
                .for_each(|c| sink(Ok(c)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decoder;
    use crate::model::{EventSchema, Identity, InType, SchemaSource};
    use etl_format::Guid;
    use etl_format::constants::PointerSize;

    #[test]
    fn chars_passes_text_unescaped() {
        let id = Identity::Modern { id: 1, version: 0 };
        let mut schema = EventSchema::new(Guid::ZERO, id, SchemaSource::Table);
        schema.fields = vec![
            Field::new("Path", InType::Utf16),
            Field::new("Name", InType::Ansi),
            Field::structure("Pair", vec![Field::new("A", InType::Int8)]),
        ];
        let decoder = Decoder::new(schema.into());
        let mut payload: Vec<u8> = [u16::from(b'C'), u16::from(b'\\'), 0xd800, 0]
            .map(u16::to_le_bytes)
            .concat();
        payload.extend(b"a\\\xe9\0\xff");
        let (mut seen, mut scratch) = (Vec::new(), Vec::new());
        for (field, value) in decoder.fields(&payload, PointerSize::P8) {
            Renderer::new().chars(field, value, &mut scratch, &mut |c| seen.push(c));
            seen.push(Ok(' '));
        }
        let text: String = seen.iter().filter_map(|c| c.ok()).collect();
        assert_eq!(text, "C\\ a\\é {A=-1} ");
        assert_eq!(
            seen.iter().filter_map(|c| c.err()).collect::<Vec<_>>(),
            [0xd800]
        );
    }
}
