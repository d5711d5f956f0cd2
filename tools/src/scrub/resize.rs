//! Replacements of any length: payloads are decoded, changed and encoded again.
//!
//! Text becomes a short token, dropped text becomes empty, and the schema sets counts and lengths
//! again. A record keeps its lengths if it has no known schema, or if decoding and encoding its
//! payload would change it.

use std::iter::successors;
use std::ops::Range;
use std::sync::Arc;

use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_schema::decode::{Decoder, LocatedField, Value};
use etl_schema::encode::{OwnedValue, encode};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, Field, FieldKind, InType, Length};

use super::fields::{RecordScrubber, counts, private_parts};
use super::matcher::{Encoding, Found, TextMatcher};
use super::patterns;
use super::policy::{Action, Category, category};
use super::summary::Summary;

/// Letters of a token: few, but two of a million texts are unlikely to get the same.
const TOKEN_LEN: usize = 8;

/// A record that was encoded again.
pub(super) struct Resized {
    /// The whole record, with its new size.
    pub bytes: Vec<u8>,
    /// The texts in it, which are searched already.
    pub texts: Vec<Range<usize>>,
}

impl RecordScrubber<'_> {
    /// The record with its private fields replaced by values of other lengths; `None` when lengths
    /// have to stay. At most `max_size` bytes.
    pub(super) fn resized(
        &self,
        record: &Record<'_>,
        store: &SchemaStore,
        max_size: usize,
        summary: &mut Summary,
    ) -> Option<Resized> {
        let decoder = store.decoder(record)?;
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        let schema = Arc::clone(decoder.schema());
        let payload = record.payload();
        let trailing = fits(decoder, &schema, payload, pointers)?;
        // Values of a fixed length are replaced in their own bytes.
        let mut fixed = payload.to_vec();
        let mut replaced = Summary::new(self.secrets.len());
        self.fields(record, store, &mut fixed, true, &mut replaced);
        let mut values = OwnedValue::collect(decoder.fields(&fixed, pointers));
        self.list(&schema, &schema.fields, &mut values, &mut replaced);
        let mut fresh = encode(&schema, &values, pointers).ok()?;
        fresh.extend_from_slice(payload.get(payload.len() - trailing..)?);
        let payload_at = record.bytes().len().checked_sub(payload.len())?;
        let mut bytes = record.bytes().get(..payload_at)?.to_vec();
        bytes.extend_from_slice(&fresh);
        let size = u16::try_from(bytes.len())
            .ok()
            .filter(|size| usize::from(*size) <= max_size)?;
        bytes
            .get_mut(record.size_range())?
            .copy_from_slice(&size.to_le_bytes());
        let texts = text_ranges(decoder, &fresh, pointers, payload_at);
        summary.add(&replaced);
        Some(Resized { bytes, texts })
    }

    fn list(
        &self,
        schema: &EventSchema,
        fields: &[Field],
        values: &mut [OwnedValue],
        summary: &mut Summary,
    ) {
        for (field, value) in fields.iter().zip(values) {
            if counts(schema, field) {
                *value = OwnedValue::Auto;
                continue;
            }
            let elements = match value {
                OwnedValue::Array(elements) => elements.as_mut_slice(),
                one => std::slice::from_mut(one),
            };
            for element in elements {
                match (element, &field.kind) {
                    (OwnedValue::Struct(members), FieldKind::Struct(fields)) => {
                        self.list(schema, fields, members, summary);
                    }
                    (element, _) => self.one(field, element, summary),
                }
            }
        }
    }

    fn one(&self, field: &Field, value: &mut OwnedValue, summary: &mut Summary) {
        let (action, by) = self.action(field, category(field));
        let before = value.clone();
        match value {
            OwnedValue::Utf16(units) => {
                let old: Vec<u8> = units.iter().flat_map(|u| u.to_le_bytes()).collect();
                let new = self.text(&old, Encoding::Wide, action, by, summary);
                let pairs = new.as_chunks::<2>().0;
                *units = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
                units.truncate(capacity(field));
            }
            OwnedValue::Ansi(bytes) | OwnedValue::Utf8(bytes) => {
                *bytes = self.text(bytes, Encoding::Narrow, action, by, summary);
                bytes.truncate(capacity(field));
            }
            OwnedValue::Binary(bytes) if action == Action::Drop => match field.length {
                Length::Natural | Length::Fixed(_) => bytes.fill(0),
                _ => bytes.clear(),
            },
            OwnedValue::Sid(_) if action == Action::Drop => {
                *value = match field.in_type() {
                    Some(InType::WbemSid) => OwnedValue::Null,
                    // S-1-0-0, the null SID.
                    _ => OwnedValue::Sid(vec![1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
                };
            }
            _ => {}
        }
        // Patterns in text are counted where they are found.
        if before != *value && action != Action::Keep {
            summary.count_field(&field.name);
            summary.count(by);
        }
    }

    /// The scrubbed text.
    fn text(
        &self,
        bytes: &[u8],
        encoding: Encoding,
        action: Action,
        by: Option<Category>,
        summary: &mut Summary,
    ) -> Vec<u8> {
        if action == Action::Keep {
            return self.private(bytes, encoding, summary);
        }
        let (step, mut characters) = (encoding.step(), encoding.characters(bytes));
        let end = characters
            .iter()
            .position(|c| *c == '\0')
            .unwrap_or(characters.len());
        characters.truncate(end);
        let piece = |range: Range<usize>| {
            bytes
                .get(range.start * step..range.end * step)
                .unwrap_or_default()
        };
        let (mut out, mut at) = (Vec::new(), 0);
        for part in private_parts(by, &characters) {
            out.extend(self.private(piece(at..part.start), encoding, summary));
            at = part.end;
            if action == Action::Hash && !part.is_empty() {
                if by == Some(Category::CommandLines) {
                    push(&mut out, " ", encoding);
                }
                self.token(&mut out, &encoding.decoded(piece(part)), encoding);
            }
        }
        out.extend(self.private(piece(at..end), encoding, summary));
        out
    }

    /// Appends the token of a text.
    fn token(&self, out: &mut Vec<u8>, text: &str, encoding: Encoding) {
        // A token must not spell a listed text by chance.
        let spells = |token: &str| self.secrets.find(token.as_bytes(), 0).is_some();
        let token = |attempt| -> String {
            self.mask
                .letters(text, attempt)
                .take(TOKEN_LEN)
                .map(char::from)
                .collect()
        };
        let found = (0..4).map(token).find(|token| !spells(token));
        push(out, found.as_deref().unwrap_or("********"), encoding);
    }

    /// The text with homes, known names and listed texts replaced by tokens, and SIDs by others.
    fn private(&self, bytes: &[u8], encoding: Encoding, summary: &mut Summary) -> Vec<u8> {
        let users = self.policy.of(Category::Users);
        let mut all = Vec::new();
        let mut add = |found: Found, what| {
            if found.encoding == encoding {
                all.push((found.start, found.end, what));
            }
        };
        let find = |texts: &TextMatcher, from| texts.find(bytes, from);
        for found in successors(find(self.secrets, 0), |f| find(self.secrets, f.start + 1)) {
            add(found, Private::Secret(found.text));
        }
        if users != Action::Keep {
            let next = |from| patterns::home(bytes, from);
            for (home, name) in successors(next(0), |(home, _)| next(home.start + 1)) {
                add(home, Private::Home(name));
            }
        }
        for found in successors(find(self.names, 0), |f| find(self.names, f.start + 1)) {
            add(found, Private::Name(found.text));
        }
        // Where several begin, the first that was added counts.
        all.sort_by_key(|(start, ..)| *start);
        let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
        for (start, end, what) in all {
            if start < at {
                continue;
            }
            let (text, action) = match &what {
                Private::Secret(index) => {
                    if let Some(count) = summary.secrets.get_mut(*index) {
                        *count += 1;
                    }
                    (self.secrets.text(*index), Action::Hash)
                }
                Private::Home(name) => {
                    summary.count(Category::Users);
                    (name.as_str(), users)
                }
                Private::Name(index) => {
                    summary.names += 1;
                    (self.names.text(*index), self.policy.of_names())
                }
            };
            out.extend_from_slice(bytes.get(at..start).unwrap_or_default());
            if action == Action::Hash {
                self.token(&mut out, text, encoding);
            }
            at = end.max(start + 1);
        }
        out.extend_from_slice(bytes.get(at..).unwrap_or_default());
        if self.policy.of(Category::Sids) != Action::Keep {
            let mut from = 0;
            while let Some((_, end)) = patterns::sid_text(self.mask, &mut out, from) {
                from = end.max(from + 1);
                summary.count(Category::Sids);
            }
        }
        out
    }
}

/// What is replaced within a text.
enum Private {
    /// A listed text, by its index.
    Secret(usize),
    /// The owner of a home directory.
    Home(String),
    /// A known name, by its index.
    Name(usize),
}

/// Bytes after the fields of a payload, if encoding the decoded values returns the same values.
/// Bytes that belong to no value, as the pointers before a SID, may differ.
fn fits(
    decoder: &Decoder,
    schema: &EventSchema,
    payload: &[u8],
    pointers: PointerSize,
) -> Option<usize> {
    let note = decoder.check(payload, pointers);
    if note.is_short() {
        return None;
    }
    let original = OwnedValue::collect(decoder.fields(payload, pointers));
    let mut values = original.clone();
    reset_counts(schema, &schema.fields, &mut values);
    let again = encode(schema, &values, pointers).ok()?;
    let same = decoder.check(&again, pointers).is_exact()
        && OwnedValue::collect(decoder.fields(&again, pointers)) == original;
    same.then_some(note.trailing.len())
}

fn reset_counts(schema: &EventSchema, fields: &[Field], values: &mut [OwnedValue]) {
    for (field, value) in fields.iter().zip(values) {
        if counts(schema, field) {
            *value = OwnedValue::Auto;
        } else if let FieldKind::Struct(members) = &field.kind {
            let elements = match value {
                OwnedValue::Array(elements) => elements.as_mut_slice(),
                one => std::slice::from_mut(one),
            };
            for element in elements {
                if let OwnedValue::Struct(values) = element {
                    reset_counts(schema, members, values);
                }
            }
        }
    }
}

/// The texts of a payload, as ranges of its record, in which it starts at `base`.
fn text_ranges(
    decoder: &Decoder,
    payload: &[u8],
    pointers: PointerSize,
    base: usize,
) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut fields = decoder.fields(payload, pointers);
    while let Some(LocatedField { value, range, .. }) = fields.next_with_range() {
        if matches!(value, Value::Utf16(_) | Value::Ansi(_) | Value::Utf8(_)) {
            ranges.push(range.start + base..range.end + base);
        }
    }
    ranges
}

/// Units that fit into a field.
fn capacity(field: &Field) -> usize {
    match field.length {
        Length::Fixed(units) => units.into(),
        _ => usize::MAX,
    }
}

fn push(out: &mut Vec<u8>, text: &str, encoding: Encoding) {
    match encoding {
        Encoding::Narrow => out.extend_from_slice(text.as_bytes()),
        Encoding::Wide => out.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
    }
}
