//! Iterator over the fields of a payload or of a struct.

use super::extent::{Budget, field_extent, keep, value_range};
use super::plan::{Op, Run, Shape, Slots};
use super::shared::Shared;
use super::text::utf16_len;
use super::value::Value;
use super::views::field_value;
use crate::model::{Count, EventSchema, Field, Length};
use std::any::Any;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// The parts of a payload that a walk could not return as values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note<'a> {
    /// Fields of the schema for which the payload has no byte (or not all of a fixed size).
    pub missing: usize,
    /// Whether the last value was cut short by the end of the payload.
    pub clipped: bool,
    /// Bytes of the payload after the last field.
    pub trailing: &'a [u8],
}

impl Note<'_> {
    /// Whether the payload ended before its fields did.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.missing != 0 || self.clipped
    }

    /// Whether the fields cover the payload to its last byte and nothing is missing.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.missing == 0 && !self.clipped && self.trailing.is_empty()
    }
}

/// A field with its value and the bytes that contain the value.
#[derive(Debug, Clone)]
pub struct LocatedField<'a> {
    /// The field.
    pub field: &'a Field,
    /// Its value.
    pub value: Value<'a>,
    /// The bytes: offsets from the first byte of the fields.
    pub range: Range<usize>,
}

/// Iterator over fields and their values. Ends early when the payload does.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    shared: &'a Shared,
    fields: &'a [Field],
    ops: &'a [Op],
    data: &'a [u8],
    at: usize,
    next: usize,
    here: Slots,
    /// Counting fields of the top level; unused there, where `here` holds them.
    top: Slots,
    nested: bool,
    clipped: bool,
    ended: bool,
}

impl<'a> Fields<'a> {
    #[inline]
    pub(super) fn top(shared: &'a Shared, ops: &'a [Op], data: &'a [u8]) -> Self {
        Fields {
            shared,
            fields: &shared.schema.fields,
            ops,
            data,
            at: 0,
            next: 0,
            here: Slots::default(),
            top: Slots::default(),
            nested: false,
            clipped: false,
            ended: false,
        }
    }

    /// The members of a structure; `top` are the counting fields of the top level.
    pub(super) fn nested(
        shared: &'a Shared,
        fields: &'a [Field],
        ops: &'a [Op],
        data: &'a [u8],
        top: Slots,
    ) -> Self {
        Fields {
            fields,
            top,
            nested: true,
            ..Fields::top(shared, ops, data)
        }
    }

    /// All fields again, from the first one on.
    pub(crate) fn rewound(&self) -> Self {
        if self.nested {
            return Fields::nested(self.shared, self.fields, self.ops, self.data, self.top);
        }
        Fields::top(self.shared, self.ops, self.data)
    }

    /// What describes the fields, in their order. The payload may have fewer.
    pub(super) fn described(&self) -> &'a [Field] {
        self.fields
    }

    /// The schema of the event, also for the members of a structure in it.
    #[must_use]
    pub fn schema(&self) -> &'a EventSchema {
        &self.shared.schema
    }

    /// What was prepared for the fields of the schema; `prepare` makes it the first time.
    #[inline]
    pub(crate) fn prepared<T>(&self, prepare: fn(&[Field]) -> T) -> Option<&'a T>
    where
        T: Any + Send + Sync + UnwindSafe + RefUnwindSafe,
    {
        self.shared.prepared(prepare)
    }

    /// The missing, cut and remaining parts of the payload. Call it after the last value: before,
    /// fields that were not read are reported as missing and their bytes as left over.
    #[must_use]
    pub fn note(&self) -> Note<'a> {
        Note {
            missing: self.ops.len().saturating_sub(self.next),
            clipped: self.clipped,
            trailing: self.data.get(self.at..).unwrap_or_default(),
        }
    }

    /// The next field with its value and the bytes that hold the value: without a count before
    /// them, and without the NUL after text. Offsets count from the first byte of the walk.
    pub fn next_with_range(&mut self) -> Option<LocatedField<'a>> {
        let start = self.at;
        let op = self.ops.get(self.next)?;
        let rest = self.data.get(start..)?;
        let array = match op.count {
            Count::One => None,
            _ => field_extent(op, rest, &self.here, self.slots(), &mut Budget::new(rest)),
        };
        let length = op.length(&self.here, self.slots());
        let (field, value) = self.next()?;
        let range = match array {
            Some(extent) => extent.start..extent.next,
            None => value_range(op, length, rest, self.at - start),
        };
        let range = start + range.start..start + range.end;
        Some(LocatedField {
            field,
            value,
            range,
        })
    }

    fn slots(&self) -> &Slots {
        if self.nested { &self.top } else { &self.here }
    }

    /// Steps over fields without making their values, up to the one with this index or the end.
    /// `None` when the payload ends before it.
    pub(super) fn skip_to(&mut self, index: usize) -> Option<()> {
        while self.next < index && !self.ended {
            let Some(op) = self.ops.get(self.next) else {
                break;
            };
            let rest = self.data.get(self.at..)?;
            let Run { fields, bytes } = op.run;
            if fields > 0 && fields <= index - self.next && bytes <= rest.len() {
                self.at += bytes;
                self.next += fields;
                continue;
            }
            // Text up to its NUL is most of what has no fixed size.
            if op.shape == Shape::Utf16
                && op.length == Length::NulTerminated
                && op.count == Count::One
                && let (end, next) = utf16_len(rest)
                && end < next
            {
                self.at += next;
                self.next += 1;
                continue;
            }
            let extent = field_extent(op, rest, &self.here, self.slots(), &mut Budget::new(rest));
            match extent {
                Some(extent) if !extent.clipped => {
                    keep(op, rest, &mut self.here);
                    self.at += extent.next;
                    self.next += 1;
                }
                // Cut short or absent: decoding the value notes which.
                _ => {
                    self.next();
                }
            }
        }
        if self.ended { None } else { Some(()) }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a Field, Value<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_op().map(|(field, _, value)| (field, value))
    }
}

impl<'a> Fields<'a> {
    /// The next field with its number and its value. Fields have their numbers in the order in
    /// which a schema lists them, each structure before its members.
    #[inline]
    pub(crate) fn next_numbered(&mut self) -> Option<(&'a Field, usize, Value<'a>)> {
        self.next_op()
            .map(|(field, op, value)| (field, op.number, value))
    }

    #[inline]
    fn next_op(&mut self) -> Option<(&'a Field, &'a Op, Value<'a>)> {
        if self.ended {
            return None;
        }
        let op = self.ops.get(self.next)?;
        let field = self.fields.get(self.next)?;
        let rest = self.data.get(self.at..)?;
        // Most fields are one value of a fixed size.
        if op.count == Count::One
            && let Some(value) = op.shape.scalar(rest)
        {
            keep(op, rest, &mut self.here);
            self.at += op.size.unwrap_or(0);
            self.next += 1;
            return Some((field, op, value));
        }
        let Some(one) = field_value(self.shared, field, op, rest, &self.here, self.slots()) else {
            self.ended = true;
            return None;
        };
        keep(op, rest, &mut self.here);
        self.at = self.at.saturating_add(one.next);
        self.next += 1;
        if one.clipped {
            self.clipped = true;
            self.ended = true;
        }
        Some((field, op, one.value))
    }
}
