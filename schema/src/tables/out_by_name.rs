//! Out-types by the names of fields, for tables whose sources do not have out-types.
//!
//! The tables of Windows' providers have no out-type for most fields. Some names have the same
//! out-type in every manifest that states it; fields with these names get that out-type.

use crate::model::{Field, InType, Length, OutType, ends_with};

/// Sets the out-type of a field that has none, if its name implies one.
pub(super) fn complete(field: &mut Field) {
    if field.map.is_some() || !matches!(field.out, OutType::Default | OutType::Hex) {
        return;
    }
    let out = match (field.in_type(), field.length) {
        // A value that is not a valid socket address is printed as bytes.
        (Some(InType::Binary), Length::Field(_)) if is_address(&field.name) => {
            Some(OutType::SocketAddress)
        }
        (Some(InType::UInt32 | InType::Int32), _) => status(&field.name, field.out == OutType::Hex),
        (Some(InType::HexInt32), _) => status(&field.name, true),
        _ => None,
    };
    if let Some(out) = out {
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
    } else if ["Win32Error", "Win32ErrorCode", "Win32Status"]
        .iter()
        .any(|end| ends_with(name, end))
    {
        Some(OutType::Win32Error)
    } else {
        // A decimal field with this name is a number of something or an error of Win32.
        let is_nt_status = is_hexadecimal && name.eq_ignore_ascii_case("Status");
        if is_nt_status {
            Some(OutType::NtStatus)
        } else {
            None
        }
    }
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
        assert_eq!(
            out("RemoteSockAddr", InType::Binary),
            OutType::SocketAddress
        );
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
