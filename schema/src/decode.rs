//! Payload bytes to named, typed values.
//!
//! Values borrow from the payload; nothing is allocated. A payload that is too short gives the
//! fields that are whole; one that is too long has [`Fields::rest`].

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::cursor::{Bytes, Cursor};

use crate::model::{Count, EventSchema, Field, FieldKind, FieldRef, InType, Length};

/// Fields whose values others count by are remembered up to this place in the payload; no event of
/// the tables has so many.
const REMEMBERED: usize = 32;

/// Arrays and structures nest this deep at most.
const DEEPEST: u8 = 8;

/// Values of fields, for counts.
type Numbers = [u32; REMEMBERED];

/// A decoded value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A signed number.
    Int(i64),
    /// A number.
    UInt(u64),
    /// A pointer.
    Pointer(u64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A GUID.
    Guid(Guid),
    /// 100 ns since 1601, UTC.
    FileTime(i64),
    /// Year, month, day of week, day, hour, minute, second, millisecond.
    SystemTime([u16; 8]),
    /// A SID: revision, count, authority, sub-authorities. Empty for none.
    Sid(&'a [u8]),
    /// UTF-16LE code units, without their NUL. Unpaired surrogates are kept.
    Unicode(&'a [u8]),
    /// 8-bit characters, without their NUL.
    Ansi(&'a [u8]),
    /// Bytes.
    Binary(&'a [u8]),
    /// Several of a field.
    Array(Items<'a>),
    /// A structure.
    Struct(Fields<'a>),
}

/// Decodes a payload.
#[must_use]
pub fn decode<'a>(schema: &'a EventSchema, pointers: PointerSize, payload: &'a [u8]) -> Fields<'a> {
    Fields::new(&schema.fields, pointers, payload, DEEPEST, [0; REMEMBERED])
}

/// The fields of a payload, or of a structure in it, in order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    fields: &'a [Field],
    pointers: PointerSize,
    cursor: Cursor<'a>,
    next: usize,
    /// Values of the fields so far, and of the payload's own fields.
    numbers: Numbers,
    top: Numbers,
    is_top: bool,
    deep: u8,
    short: bool,
}

impl PartialEq for Fields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.eq_fields(*other)
    }
}

impl<'a> Fields<'a> {
    fn new(
        fields: &'a [Field],
        pointers: PointerSize,
        payload: &'a [u8],
        deep: u8,
        top: Numbers,
    ) -> Self {
        let (cursor, numbers) = (Cursor::new(payload), [0; REMEMBERED]);
        let is_top = deep == DEEPEST;
        Fields { fields, pointers, cursor, next: 0, numbers, top, is_top, deep, short: false }
    }

    fn eq_fields(mut self, mut other: Self) -> bool {
        loop {
            match (self.next(), other.next()) {
                (None, None) => return true,
                (Some((a, x)), Some((b, y))) if a == b && x == y => {}
                _ => return false,
            }
        }
    }

    /// Whether the payload ended before its fields did; known once they have been walked.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// The bytes behind the fields walked so far.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    /// The value of a field by name, walking from here.
    #[must_use]
    pub fn get(mut self, name: &str) -> Option<Value<'a>> {
        self.find(|(field, _)| field.name == name).map(|(_, value)| value)
    }

    /// The value of a field before this one.
    fn number(&self, field: FieldRef) -> usize {
        let (numbers, at) = match field {
            FieldRef::Here(at) => (&self.numbers, at),
            FieldRef::Top(at) if self.is_top => (&self.numbers, at),
            FieldRef::Top(at) => (&self.top, at),
        };
        numbers.get(usize::from(at)).map_or(0, |&n| n as usize)
    }

    fn value(&mut self, field: &'a Field) -> Option<Value<'a>> {
        // Members of a structure see the payload's own fields as they are now.
        let top = if self.is_top { self.numbers } else { self.top };
        let length = match field.length {
            Length::Field(at) => self.number(at),
            _ => 0,
        };
        let one = One { field, length, pointers: self.pointers, deep: self.deep };
        let count = match field.count {
            Count::One => return one.read(&mut self.cursor, &top),
            Count::Const(n) => usize::from(n),
            Count::Field(at) => self.number(at),
            Count::Prefixed => self.cursor.u16()?.into(),
            // No item is shorter than a byte, so there cannot be more.
            Count::Rest => self.cursor.rest().len(),
        };
        let one = One { deep: self.deep.checked_sub(1)?, ..one };
        let items = Items { one, cursor: self.cursor, left: count, top };
        // What is behind an array is found by walking it.
        let mut walked = items;
        let made = walked.by_ref().count();
        if made < count && field.count != Count::Rest {
            return None;
        }
        self.cursor = walked.cursor;
        Some(Value::Array(Items { left: made, ..items }))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a Field, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.fields.get(self.next)?;
        let Some(value) = self.value(field) else {
            self.short = true;
            self.next = self.fields.len();
            return None;
        };
        let number = match value {
            Value::UInt(n) => Some(n),
            Value::Int(n) => u64::try_from(n).ok(),
            _ => None,
        };
        if let (Some(n), Some(number)) = (number, self.numbers.get_mut(self.next)) {
            *number = u32::try_from(n).unwrap_or(u32::MAX);
        }
        self.next += 1;
        Some((field, value))
    }
}

/// Several of a field, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    one: One<'a>,
    cursor: Cursor<'a>,
    left: usize,
    top: Numbers,
}

impl PartialEq for Items<'_> {
    fn eq(&self, other: &Self) -> bool {
        Iterator::eq(*self, *other)
    }
}

impl<'a> Items<'a> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        // An item of no bytes would go on for as long as a hostile count says.
        if self.left == 0 || self.cursor.is_empty() {
            return None;
        }
        let value = self.one.read(&mut self.cursor, &self.top)?;
        self.left -= 1;
        Some(value)
    }
}

