//! Values as characters, for formats with their own escaping.

use super::names::{Names, split};
use super::{Text, shown_bytes, until_nul};
use crate::decode::{Utf16, Value, ansi_chars};
use crate::model::{Field, Shown};
use std::cell::Cell;

/// Passes the characters of one value to `sink`, in order and not escaped: text as it stands in the
/// payload (an unpaired surrogate comes as `Err` with its code unit; bytes that are no UTF-8 as the
/// characters U+0080 to U+00FF), everything else as [`super::text_value`] writes it. Arrays are
/// `[a,b]` with all their elements up to [`super::MAX_LEN`] characters, structs `{Name=a,Other=b}`.
///
/// `scratch` is memory for values that are not text; it is kept by the caller so that nothing is
/// allocated.
pub fn plain_value(
    field: &Field,
    value: Value<'_>,
    scratch: &mut Vec<u8>,
    sink: &mut dyn FnMut(Result<char, u16>),
) {
    plain_value_with(field, value, None, scratch, sink);
}

/// As [`plain_value`], with the names that the trace has for values.
pub fn plain_value_with(
    field: &Field,
    value: Value<'_>,
    names: Option<&dyn Names>,
    scratch: &mut Vec<u8>,
    sink: &mut dyn FnMut(Result<char, u16>),
) {
    pass(field, value, Style { names, names_alone: false }, scratch, sink);
}

/// As [`plain_value`], with the names that a map has in place of values, as
/// [`super::unquoted_value`] writes them.
pub fn plain_names(
    field: &Field,
    value: Value<'_>,
    scratch: &mut Vec<u8>,
    sink: &mut dyn FnMut(Result<char, u16>),
) {
    pass(field, value, Style { names: None, names_alone: true }, scratch, sink);
}

/// Which names values have.
#[derive(Clone, Copy)]
struct Style<'n> {
    names: Option<&'n dyn Names>,
    names_alone: bool,
}

fn pass(
    field: &Field,
    value: Value<'_>,
    style: Style<'_>,
    scratch: &mut Vec<u8>,
    sink: &mut dyn FnMut(Result<char, u16>),
) {
    let given = Cell::new(0usize);
    let mut counted = |c| {
        given.set(given.get().saturating_add(1));
        sink(c);
    };
    characters(field, value, style, scratch, &mut counted, &given);
}

fn characters(
    field: &Field,
    value: Value<'_>,
    style: Style<'_>,
    scratch: &mut Vec<u8>,
    sink: &mut dyn FnMut(Result<char, u16>),
    given: &Cell<usize>,
) {
    match value {
        Value::Utf16(text) => {
            let (path, rest) = split(style.names, until_nul(field, text));
            path.chars().map(Ok).chain(rest.chars()).for_each(sink);
        }
        Value::Char(unit) => Utf16::new(&unit.to_le_bytes()).chars().for_each(sink),
        Value::Ansi(bytes) | Value::Utf8(bytes) => {
            ansi_chars(shown_bytes(field, bytes)).for_each(|c| sink(Ok(c)));
        }
        Value::Array(items) => {
            sink(Ok('['));
            for (i, item) in items.iter().enumerate() {
                if given.get() > super::MAX_LEN {
                    break;
                }
                if i > 0 {
                    sink(Ok(','));
                }
                characters(field, item, style, scratch, sink, given);
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
                characters(member, value, style, scratch, sink, given);
            }
            sink(Ok('}'));
        }
        value => {
            scratch.clear();
            let Style { names, names_alone } = style;
            let text = Text { names, names_alone, ..Text::new(scratch, false) };
            text.value(scratch, field, &Shown::of(field), value);
            String::from_utf8_lossy(scratch).chars().for_each(|c| sink(Ok(c)));
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
    fn plain_value_passes_text_unescaped() {
        let id = Identity::Modern { id: 1, version: 0 };
        let mut schema = EventSchema::new(Guid::ZERO, id, SchemaSource::Table);
        schema.fields = vec![
            Field::new("Path", InType::Utf16),
            Field::new("Name", InType::Ansi),
            Field::structure("Pair", vec![Field::new("A", InType::Int8)]),
        ];
        let decoder = Decoder::new(schema.into());
        let mut payload: Vec<u8> =
            [u16::from(b'C'), u16::from(b'\\'), 0xd800, 0].map(u16::to_le_bytes).concat();
        payload.extend(b"a\\\xe9\0\xff");
        let (mut seen, mut scratch) = (Vec::new(), Vec::new());
        for (field, value) in decoder.fields(&payload, PointerSize::P8) {
            plain_value(field, value, &mut scratch, &mut |c| seen.push(c));
            seen.push(Ok(' '));
        }
        let text: String = seen.iter().filter_map(|c| c.ok()).collect();
        assert_eq!(text, "C\\ a\\é {A=-1} ");
        assert_eq!(seen.iter().filter_map(|c| c.err()).collect::<Vec<_>>(), [0xd800]);
    }
}
