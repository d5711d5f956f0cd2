//! In-types and out-types: how values lie in the payload, and how they are shown.

use super::Length;
use etl_format::constants::PointerSize;

macro_rules! named_types {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
        }

        impl $name {
            /// Every type, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The name that manifests and tables use (without a `win:` or `xs:` prefix).
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The type with this name, exact case, with or without a prefix such as `win:`.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                let name = name.rsplit_once(':').map_or(name, |(_, n)| n);
                Self::ALL.iter().copied().find(|t| t.name() == name)
            }
        }
    };
}

named_types! {
    /// How one value lies in the payload. Everything is little-endian unless it says otherwise.
    /// TDH and TraceLogging number the types in this order, those up to `HexInt64` from 0.
    InType {
        /// Nothing; takes no bytes.
        Null = "Null",
        /// UTF-16 text; see [`Length`] for where it ends.
        Utf16 = "UnicodeString",
        /// Eight-bit text: ANSI, or UTF-8 if the out-type says so; see [`Length`].
        Ansi = "AnsiString",
        /// Signed, 1 byte.
        Int8 = "Int8",
        /// Unsigned, 1 byte.
        UInt8 = "UInt8",
        /// Signed, 2 bytes.
        Int16 = "Int16",
        /// Unsigned, 2 bytes.
        UInt16 = "UInt16",
        /// Signed, 4 bytes.
        Int32 = "Int32",
        /// Unsigned, 4 bytes.
        UInt32 = "UInt32",
        /// Signed, 8 bytes.
        Int64 = "Int64",
        /// Unsigned, 8 bytes.
        UInt64 = "UInt64",
        /// IEEE 754, 4 bytes.
        Float = "Float",
        /// IEEE 754, 8 bytes.
        Double = "Double",
        /// A 4-byte BOOL; nonzero is true.
        Boolean = "Boolean",
        /// Bytes; see [`Length`] for how many.
        Binary = "Binary",
        /// A GUID as stored, 16 bytes.
        Guid = "GUID",
        /// As wide as the record's pointers; an address.
        Pointer = "Pointer",
        /// 100 ns since 1601-01-01 UTC, 8 bytes.
        FileTime = "FILETIME",
        /// Eight `u16`: year, month, day of week, day, hour, minute, second, millisecond.
        SystemTime = "SYSTEMTIME",
        /// A SID: revision, number of sub-authorities, 6 bytes of authority, then 4 bytes each.
        Sid = "SID",
        /// Unsigned, 4 bytes, shown in hexadecimal.
        HexInt32 = "HexInt32",
        /// Unsigned, 8 bytes, shown in hexadecimal.
        HexInt64 = "HexInt64",
        /// As wide as the record's pointers; a size.
        SizeT = "SizeT",
        /// The kernel's SID field: a zero `u32` and no more, or a `TOKEN_USER` of two pointers and
        /// then a SID.
        WbemSid = "WBEMSID",
    }
}

impl InType {
    /// The type with this number in TDH and in TraceLogging, where both have the same.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        let ty = Self::ALL.get(usize::from(number)).copied();
        ty.filter(|ty| !matches!(ty, InType::SizeT | InType::WbemSid))
    }

    /// The inverse of [`InType::from_number`].
    #[must_use]
    pub fn number(self) -> Option<u16> {
        let number = self as u16;
        Self::from_number(number).map(|_| number)
    }

    /// The length of values of the type, if no other length is stated.
    #[must_use]
    pub const fn default_length(self) -> Length {
        match self {
            InType::Utf16 | InType::Ansi => Length::NulTerminated,
            InType::Binary => Length::U16,
            _ => Length::Natural,
        }
    }

    /// Bytes of a number of this type; 4 for types that are not numbers.
    #[inline]
    pub(crate) const fn width(self, pointers: PointerSize) -> usize {
        match self {
            InType::Int8 | InType::UInt8 => 1,
            InType::Int16 | InType::UInt16 => 2,
            InType::Int64 | InType::UInt64 | InType::HexInt64 => 8,
            InType::FileTime | InType::Double => 8,
            InType::Pointer | InType::SizeT => pointers.bytes(),
            _ => 4,
        }
    }

    /// Whether values are integers of any width and sign (pointers included): such a field can
    /// count others and can have a map.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            InType::Int8
                | InType::UInt8
                | InType::Int16
                | InType::UInt16
                | InType::Int32
                | InType::UInt32
                | InType::Int64
                | InType::UInt64
                | InType::Pointer
                | InType::SizeT
                | InType::HexInt32
                | InType::HexInt64
                | InType::Boolean
        )
    }
}

named_types! {
    /// How a value is shown. TraceLogging numbers the types in this order.
    OutType {
        /// As the in-type suggests.
        Default = "Default",
        /// Not at all.
        NoPrint = "NoPrint",
        /// As text (also for integers: one character).
        String = "string",
        /// As `true` or `false`.
        Boolean = "boolean",
        /// In hexadecimal.
        Hex = "HexInt",
        /// A process id.
        Pid = "PID",
        /// A thread id.
        Tid = "TID",
        /// An IP port, big-endian in the payload.
        Port = "Port",
        /// An IPv4 address.
        Ipv4 = "IPv4",
        /// An IPv6 address.
        Ipv6 = "IPv6",
        /// A socket address structure.
        SocketAddress = "SocketAddress",
        /// XML text.
        Xml = "Xml",
        /// JSON text.
        Json = "Json",
        /// A Win32 error code.
        Win32Error = "Win32Error",
        /// An NTSTATUS.
        NtStatus = "NTSTATUS",
        /// An HRESULT.
        HResult = "HResult",
        /// A date and time.
        DateTime = "dateTime",
        /// A signed integer.
        Signed = "Signed",
        /// An unsigned integer.
        Unsigned = "Unsigned",
        /// UTF-8 text.
        Utf8 = "Utf8",
        /// A PKCS #7 message.
        Pkcs7 = "Pkcs7",
        /// The address of code.
        CodePointer = "CodePointer",
        /// A date and time in UTC.
        DateTimeUtc = "DateTimeUtc",
    }
}