/// How one value of a field is read.
#[derive(Clone, Copy, Debug)]
struct One<'a> {
    field: &'a Field,
    /// What another field says of its length.
    length: usize,
    pointers: PointerSize,
    deep: u8,
}

impl<'a> One<'a> {
    /// One value; `None` when it is not whole.
    fn read(&self, c: &mut Cursor<'a>, top: &Numbers) -> Option<Value<'a>> {
        let kind = match &self.field.kind {
            FieldKind::Value(kind) => *kind,
            FieldKind::Struct(members) => return self.structure(members, c, top),
        };
        Some(match kind {
            InType::Null => Value::Binary(&[]),
            InType::Int8 => Value::Int(c.u8()?.cast_signed().into()),
            InType::UInt8 => Value::UInt(c.u8()?.into()),
            InType::Int16 => Value::Int(c.u16()?.cast_signed().into()),
            InType::UInt16 => Value::UInt(c.u16()?.into()),
            InType::Int32 => Value::Int(c.u32()?.cast_signed().into()),
            InType::UInt32 | InType::HexInt32 => Value::UInt(c.u32()?.into()),
            InType::Int64 => Value::Int(c.i64()?),
            InType::UInt64 | InType::HexInt64 => Value::UInt(c.u64()?),
            InType::Float => Value::Float(f32::from_bits(c.u32()?).into()),
            InType::Double => Value::Float(f64::from_bits(c.u64()?)),
            InType::Boolean => Value::Bool(c.u32()? != 0),
            InType::Guid => Value::Guid(c.guid()?),
            InType::Pointer => Value::Pointer(self.pointer(c)?),
            InType::SizeT => Value::UInt(self.pointer(c)?),
            InType::FileTime => Value::FileTime(c.i64()?),
            InType::SystemTime => {
                let mut parts = [0; 8];
                for part in &mut parts {
                    *part = c.u16()?;
                }
                Value::SystemTime(parts)
            }
            InType::Sid => Value::Sid(sid(c)?),
            InType::WbemSid => {
                if c.rest().u32_at(0)? == 0 {
                    c.take(4)?;
                    Value::Sid(&[])
                } else {
                    c.take(2 * self.pointers.bytes())?;
                    Value::Sid(sid(c)?)
                }
            }
            InType::Utf16 => Value::Unicode(self.text(c, 2)?),
            InType::Ansi => Value::Ansi(self.text(c, 1)?),
            InType::Binary => Value::Binary(self.text(c, 1)?),
        })
    }

    fn pointer(&self, c: &mut Cursor<'a>) -> Option<u64> {
        match self.pointers {
            PointerSize::P4 => c.u32().map(u64::from),
            PointerSize::P8 => c.u64(),
        }
    }

    fn structure(
        &self,
        members: &'a [Field],
        c: &mut Cursor<'a>,
        top: &Numbers,
    ) -> Option<Value<'a>> {
        let deep = self.deep.checked_sub(1)?;
        let fields = Fields::new(members, self.pointers, c.rest(), deep, *top);
        let mut walked = fields;
        while walked.next().is_some() {}
        if walked.is_short() {
            return None;
        }
        c.take(walked.cursor.position())?;
        Some(Value::Struct(fields))
    }

