//! Strategies for the values of fields: numbers that shrink to bounds, and text as it occurs.

use proptest::collection::vec;
use proptest::num;
use proptest::prelude::*;
use proptest::strategy::{NewTree, ValueTree};
use proptest::test_runner::TestRunner;

use etl_format::Guid;
use etl_format::constants::PointerSize;

use crate::encode::OwnedValue;
use crate::model::{Count, Field, FieldKind, InType, Length, OutType};
use crate::testing::choices::{Counts, is_counting, is_counting_nested};

/// The largest number of elements of an array, and of units of a text that another field counts.
const MAX_COUNT: usize = 3;

/// The largest number of characters of other text.
const MAX_CHARACTERS: usize = 11;

/// Values of fields. Counting fields are [`OwnedValue::Auto`].
pub(crate) fn values_of(fields: &[Field], pointers: PointerSize) -> BoxedStrategy<Vec<OwnedValue>> {
    let fields = fields.to_vec();
    uncounted(&fields, pointers, &fields)
        .prop_map(move |mut values| {
            let counts = counts(&values);
            fit(&fields, &mut values, &counts, &fields);
            values
        })
        .boxed()
}

/// Values of fields, of which counting ones have their number and counted ones the largest number
/// of elements.
fn uncounted(
    fields: &[Field],
    pointers: PointerSize,
    top: &[Field],
) -> BoxedStrategy<Vec<OwnedValue>> {
    let mut strategies = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let strategy = if is_counter(fields, index, top) {
            (0..=MAX_COUNT as u64).prop_map(OwnedValue::UInt).boxed()
        } else {
            array_or_one(field, pointers, top)
        };
        strategies.push(strategy);
    }
    strategies.boxed()
}

/// Whether a field counts others, on its level or below the top one.
fn is_counter(fields: &[Field], index: usize, top: &[Field]) -> bool {
    let is_top = std::ptr::eq(fields, top);
    is_counting(fields, index) || is_top && is_counting_nested(fields, index)
}

fn array_or_one(field: &Field, pointers: PointerSize, top: &[Field]) -> BoxedStrategy<OwnedValue> {
    let element = one(field, pointers, top);
    let count = match field.count {
        Count::One => return element,
        Count::Const(count) => usize::from(count)..=usize::from(count),
        Count::Field(_) => MAX_COUNT..=MAX_COUNT,
        Count::Prefixed | Count::Rest => 0..=MAX_COUNT,
    };
    vec(element, count).prop_map(OwnedValue::Array).boxed()
}

fn one(field: &Field, pointers: PointerSize, top: &[Field]) -> BoxedStrategy<OwnedValue> {
    let ty = match &field.kind {
        FieldKind::Struct(members) => {
            let members = uncounted(members, pointers, top);
            return members.prop_map(OwnedValue::Struct).boxed();
        }
        FieldKind::Value(ty) => *ty,
    };
    let bits = 8 * ty.width(pointers) as u32;
    match (ty, field.out) {
        (InType::Null, _) => Just(OwnedValue::Null).boxed(),
        (InType::Int8 | InType::Int16 | InType::Int32, OutType::Boolean)
        | (InType::UInt8 | InType::UInt16 | InType::UInt32, OutType::Boolean)
        | (InType::Boolean, _) => any::<bool>().prop_map(OwnedValue::Bool).boxed(),
        (InType::Int8 | InType::UInt8 | InType::UInt16, OutType::String) => Unsigned { bits }
            .prop_map(|number| OwnedValue::Char(number as u16))
            .boxed(),
        (InType::UInt32, OutType::Ipv4) => Unsigned { bits }
            .prop_map(|number| OwnedValue::Ipv4((number as u32).into()))
            .boxed(),
        (InType::Binary, OutType::Ipv6) if field.length == Length::Fixed(16) => any::<[u8; 16]>()
            .prop_map(|bytes| OwnedValue::Ipv6(bytes.into()))
            .boxed(),
        (InType::Int8 | InType::Int16 | InType::Int32 | InType::Int64, _) => {
            Signed { bits }.prop_map(OwnedValue::Int).boxed()
        }
        (InType::Pointer, _) => Unsigned { bits }.prop_map(OwnedValue::Pointer).boxed(),
        (ty, _) if ty.is_integer() => Unsigned { bits }.prop_map(OwnedValue::UInt).boxed(),
        (InType::Float, _) => any::<f32>().prop_map(OwnedValue::Float).boxed(),
        (InType::Double, _) => any::<f64>().prop_map(OwnedValue::Double).boxed(),
        (InType::Guid, _) => any::<[u8; 16]>()
            .prop_map(|bytes| OwnedValue::Guid(Guid::from_bytes(bytes)))
            .boxed(),
        (InType::FileTime, _) => file_times().boxed(),
        (InType::SystemTime, _) => any::<[u16; 8]>().prop_map(OwnedValue::SystemTime).boxed(),
        (InType::Sid, _) => sids().boxed(),
        (InType::WbemSid, _) => prop_oneof![Just(OwnedValue::Null), sids()].boxed(),
        _ => text_or_binary(ty, field),
    }
}

