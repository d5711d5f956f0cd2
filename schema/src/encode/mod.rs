//! Encoding of named, typed values to payloads: the inverse of [`crate::decode`].
//!
//! ```
//! use etl_format::{Guid, constants::PointerSize};
//! use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource, encode::PayloadBuilder};
//!
//! let id = Identity::Modern { id: 1, version: 0 };
//! let mut schema = EventSchema::new(Guid::ZERO, id, SchemaSource::Table);
//! schema.fields = vec![Field::new("Count", InType::UInt32), Field::new("Name", InType::Utf16)];
//! let payload = PayloadBuilder::new(&schema)
//!     .set("Name", "GC")
//!     .set("Count", 7u32)
//!     .encode(PointerSize::P8)?;
//! assert_eq!(payload, b"\x07\0\0\0G\0C\0\0\0");
//! # Ok::<(), etl_schema::encode::EncodeError>(())
//! ```

use crate::model::{Count, EventSchema, Field, FieldKind, FieldRef, InType, Length};
use etl_format::constants::PointerSize;

mod builder;
mod counts;
mod owned;
mod scalar;

pub use builder::PayloadBuilder;
pub use owned::OwnedValue;

use counts::Counts;

/// Why a value cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field {field}: {problem}")]
pub struct EncodeError {
    /// The name of the field or member.
    pub field: String,
    /// What is wrong.
    pub problem: EncodeProblem,
}

/// What is wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeProblem {
    /// The value is not of the field's type.
    #[error("expected {expected}, got a value of another type")]
    WrongType {
        /// The field's in-type, `struct` or `array`.
        expected: &'static str,
    },
    /// The number does not fit into the field.
    #[error("the number does not fit")]
    OutOfRange,
    /// The value is longer than the field allows, or than its length prefix can hold.
    #[error("{have} units do not fit into {max}")]
    TooLong {
        /// Length of the value.
        have: usize,
        /// Longest length that fits.
        max: usize,
    },
    /// The number of elements or members differs from what the schema says.
    #[error("expected {expected} values, got {have}")]
    WrongCount {
        /// What the schema, or the counting field, says.
        expected: usize,
        /// What was given.
        have: usize,
    },
    /// The counting field holds another number than there are elements or units.
    #[error("it counts {counted} of another field, but its value is {value}")]
    Miscounted {
        /// The true number.
        counted: usize,
        /// The value given.
        value: u64,
    },
    /// A NUL within NUL-terminated text would end it early.
    #[error("text that ends at a NUL cannot contain one")]
    EmbeddedNul,
    /// Not a SID: its length and its number of sub-authorities disagree.
    #[error("not a SID")]
    BadSid,
    /// The schema has a field of this name nowhere.
    #[error("no such field")]
    NoSuchField,
}

impl EncodeProblem {
    fn in_field(self, field: &Field) -> EncodeError {
        EncodeError {
            field: field.name.to_string(),
            problem: self,
        }
    }
}

/// Writes a payload: one value per top-level field, in order.
///
/// [`OwnedValue::Auto`] is the right value of a counting field; in other fields, zero or empty.
///
/// # Errors
/// If a value does not fit its field.
pub fn encode(
    schema: &EventSchema,
    values: &[OwnedValue],
    pointers: PointerSize,
) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    encode_into(&schema.fields, values, pointers, &mut out)?;
    Ok(out)
}

/// [`encode`], appending to `out`. On an error `out` holds part of the payload.
///
/// # Errors
/// As [`encode`].
pub fn encode_into(
    fields: &[Field],
    values: &[OwnedValue],
    pointers: PointerSize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let top = Counts::gather(fields, values, None);
    let mut writer = Writer { pointers, out };
    writer.list(fields, values, &top, &top)
}

struct Writer<'o> {
    pointers: PointerSize,
    out: &'o mut Vec<u8>,
}

