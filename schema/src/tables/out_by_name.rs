//! Out-types by the names of fields, where the sources of a table do not have them.
//!
//! The tables of Windows' providers have most fields without out-type. Names that mean one thing
//! wherever a manifest with out-types has them stand in for it.

use crate::model::{Field, InType, Length, OutType};

/// Sets the out-type of a field whose name says it, and that has none.
pub(super) fn complete(field: &mut Field) {
    if field.map.is_some() || !matches!(field.out, OutType::Default | OutType::Hex) {
        return;
    }
    let found = match (field.in_type(), field.length) {
        // What is no socket address is printed as bytes.
        (Some(InType::Binary), Length::Field(_)) if is_address(&field.name) => {
            Some(OutType::SocketAddress)
        }
        (Some(InType::UInt32 | InType::Int32), _) => status(&field.name, field.out == OutType::Hex),
        (Some(InType::HexInt32), _) => status(&field.name, true),
        _ => None,
    };
    if let Some(out) = found {
        field.out = out;
    }
}

fn is_address(name: &str) -> bool {
    ends_with(name, "Addr") || ends_with(name, "Address")
}

/// The kind of status codes that a field has.
fn status(name: &str, is_hexadecimal: bool) -> Option<OutType> {
    if ends_with(name, "NtStatus") {
        Some(OutType::NtStatus)
    } else if ends_with(name, "HResult") || name.eq_ignore_ascii_case("hr") {
        Some(OutType::HResult)
    } else if ["Win32Error", "Win32ErrorCode", "Win32Status"].iter().any(|end| ends_with(name, end))
    {
        Some(OutType::Win32Error)
    } else {
        // Other fields that are called so count something, or hold an error of Win32.
        (is_hexadecimal && name.eq_ignore_ascii_case("Status")).then_some(OutType::NtStatus)
    }
}

/// Whether a name ends so; case does not matter.
fn ends_with(name: &str, end: &str) -> bool {
    let at = name.len().checked_sub(end.len());
    at.and_then(|at| name.get(at..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FieldRef;

    fn out(name: &'static str, ty: InType) -> OutType {
        let mut field = Field::new(name, ty);
        if ty == InType::Binary {
            field.length = Length::Field(FieldRef::Here(0));
        }
        complete(&mut field);
        field.out
    }

    #[test]
    fn names_say_what_values_are() {
        assert_eq!(out("LocalAddress", InType::Binary), OutType::SocketAddress);
        assert_eq!(out("RemoteSockAddr", InType::Binary), OutType::SocketAddress);
        assert_eq!(out("Data", InType::Binary), OutType::Default);
        assert_eq!(out("fid_NtStatus", InType::UInt32), OutType::NtStatus);
        assert_eq!(out("HRESULT", InType::Int32), OutType::HResult);
        assert_eq!(out("hr", InType::HexInt32), OutType::HResult);
        assert_eq!(out("Win32Error", InType::UInt32), OutType::Win32Error);
        assert_eq!(out("Status", InType::HexInt32), OutType::NtStatus);
        assert_eq!(out("Status", InType::UInt32), OutType::Default);
        assert_eq!(out("SentStatus", InType::UInt8), OutType::Default);
    }

    #[test]
    fn what_the_table_says_counts() {
        let mut field = Field::new("hr", InType::UInt32).with_out(OutType::Unsigned);
        complete(&mut field);
        assert_eq!(field.out, OutType::Unsigned);
        let mut fixed = Field::new("PeerAddr", InType::Binary).with_length(Length::Fixed(6));
        complete(&mut fixed);
        assert_eq!(fixed.out, OutType::Default);
    }
}