/// Times from 1980 to 2100, and any number, since a field may hold none.
fn file_times() -> impl Strategy<Value = OwnedValue> {
    const YEAR_1980: u64 = 119_600_064_000_000_000;
    const YEAR_2100: u64 = 157_469_184_000_000_000;
    let times = prop_oneof![2 => YEAR_1980..YEAR_2100, 1 => Unsigned { bits: 64 }];
    times.prop_map(OwnedValue::FileTime)
}

/// SIDs with up to three parts.
fn sids() -> impl Strategy<Value = OwnedValue> {
    let authority = any::<[u8; 6]>();
    let parts = vec(Unsigned { bits: 32 }, 0..4);
    (authority, parts).prop_map(|(authority, parts)| {
        let mut sid = vec![1, parts.len() as u8];
        sid.extend_from_slice(&authority);
        for part in parts {
            sid.extend_from_slice(&(part as u32).to_le_bytes());
        }
        OwnedValue::Sid(sid)
    })
}

/// How many units a text or binary value has.
#[derive(Clone, Copy)]
enum Units {
    /// Any number, none of which ends the text.
    Terminated,
    Any,
    Exactly(usize),
}

impl Units {
    fn of(length: Length) -> Self {
        match length {
            Length::NulTerminated => Units::Terminated,
            Length::Fixed(count) => Units::Exactly(usize::from(count)),
            Length::Field(_) => Units::Exactly(MAX_COUNT),
            _ => Units::Any,
        }
    }

    /// Joins characters to a text, cuts it or fills it up, and removes its ends.
    fn join<U: Copy + Default + PartialEq>(self, characters: Vec<Vec<U>>) -> Vec<U> {
        let mut units = characters.concat();
        match self {
            Units::Terminated => units.retain(|unit| *unit != U::default()),
            Units::Any => {}
            Units::Exactly(count) => units.resize(count, U::default()),
        }
        units
    }

    /// The number of characters to draw.
    fn characters(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Units::Exactly(count) => 0..=count,
            _ => 0..=MAX_CHARACTERS,
        }
    }
}

fn text_or_binary(ty: InType, field: &Field) -> BoxedStrategy<OwnedValue> {
    let units = Units::of(field.length);
    let is_utf8 = matches!(field.out, OutType::Utf8 | OutType::Xml | OutType::Json);
    match ty {
        InType::Utf16 => vec(utf16_characters(), units.characters())
            .prop_map(move |characters| OwnedValue::Utf16(units.join(characters)))
            .boxed(),
        InType::Ansi if is_utf8 => vec(utf8_characters(), units.characters())
            .prop_map(move |characters| OwnedValue::Utf8(units.join(characters)))
            .boxed(),
        InType::Ansi => vec(bytes(), units.characters())
            .prop_map(move |characters| OwnedValue::Ansi(units.join(characters)))
            .boxed(),
        _ => vec(bytes(), units.characters())
            .prop_map(move |characters| OwnedValue::Binary(units.join(characters)))
            .boxed(),
    }
}

/// One byte, as a character.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    any::<u8>().prop_map(|byte| vec![byte])
}

