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
            ValueKind::Text(_) => true,
            ValueKind::Sid | ValueKind::Binary => action == Action::Drop,
            ValueKind::Address | ValueKind::Ip | ValueKind::Other => false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Text(Encoding),
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
            self.value(action, by, value.kind, bytes);
            if before != bytes {
                summary.count_field(&value.field.name);
                summary.count(by);
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

    /// Replaces what its category makes private of a value, or all of it.
    pub(super) fn value(
        &self,
        action: Action,
        by: Option<Category>,
        kind: ValueKind,
        bytes: &mut [u8],
    ) {
        match (action, kind) {
            (Action::Keep, _) => {}
            (_, ValueKind::Text(encoding)) => {
                let characters = encoding.characters(bytes);
                let kept = if by == Some(Category::CommandLines) { " " } else { "" };
                for part in private_parts(by, &characters) {
                    let text: String = characters.get(part.clone()).into_iter().flatten().collect();
                    self.write(action, bytes, encoding, part, &text, kept);
                }
            }
            (Action::Drop, ValueKind::Sid) => {
                bytes.get_mut(8..).unwrap_or_default().fill(0);
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
        let step = encoding.step();
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

/// The parts of a text that are private, in characters.
pub(super) fn private_parts(by: Option<Category>, characters: &[char]) -> Vec<Range<usize>> {
    let len = characters.len();
    let position = |c: char| characters.iter().position(|other| *other == c);
    match by {
        // The program stays; its arguments are private.
        Some(Category::CommandLines) => {
            let end = match characters.first() {
                Some('"') => characters.iter().skip(1).position(|c| *c == '"').map(|at| at + 2),
                _ => position(' '),
            };
            let arguments = end.unwrap_or(len)..len;
            vec![arguments]
        }
        // The file name stays. Drives and the directory of devices are not private.
        Some(Category::Paths) => {
            let is_private = |part: &Range<usize>| {
                let name: String = characters.get(part.clone()).into_iter().flatten().collect();
                !name.is_empty() && !name.ends_with(':') && name != "Device"
            };
            let ends = (0..len).filter(|at| matches!(characters.get(*at), Some('\\' | '/')));
            let mut start = 0;
            let parts = ends.map(|end| std::mem::replace(&mut start, end + 1)..end);
            parts.filter(is_private).collect()
        }
        // After a NUL comes filler.
        _ => {
            let text = 0..position('\0').unwrap_or(len);
            vec![text]
        }
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
        Value::Utf16(_) => ValueKind::Text(Encoding::Wide),
        Value::Ansi(_) | Value::Utf8(_) => ValueKind::Text(Encoding::Narrow),
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
