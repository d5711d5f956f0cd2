//! `serde::Serialize` for decoded fields and values.

use crate::decode::{Fields, Value};
use crate::model::{Field, is_time};
use crate::render::{MAX_LEN, Renderer};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::cell::Cell;

/// A map of all fields in payload order, with values as [`Renderer::json_fields`] writes them:
/// integers as numbers, addresses, GUIDs, times, SIDs and bytes as text. Unpaired surrogates become
/// U+FFFD. Names of values are not part of it.
///
/// ```
/// use etl_format::{Guid, constants::PointerSize};
/// use etl_schema::decode::Decoder;
/// use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource};
///
/// let identity = Identity::Modern { id: 1, version: 0 };
/// let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::Manifest);
/// schema.fields = vec![Field::new("Count", InType::UInt8), Field::new("Name", InType::Ansi)];
/// let decoder = Decoder::new(schema.into());
/// let fields = decoder.fields(b"\x07GC\0", PointerSize::P8);
/// assert_eq!(serde_json::to_string(&fields)?, r#"{"Count":7,"Name":"GC"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let left = Cell::new(MAX_LEN);
        Members {
            fields: self.rewound(),
            left: &left,
        }
        .serialize(serializer)
    }
}

/// The value as in [`Fields`], but without the properties of its field: a number that the field
/// declares as a time is written as a number.
///
/// ```
/// use etl_schema::decode::Value;
///
/// assert_eq!(serde_json::to_string(&Value::UInt(7))?, "7");
/// assert_eq!(serde_json::to_string(&Value::Pointer(0x10))?, r#""0x10""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let left = Cell::new(MAX_LEN);
        let field = match self {
            Value::Array(items) => items.field(),
            _ => Field::unnamed(),
        };
        FieldValue {
            field,
            value: *self,
            left: &left,
        }
        .serialize(serializer)
    }
}

/// The fields of an event or the members of a structure.
struct Members<'v, 'a> {
    fields: Fields<'a>,
    /// Bytes that are left for the elements of arrays.
    left: &'v Cell<usize>,
}

impl Serialize for Members<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let left = self.left;
        let mut map = serializer.serialize_map(None)?;
        for (field, value) in self.fields.clone() {
            spend(left, field.name.len());
            map.serialize_entry(&*field.name, &FieldValue { field, value, left })?;
        }
        map.end()
    }
}

/// Subtracts bytes from those that are left for arrays. A short payload can describe arrays of
/// structures with long names, whose JSON would be very long.
fn spend(left: &Cell<usize>, bytes: usize) {
    left.set(left.get().saturating_sub(bytes.saturating_add(1)));
}

struct FieldValue<'v, 'a> {
    field: &'a Field,
    value: Value<'a>,
    left: &'v Cell<usize>,
}

impl Serialize for FieldValue<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let left = self.left;
        match self.value {
            Value::Null => serializer.serialize_none(),
            Value::Bool(value) => serializer.serialize_bool(value),
            Value::Int(value) if !is_time(self.field) => serializer.serialize_i64(value),
            Value::UInt(value) if !is_time(self.field) => serializer.serialize_u64(value),
            Value::Float(value) if value.is_finite() => serializer.serialize_f32(value),
            Value::Double(value) if value.is_finite() => serializer.serialize_f64(value),
            Value::Struct(members) => Members {
                fields: members.fields(),
                left,
            }
            .serialize(serializer),
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(None)?;
                for value in items.iter() {
                    if left.get() == 0 {
                        break;
                    }
                    spend(left, 0);
                    list.serialize_element(&FieldValue {
                        field: self.field,
                        value,
                        left,
                    })?;
                }
                list.end()
            }
            value => {
                let text = plain_text(self.field, value);
                spend(left, text.len());
                serializer.serialize_str(&text)
            }
        }
    }
}

/// A value as text that is not escaped.
pub(crate) fn plain_text(field: &Field, value: Value<'_>) -> String {
    let mut text = String::new();
    let mut scratch = Vec::new();
    Renderer::new().chars(field, value, &mut scratch, &mut |c| {
        text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
    });
    text
}