impl Writer<'_> {
    fn list(
        &mut self,
        fields: &[Field],
        values: &[OwnedValue],
        here: &Counts,
        top: &Counts,
    ) -> Result<(), EncodeError> {
        if fields.len() != values.len() {
            let problem = EncodeProblem::WrongCount {
                expected: fields.len(),
                have: values.len(),
            };
            return Err(EncodeError {
                field: "(all)".to_owned(),
                problem,
            });
        }
        for (index, (field, value)) in fields.iter().zip(values).enumerate() {
            if let Some(counted) = here.of(index) {
                let number = u64::try_from(counted)
                    .map_err(|_| EncodeProblem::OutOfRange.in_field(field))?;
                match value {
                    OwnedValue::Auto => {
                        self.one(field, &OwnedValue::UInt(number), here, top)?;
                        continue;
                    }
                    other if other.as_u64() != Some(number) => {
                        let value = other.as_u64().unwrap_or(u64::MAX);
                        let problem = EncodeProblem::Miscounted { counted, value };
                        return Err(problem.in_field(field));
                    }
                    _ => {}
                }
            }
            match (&field.kind, field.count) {
                // Most fields are of this kind.
                (FieldKind::Value(ty), Count::One) if !is_text(*ty) => {
                    scalar::write(*ty, field.out, value, self.pointers, self.out)
                        .map_err(|problem| problem.in_field(field))?;
                }
                _ => self.field(field, value, here, top)?,
            }
        }
        Ok(())
    }

    /// Members as in C: each at a multiple of its size, and all of them together a multiple of the
    /// largest.
    fn aligned(
        &mut self,
        members: &[Field],
        values: &[OwnedValue],
        here: &Counts,
        top: &Counts,
    ) -> Result<(), EncodeError> {
        if members.len() != values.len() {
            return self.list(members, values, here, top);
        }
        let start = self.out.len();
        let mut widest = 1;
        for (field, value) in members.iter().zip(values) {
            let width = field.in_type().map_or(1, |ty| ty.width(self.pointers));
            widest = widest.max(width);
            self.pad(start, width);
            self.field(field, value, here, top)?;
        }
        self.pad(start, widest);
        Ok(())
    }

    /// Adds zeros until the bytes after `start` are a multiple of a width.
    fn pad(&mut self, start: usize, width: usize) {
        let size = (self.out.len() - start).next_multiple_of(width.max(1));
        self.out.resize(start + size, 0);
    }

    fn field(
        &mut self,
        field: &Field,
        value: &OwnedValue,
        here: &Counts,
        top: &Counts,
    ) -> Result<(), EncodeError> {
        let expected = match field.count {
            Count::One => return self.one(field, value, here, top),
            Count::Const(n) => Some(usize::from(n)),
            Count::Field(reference) => Some(resolve(reference, here, top)),
            Count::Prefixed | Count::Rest => None,
        };
        let auto;
        let elements: &[OwnedValue] = match value {
            OwnedValue::Array(elements) => elements,
            OwnedValue::Auto => {
                auto = vec![OwnedValue::Auto; expected.unwrap_or(0)];
                &auto
            }
            _ => return Err(EncodeProblem::WrongType { expected: "array" }.in_field(field)),
        };
        if let Some(expected) = expected
            && expected != elements.len()
        {
            let problem = EncodeProblem::WrongCount {
                expected,
                have: elements.len(),
            };
            return Err(problem.in_field(field));
        }
        if field.count == Count::Prefixed {
            let count = length_prefix(elements.len()).map_err(|problem| problem.in_field(field))?;
            self.out.extend_from_slice(&count.to_le_bytes());
        }
        elements
            .iter()
            .try_for_each(|element| self.one(field, element, here, top))
    }

    fn one(
        &mut self,
        field: &Field,
        value: &OwnedValue,
        here: &Counts,
        top: &Counts,
    ) -> Result<(), EncodeError> {
        match &field.kind {
            FieldKind::Struct(members) => {
                let auto;
                let values: &[OwnedValue] = match value {
                    OwnedValue::Struct(values) => values,
                    OwnedValue::Auto => {
                        auto = vec![OwnedValue::Auto; members.len()];
                        &auto
                    }
                    _ => {
                        return Err(EncodeProblem::WrongType { expected: "struct" }.in_field(field));
                    }
                };
                let counts = Counts::gather(members, values, Some(top));
                if field.aligned {
                    return self.aligned(members, values, &counts, top);
                }
                self.list(members, values, &counts, top)
            }
            FieldKind::Value(ty) if is_text(*ty) => self
                .text(*ty, field.length, value, here, top)
                .map_err(|problem| problem.in_field(field)),
            FieldKind::Value(ty) => scalar::write(*ty, field.out, value, self.pointers, self.out)
                .map_err(|problem| problem.in_field(field)),
        }
    }

    fn text(
        &mut self,
        ty: InType,
        length: Length,
        value: &OwnedValue,
        here: &Counts,
        top: &Counts,
    ) -> Result<(), EncodeProblem> {
        let unit = if ty == InType::Utf16 { 2 } else { 1 };
        let mut bytes = value.text_bytes(ty).ok_or(EncodeProblem::WrongType {
            expected: ty.name(),
        })?;
        let max = match length {
            Length::Fixed(n) => Some(usize::from(n)),
            Length::Field(reference) => Some(resolve(reference, here, top)),
            _ => None,
        };
        if let Some(max) = max {
            let have = bytes.len() / unit;
            if have > max {
                return Err(EncodeProblem::TooLong { have, max });
            }
            bytes.to_mut().resize(max * unit, 0);
        }
        match length {
            Length::U16 => {
                let len = length_prefix(bytes.len())?;
                self.out.extend_from_slice(&len.to_le_bytes());
            }
            Length::U16BigEndian => {
                let len = length_prefix(bytes.len())?;
                self.out.extend_from_slice(&len.to_be_bytes());
            }
            Length::U32 => {
                let have = bytes.len();
                let max = u32::MAX as usize;
                let len = u32::try_from(have).map_err(|_| EncodeProblem::TooLong { have, max })?;
                self.out.extend_from_slice(&len.to_le_bytes());
            }
            Length::NulTerminated | Length::Natural if ty != InType::Binary => {
                if bytes.chunks_exact(unit).any(|c| c.iter().all(|b| *b == 0)) {
                    return Err(EncodeProblem::EmbeddedNul);
                }
                let ended = bytes.len() + unit;
                bytes.to_mut().resize(ended, 0);
            }
            _ => {}
        }
        self.out.extend_from_slice(&bytes);
        Ok(())
    }
}

/// Types whose values have no fixed length.
const fn is_text(ty: InType) -> bool {
    matches!(ty, InType::Utf16 | InType::Ansi | InType::Binary)
}

/// A count or a length as a prefix of 16 bits.
fn length_prefix(len: usize) -> Result<u16, EncodeProblem> {
    let max = usize::from(u16::MAX);
    u16::try_from(len).map_err(|_| EncodeProblem::TooLong { have: len, max })
}

/// The number that a counting field must have; 0 if it counts nothing.
fn resolve(reference: FieldRef, here: &Counts, top: &Counts) -> usize {
    match reference {
        FieldRef::Here(index) => here.of(usize::from(index)),
        FieldRef::Top(index) => top.of(usize::from(index)),
    }
    .unwrap_or(0)
}

#[cfg(test)]
mod tests;
