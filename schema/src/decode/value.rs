//! Decoded values.

use super::plan::Shape;
use super::text::Utf16;
use super::views::{ArrayView, StructView};
use etl_format::Guid;
use etl_format::cursor::Bytes;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A value of a field, borrowed from the payload.
///
/// Integers of every width are [`Value::Int`] or [`Value::UInt`]; the field has the width.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// No value: an in-type of no bytes, or a kernel SID field without a SID.
    Null,
    /// A truth value of 1, 2 or 4 bytes; nonzero is true.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer; ports are in host order.
    UInt(u64),
    /// IEEE 754 single.
    Float(f32),
    /// IEEE 754 double.
    Double(f64),
    /// One character: a UTF-16 code unit, or a byte.
    Char(u16),
    /// A GUID.
    Guid(Guid),
    /// An address, as wide as the record's pointers.
    Pointer(u64),
    /// 100 ns since 1601-01-01 UTC.
    FileTime(u64),
    /// A broken-down time.
    SystemTime(SystemTime),
    /// A SID as stored.
    Sid(Sid<'a>),
    /// UTF-16 text.
    Utf16(Utf16<'a>),
    /// Eight-bit text in a code page that the trace does not name.
    Ansi(&'a [u8]),
    /// Text that is said to be UTF-8.
    Utf8(&'a [u8]),
    /// Bytes.
    Binary(&'a [u8]),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A struct's members.
    Struct(StructView<'a>),
    /// An array's elements.
    Array(ArrayView<'a>),
}

/// A `SYSTEMTIME`: year, month, day of week, day, hour, minute, second, millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SystemTime(pub [u16; 8]);

/// A SID as stored: revision, number of sub-authorities, authority (6 bytes, big-endian),
/// sub-authorities (`u32` each).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sid<'a>(pub &'a [u8]);

impl<'a> Sid<'a> {
    /// The SID at the start of `bytes`, cut to its own length.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let subs = usize::from(bytes.u8_at(1)?);
        bytes.get(..8 + subs * 4).map(Sid)
    }
}

impl<'a> Value<'a> {
    /// The value as an unsigned number: integers that are not negative, pointers, truth values,
    /// times and characters.
    #[must_use]
    #[inline]
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::UInt(v) | Value::Pointer(v) | Value::FileTime(v) => Some(v),
            Value::Int(v) => u64::try_from(v).ok(),
            Value::Bool(v) => Some(u64::from(v)),
            Value::Char(v) => Some(u64::from(v)),
            Value::Ipv4(v) => Some(u64::from(u32::from_le_bytes(v.octets()))),
            _ => None,
        }
    }

    /// The value as a signed number, if it is an integer that fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::Int(v) => Some(v),
            _ => self.as_u64().and_then(|v| i64::try_from(v).ok()),
        }
    }

    /// The bits of an integer, for maps: negative numbers as two's complement of `width` bytes.
    #[must_use]
    pub fn bits(&self, width: usize) -> Option<u64> {
        let mask = match width {
            1 => 0xff,
            2 => 0xffff,
            4 => 0xffff_ffff,
            _ => u64::MAX,
        };
        match *self {
            Value::Int(v) => Some(v as u64 & mask),
            _ => self.as_u64(),
        }
    }

    /// UTF-16 text.
    #[must_use]
    pub fn as_utf16(&self) -> Option<Utf16<'a>> {
        match *self {
            Value::Utf16(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes of eight-bit text, binaries and SIDs.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match *self {
            Value::Ansi(v) | Value::Utf8(v) | Value::Binary(v) | Value::Sid(Sid(v)) => Some(v),
            _ => None,
        }
    }
}

/// Shapes of fixed size: bytes, and the value.
macro_rules! scalars {
    ($($shape:ident: $size:literal, |$data:ident| $value:expr;)*) => {
        impl Shape {
            /// The size of values that always have the same one.
            pub(super) const fn size(self) -> Option<usize> {
                match self {
                    $(Shape::$shape => Some($size),)*
                    _ => None,
                }
            }

            /// Reads a value of fixed size from the start of `data`; `None` when it does not fit or
            /// the shape has no fixed size.
            #[inline]
            pub(super) fn scalar<'a>(self, data: &'a [u8]) -> Option<Value<'a>> {
                Some(match self {
                    $(Shape::$shape => { let $data = data; $value })*
                    _ => return None,
                })
            }
        }
    };
}

scalars! {
    Null: 0, |_data| Value::Null;
    I8: 1, |data| Value::Int(i64::from(data.u8_at(0)? as i8));
    U8: 1, |data| Value::UInt(u64::from(data.u8_at(0)?));
    I16: 2, |data| Value::Int(i64::from(data.u16_at(0)? as i16));
    U16: 2, |data| Value::UInt(u64::from(data.u16_at(0)?));
    I32: 4, |data| Value::Int(i64::from(data.u32_at(0)? as i32));
    U32: 4, |data| Value::UInt(u64::from(data.u32_at(0)?));
    I64: 8, |data| Value::Int(data.i64_at(0)?);
    U64: 8, |data| Value::UInt(data.u64_at(0)?);
    F32: 4, |data| Value::Float(f32::from_bits(data.u32_at(0)?));
    F64: 8, |data| Value::Double(f64::from_bits(data.u64_at(0)?));
    Bool8: 1, |data| Value::Bool(data.u8_at(0)? != 0);
    Bool16: 2, |data| Value::Bool(data.u16_at(0)? != 0);
    Bool32: 4, |data| Value::Bool(data.u32_at(0)? != 0);
    Char8: 1, |data| Value::Char(u16::from(data.u8_at(0)?));
    Char16: 2, |data| Value::Char(data.u16_at(0)?);
    Port: 2, |data| Value::UInt(u64::from(data.u16_at(0)?.swap_bytes()));
    Guid: 16, |data| Value::Guid(data.guid_at(0)?);
    Pointer32: 4, |data| Value::Pointer(u64::from(data.u32_at(0)?));
    Pointer64: 8, |data| Value::Pointer(data.u64_at(0)?);
    FileTime: 8, |data| Value::FileTime(data.u64_at(0)?);
    SystemTime: 16, |data| {
        let bytes: [u8; 16] = data.array(0)?;
        let mut parts = [0; 8];
        for (part, pair) in parts.iter_mut().zip(bytes.chunks_exact(2)) {
            *part = pair.u16_at(0)?;
        }
        Value::SystemTime(SystemTime(parts))
    };
    Ipv4: 4, |data| Value::Ipv4(Ipv4Addr::from(data.array::<4>(0)?));
}
