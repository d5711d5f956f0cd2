//! Values of the fields that count others.

use super::OwnedValue;
use crate::model::{Count, Field, FieldKind, FieldRef, InType, Length};
use std::collections::BTreeMap;

/// The numbers that the counting fields of one list must hold, by index.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<usize, usize>);

impl Counts {
    /// From the counted values. If one field counts several others, it has the highest number, and
    /// the shorter ones are padded or refused.
    ///
    /// `top` is `None` for the top level itself, which can also count the members of structs.
    pub(super) fn gather(fields: &[Field], values: &[OwnedValue], top: Option<&Counts>) -> Self {
        let mut counts = Counts::default();
        // Most lists have nothing that is counted.
        if !fields.iter().any(may_be_counted) {
            return counts;
        }
        counts.visit(fields, values, top.is_none(), true);
        counts
    }

    /// The number for the field at this index, if it counts anything.
    pub(super) fn of(&self, index: usize) -> Option<usize> {
        self.0.get(&index).copied()
    }

    fn need(&mut self, index: u16, number: usize) {
        let entry = self.0.entry(usize::from(index)).or_insert(0);
        *entry = (*entry).max(number);
    }

    /// Adds the numbers of a list of fields. `is_top` is whether the counts of the top level are
    /// gathered, and `is_here` whether the list is the one whose counts are gathered, not the
    /// members of a struct in it.
    fn visit(&mut self, fields: &[Field], values: &[OwnedValue], is_top: bool, is_here: bool) {
        for (field, value) in fields.iter().zip(values) {
            if let Count::Field(reference) = field.count
                && let Some(index) = counting_index(reference, is_top, is_here)
            {
                self.need(index, value.elements().len());
            }
            let elements = match field.count {
                Count::One => std::slice::from_ref(value),
                _ => value.elements(),
            };
            if let Length::Field(reference) = field.length
                && let Some(index) = counting_index(reference, is_top, is_here)
            {
                // Also without elements: then the number is 0.
                self.need(index, 0);
                for element in elements {
                    self.need(index, units(field, element));
                }
            }
            if let FieldKind::Struct(members) = &field.kind
                && is_top
            {
                for element in elements {
                    if let OwnedValue::Struct(values) = element {
                        self.visit(members, values, true, false);
                    }
                }
            }
        }
    }
}

/// Whether a field, or a member of it, can be counted by another field.
fn may_be_counted(field: &Field) -> bool {
    matches!(field.count, Count::Field(_))
        || matches!(field.length, Length::Field(_))
        || matches!(field.kind, FieldKind::Struct(_))
}

/// The index of a counting field, if it is in the list whose counts are gathered.
fn counting_index(reference: FieldRef, is_top: bool, is_here: bool) -> Option<u16> {
    match reference {
        FieldRef::Here(index) if is_here => Some(index),
        FieldRef::Top(index) if is_top => Some(index),
        FieldRef::Here(_) | FieldRef::Top(_) => None,
    }
}

/// The length of a text or binary value, in the units of its field.
fn units(field: &Field, value: &OwnedValue) -> usize {
    let ty = field.in_type().unwrap_or(InType::Null);
    let unit = if ty == InType::Utf16 { 2 } else { 1 };
    value.text_bytes(ty).map_or(0, |bytes| bytes.len() / unit)
}
