//! Replacements of any length: payloads are decoded, changed and encoded again.
//!
//! Text becomes a short token, dropped text becomes empty, and the schema sets counts and lengths
//! again. A record keeps its lengths if it has no known schema, or if decoding and encoding its
//! payload would change it.

use std::ops::Range;
use std::sync::Arc;

use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_schema::decode::{Decoder, LocatedField, Value};
use etl_schema::encode::{OwnedValue, encode};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, Field, FieldKind, InType, Length};

use super::fields::{RecordScrubber, Treatment, is_counter, private_parts};
use super::matcher::{Encoding, Found};
use super::patterns;
use super::policy::{Action, Category, category};
use super::summary::Summary;

/// Letters of a token: few, but enough that two of a million texts hardly get the same token.
const TOKEN_LEN: usize = 8;

/// A record that was encoded again.
pub(super) struct Resized {
    /// The whole record, with its new size.
    pub bytes: Vec<u8>,
    /// The texts in it, which are searched already.
    pub texts: Vec<Range<usize>>,
}

impl RecordScrubber<'_> {
    /// The record with its private fields replaced by values of other lengths; `None` if lengths
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
        let mut replacements = Summary::new(self.secrets.len());
        self.fields(record, store, &mut fixed, true, &mut replacements);
        let mut values = OwnedValue::collect(decoder.fields(&fixed, pointers));
        self.replace_list(&schema, &schema.fields, &mut values, &mut replacements);
        let mut new_payload = encode(&schema, &values, pointers).ok()?;
        new_payload.extend_from_slice(payload.get(payload.len() - trailing..)?);
        let payload_start = record.bytes().len().checked_sub(payload.len())?;
        let mut bytes = record.bytes().get(..payload_start)?.to_vec();
        bytes.extend_from_slice(&new_payload);
        if bytes.len() > max_size {
            return None;
        }
        let size = u16::try_from(bytes.len()).ok()?;
        bytes
            .get_mut(record.size_range())?
            .copy_from_slice(&size.to_le_bytes());
        let texts = text_ranges(decoder, &new_payload, pointers, payload_start);
        summary.add(&replacements);
        Some(Resized { bytes, texts })
    }

    /// Replaces the values of fields, or of the members of a structure.
    fn replace_list(
        &self,
        schema: &EventSchema,
        fields: &[Field],
        values: &mut [OwnedValue],
        summary: &mut Summary,
    ) {
        for (field, value) in fields.iter().zip(values) {
            if is_counter(schema, field) {
                *value = OwnedValue::Auto;
                continue;
            }
            for element in elements(value) {
                match (element, &field.kind) {
                    (OwnedValue::Struct(members), FieldKind::Struct(fields)) => {
                        self.replace_list(schema, fields, members, summary);
                    }
                    (element, _) => self.replace_owned(field, element, summary),
                }
            }
        }
    }

    fn replace_owned(&self, field: &Field, value: &mut OwnedValue, summary: &mut Summary) {
        let treatment = self.treatment(field, category(field));
        let action = treatment.action;
        let before = value.clone();
        match value {
            OwnedValue::Utf16(units) => {
                let old: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
                let new = self.scrubbed_text(&old, Encoding::Wide, treatment, summary);
                let pairs = new.as_chunks::<2>().0;
                *units = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
                units.truncate(capacity(field));
            }
            OwnedValue::Ansi(bytes) | OwnedValue::Utf8(bytes) => {
                *bytes = self.scrubbed_text(bytes, Encoding::Narrow, treatment, summary);
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
            summary.count(treatment.category);
        }
    }

    /// The text of a field after its treatment.
    fn scrubbed_text(
        &self,
        bytes: &[u8],
        encoding: Encoding,
        treatment: Treatment,
        summary: &mut Summary,
    ) -> Vec<u8> {
        if treatment.action == Action::Keep {
            return self.without_private_texts(bytes, encoding, summary);
        }
        let mut characters = encoding.characters(bytes);
        if let Some(end) = characters.iter().position(|c| *c == '\0') {
            characters.truncate(end);
        }
        let mut out = Vec::new();
        let mut from = 0;
        for part in private_parts(treatment.category, &characters) {
            let before = units(bytes, from..part.start, encoding);
            out.extend(self.without_private_texts(before, encoding, summary));
            from = part.end;
            if treatment.action == Action::Hash && !part.is_empty() {
                if treatment.category == Some(Category::CommandLines) {
                    push(&mut out, " ", encoding);
                }
                let text = encoding.decoded(units(bytes, part, encoding));
                self.push_token(&mut out, &text, encoding);
            }
        }
        let rest = units(bytes, from..characters.len(), encoding);
        out.extend(self.without_private_texts(rest, encoding, summary));
        out
    }

    /// Appends the token of a text.
    fn push_token(&self, out: &mut Vec<u8>, text: &str, encoding: Encoding) {
        for attempt in 0..4 {
            let letters = self.mask.letters(text, attempt).take(TOKEN_LEN);
            let token: String = letters.map(char::from).collect();
            // A token must not spell a listed text by chance.
            if self.secrets.find(token.as_bytes(), 0).is_none() {
                return push(out, &token, encoding);
            }
        }
        push(out, "********", encoding);
    }

    /// The text with homes, names and listed texts replaced by tokens, and SIDs by other SIDs.
    fn without_private_texts(
        &self,
        bytes: &[u8],
        encoding: Encoding,
        summary: &mut Summary,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for private in self.private_texts(bytes, encoding) {
            if private.start < from {
                continue;
            }
            match private.kind {
                PrivateKind::Secret(index) => {
                    if let Some(count) = summary.secrets.get_mut(index) {
                        *count += 1;
                    }
                }
                PrivateKind::Home => summary.count(Category::Users),
                PrivateKind::Name => summary.names += 1,
            }
            out.extend_from_slice(bytes.get(from..private.start).unwrap_or_default());
            if private.action == Action::Hash {
                self.push_token(&mut out, &private.text, encoding);
            }
            from = private.end.max(private.start + 1);
        }
        out.extend_from_slice(bytes.get(from..).unwrap_or_default());
        self.replace_sids(&mut out, summary);
        out
    }

    /// The private texts within a text of this encoding, in the order of their starts. If several
    /// start at one offset, a listed text comes first, then a home.
    fn private_texts(&self, bytes: &[u8], encoding: Encoding) -> Vec<PrivateText> {
        let mut texts = Vec::new();
        for found in self.secrets.find_all(bytes) {
            let kind = PrivateKind::Secret(found.text);
            let text = self.secrets.text(found.text);
            texts.push(PrivateText::new(found, kind, text, Action::Hash));
        }
        let users = self.policy.of(Category::Users);
        if users != Action::Keep {
            let mut from = 0;
            while let Some(home) = patterns::home(bytes, from) {
                from = home.owner.start + 1;
                let kind = PrivateKind::Home;
                texts.push(PrivateText::new(home.owner, kind, &home.name, users));
            }
        }
        for found in self.names.find_all(bytes) {
            let text = self.names.text(found.text);
            let action = self.policy.of_names();
            texts.push(PrivateText::new(found, PrivateKind::Name, text, action));
        }
        texts.retain(|text| text.encoding == encoding);
        texts.sort_by_key(|text| text.start);
        texts
    }
}