    /// Text or bytes, as long as the field's length says; units of `unit` bytes.
    fn text(&self, c: &mut Cursor<'a>, unit: usize) -> Option<&'a [u8]> {
        match self.field.length {
            Length::Natural | Length::NulTerminated if unit == 2 => string(c, Cursor::utf16z, unit),
            Length::Natural | Length::NulTerminated => string(c, Cursor::ansiz, unit),
            Length::Fixed(n) => c.take(usize::from(n) * unit),
            Length::Field(_) => c.take(self.length.checked_mul(unit)?),
            Length::U16 => {
                let len = c.u16()?;
                c.take(len.into())
            }
            Length::U16BigEndian => {
                let len = c.u16()?.swap_bytes();
                c.take(len.into())
            }
            Length::U32 => {
                let len = usize::try_from(c.u32()?).ok()?;
                c.take(len)
            }
            Length::Rest => c.take(c.rest().len() / unit * unit),
        }
    }
}

/// A SID is as long as its second byte says.
fn sid<'a>(c: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let count = usize::from(c.rest().u8_at(1)?);
    c.take(8 + 4 * count)
}

/// A string up to its NUL, or, where the payload ends without one, all that is left of it.
fn string<'a>(
    c: &mut Cursor<'a>,
    terminated: fn(&mut Cursor<'a>) -> Option<&'a [u8]>,
    unit: usize,
) -> Option<&'a [u8]> {
    if c.is_empty() {
        return None;
    }
    terminated(c).or_else(|| {
        let whole = c.rest().len() / unit * unit;
        c.take(whole)
    })
}

