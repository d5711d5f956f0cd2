//! Replacement of values in the decoded fields of a record.

use std::ops::Range;

use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_schema::decode::{Fields, Value};
use etl_schema::store::SchemaStore;
use etl_schema::{Count, EventSchema, Field, FieldRef, Length};

use super::mask::Mask;
use super::matcher::{Encoding, TextMatcher};
use super::patterns;
use super::policy::{Action, Category, Policy, category};
use super::summary::Summary;

/// Scrubs records, one at a time.
#[derive(Clone, Copy)]
pub(super) struct RecordScrubber<'a> {
    pub policy: &'a Policy,
    pub mask: &'a Mask,
    /// Listed texts, which must not survive.
    pub secrets: &'a TextMatcher,
    /// Names of users and machines, which are replaced as whole words.
    pub names: &'a TextMatcher,
    /// The largest record that may change its length; `None` where lengths stay.
    pub max_size: Option<usize>,
}

/// A value in the payload.
struct FieldValue<'a> {
    field: &'a Field,
    range: Range<usize>,
    kind: ValueKind,
}

impl FieldValue<'_> {
    /// Whether the action changes the length of the value where lengths need not stay.
    fn changes_length(&self, action: Action) -> bool {
        match self.kind {
            ValueKind::Wide | ValueKind::Narrow => true,
            ValueKind::Sid | ValueKind::Binary => action == Action::Drop,
            ValueKind::Address | ValueKind::Ip | ValueKind::Other => false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Wide,
    Narrow,
    Sid,
    Binary,
    Address,
    Ip,
    Other,
}

impl RecordScrubber<'_> {
    /// Replaces fields in their own bytes; with `fixed` only those that never change their length.
    pub(super) fn fields(
        &self,
        record: &Record<'_>,
        store: &SchemaStore,
        payload: &mut [u8],
        fixed: bool,
        summary: &mut Summary,
    ) {
        let Some(decoder) = store.decoder(record) else {
            if !payload.is_empty() {
                summary.undecoded += 1;
            }
            return;
        };
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        let mut values = Vec::new();
        add_values(decoder.fields(record.payload(), pointers), 0, &mut values);
        for value in values {
            let category = match value.kind {
                ValueKind::Ip => Some(Category::Ips),
                _ => category(value.field),
            };
            let (action, by) = self.action(value.field, category);
            if action == Action::Keep || (by.is_none() && counts(decoder.schema(), value.field)) {
                continue;
            }
            if fixed && value.changes_length(action) {
                continue;
            }
            let Some(bytes) = payload.get_mut(value.range.clone()) else { continue };
            let before = bytes.to_vec();
            match by {
                Some(category) => self.category(category, action, value.kind, bytes),
                None => self.value(action, value.kind, bytes),
            }
            if before != bytes {
                *summary.fields.entry(value.field.name.to_string()).or_default() += 1;
                if let Some(category) = by {
                    summary.count(category);
                }
            }
        }
    }

    /// The action for a field, and its category; no category where the policy names the field.
    pub(super) fn action(
        &self,
        field: &Field,
        category: Option<Category>,
    ) -> (Action, Option<Category>) {
        match (self.policy.named(field), category) {
            (Some(action), _) => (action, None),
            (None, Some(category)) => (self.policy.of(category), Some(category)),
            (None, None) => (Action::Keep, None),
        }
    }

    /// Replaces a value by its category.
    fn category(&self, category: Category, action: Action, kind: ValueKind, bytes: &mut [u8]) {
        let Some(encoding) = encoding(kind) else { return self.value(action, kind, bytes) };
        let units = characters(bytes, encoding);
        match category {
            Category::CommandLines => {
                // The program stays; its arguments are private.
                let end = match units.first() {
                    Some('"') => units.iter().skip(1).position(|c| *c == '"').map(|at| at + 2),
                    _ => units.iter().position(|c| *c == ' '),
                };
                let from = end.unwrap_or(units.len());
                let rest: String = units.iter().skip(from).collect();
                self.write(action, bytes, encoding, from..units.len(), &rest, " ");
            }
            Category::Paths => {
                let mut from = 0;
                for (index, c) in units.iter().enumerate() {
                    if !matches!(c, '\\' | '/') {
                        continue;
                    }
                    let part: String = units.get(from..index).unwrap_or_default().iter().collect();
                    // Drives and the directory of devices are not private.
                    if !part.is_empty() && !part.ends_with(':') && part != "Device" {
                        self.write(action, bytes, encoding, from..index, &part, "");
                    }
                    from = index + 1;
                }
            }
            _ => self.value(action, kind, bytes),
        }
    }

    /// Replaces a whole value.
    pub(super) fn value(&self, action: Action, kind: ValueKind, bytes: &mut [u8]) {
        match (action, kind) {
            (Action::Keep, _) => {}
            (_, ValueKind::Wide | ValueKind::Narrow) => {
                let encoding =
                    if kind == ValueKind::Wide { Encoding::Wide } else { Encoding::Narrow };
                let units = characters(bytes, encoding);
                // After a NUL comes filler.
                let end = units.iter().position(|c| *c == '\0').unwrap_or(units.len());
                let text: String = units.iter().take(end).collect();
                self.write(action, bytes, encoding, 0..end, &text, "");
            }
            (Action::Drop, ValueKind::Sid) => {
                let parts = bytes.get_mut(8..).unwrap_or_default();
                parts.fill(0);
            }
            (Action::Drop, _) => bytes.fill(0),
            (Action::Hash, ValueKind::Sid) => {
                patterns::sid(self.mask, bytes);
            }
            (Action::Hash, ValueKind::Address) => self.address(bytes),
            (Action::Hash, ValueKind::Ip | ValueKind::Binary | ValueKind::Other) => {
                let stream = self.mask.stream("value", bytes).take(bytes.len());
                let new: Vec<u8> = stream.collect();
                bytes.copy_from_slice(&new);
            }
        }
    }

    fn address(&self, bytes: &mut [u8]) {
        if let Some(word) = bytes.first_chunk_mut::<8>() {
            *word = self.mask.address(u64::from_le_bytes(*word)).to_le_bytes();
        } else if let Some(word) = bytes.first_chunk_mut::<4>() {
            let moved = self.mask.address(u32::from_le_bytes(*word).into());
            *word = (moved as u32).to_le_bytes();
        }
    }

    /// Writes letters over some characters of a value; characters in `kept` stay.
    fn write(
        &self,
        action: Action,
        bytes: &mut [u8],
        encoding: Encoding,
        range: Range<usize>,
        text: &str,
        kept: &str,
    ) {
        let mut letters = self.mask.letters(text, 0);
        let step = if encoding == Encoding::Wide { 2 } else { 1 };
        for number in range {
            let Some(unit) = bytes.get_mut(number * step..(number + 1) * step) else { continue };
            let letter = letters.next().unwrap_or(b'x');
            let [low, high @ ..] = unit else { continue };
            if kept.as_bytes().contains(low) && high.iter().all(|h| *h == 0) {
                continue;
            }
            *low = if action == Action::Drop { b'*' } else { letter };
            high.fill(0);
        }
    }
}

