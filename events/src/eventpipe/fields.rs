//! The fields of events, as TraceLogging describes them.

use etl_nettrace::FieldType;
use etl_schema::{Count, Field, InType, Length, OutType};

use super::payload::{Encoding, LocationBase};

/// The fields of an event, and how their values are encoded.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub fields: Vec<Field>,
    pub encodings: Vec<Encoding>,
    /// Whether all fields are described.
    pub is_complete: bool,
}

impl Layout {
    /// Describes the fields of an event up to the first one that TraceLogging cannot describe.
    pub fn of(fields: &[etl_nettrace::Field]) -> Self {
        let mut layout = Layout::default();
        for field in fields {
            let Some(described) = DescribedField::of(&field.name, &field.field_type) else {
                return layout;
            };
            layout.push(described);
        }
        layout.is_complete = true;
        layout
    }

    /// Adds a field.
    pub fn push(&mut self, described: DescribedField) {
        self.fields.push(described.field);
        self.encodings.push(described.encoding);
    }

    /// Whether payloads can stay as they are.
    pub fn keeps_payload(&self) -> bool {
        self.encodings.iter().all(Encoding::keeps_bytes)
    }
}

/// A field, and how its value is encoded.
#[derive(Debug)]
pub(super) struct DescribedField {
    pub field: Field,
    pub encoding: Encoding,
}

impl DescribedField {
    /// A field whose value is one of `in_type`.
    fn value(name: &str, in_type: InType, encoding: Encoding) -> Self {
        DescribedField {
            field: Field::new(name.to_owned(), in_type),
            encoding,
        }
    }

    /// A field of a type whose values all have the same size.
    fn fixed(name: &str, in_type: InType, size: usize) -> Self {
        DescribedField::value(name, in_type, Encoding::Bytes(size))
    }

    fn with_out(mut self, out: OutType) -> Self {
        self.field = self.field.with_out(out);
        self
    }

    /// A number of variable length, which becomes one of 8 bytes.
    pub fn unsigned(name: &str) -> Self {
        DescribedField::value(name, InType::UInt64, Encoding::VarUInt)
    }

    /// An address of variable length.
    pub fn address(name: &str) -> Self {
        DescribedField::value(name, InType::HexInt64, Encoding::VarUInt)
    }

    /// A number of 4 bytes.
    pub fn word(name: &str) -> Self {
        DescribedField::fixed(name, InType::UInt32, 4)
    }

    /// UTF-16 text up to a NUL.
    pub fn utf16_text(name: &str) -> Self {
        DescribedField::value(name, InType::Utf16, Encoding::Utf16Text)
    }

    /// UTF-8 text after its 16-bit length.
    pub fn counted_utf8(name: &str) -> Self {
        let field = Field::new(name.to_owned(), InType::Ansi)
            .with_length(Length::U16)
            .with_out(OutType::Utf8);
        DescribedField {
            field,
            encoding: Encoding::CountedBytes,
        }
    }

    /// A field of a stream. `None` if TraceLogging cannot describe it, or its size is unknown.
    fn of(name: &str, field_type: &FieldType) -> Option<Self> {
        Some(match field_type {
            FieldType::Struct(members) => structure(name, members)?,
            FieldType::Bool32 => DescribedField::fixed(name, InType::Boolean, 4),
            FieldType::Bool8 => {
                DescribedField::fixed(name, InType::UInt8, 1).with_out(OutType::Boolean)
            }
            FieldType::Utf16Unit => {
                DescribedField::fixed(name, InType::UInt16, 2).with_out(OutType::String)
            }
            FieldType::Utf8Unit => {
                DescribedField::fixed(name, InType::UInt8, 1).with_out(OutType::String)
            }
            FieldType::I8 => DescribedField::fixed(name, InType::Int8, 1),
            FieldType::U8 => DescribedField::fixed(name, InType::UInt8, 1),
            FieldType::I16 => DescribedField::fixed(name, InType::Int16, 2),
            FieldType::U16 => DescribedField::fixed(name, InType::UInt16, 2),
            FieldType::I32 => DescribedField::fixed(name, InType::Int32, 4),
            FieldType::U32 => DescribedField::word(name),
            FieldType::I64 => DescribedField::fixed(name, InType::Int64, 8),
            FieldType::U64 => DescribedField::fixed(name, InType::UInt64, 8),
            FieldType::F32 => DescribedField::fixed(name, InType::Float, 4),
            FieldType::F64 => DescribedField::fixed(name, InType::Double, 8),
            FieldType::Guid => DescribedField::fixed(name, InType::Guid, 16),
            FieldType::Utf16Text => DescribedField::utf16_text(name),
            FieldType::VarInt => DescribedField::value(name, InType::Int64, Encoding::VarInt),
            FieldType::VarUInt => DescribedField::unsigned(name),
            FieldType::Array(element) => array(name, element)?,
            FieldType::FixedArray { element, count } => fixed_array(name, element, *count)?,
            FieldType::RelativeLocation(element) => location(name, element, LocationBase::Field),
            FieldType::DataLocation(element) => location(name, element, LocationBase::Payload),
            // The two known descriptions of a date disagree about its size, no known writer uses a
            // decimal number, and the size of another type is not known.
            _ => return None,
        })
    }
}

fn structure(name: &str, members: &[etl_nettrace::Field]) -> Option<DescribedField> {
    let layout = Layout::of(members);
    if !layout.is_complete {
        return None;
    }
    Some(DescribedField {
        field: Field::structure(name.to_owned(), layout.fields),
        encoding: Encoding::Struct(layout.encodings),
    })
}

/// An array after its 16-bit count. TraceLogging stores it in the same way.
fn array(name: &str, element: &FieldType) -> Option<DescribedField> {
    if *element == FieldType::Utf8Unit {
        return Some(DescribedField::counted_utf8(name));
    }
    let element = array_element(name, element)?;
    Some(DescribedField {
        field: element.field.with_count(Count::Prefixed),
        encoding: Encoding::Array(Box::new(element.encoding)),
    })
}

fn fixed_array(name: &str, element: &FieldType, count: u16) -> Option<DescribedField> {
    let element = array_element(name, element)?;
    Some(DescribedField {
        field: element.field.with_count(Count::Const(count)),
        encoding: Encoding::FixedArray {
            element: Box::new(element.encoding),
            count,
        },
    })
}

/// The element of an array. `None` if it is an array itself, which TraceLogging does not have.
fn array_element(name: &str, element: &FieldType) -> Option<DescribedField> {
    let element = DescribedField::of(name, element)?;
    let is_one = element.field.count == Count::One;
    is_one.then_some(element)
}

/// Data elsewhere in the payload: text if its elements are characters, else bytes.
fn location(name: &str, element: &FieldType, base: LocationBase) -> DescribedField {
    let encoding = Encoding::Location(base);
    match element {
        FieldType::Utf8Unit => DescribedField {
            encoding,
            ..DescribedField::counted_utf8(name)
        },
        FieldType::Utf16Unit => {
            let field = Field::new(name.to_owned(), InType::Utf16).with_length(Length::U16);
            DescribedField { field, encoding }
        }
        _ => DescribedField::value(name, InType::Binary, encoding),
    }
}
