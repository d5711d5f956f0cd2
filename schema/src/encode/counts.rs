//! Values of the fields that count others.

use super::OwnedValue;
use crate::model::{Count, Field, FieldKind, FieldRef, InType, Length};
use std::collections::BTreeMap;

/// The numbers that the counting fields of one list must hold, by index.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<usize, usize>);

impl Counts {
    /// From the values that are counted. Where several fields are counted by one, the longest
    /// wins and the others are padded or refused.
    ///
    /// `top` is `None` for the top level itself, whose counts come from the members of structs too.
    pub(super) fn gather(fields: &[Field], values: &[OwnedValue], top: Option<&Counts>) -> Self {
        let mut counts = Counts::default();
        // Most lists have nothing that is counted.
        let counted = |field: &Field| {
            matches!(field.count, Count::Field(_))
                || matches!(field.length, Length::Field(_))
                || matches!(field.kind, FieldKind::Struct(_))
        };
        if !fields.iter().any(counted) {
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

    fn visit(&mut self, fields: &[Field], values: &[OwnedValue], is_top: bool, own: bool) {
        let relevant = |reference: FieldRef| match reference {
            FieldRef::Here(index) => own.then_some(index),
            FieldRef::Top(index) => is_top.then_some(index),
        };
        for (field, value) in fields.iter().zip(values) {
            if let Count::Field(reference) = field.count
                && let Some(index) = relevant(reference)
            {
                self.need(index, value.elements().len());
            }
            let one = std::slice::from_ref(value);
            let elements = if field.count == Count::One { one } else { value.elements() };
            if let Length::Field(reference) = field.length
                && let Some(index) = relevant(reference)
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

fn units(field: &Field, value: &OwnedValue) -> usize {
    let ty = field.in_type().unwrap_or(InType::Null);
    let unit = if ty == InType::Utf16 { 2 } else { 1 };
    value.text_bytes(ty).map_or(0, |bytes| bytes.len() / unit)
}