fn encoding(kind: ValueKind) -> Option<Encoding> {
    match kind {
        ValueKind::Wide => Some(Encoding::Wide),
        ValueKind::Narrow => Some(Encoding::Narrow),
        _ => None,
    }
}

/// The characters of a value, one for each unit.
fn characters(bytes: &[u8], encoding: Encoding) -> Vec<char> {
    match encoding {
        Encoding::Narrow => bytes.iter().map(|b| char::from(*b)).collect(),
        Encoding::Wide => bytes
            .as_chunks::<2>()
            .0
            .iter()
            .map(|u| char::from_u32(u16::from_le_bytes(*u).into()).unwrap_or('\u{fffd}'))
            .collect(),
    }
}

/// Adds all values of a walk, whose first byte is byte `base` of the payload.
fn add_values<'a>(mut fields: Fields<'a>, base: usize, values: &mut Vec<FieldValue<'a>>) {
    while let Some((field, value, range)) = fields.next_with_range() {
        add_value(field, value, base + range.start..base + range.end, values);
    }
}

fn add_value<'a>(
    field: &'a Field,
    value: Value<'a>,
    range: Range<usize>,
    values: &mut Vec<FieldValue<'a>>,
) {
    let kind = match value {
        Value::Null => return,
        Value::Struct(members) => return add_values(members.fields(), range.start, values),
        Value::Array(items) => {
            let mut items = items.iter();
            while let Some((item, part)) = items.next_with_range() {
                let part = range.start + part.start..range.start + part.end;
                add_value(field, item, part, values);
            }
            return;
        }
        Value::Utf16(_) => ValueKind::Wide,
        Value::Ansi(_) | Value::Utf8(_) => ValueKind::Narrow,
        Value::Sid(_) => ValueKind::Sid,
        Value::Binary(_) => ValueKind::Binary,
        Value::Ipv4(_) | Value::Ipv6(_) => ValueKind::Ip,
        _ if category(field) == Some(Category::Addresses) => ValueKind::Address,
        _ => ValueKind::Other,
    };
    if !range.is_empty() {
        values.push(FieldValue { field, range, kind });
    }
}

/// Whether a field holds the count or length of another one: then it stays.
pub(super) fn counts(schema: &EventSchema, counter: &Field) -> bool {
    fn any(fields: &[Field], top: &[Field], counter: &Field) -> bool {
        let same = |reference: FieldRef| {
            let found = match reference {
                FieldRef::Here(index) => fields.get(usize::from(index)),
                FieldRef::Top(index) => top.get(usize::from(index)),
            };
            found.is_some_and(|f| std::ptr::eq(f, counter))
        };
        fields.iter().any(|field| {
            matches!(field.count, Count::Field(r) if same(r))
                || matches!(field.length, Length::Field(r) if same(r))
                || matches!(&field.kind, etl_schema::FieldKind::Struct(m) if any(m, top, counter))
        })
    }
    any(&schema.fields, &schema.fields, counter)
}
