//! The codes of types.

use crate::model::{InType, Length, OutType};

/// A struct; the out-type byte is the number of its members.
pub(super) const STRUCT: u8 = 0x18;
/// Text after its length.
const COUNTED_UTF16: u8 = 0x16;
const COUNTED_ANSI: u8 = 0x17;
/// Bytes after their length, like [`InType::Binary`]; the two differ in how old consumers took
/// them.
const COUNTED_BINARY: u8 = 0x19;

const IN_TYPES: &[(u8, InType)] = &[
    (0x00, InType::Null),
    (0x01, InType::Utf16),
    (0x02, InType::Ansi),
    (0x03, InType::Int8),
    (0x04, InType::UInt8),
    (0x05, InType::Int16),
    (0x06, InType::UInt16),
    (0x07, InType::Int32),
    (0x08, InType::UInt32),
    (0x09, InType::Int64),
    (0x0a, InType::UInt64),
    (0x0b, InType::Float),
    (0x0c, InType::Double),
    (0x0d, InType::Boolean),
    (0x0e, InType::Binary),
    (0x0f, InType::Guid),
    (0x10, InType::Pointer),
    (0x11, InType::FileTime),
    (0x12, InType::SystemTime),
    (0x13, InType::Sid),
    (0x14, InType::HexInt32),
    (0x15, InType::HexInt64),
];

const OUT_TYPES: &[(u8, OutType)] = &[
    (0x00, OutType::Default),
    (0x01, OutType::NoPrint),
    (0x02, OutType::String),
    (0x03, OutType::Boolean),
    (0x04, OutType::Hex),
    (0x05, OutType::Pid),
    (0x06, OutType::Tid),
    (0x07, OutType::Port),
    (0x08, OutType::Ipv4),
    (0x09, OutType::Ipv6),
    (0x0a, OutType::SocketAddress),
    (0x0b, OutType::Xml),
    (0x0c, OutType::Json),
    (0x0d, OutType::Win32Error),
    (0x0e, OutType::NtStatus),
    (0x0f, OutType::HResult),
    (0x10, OutType::DateTime),
    (0x11, OutType::Signed),
    (0x12, OutType::Unsigned),
    (0x23, OutType::Utf8),
    (0x24, OutType::Pkcs7),
    (0x25, OutType::CodePointer),
    (0x26, OutType::DateTimeUtc),
];

/// The in-type and length of a code.
pub(super) fn in_type(code: u8) -> Option<(InType, Length)> {
    match code {
        COUNTED_UTF16 => Some((InType::Utf16, Length::U16)),
        COUNTED_ANSI => Some((InType::Ansi, Length::U16)),
        COUNTED_BINARY => Some((InType::Binary, Length::U16)),
        _ => {
            let ty = IN_TYPES.iter().find(|(c, _)| *c == code)?.1;
            Some((ty, ty.default_length()))
        }
    }
}

/// The code of an in-type with a length, where TraceLogging has one.
pub(super) fn in_code(ty: InType, length: Length) -> Option<u8> {
    match (ty, length) {
        (InType::Utf16, Length::U16) => Some(COUNTED_UTF16),
        (InType::Ansi, Length::U16) => Some(COUNTED_ANSI),
        _ if length == ty.default_length() => {
            IN_TYPES.iter().find(|(_, t)| *t == ty).map(|(c, _)| *c)
        }
        _ => None,
    }
}

/// The out-type of a code; what is not known shows as the in-type suggests.
pub(super) fn out_type(code: u8) -> OutType {
    OUT_TYPES.iter().find(|(c, _)| *c == code).map_or(OutType::Default, |(_, t)| *t)
}

/// The code of an out-type.
pub(super) fn out_code(out: OutType) -> u8 {
    OUT_TYPES.iter().find(|(_, t)| *t == out).map_or(0, |(c, _)| *c)
}
