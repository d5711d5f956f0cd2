//! Numbers and names of in-types and out-types in TDH and in manifests.

use crate::model::{InType, Length, OutType};

/// In-type and length of a TDH number. For text and binary it is the length by default.
pub(super) fn in_type(number: u16) -> Option<(InType, Length, OutType)> {
    let (ty, length) = match number {
        14 => (InType::Binary, Length::Rest),
        22 | 300 => (InType::Utf16, Length::U16),
        23 | 301 => (InType::Ansi, Length::U16),
        25 => (InType::Binary, Length::U16),
        302 => (InType::Utf16, Length::U16BigEndian),
        303 => (InType::Ansi, Length::U16BigEndian),
        304 => (InType::Utf16, Length::Rest),
        305 => (InType::Ansi, Length::Rest),
        306 => return Some((InType::UInt16, Length::Natural, OutType::String)),
        307 => return Some((InType::UInt8, Length::Natural, OutType::String)),
        308 => (InType::SizeT, Length::Natural),
        309 => (InType::Binary, Length::U32),
        310 => (InType::WbemSid, Length::Natural),
        _ => InType::from_number(number).map(|ty| (ty, ty.default_length()))?,
    };
    Some((ty, length, OutType::Default))
}

/// The out-type of a TDH number.
pub(super) fn out_type(number: u16) -> OutType {
    match number {
        1 | 300 => OutType::String,
        2 | 26 | 27 | 33 => OutType::DateTime,
        3 | 5 | 7 | 9 => OutType::Signed,
        4 | 6 | 8 | 10 => OutType::Unsigned,
        13 => OutType::Boolean,
        15..=19 => OutType::Hex,
        20 => OutType::Pid,
        21 => OutType::Tid,
        22 => OutType::Port,
        23 => OutType::Ipv4,
        24 => OutType::Ipv6,
        25 => OutType::SocketAddress,
        28 => OutType::Xml,
        29 | 30 => OutType::Win32Error,
        31 => OutType::NtStatus,
        32 => OutType::HResult,
        34 => OutType::Json,
        35 => OutType::Utf8,
        36 => OutType::Pkcs7,
        37 => OutType::CodePointer,
        38 => OutType::DateTimeUtc,
        301 => OutType::NoPrint,
        _ => OutType::Default,
    }
}

/// The TDH number of a manifest's `inType`, with or without its prefix.
pub(super) fn in_number(name: &str) -> Option<u16> {
    let name = name.rsplit_once(':').map_or(name, |(_, n)| n);
    Some(match name {
        "CountedUnicodeString" => 22,
        "CountedAnsiString" => 23,
        "CountedBinary" => 25,
        "CountedString" => 300,
        "ReversedCountedString" => 302,
        "ReversedCountedAnsiString" => 303,
        "NonNullTerminatedString" => 304,
        "NonNullTerminatedAnsiString" => 305,
        "UnicodeChar" => 306,
        "AnsiChar" => 307,
        "SizeT" => 308,
        "HexDump" => 309,
        "WBEMSid" => 310,
        _ => {
            let mut numbers = (0..).map_while(|n| Some((n, InType::from_number(n)?)));
            numbers
                .find(|(_, ty)| ty.name().eq_ignore_ascii_case(name))?
                .0
        }
    })
}

/// The out-type of a manifest's `outType`, with or without its prefix.
pub(super) fn out_by_name(name: &str) -> OutType {
    let name = name.rsplit_once(':').map_or(name, |(_, n)| n);
    match name {
        "CIMDateTime" | "ETWTIME" | "DateTimeCultureInsensitive" => OutType::DateTime,
        "byte" | "short" | "int" | "long" => OutType::Signed,
        "unsignedByte" | "unsignedShort" | "unsignedInt" | "unsignedLong" => OutType::Unsigned,
        "hexBinary" | "HexInt8" | "HexInt16" | "HexInt32" | "HexInt64" => OutType::Hex,
        "ErrorCode" => OutType::Win32Error,
        "Pkcs7WithTypeInfo" => OutType::Pkcs7,
        _ => OutType::from_name(name).unwrap_or(OutType::Default),
    }
}
