//! Fields that count the elements or the units of others: their values.

use etl_schema::encode::OwnedValue;
use etl_schema::{Count, Field, FieldKind, FieldRef, InType, Length};

/// Sets the counts and lengths that are not given, also in structures, so that the truth has what
/// the encoder writes.
pub(crate) fn fill(fields: &[Field], values: &mut [OwnedValue]) {
    let mut counts: Vec<(usize, usize)> = Vec::new();
    for (field, value) in fields.iter().zip(values.iter_mut()) {
        let one = field.count == Count::One;
        let elements = match value {
            OwnedValue::Array(elements) if !one => elements.as_mut_slice(),
            value if one => std::slice::from_mut(value),
            _ => &mut [],
        };
        if let FieldKind::Struct(members) = &field.kind {
            for element in elements.iter_mut() {
                if let OwnedValue::Struct(inner) = element {
                    fill(members, inner);
                }
            }
        }
        if let Count::Field(FieldRef::Here(at)) = field.count {
            counts.push((at.into(), elements.len()));
        }
        if let Length::Field(FieldRef::Here(at)) = field.length {
            let longest = elements.iter().map(|value| units(field, value)).max();
            counts.push((at.into(), longest.unwrap_or(0)));
        }
    }
    for (at, count) in counts {
        let Some(slot) = values.get_mut(at) else {
            continue;
        };
        let stated = if let OwnedValue::UInt(stated) = slot {
            *stated
        } else {
            0
        };
        if matches!(slot, OwnedValue::Auto | OwnedValue::UInt(_)) {
            *slot = OwnedValue::UInt(stated.max(count as u64));
        }
    }
}

/// The length of a text or of bytes, in the units of its type.
fn units(field: &Field, value: &OwnedValue) -> usize {
    match value {
        OwnedValue::Text(text) if field.in_type() == Some(InType::Utf16) => {
            text.encode_utf16().count()
        }
        OwnedValue::Text(text) => text.len(),
        OwnedValue::Binary(bytes) => bytes.len(),
        OwnedValue::Ipv6(_) => 16,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_counts_elements_units_and_members() {
        let here = FieldRef::Here(0);
        let inner = vec![
            Field::new("Length", InType::UInt8),
            Field::new("Text", InType::Utf16).with_length(Length::Field(here)),
        ];
        let fields = [
            Field::new("Count", InType::UInt16),
            Field::structure("Rows", inner).with_count(Count::Field(here)),
        ];
        let row = |text: &str| OwnedValue::Struct(vec![OwnedValue::Auto, text.into()]);
        let filled =
            |n: u64, text: &str| OwnedValue::Struct(vec![OwnedValue::UInt(n), text.into()]);
        let mut values = vec![
            OwnedValue::Auto,
            OwnedValue::Array(vec![row("ab"), row("")]),
        ];
        fill(&fields, &mut values);
        let rows = OwnedValue::Array(vec![filled(2, "ab"), filled(0, "")]);
        assert_eq!(values, [OwnedValue::UInt(2), rows]);
        let mut none = vec![OwnedValue::Auto; 2];
        fill(&fields, &mut none);
        assert_eq!(none, [OwnedValue::UInt(0), OwnedValue::Auto]);
    }
}