/// UTF-16LE code units as text, unpaired surrogates replaced.
#[must_use]
pub fn utf16_lossy(units: &[u8]) -> String {
    let units = units.chunks_exact(2).filter_map(|unit| unit.u16_at(0));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Identity, OutType, SchemaSource};
    use crate::tables::Registry;
    use proptest::prelude::*;

    fn schema(id: u16, version: u8) -> &'static EventSchema {
        let runtime = Registry::builtin().find("runtime").unwrap();
        &Registry::builtin().event(runtime.guid, Identity::Modern { id, version }).unwrap().schema
    }

    #[test]
    fn fields_of_a_method_load() {
        let mut payload = Vec::new();
        for n in [1u64, 2, 0x7fff_0000] {
            payload.extend(n.to_le_bytes());
        }
        for n in [0x40u32, 0x0600_0001, 0x9] {
            payload.extend(n.to_le_bytes());
        }
        for text in ["N", "M", ""] {
            payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        }
        payload.extend(9u16.to_le_bytes());
        let mut fields = decode(schema(143, 1), PointerSize::P8, &payload);
        assert_eq!(fields.get("MethodStartAddress"), Some(Value::UInt(0x7fff_0000)));
        assert_eq!(fields.get("MethodName"), Some(Value::Unicode(b"M\0")));
        assert_eq!(fields.get("ClrInstanceID"), Some(Value::UInt(9)));
        assert_eq!(fields.by_ref().count(), 10);
        assert!(!fields.is_short() && fields.rest().is_empty());

        let cut = &payload[..40];
        let mut fields = decode(schema(143, 1), PointerSize::P8, cut);
        assert_eq!(fields.by_ref().count(), 7, "what is whole is given");
        assert!(fields.is_short());

        payload.extend(b"more");
        let mut fields = decode(schema(143, 1), PointerSize::P8, &payload);
        fields.by_ref().for_each(drop);
        assert_eq!((fields.is_short(), fields.rest()), (false, &b"more"[..]));
    }

    #[test]
    fn arrays_are_as_long_as_their_count() {
        // GCBulkSurvivingObjectRanges: index, count, instance, count x (pointer, length).
        let mut payload = Vec::new();
        payload.extend(0u32.to_le_bytes());
        payload.extend(2u32.to_le_bytes());
        payload.extend(9u16.to_le_bytes());
        for (base, len) in [(0x1000u32, 16u64), (0x2000, 32)] {
            payload.extend(base.to_le_bytes());
            payload.extend(len.to_le_bytes());
        }
        let fields = decode(schema(21, 0), PointerSize::P4, &payload);
        let Some(Value::Array(ranges)) = fields.get("Values") else { panic!("no array") };
        let lengths: Vec<_> = ranges
            .map(|range| match range {
                Value::Struct(fields) => fields.get("RangeLength"),
                _ => None,
            })
            .collect();
        assert_eq!(lengths, [Some(Value::UInt(16)), Some(Value::UInt(32))]);
    }

    #[test]
    fn a_stack_goes_to_the_end_of_the_payload() {
        let mut payload = vec![9, 0, 0, 0, 3, 0, 0, 0];
        for address in [1u64, 2, 3] {
            payload.extend(address.to_le_bytes());
        }
        let fields = decode(schema(82, 0), PointerSize::P8, &payload);
        let Some(Value::Array(stack)) = fields.get("Stack") else { panic!("no stack") };
        assert_eq!(stack.len(), 3);
        assert_eq!(stack.last(), Some(Value::Pointer(3)));
    }

    #[test]
    fn every_type_and_length() {
        let mut schema =
            EventSchema::new(Guid::ZERO, Identity::SelfDescribing, SchemaSource::TraceLogging);
        let field = |kind: InType| Field::new(kind.name(), kind).with_out(OutType::Default);
        let sid = [1u8, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        let mut payload = Vec::new();
        let mut expected = Vec::new();
        let mut add = |field: Field, bytes: &[u8], value: Value<'static>| {
            schema.fields.push(field);
            payload.extend(bytes);
            expected.push(value);
        };
        add(field(InType::UInt16), &[2, 0], Value::UInt(2));
        add(field(InType::Int8), &[0xff], Value::Int(-1));
        add(field(InType::Int16), &[0xfe, 0xff], Value::Int(-2));
        add(field(InType::Int32), &(-3i32).to_le_bytes(), Value::Int(-3));
        add(field(InType::Int64), &(-4i64).to_le_bytes(), Value::Int(-4));
        add(field(InType::Float), &1.5f32.to_le_bytes(), Value::Float(1.5));
        add(field(InType::Double), &2.5f64.to_le_bytes(), Value::Float(2.5));
        add(field(InType::Boolean), &[1, 0, 0, 0], Value::Bool(true));
        add(field(InType::SizeT), &[7, 0, 0, 0], Value::UInt(7));
        add(field(InType::FileTime), &9i64.to_le_bytes(), Value::FileTime(9));
        add(field(InType::SystemTime), &[1, 0].repeat(8), Value::SystemTime([1; 8]));
        add(field(InType::WbemSid), &[0; 4], Value::Sid(&[]));
        let fixed = field(InType::Utf16).with_length(Length::Fixed(2));
        add(fixed, b"a\0b\0", Value::Unicode(b"a\0b\0"));
        let counted = field(InType::Ansi).with_length(Length::Field(FieldRef::Here(0)));
        add(counted, b"xy", Value::Ansi(b"xy"));
        add(field(InType::Binary), &[1, 0, 0xee], Value::Binary(&[0xee]));
        let big = field(InType::Ansi).with_length(Length::U16BigEndian);
        add(big, &[0, 1, b'z'], Value::Ansi(b"z"));
        let wide = field(InType::Binary).with_length(Length::U32);
        add(wide, &[1, 0, 0, 0, 5], Value::Binary(&[5]));
        let rest = field(InType::Binary).with_length(Length::Rest);
        add(rest, &[1, 2, 3], Value::Binary(&[1, 2, 3]));
        let mut fields = decode(&schema, PointerSize::P4, &payload);
        let values: Vec<_> = fields.by_ref().map(|(_, value)| value).collect();
        assert_eq!(values, expected);
        assert!(!fields.is_short() && fields.rest().is_empty());

        let mut schema =
            EventSchema::new(Guid::ZERO, Identity::SelfDescribing, SchemaSource::TraceLogging);
        schema.fields.push(field(InType::Sid));
        let array = field(InType::UInt8).with_count(Count::Prefixed);
        let members = vec![field(InType::UInt8).with_count(Count::Field(FieldRef::Top(2)))];
        schema.fields.push(array);
        schema.fields.push(field(InType::UInt8));
        schema.fields.push(Field::structure("s", members));
        let payload = [&sid[..], &[2, 0, 8, 9, 3, 10, 11, 12]].concat();
        let mut fields = decode(&schema, PointerSize::P8, &payload);
        let values: Vec<_> = fields.by_ref().map(|(_, value)| value).collect();
        assert_eq!(values[0], Value::Sid(&sid));
        let items = |value: Value<'_>| match value {
            Value::Array(items) => items
                .filter_map(|v| match v {
                    Value::UInt(n) => Some(n),
                    _ => None,
                })
                .collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        assert_eq!(items(values[1]), [8, 9]);
        let Value::Struct(inner) = values[3] else { panic!("no structure") };
        assert_eq!(items(inner.get("UInt8").unwrap()), [10, 11, 12]);
        assert!(fields.rest().is_empty());
    }

    proptest! {
        #[test]
        fn any_payload_of_any_event(payload in proptest::collection::vec(any::<u8>(), 0..200), which: prop::sample::Index, wide: bool) {
            let all: Vec<_> = Registry::builtin().providers().iter().flat_map(|p| &p.events).collect();
            let event = &all[which.index(all.len())].schema;
            let pointers = if wide { PointerSize::P8 } else { PointerSize::P4 };
            let mut fields = decode(event, pointers, &payload);
            let count = fields.by_ref().count();
            prop_assert!(count <= event.fields.len());
            prop_assert_eq!(count == event.fields.len(), !fields.is_short());
            prop_assert!(fields.rest().len() <= payload.len());
        }
    }
}
