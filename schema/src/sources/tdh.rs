//! The in-types and out-types of TDH and of manifests: numbers and names.

use crate::model::{InType, Length, OutType};

/// In-type and length of a TDH number; for text and binary the length where no other is said.
pub(super) fn in_type(number: u16) -> Option<(InType, Length, OutType)> {
    let plain = |ty: InType| Some((ty, ty.default_length(), OutType::Default));
    let sized = |ty, length| Some((ty, length, OutType::Default));
    match number {
        0 => plain(InType::Null),
        1 => plain(InType::Utf16),
        2 => plain(InType::Ansi),
        3 => plain(InType::Int8),
        4 => plain(InType::UInt8),
        5 => plain(InType::Int16),
        6 => plain(InType::UInt16),
        7 => plain(InType::Int32),
        8 => plain(InType::UInt32),
        9 => plain(InType::Int64),
        10 => plain(InType::UInt64),
        11 => plain(InType::Float),
        12 => plain(InType::Double),
        13 => plain(InType::Boolean),
        14 => sized(InType::Binary, Length::Rest),
        15 => plain(InType::Guid),
        16 => plain(InType::Pointer),
        17 => plain(InType::FileTime),
        18 => plain(InType::SystemTime),
        19 => plain(InType::Sid),
        20 => plain(InType::HexInt32),
        21 => plain(InType::HexInt64),
        22 | 300 => sized(InType::Utf16, Length::U16),
        23 | 301 => sized(InType::Ansi, Length::U16),
        25 => sized(InType::Binary, Length::U16),
        302 => sized(InType::Utf16, Length::U16BigEndian),
        303 => sized(InType::Ansi, Length::U16BigEndian),
        304 => sized(InType::Utf16, Length::Rest),
        305 => sized(InType::Ansi, Length::Rest),
        306 => Some((InType::UInt16, Length::Natural, OutType::String)),
        307 => Some((InType::UInt8, Length::Natural, OutType::String)),
        308 => plain(InType::SizeT),
        309 => sized(InType::Binary, Length::U32),
        310 => plain(InType::WbemSid),
        _ => None,
    }
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
            let at = NAMES.iter().position(|n| n.eq_ignore_ascii_case(name))?;
            u16::try_from(at).ok()?
        }
    })
}

const NAMES: &[&str] = &[
    "Null",
    "UnicodeString",
    "AnsiString",
    "Int8",
    "UInt8",
    "Int16",
    "UInt16",
    "Int32",
    "UInt32",
    "Int64",
    "UInt64",
    "Float",
    "Double",
    "Boolean",
    "Binary",
    "GUID",
    "Pointer",
    "FILETIME",
    "SYSTEMTIME",
    "SID",
    "HexInt32",
    "HexInt64",
];

/// The out-type of a manifest's `outType`, with or without its prefix.
pub(super) fn out_by_name(name: &str) -> OutType {
    let name = name.rsplit_once(':').map_or(name, |(_, n)| n);
    match name {
        "string" => OutType::String,
        "dateTime" | "CIMDateTime" | "ETWTIME" | "DateTimeCultureInsensitive" => OutType::DateTime,
        "byte" | "short" | "int" | "long" => OutType::Signed,
        "unsignedByte" | "unsignedShort" | "unsignedInt" | "unsignedLong" => OutType::Unsigned,
        "boolean" => OutType::Boolean,
        "hexBinary" | "HexInt8" | "HexInt16" | "HexInt32" | "HexInt64" => OutType::Hex,
        "PID" => OutType::Pid,
        "TID" => OutType::Tid,
        "Port" => OutType::Port,
        "IPv4" => OutType::Ipv4,
        "IPv6" => OutType::Ipv6,
        "SocketAddress" => OutType::SocketAddress,
        "Xml" => OutType::Xml,
        "ErrorCode" | "Win32Error" => OutType::Win32Error,
        "NTSTATUS" => OutType::NtStatus,
        "HResult" => OutType::HResult,
        "Json" => OutType::Json,
        "Utf8" => OutType::Utf8,
        "Pkcs7WithTypeInfo" => OutType::Pkcs7,
        "CodePointer" => OutType::CodePointer,
        "DateTimeUtc" => OutType::DateTimeUtc,
        "NoPrint" => OutType::NoPrint,
        _ => OutType::Default,
    }
}
