//! Schemas and values for any schema, made from a sequence of choices.
//!
//! Property tests draw a byte string and read choices from it, so that shrinking the string makes a
//! smaller schema. A string that was read to its end chooses 0, which makes the simplest one.

use crate::encode::OwnedValue;
use crate::model::{
    Count, EventSchema, Field, FieldKind, FieldRef, Identity, InType, Length, OutType, SchemaSource,
};
use etl_format::Guid;
use etl_format::constants::PointerSize;
use std::net::{Ipv4Addr, Ipv6Addr};

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

    fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => u64::from(self.byte()),
            1 => u64::MAX,
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
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

/// Values for any schema, which [`crate::encode`] encodes and [`crate::decode`] returns. Counting
/// fields are [`OwnedValue::Auto`].
pub(crate) fn values(
    fields: &[Field],
    choices: &mut Choices<'_>,
    pointers: PointerSize,
) -> Vec<OwnedValue> {
    let counts: Vec<usize> = fields.iter().map(|_| choices.below(4)).collect();
    list(fields, &counts, &counts, choices, pointers)
}

fn list(
    fields: &[Field],
    here: &[usize],
    top: &[usize],
    choices: &mut Choices<'_>,
    pointers: PointerSize,
) -> Vec<OwnedValue> {
    let is_top = std::ptr::eq(here, top);
    let mut out = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        if is_counting(fields, index) || (is_top && is_counting_nested(fields, index)) {
            out.push(OwnedValue::Auto);
            continue;
        }
        let counts = Counts { here, top };
        let n = match field.count {
            Count::One => {
                out.push(one(field, counts, choices, pointers));
                continue;
            }
            Count::Const(n) => usize::from(n),
            Count::Field(reference) => counts.get(reference),
            Count::Prefixed | Count::Rest => choices.below(4),
        };
        let elements = (0..n)
            .map(|_| one(field, counts, choices, pointers))
            .collect();
        out.push(OwnedValue::Array(elements));
    }
    out
}

/// The values of counting fields.
#[derive(Clone, Copy)]
struct Counts<'c> {
    here: &'c [usize],
    top: &'c [usize],
}

impl Counts<'_> {
    fn get(self, reference: FieldRef) -> usize {
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

fn is_counting_nested(fields: &[Field], index: usize) -> bool {
    fields.iter().any(|f| {
        refers(f, FieldRef::Top(index as u16))
            || matches!(&f.kind, FieldKind::Struct(m) if is_counting_nested(m, index))
    })
}

fn one(
    field: &Field,
    counts: Counts<'_>,
    choices: &mut Choices<'_>,
    pointers: PointerSize,
) -> OwnedValue {
    let ty = match &field.kind {
        FieldKind::Struct(members) => {
            let here: Vec<usize> = members.iter().map(|_| choices.below(4)).collect();
            return OwnedValue::Struct(list(members, &here, counts.top, choices, pointers));
        }
        FieldKind::Value(ty) => *ty,
    };
    let len = match field.length {
        Length::Fixed(n) => usize::from(n),
        Length::Field(reference) => counts.get(reference),
        _ => choices.below(12),
    };
    // Bits of 64 that numbers of the type do not have.
    let unused = 64 - 8 * ty.width(pointers);
    match (ty, field.out) {
        (InType::Null, _) => OwnedValue::Null,
        (InType::Int8 | InType::Int16 | InType::Int32, OutType::Boolean)
        | (InType::UInt8 | InType::UInt16 | InType::UInt32, OutType::Boolean)
        | (InType::Boolean, _) => OwnedValue::Bool(choices.below(2) == 1),
        (InType::Int8 | InType::UInt8, OutType::String) => {
            OwnedValue::Char(u16::from(choices.byte()))
        }
        (InType::UInt16, OutType::String) => OwnedValue::Char(choices.number() as u16),
        (InType::UInt32, OutType::Ipv4) => {
            OwnedValue::Ipv4(Ipv4Addr::from(choices.number() as u32))
        }
        (InType::Binary, OutType::Ipv6) if len == 16 => {
            OwnedValue::Ipv6(Ipv6Addr::from(u128::from(choices.number())))
        }
        (InType::Int8 | InType::Int16 | InType::Int32 | InType::Int64, _) => {
            OwnedValue::Int(((choices.number() << unused) as i64) >> unused)
        }
        (InType::Pointer, _) => OwnedValue::Pointer(choices.number() << unused >> unused),
        (ty, _) if ty.is_integer() => OwnedValue::UInt(choices.number() << unused >> unused),
        (InType::Float, _) => OwnedValue::Float(f32::from(choices.byte()) / 3.0),
        (InType::Double, _) => OwnedValue::Double(choices.number() as f64 / 3.0),
        (InType::Guid, _) => {
            OwnedValue::Guid(Guid::from_bytes(std::array::from_fn(|_| choices.byte())))
        }
        (InType::FileTime, _) => OwnedValue::FileTime(choices.number()),
        (InType::SystemTime, _) => {
            OwnedValue::SystemTime(std::array::from_fn(|_| choices.number() as u16))
        }
        (InType::WbemSid, _) if choices.below(2) == 0 => OwnedValue::Null,
        (InType::Sid | InType::WbemSid, _) => sid(choices),
        _ => text_or_binary(ty, field, len, choices),
    }
}

fn sid(choices: &mut Choices<'_>) -> OwnedValue {
    let parts = choices.below(4);
    let mut sid = vec![1, parts as u8];
    sid.extend((0..6 + parts * 4).map(|_| choices.byte()));
    OwnedValue::Sid(sid)
}

/// Text or binary data of this many bytes or characters.
fn text_or_binary(ty: InType, field: &Field, len: usize, choices: &mut Choices<'_>) -> OwnedValue {
    let min = u8::from(field.length == Length::NulTerminated);
    let mut bytes = Vec::new();
    for _ in 0..len {
        bytes.push(choices.byte().max(min));
    }
    match (ty, field.out) {
        (InType::Utf16, _) => OwnedValue::Utf16(bytes.into_iter().map(unit).collect()),
        (InType::Ansi, OutType::Utf8 | OutType::Xml | OutType::Json) => OwnedValue::Utf8(bytes),
        (InType::Ansi, _) => OwnedValue::Ansi(bytes),
        _ => OwnedValue::Binary(bytes),
    }
}

/// A UTF-16 code unit, which may be a lone surrogate.
fn unit(byte: u8) -> u16 {
    if byte >= 0xf0 {
        0xd800 | u16::from(byte) << 3
    } else {
        u16::from(byte)
    }
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
