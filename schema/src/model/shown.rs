//! How the numbers of a field are shown, by its types and its name.

use super::{Field, InType, MapKind, OutType};

/// What the numbers of a field identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A process.
    Process,
    /// A thread.
    Thread,
    /// What is at an address.
    Address,
}

/// How the numbers of a field are shown. It is determined once for each schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Addresses, masks, status codes and ids of 64 bits are always hexadecimal.
    pub hexadecimal: bool,
    /// Whether they are status codes.
    pub status: bool,
    /// Whether they are times: intervals of 100 ns since 1601.
    pub time: bool,
    pub meaning: Option<Meaning>,
}

impl Shown {
    pub fn of(field: &Field) -> Self {
        let status = field.is_status();
        let time = is_time(field);
        let hexadecimal = field.is_hexadecimal();
        Shown {
            hexadecimal,
            status,
            time,
            meaning: field.meaning(),
        }
    }
}

impl Field {
    /// Whether the numbers of the field are status codes.
    #[must_use]
    pub fn is_status(&self) -> bool {
        matches!(
            self.out,
            OutType::Win32Error | OutType::NtStatus | OutType::HResult
        )
    }

    /// Whether the numbers of the field are hexadecimal: addresses, masks, status codes, and ids
    /// of 64 bits. Such numbers have no sign.
    #[must_use]
    pub fn is_hexadecimal(&self) -> bool {
        use InType::{HexInt32, HexInt64, UInt8, UInt16, UInt32, UInt64};
        if let Some(map) = &self.map
            && map.kind() == MapKind::Bits
        {
            return true;
        }
        match (self.out, self.in_type()) {
            (OutType::Hex | OutType::CodePointer, _) => true,
            _ if self.is_status() => true,
            (_, Some(HexInt32 | HexInt64)) => true,
            (_, Some(UInt64)) => is_identifier(&self.name) || is_mask(&self.name),
            (_, Some(UInt8 | UInt16 | UInt32)) => is_mask(&self.name),
            _ => false,
        }
    }

    /// What the numbers of the field identify, by its type or its name.
    #[must_use]
    pub fn meaning(&self) -> Option<Meaning> {
        match (self.out, self.in_type()?) {
            (OutType::Pid, _) => Some(Meaning::Process),
            (OutType::Tid, _) => Some(Meaning::Thread),
            (OutType::CodePointer, _) | (_, InType::Pointer) => Some(Meaning::Address),
            (_, InType::UInt64 | InType::HexInt64) => {
                let ends = ["Address", "InstructionPointer", "Stack"];
                let is_address = ends.iter().any(|end| ends_with(&self.name, end));
                if is_address {
                    Some(Meaning::Address)
                } else {
                    None
                }
            }
            (_, InType::UInt32 | InType::Int32 | InType::HexInt32) => id_of_name(&self.name),
            _ => None,
        }
    }
}

/// What numbers of 32 bits identify, by the name of their field.
fn id_of_name(name: &str) -> Option<Meaning> {
    // Most names end otherwise, which their last letter says.
    if !matches!(name.bytes().next_back(), Some(b'd' | b'D')) {
        None
    } else if ends_with(name, "ProcessId") || name.eq_ignore_ascii_case("pid") || name == "ParentId"
    {
        Some(Meaning::Process)
    } else if ends_with(name, "ThreadId") || name.eq_ignore_ascii_case("tid") {
        Some(Meaning::Thread)
    } else {
        None
    }
}

/// Whether a name ends like this (case does not matter).
pub(crate) fn ends_with(name: &str, end: &str) -> bool {
    let Some(offset) = name.len().checked_sub(end.len()) else {
        return false;
    };
    name.get(offset..)
        .is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

/// Whether the numbers of a field are times: intervals of 100 ns since 1601.
pub(crate) fn is_time(field: &Field) -> bool {
    matches!(field.out, OutType::DateTime | OutType::DateTimeUtc)
        && matches!(field.in_type(), Some(InType::Int64 | InType::UInt64))
}

/// Whether a number of 64 bits with this name identifies something: by an id or an address.
fn is_identifier(name: &str) -> bool {
    // Most names end otherwise, which their last letter says.
    let ends: &[&str] = match name.bytes().next_back() {
        Some(b'D' | b'd') => &["ID", "Id"],
        Some(b's') => &["Address"],
        Some(b'r') => &["Addr", "Pointer", "Ptr"],
        Some(b'e') => &["Base", "Handle"],
        Some(b't') => &["Object"],
        Some(b'y') => &["Key"],
        _ => return false,
    };
    ends.iter().any(|end| name.ends_with(end))
}

/// Whether a number with this name has bits of its own.
fn is_mask(name: &str) -> bool {
    // Most names end otherwise, which their last letters say.
    let Some(last) = name.as_bytes().last_chunk::<4>() else {
        return false;
    };
    match &last.map(|letter| letter.to_ascii_lowercase()) {
        b"lags" => ends_with(name, "flags"),
        b"ords" => ends_with(name, "keywords"),
        b"mask" => true,
        b"word" => ends_with(name, "keyword"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meaning_is_that_of_the_type_or_the_name() {
        let meaning = |name: &'static str, ty| Field::new(name, ty).meaning();
        assert_eq!(
            meaning("ParentProcessID", InType::UInt32),
            Some(Meaning::Process)
        );
        assert_eq!(
            meaning("NewThreadId", InType::UInt32),
            Some(Meaning::Thread)
        );
        assert_eq!(meaning("TThreadId", InType::UInt32), Some(Meaning::Thread));
        assert_eq!(
            meaning("InstructionPointer", InType::Pointer),
            Some(Meaning::Address)
        );
        assert_eq!(
            meaning("MethodStartAddress", InType::UInt64),
            Some(Meaning::Address)
        );
        assert_eq!(meaning("MethodID", InType::UInt64), None);
        assert_eq!(meaning("Count", InType::UInt32), None);
        assert_eq!(meaning("ProcessId", InType::Utf16), None);
    }
}
