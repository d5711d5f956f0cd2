//! One record: its decoded fields, its extended items, and then all of its bytes.

use std::ops::Range;

use etl_format::constants::{ExtendedType, PointerSize, RecordKind};
use etl_format::cursor::Bytes;
use etl_format::read::Record;
use etl_schema::decode::{Fields, Sid, Value};
use etl_schema::store::SchemaStore;
use etl_schema::{Count, EventSchema, Field, FieldRef, Length};

use super::Summary;
use super::free::Resized;
use super::mask::Mask;
use super::needle::{Coding, Found, Needles};
use super::patterns;
use super::policy::{Action, Category, Policy, category};

/// Tries to find a replacement that does not spell a listed text by chance.
const ATTEMPTS: u32 = 16;

/// Bytes at the start of the next record that could continue a text: its size, and the byte behind;
/// then comes a marker that is no text.
const BEYOND: usize = 3;

/// Everything that scrubbing a record takes.
pub(super) struct RecordScrubber<'a> {
    pub policy: &'a Policy,
    pub mask: &'a Mask,
    /// Listed texts, which must not survive.
    pub secrets: &'a Needles,
    /// Names that the trace told, replaced as whole words.
    pub names: &'a Needles,
    /// Most bytes of a record whose length may change; `None` where lengths stay.
    pub most: Option<usize>,
}

/// A value in the payload.
struct Place<'a> {
    field: &'a Field,
    range: Range<usize>,
    what: What,
}

