//! Stale records: records that a merge left in the memory of the first buffer.
//!
//! Merges of Windows 10 and later state two ends of the first buffer: `SavedOffset` after the
//! header event, and `Offset` further on. Between them is nearly always a record that another
//! buffer also contains.

use std::collections::HashMap;

use super::damage::{Log, Mode};
use super::index::{BufferEntry, Layout};
use super::loaded::{Loaded, RecordRef};
use super::record::Record;
use super::records::decode;
use super::source::Source;
use crate::Ticks;

/// At most this many records after the header event are searched in other buffers. Merges leave
/// one.
const MAX_RECORDS: usize = 256;

/// Offsets of the stale records in the first buffer, ascending. Only buffers that do not begin
/// after them are searched. Readers find faults again and report them.
pub(super) fn find<S: Source>(
    source: &mut S,
    buffers: &[BufferEntry],
    layout: &Layout,
) -> Vec<u32> {
    let mut stale = Vec::new();
    let Some((first, others)) = buffers.split_first() else {
        return stale;
    };
    if first.header_end == 0 || first.offset != 0 {
        return stale;
    }
    let mut loader = Loader {
        source,
        layout,
        log: Log::new(Mode::Salvage),
        loaded: Loaded::default(),
        scratch: S::Block::default(),
        records: Vec::new(),
    };
    // Offsets of the records that may be stale, by their bytes.
    let mut candidates = HashMap::<Box<[u8]>, u32>::new();
    let mut latest = Ticks::MIN;
    let after_header = loader
        .load(first)
        .filter(|record| record.location().in_buffer >= first.header_end);
    for record in after_header.take(MAX_RECORDS) {
        candidates.insert(record.bytes().into(), record.location().in_buffer);
        latest = latest.max(record.timestamp());
    }
    for entry in others {
        if candidates.is_empty() {
            break;
        }
        if entry.first_timestamp <= latest {
            for record in loader.load(entry) {
                stale.extend(candidates.remove(record.bytes()));
            }
        }
    }
    stale.sort_unstable();
    stale
}

/// Reads buffers, one at a time, into the same memory.
struct Loader<'a, S: Source> {
    source: &'a mut S,
    layout: &'a Layout,
    log: Log,
    loaded: Loaded<S::Block>,
    scratch: S::Block,
    records: Vec<RecordRef>,
}

impl<S: Source> Loader<'_, S> {
    /// The records of a buffer; none if it cannot be read.
    fn load(&mut self, entry: &BufferEntry) -> impl Iterator<Item = Record<'_>> {
        self.records.clear();
        let Loader {
            loaded,
            records,
            log,
            ..
        } = self;
        let read = loaded.read(self.source, entry, &mut self.scratch);
        if read.is_err() || decode(*entry, self.layout, loaded, records, log, false).is_err() {
            records.clear();
        }
        let loaded = &self.loaded;
        self.records.iter().map(|record| loaded.record_at(*record))
    }
}
