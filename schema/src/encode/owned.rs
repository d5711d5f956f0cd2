//! Owned values.

use crate::decode::{Fields, SystemTime, Value};
use crate::model::InType;
use etl_format::Guid;
use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A value to encode, or a decoded value made independent of its payload.
///
/// A number can be encoded in a field of any integer type that it fits.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnedValue {
    /// The right value of a counting field; in other fields, zero or empty.
    Auto,
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// IEEE 754 single.
    Float(f32),
    /// IEEE 754 double.
    Double(f64),
    /// A UTF-16 code unit or a byte of text.
    Char(u16),
    /// A GUID.
    Guid(Guid),
    /// An address.
    Pointer(u64),
    /// 100 ns since 1601-01-01 UTC.
    FileTime(u64),
    /// A broken-down time.
    SystemTime([u16; 8]),
    /// A SID as stored.
    Sid(Vec<u8>),
    /// Text, for fields of any text type.
    Text(String),
    /// UTF-16 code units, valid or not.
    Utf16(Vec<u16>),
    /// Eight-bit text.
    Ansi(Vec<u8>),
    /// Text that is said to be UTF-8.
    Utf8(Vec<u8>),
    /// Bytes.
    Binary(Vec<u8>),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A struct's members, in order.
    Struct(Vec<OwnedValue>),
    /// An array's elements.
    Array(Vec<OwnedValue>),
}

impl OwnedValue {
    /// The values of all fields of a walk.
    #[must_use]
    pub fn collect(fields: Fields<'_>) -> Vec<OwnedValue> {
        fields.map(|(_, value)| OwnedValue::from(value)).collect()
    }

    /// The value as an unsigned number, if it is one.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            OwnedValue::UInt(v) | OwnedValue::Pointer(v) | OwnedValue::FileTime(v) => Some(v),
            OwnedValue::Int(v) => u64::try_from(v).ok(),
            OwnedValue::Bool(v) => Some(u64::from(v)),
            OwnedValue::Char(v) => Some(u64::from(v)),
            _ => None,
        }
    }

    pub(super) fn elements(&self) -> &[OwnedValue] {
        match self {
            OwnedValue::Array(elements) => elements,
            _ => &[],
        }
    }

    /// The bytes of a value of a text or binary type, without terminator or prefix.
    pub(super) fn text_bytes(&self, ty: InType) -> Option<Cow<'_, [u8]>> {
        Some(match (self, ty) {
            (OwnedValue::Auto, _) => Cow::Borrowed(&[]),
            (OwnedValue::Text(s), InType::Utf16) => {
                Cow::Owned(utf16_bytes(s.len(), s.encode_utf16()))
            }
            (OwnedValue::Utf16(units), InType::Utf16) => {
                Cow::Owned(utf16_bytes(units.len(), units.iter().copied()))
            }
            (OwnedValue::Text(s), InType::Ansi | InType::Binary) => Cow::Borrowed(s.as_bytes()),
            (OwnedValue::Ipv6(a), InType::Binary) => Cow::Owned(a.octets().to_vec()),
            (
                OwnedValue::Ansi(b) | OwnedValue::Utf8(b) | OwnedValue::Binary(b),
                InType::Ansi | InType::Binary,
            ) => Cow::Borrowed(b),
            _ => return None,
        })
    }
}

/// At most `max_units` code units of UTF-16 as bytes, with capacity for a NUL after them.
fn utf16_bytes(max_units: usize, units: impl Iterator<Item = u16>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(max_units.saturating_add(1).saturating_mul(2));
    units.for_each(|unit| bytes.extend_from_slice(&unit.to_le_bytes()));
    bytes
}

impl From<Value<'_>> for OwnedValue {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Null => OwnedValue::Null,
            Value::Bool(v) => OwnedValue::Bool(v),
            Value::Int(v) => OwnedValue::Int(v),
            Value::UInt(v) => OwnedValue::UInt(v),
            Value::Float(v) => OwnedValue::Float(v),
            Value::Double(v) => OwnedValue::Double(v),
            Value::Char(v) => OwnedValue::Char(v),
            Value::Guid(v) => OwnedValue::Guid(v),
            Value::Pointer(v) => OwnedValue::Pointer(v),
            Value::FileTime(v) => OwnedValue::FileTime(v),
            Value::SystemTime(SystemTime(v)) => OwnedValue::SystemTime(v),
            Value::Sid(v) => OwnedValue::Sid(v.0.to_vec()),
            Value::Utf16(v) => OwnedValue::Utf16(v.units().collect()),
            Value::Ansi(v) => OwnedValue::Ansi(v.to_vec()),
            Value::Utf8(v) => OwnedValue::Utf8(v.to_vec()),
            Value::Binary(v) => OwnedValue::Binary(v.to_vec()),
            Value::Ipv4(v) => OwnedValue::Ipv4(v),
            Value::Ipv6(v) => OwnedValue::Ipv6(v),
            Value::Struct(v) => OwnedValue::Struct(OwnedValue::collect(v.fields())),
            Value::Array(v) => OwnedValue::Array(v.iter().map(OwnedValue::from).collect()),
        }
    }
}

macro_rules! from {
    ($($ty:ty => $variant:ident,)*) => {
        $(impl From<$ty> for OwnedValue {
            fn from(v: $ty) -> Self {
                OwnedValue::$variant(v.into())
            }
        })*
    };
}

from! {
    bool => Bool,
    u8 => UInt, u16 => UInt, u32 => UInt, u64 => UInt,
    i8 => Int, i16 => Int, i32 => Int, i64 => Int,
    f32 => Float, f64 => Double,
    Guid => Guid,
    String => Text, &str => Text,
    Vec<u8> => Binary, &[u8] => Binary,
    Vec<u16> => Utf16,
    Ipv4Addr => Ipv4, Ipv6Addr => Ipv6,
    Vec<OwnedValue> => Array,
}