impl Place<'_> {
    /// Whether the value has another length when lengths need not stay.
    fn changes_length(&self, action: Action) -> bool {
        match self.what {
            What::Wide | What::Narrow => true,
            What::Sid | What::Binary => action == Action::Drop,
            What::Address | What::Ip | What::Other => false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Wide,
    Narrow,
    Sid,
    Binary,
    Address,
    Ip,
    Other,
}

impl RecordScrubber<'_> {
    /// Appends the record as it shall be.
    pub fn record(
        &self,
        record: &Record<'_>,
        store: &SchemaStore,
        out: &mut Vec<u8>,
        summary: &mut Summary,
    ) {
        let start = out.len();
        let at = record.bytes().len().saturating_sub(record.payload().len());
        let resized = self.most.and_then(|most| self.resized(record, store, most, summary));
        let texts = match resized {
            Some(Resized { bytes, texts }) => {
                out.extend_from_slice(&bytes);
                texts
            }
            None => {
                if self.most.is_some() && store.decoder(record).is_some() {
                    summary.lengths_kept += 1;
                }
                out.extend_from_slice(record.bytes());
                let payload = out.get_mut(start + at..).unwrap_or_default();
                self.fields(record, store, payload, false, summary);
                Vec::new()
            }
        };
        let bytes = out.get_mut(start..).unwrap_or_default();
        self.stack_of_clr(record, bytes.get_mut(at..).unwrap_or_default(), summary);
        let hard = self.items(record, bytes, at, summary);
        // Texts that were encoded again have been searched.
        let (mut from, end) = (soft_from(record), bytes.len());
        for text in texts.into_iter().chain(std::iter::once(end..end)) {
            self.free_text(bytes.get_mut(from..text.start).unwrap_or_default(), summary);
            from = text.end;
        }
        // Text that runs into the header of an item does not run over it.
        for range in hard.iter().filter(|range| range.start >= soft_from(record)) {
            let (new, old) = (bytes.get_mut(range.clone()), record.bytes().get(range.clone()));
            if let (Some(new), Some(old)) = (new, old) {
                new.copy_from_slice(old);
            }
        }
        self.erase(bytes, &hard, summary);
        summary.records += 1;
        if bytes != record.bytes() {
            summary.changed += 1;
        }
    }

    /// Replaces fields where they stand; with `fixed` only those that do not change their length.
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
        let mut places = Vec::new();
        let mut fields = decoder.fields(record.payload(), pointers);
        walk(&mut fields, 0, record.payload(), &mut places);
        for place in places {
            let category = match place.what {
                What::Ip => Some(Category::Ips),
                _ => category(place.field),
            };
            let (action, by) = self.action(place.field, category);
            if action == Action::Keep || (by.is_none() && counts(decoder.schema(), place.field)) {
                continue;
            }
            if fixed && place.changes_length(action) {
                continue;
            }
            let Some(bytes) = payload.get_mut(place.range.clone()) else { continue };
            let before = bytes.to_vec();
            match by {
                Some(category) => self.category(category, action, place.what, bytes),
                None => self.value(action, place.what, bytes),
            }
            if before != bytes {
                *summary.fields.entry(place.field.name.to_string()).or_default() += 1;
                if let Some(category) = by {
                    summary.count(category);
                }
            }
        }
    }

    /// What becomes of a field, and the category that says so; none where its name does.
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

    /// A value by what it holds.
    fn category(&self, category: Category, action: Action, what: What, bytes: &mut [u8]) {
        let Some(coding) = coding(what) else { return self.value(action, what, bytes) };
        let units = characters(bytes, coding);
        match category {
            Category::CommandLines => {
                // The program says what ran; what it was told is private.
                let end = match units.first() {
                    Some('"') => units.iter().skip(1).position(|c| *c == '"').map(|at| at + 2),
                    _ => units.iter().position(|c| *c == ' '),
                };
                let from = end.unwrap_or(units.len());
                let rest: String = units.iter().skip(from).collect();
                self.write(action, bytes, coding, from..units.len(), &rest, " ");
            }
            Category::Paths => {
                let mut from = 0;
                for (place, c) in units.iter().enumerate() {
                    if !matches!(c, '\\' | '/') {
                        continue;
                    }
                    let part: String = units.get(from..place).unwrap_or_default().iter().collect();
                    // A drive is no secret, and where devices are neither.
                    if !part.is_empty() && !part.ends_with(':') && part != "Device" {
                        self.write(action, bytes, coding, from..place, &part, "");
                    }
                    from = place + 1;
                }
            }
            _ => self.value(action, what, bytes),
        }
    }

    /// A whole value.
    fn value(&self, action: Action, what: What, bytes: &mut [u8]) {
        match (action, what) {
            (Action::Keep, _) => {}
            (_, What::Wide | What::Narrow) => {
                let coding = if what == What::Wide { Coding::Wide } else { Coding::Narrow };
                let units = characters(bytes, coding);
                // What follows a NUL is filler.
                let end = units.iter().position(|c| *c == '\0').unwrap_or(units.len());
                let text: String = units.iter().take(end).collect();
                self.write(action, bytes, coding, 0..end, &text, "");
            }
            (Action::Drop, What::Sid) => {
                let parts = bytes.get_mut(8..).unwrap_or_default();
                parts.fill(0);
            }
            (Action::Drop, _) => bytes.fill(0),
            (Action::Hash, What::Sid) => {
                patterns::sid(self.mask, bytes);
            }
            (Action::Hash, What::Address) => self.address(bytes),
            (Action::Hash, What::Ip | What::Binary | What::Other) => {
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

    /// Writes letters over some characters of a value; those in `kept` stay.
    fn write(
        &self,
        action: Action,
        bytes: &mut [u8],
        coding: Coding,
        range: Range<usize>,
        text: &str,
        kept: &str,
    ) {
        let mut letters = self.mask.letters(text, 0);
        let step = if coding == Coding::Wide { 2 } else { 1 };
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

    /// The frames of the CLR's stacks, whose manifest states a wrong count.
    fn stack_of_clr(&self, record: &Record<'_>, payload: &mut [u8], summary: &mut Summary) {
        if self.policy.of(Category::Addresses) == Action::Keep
            || !crate::slice::is_clr_stack(record)
        {
            return;
        }
        let original = record.payload();
        let width = if record.pointer_size() == Some(PointerSize::P4) { 4 } else { 8 };
        let frames = payload.get_mut(8..).unwrap_or_default();
        for (frame, old) in frames
            .chunks_exact_mut(width)
            .zip(original.get(8..).unwrap_or_default().chunks_exact(width))
        {
            // The decoded part of them has been done already; all are done from what they were.
            frame.copy_from_slice(old);
            self.value(self.policy.of(Category::Addresses), What::Address, frame);
        }
        summary.count(Category::Addresses);
    }

    /// Extended items. Returns the bytes of the record that say how it is laid out.
    fn items(
        &self,
        record: &Record<'_>,
        bytes: &mut [u8],
        payload_at: usize,
        summary: &mut Summary,
    ) -> Vec<Range<usize>> {
        let mut hard = Vec::from([LAYOUT]);
        hard.extend(timestamp_of(record));
        let mut items = record.extended();
        let (mut at, mut more) = (EVENT_HEADER, record.is_event());
        while more && let Some((kind, data)) = items.next_raw() {
            let total = record.bytes().u16_at(at).map_or(8, usize::from);
            hard.push(at..at + 8);
            if let Some(item) = bytes.get_mut(at + 8..at + 8 + data.len()) {
                self.item(kind, item, summary);
            }
            at += total.max(8);
            more = at < payload_at;
        }
        hard
    }

    fn item(&self, kind: ExtendedType, data: &mut [u8], summary: &mut Summary) {
        let before = data.to_vec();
        let category = match kind {
            ExtendedType::SID => Category::Sids,
            ExtendedType::STACK_TRACE32
            | ExtendedType::STACK_TRACE64
            | ExtendedType::STACK_KEY32
            | ExtendedType::STACK_KEY64 => Category::Addresses,
            _ => return,
        };
        let action = self.policy.of(category);
        if category == Category::Sids {
            self.value(action, What::Sid, data);
        } else {
            let narrow = matches!(kind, ExtendedType::STACK_TRACE32 | ExtendedType::STACK_KEY32);
            let frames = data.get_mut(8..).unwrap_or_default();
            for frame in frames.chunks_exact_mut(if narrow { 4 } else { 8 }) {
                self.value(action, What::Address, frame);
            }
        }
        if before != data {
            summary.count(category);
        }
    }

    /// What is private by its form, wherever it stands: owners of homes, SIDs as text, and names
    /// that the trace told.
    pub fn free_text(&self, bytes: &mut [u8], summary: &mut Summary) {
        let users = self.policy.of(Category::Users);
        if users != Action::Keep {
            let mut from = 0;
            while let Some(found) = patterns::home(bytes, from) {
                from = found.end.max(from + 1);
                let place =
                    Found { text: 0, coding: found.coding, start: found.start, end: found.end };
                if self.cover(bytes, &place, &found.name, users, 0, &[]) {
                    summary.count(Category::Users);
                }
            }
        }
        if self.policy.of(Category::Sids) != Action::Keep {
            let mut from = 0;
            while let Some((_, end)) = patterns::sid_text(self.mask, bytes, from) {
                from = end.max(from + 1);
                summary.count(Category::Sids);
            }
        }
        if !self.names.is_empty() {
            let mut from = 0;
            while let Some(found) = self.names.find(bytes, from) {
                from = found.end.max(from + 1);
                let text = self.names.text(found.text);
                let machines = self.policy.of(Category::Machines);
                let action = if users == Action::Keep { machines } else { users };
                if self.cover(bytes, &found, text, action, 0, &[]) {
                    summary.names += 1;
                }
            }
        }
    }

    /// Writes letters over a place, but for its hard bytes. Returns whether any byte could be
    /// written.
    fn cover(
        &self,
        bytes: &mut [u8],
        found: &Found,
        text: &str,
        action: Action,
        attempt: u32,
        hard: &[Range<usize>],
    ) -> bool {
        let mut letters = self.mask.letters(text, attempt);
        let mut any = false;
        for place in found.start..found.end {
            // In UTF-16 the second byte of each unit becomes 0.
            let high = found.coding == Coding::Wide && (place - found.start) % 2 == 1;
            let new = match (high, action) {
                (true, _) => 0,
                (false, Action::Drop) => b'*',
                (false, _) => letters.next().unwrap_or(b'x'),
            };
            if hard.iter().any(|range| range.contains(&place)) {
                continue;
            }
            if let Some(byte) = bytes.get_mut(place) {
                any |= *byte != new;
                *byte = new;
            }
        }
        any
    }

    /// Removes every listed text from a whole record, and what begins one at its end.
    pub fn erase(&self, bytes: &mut [u8], hard: &[Range<usize>], summary: &mut Summary) {
        if self.secrets.is_empty() {
            return;
        }
        let mut attempt = 0;
        let (mut from, mut stuck, mut rounds) = (0, 0u64, 0u32);
        loop {
            let Some(found) = self.secrets.find(bytes, from) else {
                if from == 0 || stuck > 0 {
                    break;
                }
                // What was written may spell a text together with what stands around it.
                (from, rounds) = (0, rounds + 1);
                if rounds > ATTEMPTS {
                    stuck += 1;
                    break;
                }
                continue;
            };
            let text = self.secrets.text(found.text);
            if attempt == 0
                && rounds == 0
                && let Some(count) = summary.secrets.get_mut(found.text)
            {
                *count += 1;
            }
            let action = if attempt < ATTEMPTS { Action::Hash } else { Action::Drop };
            self.cover(bytes, &found, text, action, attempt + rounds, hard);
            let still = self.secrets.find(bytes, found.start).is_some_and(|f| f.start < found.end);
            if !still {
                (from, attempt) = (found.end, 0);
            } else if attempt <= ATTEMPTS {
                attempt += 1;
            } else {
                // Nothing of it may be changed.
                stuck += 1;
                (from, attempt) = (found.start + 1, 0);
            }
        }
        summary.left += stuck;
        // The gap behind a record is filled with zeros, which may belong to a text in UTF-16.
        let len = bytes.len();
        let mut padded = bytes.to_vec();
        padded.resize(len.next_multiple_of(8), 0);
        if let Some(found) = self.secrets.begun(&padded, BEYOND)
            && found.start < len
        {
            let tail = Found { end: len, ..found };
            self.cover(bytes, &tail, self.secrets.text(found.text), Action::Drop, 0, hard);
        }
    }
}

/// Bytes of every record that say what it is and how it is laid out.
const LAYOUT: Range<usize> = 0..8;

/// Bytes of the header of an EVENT record.
const EVENT_HEADER: usize = 0x50;

/// Where a record's timestamp stands: changing it would change the order of the trace.
fn timestamp_of(record: &Record<'_>) -> Option<Range<usize>> {
    match record.kind() {
        RecordKind::PERFINFO32 | RecordKind::PERFINFO64 => Some(8..16),
        _ if record.is_kernel() || record.is_event() => Some(0x10..0x18),
        RecordKind::FULL32
        | RecordKind::FULL64
        | RecordKind::INSTANCE32
        | RecordKind::INSTANCE64 => Some(0x10..0x18),
        _ => None,
    }
}

/// Where a record's header ends: what stands in it is searched for listed texts only.
fn soft_from(record: &Record<'_>) -> usize {
    if record.is_event() {
        return EVENT_HEADER;
    }
    record.bytes().len().saturating_sub(record.payload().len())
}

fn coding(what: What) -> Option<Coding> {
    match what {
        What::Wide => Some(Coding::Wide),
        What::Narrow => Some(Coding::Narrow),
        _ => None,
    }
}

/// The characters of a value, one a unit.
fn characters(bytes: &[u8], coding: Coding) -> Vec<char> {
    match coding {
        Coding::Narrow => bytes.iter().map(|b| char::from(*b)).collect(),
        Coding::Wide => bytes
            .as_chunks::<2>()
            .0
            .iter()
            .map(|u| char::from_u32(u16::from_le_bytes(*u).into()).unwrap_or('\u{fffd}'))
            .collect(),
    }
}

/// Where one slice lies in another that it was taken from.
pub(super) fn range_in(whole: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then_some(start..end)
}

/// All values of a payload with their places.
fn walk<'a>(fields: &mut Fields<'a>, base: usize, payload: &[u8], places: &mut Vec<Place<'a>>) {
    loop {
        let start = base + Fields::position(fields);
        let Some((field, value)) = fields.next() else { return };
        let scalar = start..base + Fields::position(fields);
        one(field, value, scalar, payload, places);
    }
}

fn one<'a>(
    field: &'a Field,
    value: Value<'a>,
    scalar: Range<usize>,
    payload: &[u8],
    places: &mut Vec<Place<'a>>,
) {
    let mut add = |range: Option<Range<usize>>, what| {
        if let Some(range) = range.filter(|r| !r.is_empty()) {
            places.push(Place { field, range, what });
        }
    };
    match value {
        Value::Utf16(text) => add(range_in(payload, text.bytes()), What::Wide),
        Value::Ansi(bytes) | Value::Utf8(bytes) => add(range_in(payload, bytes), What::Narrow),
        Value::Sid(Sid(bytes)) => add(range_in(payload, bytes), What::Sid),
        Value::Binary(bytes) => add(range_in(payload, bytes), What::Binary),
        Value::Ipv4(_) | Value::Ipv6(_) => add(Some(scalar), What::Ip),
        Value::Struct(members) => {
            if let Some(range) = range_in(payload, members.bytes()) {
                walk(&mut members.fields(), range.start, payload, places);
            }
        }
        Value::Array(items) => {
            let Some(all) = range_in(payload, items.bytes()) else { return };
            let width = items.bytes().len().checked_div(items.len()).unwrap_or(0);
            for (number, item) in items.iter().enumerate() {
                // Elements of a fixed size lie side by side; others tell where they are.
                let start = all.start + number * width;
                one(field, item, start..start + width, payload, places);
            }
        }
        Value::Null => {}
        _ => {
            let what = match category(field) {
                Some(Category::Addresses) => What::Address,
                _ => What::Other,
            };
            add(Some(scalar), what);
        }
    }
}

/// Whether other fields are counted or measured by a field: then it stays.
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
