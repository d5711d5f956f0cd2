//! Schemas of any shape, made from a sequence of choices.
//!
//! Property tests draw a byte string and read choices from it, so that shrinking the string makes a
//! smaller schema. A string that was read to its end chooses 0, which makes the simplest one.

#[cfg(test)]
use crate::encode::OwnedValue;
use crate::model::{
    Count, EventSchema, Field, FieldKind, FieldRef, Identity, InType, Length, OutType, SchemaSource,
};
use etl_format::Guid;

pub(crate) struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Choices { bytes }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    /// One of these, if there is any.
    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).copied()
    }
}

/// A schema of any shape that a payload can be decoded by without guessing.
pub(crate) fn schema(choices: &mut Choices<'_>) -> EventSchema {
    let id = Identity::Modern { id: 1, version: 0 };
    let mut schema = EventSchema::new(Guid::ZERO, id, SchemaSource::Manifest);
    let n = choices.below(8);
    schema.fields = fields(choices, n, 0, &[]);
    if choices.below(4) == 1 {
        let last = match choices.below(4) {
            0 => Field::new("rest", InType::Utf16).with_length(Length::Rest),
            1 => Field::new("rest", InType::Binary).with_length(Length::Rest),
            2 => Field::new("rest", InType::Pointer).with_count(Count::Rest),
            _ => Field::new("rest", InType::Utf16).with_count(Count::Rest),
        };
        schema.fields.push(last);
    }
    schema
}

fn fields(choices: &mut Choices<'_>, n: usize, depth: usize, top: &[u16]) -> Vec<Field> {
    let mut out: Vec<Field> = Vec::new();
    for index in 0..n {
        let counters = counters(&out);
        let name = format!("f{depth}_{index}");
        let mut field = if depth < 3 && choices.below(6) == 5 {
            let n = choices.below(4);
            let top: Vec<u16> = if depth == 0 {
                counters.clone()
            } else {
                top.to_vec()
            };
            Field::structure(name, fields(choices, n, depth + 1, &top))
        } else {
            Field::new(name, choices.pick(InType::ALL).unwrap_or(InType::Null))
        };
        if let Some(ty) = field.in_type() {
            if matches!(ty, InType::Utf16 | InType::Ansi | InType::Binary) {
                let mut lengths = vec![
                    Length::U16,
                    Length::Fixed(3),
                    Length::U16BigEndian,
                    Length::U32,
                ];
                if ty != InType::Binary {
                    lengths.push(Length::NulTerminated);
                }
                if let Some(reference) = reference(choices, &counters, top) {
                    lengths.push(Length::Field(reference));
                }
                field.length = choices.pick(&lengths).unwrap_or_default();
            }
            field.out = choices.pick(OutType::ALL).unwrap_or(OutType::Default);
        }
        field.count = match choices.below(8) {
            5 => Count::Const(choices.below(4) as u16),
            6 => Count::Prefixed,
            7 => reference(choices, &counters, top).map_or(Count::One, Count::Field),
            _ => Count::One,
        };
        out.push(field);
    }
    out
}

/// The indices of fields that can count others.
fn counters(fields: &[Field]) -> Vec<u16> {
    let mut counters = Vec::new();
    for (index, field) in (0..).zip(fields) {
        if field.count == Count::One
            && field.in_type().is_some_and(InType::is_integer)
            && field.in_type() != Some(InType::Boolean)
            && field.out == OutType::Default
        {
            counters.push(index);
        }
    }
    counters
}

/// A reference to one of these counters.
fn reference(choices: &mut Choices<'_>, here: &[u16], top: &[u16]) -> Option<FieldRef> {
    if !top.is_empty() && choices.below(2) == 0 {
        choices.pick(top).map(FieldRef::Top)
    } else {
        choices.pick(here).map(FieldRef::Here)
    }
}

/// The values of counting fields.
#[derive(Clone, Copy)]
pub(crate) struct Counts<'c> {
    pub(crate) here: &'c [usize],
    pub(crate) top: &'c [usize],
}

impl Counts<'_> {
    pub(crate) fn get(self, reference: FieldRef) -> usize {
        let count = match reference {
            FieldRef::Here(index) => self.here.get(usize::from(index)),
            FieldRef::Top(index) => self.top.get(usize::from(index)),
        };
        count.copied().unwrap_or_default()
    }
}

fn refers(field: &Field, to: FieldRef) -> bool {
    field.count == Count::Field(to) || field.length == Length::Field(to)
}

pub(crate) fn is_counting(fields: &[Field], index: usize) -> bool {
    fields
        .iter()
        .any(|f| refers(f, FieldRef::Here(index as u16)))
}

pub(crate) fn is_counting_nested(fields: &[Field], index: usize) -> bool {
    fields.iter().any(|f| {
        refers(f, FieldRef::Top(index as u16))
            || matches!(&f.kind, FieldKind::Struct(m) if is_counting_nested(m, index))
    })
}

/// Whether decoded values are the encoded ones; [`OwnedValue::Auto`] agrees with every value.
#[cfg(test)]
pub(crate) fn agree(given: &[OwnedValue], back: &[OwnedValue]) -> bool {
    given.len() == back.len()
        && given
            .iter()
            .zip(back)
            .all(|(given, back)| match (given, back) {
                (OwnedValue::Auto, _) => true,
                (OwnedValue::Array(a), OwnedValue::Array(b))
                | (OwnedValue::Struct(a), OwnedValue::Struct(b)) => agree(a, b),
                (a, b) => a == b,
            })
}