/// The code units of a character of UTF-16: of one byte, above U+00FF, of a pair, half a pair, and
/// zero, which ends only text that says so.
fn utf16_characters() -> impl Strategy<Value = Vec<u16>> {
    prop_oneof![
        6 => (0x61u16..0x7b).prop_map(|unit| vec![unit]),
        2 => (0x20u16..0x100).prop_map(|unit| vec![unit]),
        2 => (0x100u16..0xd800).prop_map(|unit| vec![unit]),
        1 => (0xe000u16..=0xffff).prop_map(|unit| vec![unit]),
        2 => (0xd800u16..0xdc00, 0xdc00u16..0xe000).prop_map(|(high, low)| vec![high, low]),
        1 => (0xd800u16..0xe000).prop_map(|unit| vec![unit]),
        1 => Just(vec![0u16]),
    ]
}

/// The bytes of a character of UTF-8, and now and then a byte that is none.
fn utf8_characters() -> impl Strategy<Value = Vec<u8>> {
    let characters = prop_oneof![4 => prop::char::range('a', 'z'), 2 => any::<char>()];
    prop_oneof![
        6 => characters.prop_map(|character| character.to_string().into_bytes()),
        1 => bytes(),
    ]
}

/// Numbers of so many bits: small ones, the largest ones, powers of two and their neighbours. They
/// shrink to the smallest number that fails, as if they were drawn from the whole range.
#[derive(Clone, Copy, Debug)]
struct Unsigned {
    bits: u32,
}

impl Strategy for Unsigned {
    type Tree = num::u64::BinarySearch;
    type Value = u64;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let number = draw(self.bits, runner)?;
        Ok(num::u64::BinarySearch::new(number))
    }
}

/// Signed numbers of so many bits, as [`Unsigned`]; they shrink towards 0.
#[derive(Clone, Copy, Debug)]
struct Signed {
    bits: u32,
}

impl Strategy for Signed {
    type Tree = num::i64::BinarySearch;
    type Value = i64;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let unused = 64 - self.bits;
        let number = draw(self.bits, runner)?;
        Ok(num::i64::BinarySearch::new(
            ((number << unused) as i64) >> unused,
        ))
    }
}

/// A number of so many bits.
fn draw(bits: u32, runner: &mut TestRunner) -> Result<u64, proptest::test_runner::Reason> {
    let largest = u64::MAX >> (64 - bits.clamp(1, 64));
    let near_powers = (0..bits.max(1), 0u64..3)
        .prop_map(|(exponent, offset)| ((1u64 << exponent) + offset).wrapping_sub(1));
    let numbers = prop_oneof![
        3 => 0u64..100,
        2 => 0..=largest,
        1 => (0u64..3).prop_map(move |offset| largest - offset.min(largest)),
        2 => near_powers,
    ];
    Ok(numbers.new_tree(runner)?.current() & largest)
}

/// The numbers of counting fields; any number for others.
fn counts(values: &[OwnedValue]) -> Vec<usize> {
    let mut counts = Vec::new();
    for value in values {
        counts.push(value.as_u64().unwrap_or_default() as usize);
    }
    counts
}

/// Cuts counted arrays and texts to their numbers, and makes counting fields
/// [`OwnedValue::Auto`].
fn fit(fields: &[Field], values: &mut [OwnedValue], top_counts: &[usize], top: &[Field]) {
    let here = counts(values);
    let counts = Counts {
        here: &here,
        top: top_counts,
    };
    for (index, (field, value)) in fields.iter().zip(values.iter_mut()).enumerate() {
        if is_counter(fields, index, top) {
            *value = OwnedValue::Auto;
            continue;
        }
        if let Count::Field(reference) = field.count
            && let OwnedValue::Array(elements) = value
        {
            elements.truncate(counts.get(reference));
        }
        let text_length = match field.length {
            Length::Field(reference) => Some(counts.get(reference)),
            _ => None,
        };
        let elements = match value {
            OwnedValue::Array(elements) => elements.as_mut_slice(),
            one => std::slice::from_mut(one),
        };
        for element in elements {
            if let Some(length) = text_length {
                cut(element, length);
            }
            if let (OwnedValue::Struct(values), FieldKind::Struct(members)) = (element, &field.kind)
            {
                fit(members, values, top_counts, top);
            }
        }
    }
}

/// Cuts a text or binary value to so many units.
fn cut(value: &mut OwnedValue, length: usize) {
    match value {
        OwnedValue::Utf16(units) => units.truncate(length),
        OwnedValue::Ansi(bytes) | OwnedValue::Utf8(bytes) | OwnedValue::Binary(bytes) => {
            bytes.truncate(length);
        }
        _ => {}
    }
}
