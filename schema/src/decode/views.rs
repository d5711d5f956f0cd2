//! Views of structs and arrays, decoded on demand.

use super::extent::{Budget, field_extent, sid_span, struct_len, text_span, value_range};
use super::fields::Fields;
use super::plan::{Op, Shape, Slots};
use super::shared::Shared;
use super::text::Utf16;
use super::value::{Sid, Value};
use crate::model::{Count, Field, FieldKind, Length};
use etl_format::cursor::Bytes;
use std::any::Any;
use std::net::Ipv6Addr;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// The members of one struct.
#[derive(Debug, Clone, Copy)]
pub struct StructView<'a> {
    shared: &'a Shared,
    members: &'a [Field],
    ops: &'a [Op],
    data: &'a [u8],
    top: Slots,
}

impl<'a> StructView<'a> {
    /// The members in order.
    #[must_use]
    pub fn fields(&self) -> Fields<'a> {
        Fields::nested(self.shared, self.members, self.ops, self.data, self.top)
    }
}

/// The elements of an array.
#[derive(Debug, Clone, Copy)]
pub struct ArrayView<'a> {
    shared: &'a Shared,
    field: &'a Field,
    op: &'a Op,
    data: &'a [u8],
    count: usize,
    length: Length,
    top: Slots,
}

impl<'a> ArrayView<'a> {
    /// Number of elements that are there.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The field whose values the elements are.
    #[must_use]
    pub fn field(&self) -> &'a Field {
        self.field
    }

    /// What was prepared for the fields of the schema: see [`Fields::prepared`].
    pub(crate) fn prepared<T>(&self, prepare: fn(&[Field]) -> T) -> Option<&'a T>
    where
        T: Any + Send + Sync + UnwindSafe + RefUnwindSafe,
    {
        self.shared.prepared(prepare)
    }

    /// The elements.
    #[must_use]
    pub fn iter(&self) -> Elements<'a> {
        Elements {
            array: *self,
            at: 0,
            left: self.count,
        }
    }
}

/// An element of an array with the bytes that contain it.
#[derive(Debug, Clone)]
pub struct LocatedElement<'a> {
    /// The element.
    pub value: Value<'a>,
    /// The bytes: offsets from the first byte of the array.
    pub range: Range<usize>,
}

/// Iterator over the elements of an [`ArrayView`].
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    array: ArrayView<'a>,
    at: usize,
    left: usize,
}

impl<'a> Elements<'a> {
    /// The next element with the bytes that hold it, as [`Fields::next_with_range`]; offsets count
    /// from the first byte of the array.
    pub fn next_with_range(&mut self) -> Option<LocatedElement<'a>> {
        let start = self.at;
        let rest = self.array.data.get(start..)?;
        let value = self.next()?;
        let ArrayView { op, length, .. } = self.array;
        let range = value_range(op, length, rest, self.at - start);
        let range = start + range.start..start + range.end;
        Some(LocatedElement { value, range })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let rest = self.array.data.get(self.at..)?;
        let ArrayView {
            shared,
            field,
            op,
            length,
            top,
            ..
        } = self.array;
        let one = one_value(shared, field, op, length, rest, &top)?;
        self.at = self.at.checked_add(one.next)?;
        Some(one.value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

/// A value, the offset of the next one, and whether the value was cut.
pub(super) struct One<'a> {
    pub(super) value: Value<'a>,
    pub(super) next: usize,
    pub(super) clipped: bool,
}

/// One value at the start of `data`; the count of its field is ignored.
#[inline]
pub(super) fn one_value<'a>(
    shared: &'a Shared,
    field: &'a Field,
    op: &'a Op,
    length: Length,
    data: &'a [u8],
    top: &Slots,
) -> Option<One<'a>> {
    if let Some(value) = op.shape.scalar(data) {
        return Some(One {
            value,
            next: op.size.unwrap_or(0),
            clipped: false,
        });
    }
    match op.shape {
        Shape::Sid | Shape::WbemSid(_) => {
            let span = sid_span(op.shape, data)?;
            let bytes = data.get(span.start..span.end)?;
            let value = if bytes.is_empty() {
                Value::Null
            } else {
                Value::Sid(Sid(bytes))
            };
            Some(One {
                value,
                next: span.next,
                clipped: false,
            })
        }
        Shape::Struct => {
            let FieldKind::Struct(members) = &field.kind else {
                return None;
            };
            // A count of one: the element alone.
            let (next, clipped) = match op.size {
                Some(size) => (size.min(data.len()), size > data.len()),
                None => match struct_len(op, data, top, &mut Budget::new(data)) {
                    Some(len) => (len, false),
                    None => (data.len(), true),
                },
            };
            if clipped && data.is_empty() {
                return None;
            }
            let data = data.get(..next)?;
            let view = StructView {
                shared,
                members,
                ops: &op.members,
                data,
                top: *top,
            };
            Some(One {
                value: Value::Struct(view),
                next,
                clipped,
            })
        }
        Shape::Utf16 | Shape::Ansi | Shape::Utf8 | Shape::Binary | Shape::BinaryIpv6 => {
            let span = text_span(op.shape, length, data)?;
            let bytes = data.get(span.start..span.end)?;
            let value = match op.shape {
                Shape::Utf16 => Value::Utf16(Utf16::new(bytes)),
                Shape::Ansi => Value::Ansi(bytes),
                Shape::Utf8 => Value::Utf8(bytes),
                Shape::BinaryIpv6 if bytes.len() == 16 => {
                    Value::Ipv6(Ipv6Addr::from(bytes.array::<16>(0)?))
                }
                _ => Value::Binary(bytes),
            };
            Some(One {
                value,
                next: span.next,
                clipped: span.clipped,
            })
        }
        _ => None,
    }
}

/// A field's value: one, or an array of them.
#[inline]
pub(super) fn field_value<'a>(
    shared: &'a Shared,
    field: &'a Field,
    op: &'a Op,
    data: &'a [u8],
    here: &Slots,
    top: &Slots,
) -> Option<One<'a>> {
    let length = op.length(here, top);
    if op.count == Count::One {
        return one_value(shared, field, op, length, data, top);
    }
    let extent = field_extent(op, data, here, top, &mut Budget::new(data))?;
    let data = data.get(extent.start..extent.next)?;
    let array = ArrayView {
        shared,
        field,
        op,
        data,
        count: extent.count,
        length,
        top: *top,
    };
    Some(One {
        value: Value::Array(array),
        next: extent.next,
        clipped: extent.clipped,
    })
}