/// A private text within a text.
struct PrivateText {
    encoding: Encoding,
    start: usize,
    end: usize,
    kind: PrivateKind,
    text: String,
    action: Action,
}

impl PrivateText {
    fn new(found: Found, kind: PrivateKind, text: &str, action: Action) -> Self {
        PrivateText {
            encoding: found.encoding,
            start: found.start,
            end: found.end,
            kind,
            text: text.to_owned(),
            action,
        }
    }
}

/// Why a text is private.
#[derive(Clone, Copy)]
enum PrivateKind {
    /// It is a listed text, by its index.
    Secret(usize),
    /// It is the owner of a home directory.
    Home,
    /// It is the name of a user or machine.
    Name,
}

/// The bytes of a range of code units.
fn units(bytes: &[u8], range: Range<usize>, encoding: Encoding) -> &[u8] {
    let step = encoding.step();
    bytes
        .get(range.start * step..range.end * step)
        .unwrap_or_default()
}

/// The elements of an array, or a single value.
fn elements(value: &mut OwnedValue) -> &mut [OwnedValue] {
    match value {
        OwnedValue::Array(elements) => elements,
        single => std::slice::from_mut(single),
    }
}

/// The number of bytes after the fields of a payload, if encoding the decoded values returns the
/// same values. Bytes between values, such as the pointers before a SID, may differ.
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
    let encoded = encode(schema, &values, pointers).ok()?;
    let is_same = decoder.check(&encoded, pointers).is_exact()
        && OwnedValue::collect(decoder.fields(&encoded, pointers)) == original;
    if is_same {
        Some(note.trailing.len())
    } else {
        None
    }
}

fn reset_counts(schema: &EventSchema, fields: &[Field], values: &mut [OwnedValue]) {
    for (field, value) in fields.iter().zip(values) {
        if is_counter(schema, field) {
            *value = OwnedValue::Auto;
        } else if let FieldKind::Struct(members) = &field.kind {
            for element in elements(value) {
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
