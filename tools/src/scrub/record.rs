//! Scrubbing of one record: its decoded fields, its extended items, and then all of its bytes.

use std::ops::Range;

use etl_format::constants::{ExtendedType, PointerSize};
use etl_format::cursor::Bytes;
use etl_format::read::{EventHeader, RawItem, Record};
use etl_schema::store::SchemaStore;

use super::fields::{RecordScrubber, ValueKind};
use super::matcher::{Encoding, Found};
use super::patterns;
use super::policy::{Action, Category};
use super::resize::Resized;
use super::summary::Summary;
use crate::slice::ClrEvent;

/// Attempts to find a replacement that does not spell a listed text by chance.
const MAX_ATTEMPTS: u32 = 16;

/// Bytes of the next record that could continue a text: its size, and one more; then comes a marker
/// that is not text.
const NEXT_RECORD_TEXT: usize = 3;

impl RecordScrubber<'_> {
    /// Appends the scrubbed record.
    pub fn record(
        &self,
        record: &Record<'_>,
        store: &SchemaStore,
        out: &mut Vec<u8>,
        summary: &mut Summary,
    ) {
        let start = out.len();
        let at = record.bytes().len().saturating_sub(record.payload().len());
        let resized = self
            .max_size
            .and_then(|max_size| self.resized(record, store, max_size, summary));
        let texts = match resized {
            Some(Resized { bytes, texts }) => {
                out.extend_from_slice(&bytes);
                texts
            }
            None => {
                if self.max_size.is_some() && store.decoder(record).is_some() {
                    summary.lengths_kept += 1;
                }
                out.extend_from_slice(record.bytes());
                let payload = out.get_mut(start + at..).unwrap_or_default();
                self.fields(record, store, payload, false, summary);
                Vec::new()
            }
        };
        let bytes = out.get_mut(start..).unwrap_or_default();
        self.clr_stack(record, bytes.get_mut(at..).unwrap_or_default(), summary);
        let layout = self.items(record, bytes, at, summary);
        // Texts that were encoded again are searched already.
        let (mut from, end) = (header_len(record), bytes.len());
        for text in texts.into_iter().chain(std::iter::once(end..end)) {
            self.patterns(bytes.get_mut(from..text.start).unwrap_or_default(), summary);
            from = text.end;
        }
        // Text that runs into the header of an extended item must not change it.
        for range in layout
            .iter()
            .filter(|range| range.start >= header_len(record))
        {
            let (new, old) = (
                bytes.get_mut(range.clone()),
                record.bytes().get(range.clone()),
            );
            if let (Some(new), Some(old)) = (new, old) {
                new.copy_from_slice(old);
            }
        }
        self.erase(bytes, &layout, summary);
        summary.records += 1;
        if bytes != record.bytes() {
            summary.changed += 1;
        }
    }

    /// Scrubs the frames of the CLR's stack events, whose manifest states a wrong count.
    fn clr_stack(&self, record: &Record<'_>, payload: &mut [u8], summary: &mut Summary) {
        if self.policy.of(Category::Addresses) == Action::Keep
            || !ClrEvent::of(record).is_some_and(ClrEvent::is_stack)
        {
            return;
        }
        let original = record.payload();
        let width = if record.pointer_size() == Some(PointerSize::P4) {
            4
        } else {
            8
        };
        let frames = payload.get_mut(8..).unwrap_or_default();
        for (frame, old) in frames
            .chunks_exact_mut(width)
            .zip(original.get(8..).unwrap_or_default().chunks_exact(width))
        {
            // The decoded part is replaced already: start from the original again.
            frame.copy_from_slice(old);
            self.value(
                self.policy.of(Category::Addresses),
                None,
                ValueKind::Address,
                frame,
            );
        }
        summary.count(Category::Addresses);
    }

    /// Scrubs extended items. Returns the ranges that define the layout of the record.
    fn items(
        &self,
        record: &Record<'_>,
        bytes: &mut [u8],
        payload_at: usize,
        summary: &mut Summary,
    ) -> Vec<Range<usize>> {
        let mut layout = Vec::from([LAYOUT]);
        // Another timestamp would change the order of the trace.
        layout.extend(record.timestamp_range());
        let mut items = record.extended();
        let (mut at, mut more) = (EventHeader::SIZE, record.is_event());
        while more && let Some(RawItem { kind, data }) = items.next_raw() {
            let total = record.bytes().u16_at(at).map_or(8, usize::from);
            layout.push(at..at + 8);
            if let Some(item) = bytes.get_mut(at + 8..at + 8 + data.len()) {
                self.item(kind, item, summary);
            }
            at += total.max(8);
            more = at < payload_at;
        }
        layout
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
            self.value(action, None, ValueKind::Sid, data);
        } else {
            let narrow = matches!(
                kind,
                ExtendedType::STACK_TRACE32 | ExtendedType::STACK_KEY32
            );
            let frames = data.get_mut(8..).unwrap_or_default();
            for frame in frames.chunks_exact_mut(if narrow { 4 } else { 8 }) {
                self.value(action, None, ValueKind::Address, frame);
            }
        }
        if before != data {
            summary.count(category);
        }
    }

    /// Replaces what is private by its pattern: owners of homes, SIDs as text, and known names.
    pub fn patterns(&self, bytes: &mut [u8], summary: &mut Summary) {
        let users = self.policy.of(Category::Users);
        if users != Action::Keep {
            let mut from = 0;
            while let Some((owner, name)) = patterns::home(bytes, from) {
                from = owner.end.max(from + 1);
                if self.cover(bytes, &owner, &name, users, 0, &[]) {
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
                if self.cover(bytes, &found, text, self.policy.of_names(), 0, &[]) {
                    summary.names += 1;
                }
            }
        }
    }

    /// Writes letters over a found text, except for layout bytes. Returns whether any byte changed.
    fn cover(
        &self,
        bytes: &mut [u8],
        found: &Found,
        text: &str,
        action: Action,
        attempt: u32,
        layout: &[Range<usize>],
    ) -> bool {
        let mut letters = self.mask.letters(text, attempt);
        let mut any = false;
        for at in found.start..found.end {
            // In UTF-16 the second byte of each unit becomes 0.
            let high = found.encoding == Encoding::Wide && (at - found.start) % 2 == 1;
            let new = match (high, action) {
                (true, _) => 0,
                (false, Action::Drop) => b'*',
                (false, _) => letters.next().unwrap_or(b'x'),
            };
            if layout.iter().any(|range| range.contains(&at)) {
                continue;
            }
            if let Some(byte) = bytes.get_mut(at) {
                any |= *byte != new;
                *byte = new;
            }
        }
        any
    }

    /// Removes every listed text from a whole record, and the beginning of one at its end.
    pub fn erase(&self, bytes: &mut [u8], layout: &[Range<usize>], summary: &mut Summary) {
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
                // A replacement may spell a text together with the bytes around it.
                (from, rounds) = (0, rounds + 1);
                if rounds > MAX_ATTEMPTS {
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
            let action = if attempt < MAX_ATTEMPTS {
                Action::Hash
            } else {
                Action::Drop
            };
            self.cover(bytes, &found, text, action, attempt + rounds, layout);
            let still = self
                .secrets
                .find(bytes, found.start)
                .is_some_and(|f| f.start < found.end);
            if !still {
                (from, attempt) = (found.end, 0);
            } else if attempt <= MAX_ATTEMPTS {
                attempt += 1;
            } else {
                // None of its bytes may change.
                stuck += 1;
                (from, attempt) = (found.start + 1, 0);
            }
        }
        summary.left += stuck;
        // The gap after a record is filled with zeros, which may belong to a text in UTF-16.
        let len = bytes.len();
        let mut padded = bytes.to_vec();
        padded.resize(len.next_multiple_of(8), 0);
        if let Some((start, encoding)) = self.secrets.find_truncated(&padded, NEXT_RECORD_TEXT)
            && start < len
        {
            let tail = Found {
                text: 0,
                encoding,
                start,
                end: len,
            };
            self.cover(bytes, &tail, "", Action::Drop, 0, layout);
        }
    }
}

/// Bytes of every record that define its kind and layout.
const LAYOUT: Range<usize> = 0..8;

/// Length of a record's header, which is searched for listed texts only.
fn header_len(record: &Record<'_>) -> usize {
    if record.is_event() {
        return EventHeader::SIZE;
    }
    record.bytes().len().saturating_sub(record.payload().len())
}
