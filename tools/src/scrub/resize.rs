//! Replacements of any length: payloads are decoded, changed and encoded again.
//!
//! Text becomes a short token, dropped text becomes empty, and the schema sets counts and lengths
//! again. A record keeps its lengths if it has no known schema, or if decoding and encoding its
//! payload would change it.

use std::sync::Arc;

use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_schema::decode::{Decoder, Value};
use etl_schema::encode::{OwnedValue, encode};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, Field, FieldKind, InType, Length};

use super::fields::{RecordScrubber, counts};
use super::matcher::{Encoding, TextMatcher};
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
    pub texts: Vec<std::ops::Range<usize>>,
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
        let mut replaced = Summary { secrets: vec![0; self.secrets.len()], ..Summary::default() };
        self.fields(record, store, &mut fixed, true, &mut replaced);
        let mut values = OwnedValue::collect(decoder.fields(&fixed, pointers));
        self.list(&schema, &schema.fields, &mut values, &mut replaced);
        let mut fresh = encode(&schema, &values, pointers).ok()?;
        fresh.extend_from_slice(payload.get(payload.len() - trailing..)?);
        let payload_at = record.bytes().len().checked_sub(payload.len())?;
        let mut bytes = record.bytes().get(..payload_at)?.to_vec();
        bytes.extend_from_slice(&fresh);
        let size = u16::try_from(bytes.len()).ok().filter(|size| usize::from(*size) <= max_size)?;
        bytes.get_mut(record.size_range())?.copy_from_slice(&size.to_le_bytes());
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
            *summary.fields.entry(field.name.to_string()).or_default() += 1;
            if let Some(category) = by {
                summary.count(category);
            }
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
        let step = if encoding == Encoding::Wide { 2 } else { 1 };
        let ends = bytes.chunks_exact(step).position(|unit| unit.iter().all(|b| *b == 0));
        let text = bytes.get(..ends.map_or(bytes.len(), |units| units * step)).unwrap_or(bytes);
        let mut out = Vec::new();
        match (action, by) {
            (Action::Keep, _) => return self.private(bytes, encoding, summary),
            (_, Some(Category::CommandLines)) => {
                let program = program(text, encoding);
                let (program, rest) = text.split_at(program.min(text.len()));
                out.extend(self.private(program, encoding, summary));
                if !rest.is_empty() && action == Action::Hash {
                    push(&mut out, " ", encoding);
                    self.token(&mut out, rest, encoding);
                }
            }
            (_, Some(Category::Paths)) => {
                let mut part = Vec::new();
                for unit in text.chunks(step) {
                    let separates = matches!(unit, [b'\\' | b'/'] | [b'\\' | b'/', 0]);
                    if !separates {
                        part.extend_from_slice(unit);
                        continue;
                    }
                    let name = string(&part, encoding);
                    // Drives and the directory of devices are not private.
                    if name.is_empty() || name.ends_with(':') || name == "Device" {
                        out.append(&mut part);
                    } else if action == Action::Hash {
                        self.token(&mut out, &part, encoding);
                    }
                    part.clear();
                    out.extend_from_slice(unit);
                }
                out.extend(self.private(&part, encoding, summary));
            }
            (Action::Hash, _) => self.token(&mut out, text, encoding),
            (Action::Drop, _) => {}
        }
        out
    }

    /// Appends the token of a text; nothing for an empty text.
    fn token(&self, out: &mut Vec<u8>, text: &[u8], encoding: Encoding) {
        if !text.is_empty() {
            self.token_of(out, &string(text, encoding), encoding);
        }
    }

    fn token_of(&self, out: &mut Vec<u8>, text: &str, encoding: Encoding) {
        // A token must not spell a listed text by chance.
        let spells = |token: &str| self.secrets.find(token.as_bytes(), 0).is_some();
        let token = |attempt| -> String {
            self.mask.letters(text, attempt).take(TOKEN_LEN).map(char::from).collect()
        };
        let found = (0..4).map(token).find(|token| !spells(token));
        push(out, found.as_deref().unwrap_or("********"), encoding);
    }

    /// The text with homes, known names and listed texts replaced by tokens, and SIDs by others.
    fn private(&self, bytes: &[u8], encoding: Encoding, summary: &mut Summary) -> Vec<u8> {
        let users = self.policy.of(Category::Users);
        let machines = self.policy.of(Category::Machines);
        let mut out = Vec::with_capacity(bytes.len());
        let mut homes = Search::new(users != Action::Keep, |from| {
            patterns::home(bytes, from).map(|h| (h.start, h.end, h.encoding, h.name))
        });
        let find = |needles: &TextMatcher, from| {
            let found = needles.find(bytes, from)?;
            Some((found.start, found.end, found.encoding, found.text))
        };
        let mut names = Search::new(!self.names.is_empty(), |from| find(self.names, from));
        let mut secrets = Search::new(!self.secrets.is_empty(), |from| find(self.secrets, from));
        let mut at = 0;
        loop {
            let secret = secrets.next(at, encoding);
            let home = homes.next(at, encoding);
            let name = names.next(at, encoding);
            let start = |found: Option<(usize, usize)>| found.map_or(usize::MAX, |p| p.0);
            let first = start(secret).min(start(home)).min(start(name));
            let (end, text, action) = if first == usize::MAX {
                break;
            } else if let Some((_, end)) = secret.filter(|p| p.0 == first) {
                let index = secrets.what().copied().unwrap_or(0);
                if let Some(count) = summary.secrets.get_mut(index) {
                    *count += 1;
                }
                (end, self.secrets.text(index).to_owned(), Action::Hash)
            } else if let Some((_, end)) = home.filter(|p| p.0 == first) {
                summary.count(Category::Users);
                (end, homes.what().cloned().unwrap_or_default(), users)
            } else if let Some((_, end)) = name {
                summary.names += 1;
                let text = self.names.text(names.what().copied().unwrap_or(0)).to_owned();
                (end, text, if users == Action::Keep { machines } else { users })
            } else {
                break;
            };
            out.extend_from_slice(bytes.get(at..first).unwrap_or_default());
            if action == Action::Hash {
                self.token_of(&mut out, &text, encoding);
            }
            at = end.max(at + 1);
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

/// The occurrences of one thing in a text, each searched once.
struct Search<T, F> {
    find: F,
    on: bool,
    found: Option<(usize, usize, Encoding, T)>,
    from: usize,
}

impl<T, F: FnMut(usize) -> Option<(usize, usize, Encoding, T)>> Search<T, F> {
    fn new(on: bool, find: F) -> Self {
        Search { find, on, found: None, from: 0 }
    }

    /// Start and end of the first occurrence from `at` on in this encoding.
    fn next(&mut self, at: usize, encoding: Encoding) -> Option<(usize, usize)> {
        self.from = self.from.max(at);
        while self.on && self.found.as_ref().is_none_or(|f| f.0 < at || f.2 != encoding) {
            self.found = (self.find)(self.from);
            match &self.found {
                Some(found) => self.from = found.0 + 1,
                None => self.on = false,
            }
        }
        self.found.as_ref().filter(|f| f.0 >= at).map(|f| (f.0, f.1))
    }

    /// What was found.
    fn what(&self) -> Option<&T> {
        self.found.as_ref().map(|f| &f.3)
    }
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
) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let mut fields = decoder.fields(payload, pointers);
    while let Some((_, value, range)) = fields.next_with_range() {
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

/// Bytes of the program at the beginning of a command line.
fn program(text: &[u8], encoding: Encoding) -> usize {
    let step = if encoding == Encoding::Wide { 2 } else { 1 };
    let is = |unit: &[u8], c: u8| matches!(unit, [b] | [b, 0] if *b == c);
    let units = || text.chunks_exact(step);
    let end = match units().next() {
        Some(first) if is(first, b'"') => {
            units().skip(1).position(|unit| is(unit, b'"')).map(|at| at + 2)
        }
        _ => units().position(|unit| is(unit, b' ')),
    };
    end.map_or(text.len(), |units| units * step)
}

fn string(bytes: &[u8], encoding: Encoding) -> String {
    match encoding {
        Encoding::Narrow => bytes.iter().map(|b| char::from(*b)).collect(),
        Encoding::Wide => {
            let units = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair));
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
    }
}

fn push(out: &mut Vec<u8>, text: &str, encoding: Encoding) {
    match encoding {
        Encoding::Narrow => out.extend_from_slice(text.as_bytes()),
        Encoding::Wide => out.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
    }
}
