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

/// Writes a payload: one value per top-level field, in order.
///
/// [`OwnedValue::Auto`] stands for a counting field's right value, else for zero or empty.
///
/// # Errors
/// When a value does not go with its field; nothing is returned then.
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
            let problem = EncodeProblem::WrongCount { expected: fields.len(), have: values.len() };
            return Err(EncodeError { field: "(all)".to_owned(), problem });
        }
        for (index, (field, value)) in fields.iter().zip(values).enumerate() {
            let fail = |problem| EncodeError { field: field.name.to_string(), problem };
            if let Some(counted) = here.of(index) {
                let number = u64::try_from(counted).map_err(|_| fail(EncodeProblem::OutOfRange))?;
                match value {
                    OwnedValue::Auto => {
                        self.one(field, &OwnedValue::UInt(number), here, top)?;
                        continue;
                    }
                    other if other.as_u64() != Some(number) => {
                        let value = other.as_u64().unwrap_or(u64::MAX);
                        return Err(fail(EncodeProblem::Miscounted { counted, value }));
                    }
                    _ => {}
                }
            }
            match (&field.kind, field.count) {
                // What most fields are.
                (FieldKind::Value(ty), Count::One) if !is_text(*ty) => {
                    scalar::write(*ty, field.out, value, self.pointers, self.out).map_err(fail)?;
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
        let width = |field: &Field| field.in_type().map_or(1, |ty| ty.width(self.pointers));
        let widths: Vec<usize> = members.iter().map(width).collect();
        let widest = widths.iter().copied().max().unwrap_or(1);
        let start = self.out.len();
        let pad = |out: &mut Vec<u8>, to: usize| {
            let size = (out.len() - start).next_multiple_of(to.max(1));
            out.resize(start + size, 0);
        };
        for ((field, value), width) in members.iter().zip(values).zip(widths) {
            pad(self.out, width);
            self.field(field, value, here, top)?;
        }
        pad(self.out, widest);
        Ok(())
    }

    fn field(
        &mut self,
        field: &Field,
        value: &OwnedValue,
        here: &Counts,
        top: &Counts,
    ) -> Result<(), EncodeError> {
        let fail = |problem| EncodeError { field: field.name.to_string(), problem };
        let wanted = match field.count {
            Count::One => return self.one(field, value, here, top),
            Count::Const(n) => Some(usize::from(n)),
            Count::Field(at) => Some(resolve(at, here, top)),
            Count::Prefixed | Count::Rest => None,
        };
        let auto;
        let elements: &[OwnedValue] = match value {
            OwnedValue::Array(elements) => elements,
            OwnedValue::Auto => {
                auto = vec![OwnedValue::Auto; wanted.unwrap_or(0)];
                &auto
            }
            _ => return Err(fail(EncodeProblem::WrongType { expected: "array" })),
        };
        if let Some(expected) = wanted
            && expected != elements.len()
        {
            return Err(fail(EncodeProblem::WrongCount { expected, have: elements.len() }));
        }
        if field.count == Count::Prefixed {
            let max = usize::from(u16::MAX);
            let count = u16::try_from(elements.len())
                .map_err(|_| fail(EncodeProblem::TooLong { have: elements.len(), max }))?;
            self.out.extend_from_slice(&count.to_le_bytes());
        }
        elements.iter().try_for_each(|element| self.one(field, element, here, top))
    }

    fn one(
        &mut self,
        field: &Field,
        value: &OwnedValue,
        here: &Counts,
        top: &Counts,
    ) -> Result<(), EncodeError> {
        let fail = |problem| EncodeError { field: field.name.to_string(), problem };
        match &field.kind {
            FieldKind::Struct(members) => {
                let auto;
                let values: &[OwnedValue] = match value {
                    OwnedValue::Struct(values) => values,
                    OwnedValue::Auto => {
                        auto = vec![OwnedValue::Auto; members.len()];
                        &auto
                    }
                    _ => return Err(fail(EncodeProblem::WrongType { expected: "struct" })),
                };
                let counts = Counts::gather(members, values, Some(top));
                if field.aligned {
                    return self.aligned(members, values, &counts, top);
                }
                self.list(members, values, &counts, top)
            }
            FieldKind::Value(ty) if is_text(*ty) => {
                self.text(*ty, field.length, value, here, top).map_err(fail)
            }
            FieldKind::Value(ty) => {
                scalar::write(*ty, field.out, value, self.pointers, self.out).map_err(fail)
            }
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
        let mut bytes =
            value.text_bytes(ty).ok_or(EncodeProblem::WrongType { expected: ty.name() })?;
        let too_long = |have, max| EncodeProblem::TooLong { have, max };
        let max = match length {
            Length::Fixed(n) => Some(usize::from(n)),
            Length::Field(at) => Some(resolve(at, here, top)),
            _ => None,
        };
        if let Some(max) = max {
            let have = bytes.len() / unit;
            if have > max {
                return Err(too_long(have, max));
            }
            bytes.to_mut().resize(max * unit, 0);
        }
        let wide = |len: usize| u16::try_from(len).map_err(|_| too_long(len, 0xffff));
        match length {
            Length::U16 => self.out.extend_from_slice(&wide(bytes.len())?.to_le_bytes()),
            Length::U16BigEndian => self.out.extend_from_slice(&wide(bytes.len())?.to_be_bytes()),
            Length::U32 => {
                let len = u32::try_from(bytes.len())
                    .map_err(|_| too_long(bytes.len(), u32::MAX as usize))?;
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

/// Types whose values are as long as they are.
const fn is_text(ty: InType) -> bool {
    matches!(ty, InType::Utf16 | InType::Ansi | InType::Binary)
}

fn resolve(at: FieldRef, here: &Counts, top: &Counts) -> usize {
    match at {
        FieldRef::Here(index) => here.of(usize::from(index)),
        FieldRef::Top(index) => top.of(usize::from(index)),
    }
    .unwrap_or(0)
}

#[cfg(test)]
mod tests;
