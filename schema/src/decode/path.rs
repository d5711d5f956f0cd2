//! One value of a payload, by the path to it.

use super::{Fields, Value};

impl<'a> Fields<'a> {
    /// The value at a path: the name of a field, of a member after a dot, and the index of an
    /// element in brackets: `Count`, `Heaps[0].Size`. Names are compared exactly.
    ///
    /// Searches all fields, also the ones that were read already. `None` if there is no such field
    /// or the payload ends before it.
    ///
    /// ```
    /// use etl_format::{Guid, constants::PointerSize};
    /// use etl_schema::decode::Decoder;
    /// use etl_schema::{Count, EventSchema, Field, Identity, InType, SchemaSource};
    ///
    /// let identity = Identity::Modern { id: 1, version: 0 };
    /// let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::Manifest);
    /// let members = vec![Field::new("Size", InType::UInt16), Field::new("Kind", InType::UInt8)];
    /// schema.fields = vec![
    ///     Field::new("Id", InType::UInt8),
    ///     Field::structure("Heaps", members).with_count(Count::Rest),
    /// ];
    /// let decoder = Decoder::new(schema.into());
    /// let fields = decoder.fields(&[9, 0x10, 0, 1, 0x20, 0, 2], PointerSize::P8);
    /// assert_eq!(fields.get("Id").and_then(|id| id.as_u64()), Some(9));
    /// assert_eq!(fields.get("Heaps[1].Size").and_then(|size| size.as_u64()), Some(0x20));
    /// assert!(fields.get("Heaps[2].Size").is_none());
    /// ```
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Value<'a>> {
        value_in_fields(self.rewound(), path)
    }
}

/// The value at a path that begins with the name of one of these fields.
fn value_in_fields<'a>(mut fields: Fields<'a>, path: &str) -> Option<Value<'a>> {
    for (index, field) in fields.described().iter().enumerate() {
        // Names can contain dots, so that the whole path may be one.
        let Some(rest) = path.strip_prefix(&*field.name) else {
            continue;
        };
        if !rest.is_empty() && !rest.starts_with(['.', '[']) {
            continue;
        }
        fields.skip_to(index)?;
        let (_, value) = fields.next()?;
        let value = value_below(value, rest);
        if value.is_some() {
            return value;
        }
    }
    None
}

/// The value at a path that begins after the name of a field.
fn value_below<'a>(value: Value<'a>, path: &str) -> Option<Value<'a>> {
    let mut value = value;
    let mut path = path;
    while !path.is_empty() {
        if let Some(member_path) = path.strip_prefix('.') {
            let Value::Struct(members) = value else {
                return None;
            };
            return value_in_fields(members.fields(), member_path);
        }
        let Value::Array(items) = value else {
            return None;
        };
        let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
        value = items.iter().nth(index.parse().ok()?)?;
        path = rest;
    }
    Some(value)
}
