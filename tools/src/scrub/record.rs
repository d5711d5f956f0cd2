//! Scrubbing of one record: its decoded fields, its extended items, and then all of its bytes.

use std::ops::Range;

use etl_format::constants::{ExtendedType, PointerSize};
use etl_format::cursor::Bytes;
use etl_format::read::{EventHeader, RawItem, Record};
use etl_schema::store::SchemaStore;

use super::fields::{RecordScrubber, Treatment, ValueKind};
use super::matcher::{Encoding, Found};
use super::patterns;
use super::policy::{Action, Category};
use super::resize::Resized;
use super::summary::Summary;
use crate::slice::ClrEvent;

/// Attempts to find a replacement that does not spell a listed text by chance.
const MAX_ATTEMPTS: u32 = 16;

/// Bytes of the next record that could continue a text: its size, and one more. A marker that is
/// not text follows them.
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
        let payload_start = record.bytes().len().saturating_sub(record.payload().len());
        let resized = match self.max_size {
            Some(max_size) => self.resized(record, store, max_size, summary),
            None => None,
        };
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
                let payload = out.get_mut(start + payload_start..).unwrap_or_default();
                self.fields(record, store, payload, false, summary);
                Vec::new()
            }
        };
        let bytes = out.get_mut(start..).unwrap_or_default();
        let payload = bytes.get_mut(payload_start..).unwrap_or_default();
        self.clr_stack(record, payload, summary);
        let layout = self.items(record, bytes, payload_start, summary);
        // Texts that were encoded again are searched already.
        let mut from = header_len(record);
        for text in texts {
            self.patterns(bytes.get_mut(from..text.start).unwrap_or_default(), summary);
            from = text.end;
        }
        self.patterns(bytes.get_mut(from..).unwrap_or_default(), summary);
        // Text that runs into the header of an extended item must not change it.
        for range in &layout {
            if range.start >= header_len(record)
                && let Some(new) = bytes.get_mut(range.clone())
                && let Some(old) = record.bytes().get(range.clone())
            {
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
        let action = self.policy.of(Category::Addresses);
        let is_stack = ClrEvent::of(record).is_some_and(ClrEvent::is_stack);
        if action == Action::Keep || !is_stack {
            return;
        }
        let width = if record.pointer_size() == Some(PointerSize::P4) {
            4
        } else {
            8
        };
        let frames = payload.get_mut(8..).unwrap_or_default();
        let original = record.payload().get(8..).unwrap_or_default();
        for (frame, old) in frames
            .chunks_exact_mut(width)
            .zip(original.chunks_exact(width))
        {
            // The frames that were decoded are replaced already: start from the original again.
            frame.copy_from_slice(old);
            self.replace_value(Treatment::of_whole(action), ValueKind::Address, frame);
        }
        summary.count(Category::Addresses);
    }

    /// Scrubs extended items. Returns the ranges that define the layout of the record.
    fn items(
        &self,
        record: &Record<'_>,
        bytes: &mut [u8],
        payload_start: usize,
        summary: &mut Summary,
    ) -> Vec<Range<usize>> {
        let mut layout = Vec::from([LAYOUT]);
        // Another timestamp would change the order of the trace.
        layout.extend(record.timestamp_range());
        if !record.is_event() {
            return layout;
        }
        let mut items = record.extended();
        let mut offset = EventHeader::SIZE;
        while let Some(RawItem { kind, data }) = items.next_raw() {
            let size = record.bytes().u16_at(offset).map_or(8, usize::from);
            let data_start = offset + 8;
            layout.push(offset..data_start);
            if let Some(item) = bytes.get_mut(data_start..data_start + data.len()) {
                self.item(kind, item, summary);
            }
            offset += size.max(8);
            if offset >= payload_start {
                break;
            }
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
        let treatment = Treatment::of_whole(self.policy.of(category));
        if category == Category::Sids {
            self.replace_value(treatment, ValueKind::Sid, data);
        } else {
            let narrow = matches!(
                kind,
                ExtendedType::STACK_TRACE32 | ExtendedType::STACK_KEY32
            );
            let frames = data.get_mut(8..).unwrap_or_default();
            for frame in frames.chunks_exact_mut(if narrow { 4 } else { 8 }) {
                self.replace_value(treatment, ValueKind::Address, frame);
            }
        }
        if before != data {
            summary.count(category);
        }
    }

    /// Replaces patterns of private data: owners of homes, SIDs as text, and the names of users and
    /// machines.
    pub fn patterns(&self, bytes: &mut [u8], summary: &mut Summary) {
        let users = self.policy.of(Category::Users);
        if users != Action::Keep {
            let mut from = 0;
            while let Some(home) = patterns::home(bytes, from) {
                from = home.owner.end.max(from + 1);
                if self.cover(bytes, &home.owner, &home.name, users, 0, &[]) {
                    summary.count(Category::Users);
                }
            }
        }
        self.replace_sids(bytes, summary);
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

    /// Replaces SIDs in text.
    pub fn replace_sids(&self, bytes: &mut [u8], summary: &mut Summary) {
        if self.policy.of(Category::Sids) == Action::Keep {
            return;
        }
        let mut from = 0;
        while let Some(sid) = patterns::sid_text(self.mask, bytes, from) {
            from = sid.end.max(from + 1);
            summary.count(Category::Sids);
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
        let mut has_changed = false;
        for offset in found.start..found.end {
            // In UTF-16 the second byte of each unit becomes 0.
            let is_high = found.encoding == Encoding::Wide && (offset - found.start) % 2 == 1;
            let new = match action {
                _ if is_high => 0,
                Action::Drop => b'*',
                _ => letters.next().unwrap_or(b'x'),
            };
            if layout.iter().any(|range| range.contains(&offset)) {
                continue;
            }
            if let Some(byte) = bytes.get_mut(offset) {
                has_changed |= *byte != new;
                *byte = new;
            }
        }
        has_changed
    }

    /// Removes every listed text from a whole record, and the beginning of a text at its end.
    pub fn erase(&self, bytes: &mut [u8], layout: &[Range<usize>], summary: &mut Summary) {
        if self.secrets.is_empty() {
            return;
        }
        self.erase_whole_texts(bytes, layout, summary);
        self.erase_truncated_text(bytes, layout);
    }

    fn erase_whole_texts(&self, bytes: &mut [u8], layout: &[Range<usize>], summary: &mut Summary) {
        let mut from = 0;
        let mut attempt = 0;
        let mut rounds = 0;
        // Texts in bytes that cannot be changed.
        let mut left = 0;
        loop {
            let Some(found) = self.secrets.find(bytes, from) else {
                if from == 0 || left > 0 {
                    break;
                }
                // A replacement may spell a text together with the bytes around it.
                from = 0;
                rounds += 1;
                if rounds > MAX_ATTEMPTS {
                    left += 1;
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
            let next = self.secrets.find(bytes, found.start);
            let is_erased = next.is_none_or(|next| next.start >= found.end);
            if is_erased {
                from = found.end;
                attempt = 0;
            } else if attempt <= MAX_ATTEMPTS {
                attempt += 1;
            } else {
                // None of its bytes may change.
                left += 1;
                from = found.start + 1;
                attempt = 0;
            }
        }
        summary.left += left;
    }

    /// Erases the beginning of a text at the end of a record.
    fn erase_truncated_text(&self, bytes: &mut [u8], layout: &[Range<usize>]) {
        // The gap after a record is filled with zeros, which may belong to a text in UTF-16.
        let len = bytes.len();
        let mut padded = bytes.to_vec();
        padded.resize(len.next_multiple_of(8), 0);
        if let Some(text) = self.secrets.find_truncated(&padded, NEXT_RECORD_TEXT)
            && text.start < len
        {
            let tail = Found {
                text: 0,
                encoding: text.encoding,
                start: text.start,
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
