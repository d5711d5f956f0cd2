//! Codes of TraceLogging types.

use crate::model::{InType, Length, OutType};

/// A struct; the out-type byte is the number of its members.
pub(super) const STRUCT: u8 = 0x18;
/// Text after its length.
const COUNTED_UTF16: u8 = 0x16;
const COUNTED_ANSI: u8 = 0x17;
/// Bytes after their length, like [`InType::Binary`]. Old consumers read the two differently.
const COUNTED_BINARY: u8 = 0x19;

/// The difference between the code and the position of [`OutType::Utf8`] and later types.
const LATER: u8 = 0x10;

/// The in-type and length of a code.
pub(super) fn in_type(code: u8) -> Option<(InType, Length)> {
    match code {
        COUNTED_UTF16 => Some((InType::Utf16, Length::U16)),
        COUNTED_ANSI => Some((InType::Ansi, Length::U16)),
        COUNTED_BINARY => Some((InType::Binary, Length::U16)),
        _ => {
            let ty = InType::from_number(code.into())?;
            Some((ty, ty.default_length()))
        }
    }
}

/// The code of an in-type with a length, if TraceLogging has one.
pub(super) fn in_code(ty: InType, length: Length) -> Option<u8> {
    match (ty, length) {
        (InType::Utf16, Length::U16) => Some(COUNTED_UTF16),
        (InType::Ansi, Length::U16) => Some(COUNTED_ANSI),
        _ if length == ty.default_length() => u8::try_from(ty.number()?).ok(),
        _ => None,
    }
}

/// The out-type of a code; the default for an unknown code.
pub(super) fn out_type(code: u8) -> OutType {
    let out = OutType::ALL.iter().find(|out| out_code(**out) == code);
    out.copied().unwrap_or(OutType::Default)
}

/// The code of an out-type.
pub(super) const fn out_code(out: OutType) -> u8 {
    let position = out as u8;
    if position < OutType::Utf8 as u8 {
        position
    } else {
        position + LATER
    }
}
