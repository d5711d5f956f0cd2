//! Fields of an event into types of the caller, by `serde::Deserialize`.

use crate::decode::{Elements, Fields, Value};
use crate::model::{Field, is_time};
use crate::render::{bits, shown_bytes};
use crate::serialize::plain_text;
use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use std::fmt;

/// A field that does not fit the type into which it is deserialized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeserializeError {
    path: String,
    problem: String,
}

impl DeserializeError {
    /// The path to the field, as [`Fields::get`] reads it; empty if the problem concerns the event
    /// as a whole, such as a missing field.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The same error, seen from the structure that contains the field.
    fn in_field(mut self, name: &str) -> Self {
        let is_below_member = !self.path.is_empty() && !self.path.starts_with('[');
        let separator = if is_below_member { "." } else { "" };
        self.path = format!("{name}{separator}{}", self.path);
        self
    }

    /// The same error, seen from the array that contains the element.
    fn in_element(self, index: usize) -> Self {
        self.in_field(&format!("[{index}]"))
    }
}

impl fmt::Display for DeserializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "field {}: ", self.path)?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for DeserializeError {}

impl serde::de::Error for DeserializeError {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        DeserializeError {
            path: String::new(),
            problem: problem.to_string(),
        }
    }
}

impl<'a> Fields<'a> {
    /// All fields as a value of a type of the caller: a structure with fields of the same names, or
    /// a map.
    ///
    /// Numbers, truth values, text, arrays, structures and options become what they are called;
    /// GUIDs, SIDs, addresses and times become text. Addresses and times become numbers if the type
    /// asks for a number (a time is then a FILETIME). An enumeration is read from the name of the
    /// value, or from text. Fields that the type does not have are skipped.
    ///
    /// ```
    /// use etl_format::{Guid, constants::PointerSize};
    /// use etl_schema::decode::Decoder;
    /// use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, Debug, PartialEq)]
    /// #[serde(rename_all = "PascalCase")]
    /// struct Started<'a> {
    ///     count: u32,
    ///     name: &'a str,
    ///     parent: Option<u64>,
    /// }
    ///
    /// let identity = Identity::Modern { id: 1, version: 0 };
    /// let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::Manifest);
    /// schema.fields = vec![Field::new("Count", InType::UInt8), Field::new("Name", InType::Ansi)];
    /// let decoder = Decoder::new(schema.into());
    /// let fields = decoder.fields(b"\x07GC\0", PointerSize::P8);
    /// let started: Started<'_> = fields.deserialize()?;
    /// assert_eq!(started, Started { count: 7, name: "GC", parent: None });
    /// # Ok::<(), etl_schema::DeserializeError>(())
    /// ```
    ///
    /// # Errors
    /// If a field is missing or does not fit the type. The error names the field.
    ///
    /// ```
    /// # use etl_format::{Guid, constants::PointerSize};
    /// # use etl_schema::decode::Decoder;
    /// # use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource};
    /// use std::collections::BTreeMap;
    ///
    /// # let identity = Identity::Modern { id: 1, version: 0 };
    /// # let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::Manifest);
    /// # let count = Field::new("Count", InType::UInt8);
    /// # schema.fields = vec![count, Field::new("Name", InType::Ansi)];
    /// # let decoder = Decoder::new(schema.into());
    /// # let fields = decoder.fields(b"\x07GC\0", PointerSize::P8);
    /// let error = fields.deserialize::<BTreeMap<String, u32>>().unwrap_err();
    /// assert_eq!(error.path(), "Name");
    /// assert_eq!(error.to_string(), "field Name: invalid type: string \"GC\", expected u32");
    /// ```
    pub fn deserialize<T: Deserialize<'a>>(&self) -> Result<T, DeserializeError> {
        T::deserialize(FieldsDeserializer {
            fields: self.rewound(),
        })
    }
}

/// The fields of an event or the members of a structure.
struct FieldsDeserializer<'a> {
    fields: Fields<'a>,
}

impl<'de> Deserializer<'de> for FieldsDeserializer<'de> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_map(MemberAccess {
            fields: self.fields,
            current: None,
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct MemberAccess<'a> {
    fields: Fields<'a>,
    /// The field whose name was read, with its value.
    current: Option<ValueDeserializer<'a>>,
}

impl<'de> MapAccess<'de> for MemberAccess<'de> {
    type Error = DeserializeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        let Some((field, value)) = self.fields.next() else {
            return Ok(None);
        };
        self.current = Some(ValueDeserializer { field, value });
        seed.deserialize(BorrowedStrDeserializer::new(&field.name))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        let Some(current) = self.current.take() else {
            return Err(serde::de::Error::custom("a value was read before its name"));
        };
        let name = &current.field.name;
        seed.deserialize(current)
            .map_err(|error| error.in_field(name))
    }
}

struct ElementAccess<'a> {
    field: &'a Field,
    elements: Elements<'a>,
    index: usize,
}

impl<'de> SeqAccess<'de> for ElementAccess<'de> {
    type Error = DeserializeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Self::Error> {
        let Some(value) = self.elements.next() else {
            return Ok(None);
        };
        let index = self.index;
        self.index += 1;
        let element = ValueDeserializer {
            field: self.field,
            value,
        };
        seed.deserialize(element)
            .map(Some)
            .map_err(|error| error.in_element(index))
    }
}

/// One value.
struct ValueDeserializer<'a> {
    field: &'a Field,
    value: Value<'a>,
}

impl<'a> ValueDeserializer<'a> {
    /// Visits a number, also for addresses, times and characters.
    fn visit_number<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.value {
            Value::UInt(number) | Value::Pointer(number) | Value::FileTime(number) => {
                visitor.visit_u64(number)
            }
            Value::Int(number) => visitor.visit_i64(number),
            Value::Char(unit) => visitor.visit_u16(unit),
            _ => self.deserialize_any(visitor),
        }
    }

    /// The name that the map of the field has for the value, or the value as text.
    fn name(&self) -> String {
        if let Some(map) = &self.field.map
            && let Some(number) = bits(self.field, self.value)
            && let Some(name) = map.get(number)
        {
            return name.to_owned();
        }
        plain_text(self.field, self.value)
    }
}

/// Methods that visit a number.
macro_rules! numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.visit_number(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for ValueDeserializer<'de> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let field = self.field;
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Int(value) if !is_time(field) => visitor.visit_i64(value),
            Value::UInt(value) if !is_time(field) => visitor.visit_u64(value),
            Value::Float(value) => visitor.visit_f32(value),
            Value::Double(value) => visitor.visit_f64(value),
            Value::Ansi(bytes) | Value::Utf8(bytes)
                if let Ok(text) = std::str::from_utf8(shown_bytes(field, bytes)) =>
            {
                visitor.visit_borrowed_str(text)
            }
            Value::Struct(members) => FieldsDeserializer {
                fields: members.fields(),
            }
            .deserialize_any(visitor),
            Value::Array(items) => visitor.visit_seq(ElementAccess {
                field,
                elements: items.iter(),
                index: 0,
            }),
            value => visitor.visit_string(plain_text(field, value)),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.value.as_bytes() {
            Some(bytes) => visitor.visit_borrowed_bytes(bytes),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let name: StringDeserializer<DeserializeError> = self.name().into_deserializer();
        visitor.visit_enum(name)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool char str string unit unit_struct seq tuple tuple_struct map struct identifier
    }
}
