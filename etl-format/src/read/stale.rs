//! Stale records: what the first buffer of a merge still holds of an earlier use of its memory.
//!
//! Merges of Windows 10 and later state two ends of the first buffer: `SavedOffset` after the
//! header event, and `Offset` further on. What lies between is nearly always a record that another
//! buffer has once more.

use std::collections::HashMap;

use super::damage::{Log, Mode};
use super::index::{BufferEntry, Layout};
use super::loaded::Loaded;
use super::records::decode;
use super::source::Source;

/// Records after the header event that are looked for; merges leave one.
const MAX_RECORDS: usize = 256;

/// Offsets of the stale records in the first buffer, ascending. Only the buffers that begin no
/// later than they do are searched. Faults are left to the readers, which find them again.
pub(super) fn find<S: Source>(
    source: &mut S,
    buffers: &[BufferEntry],
    layout: &Layout,
) -> Vec<u32> {
    let mut stale = Vec::new();
    let Some((first, others)) = buffers.split_first() else {
        return stale;
    };
    if first.saved == 0 || first.offset != 0 {
        return stale;
    }
    let (mut log, mut loaded) = (Log::new(Mode::Salvage), Loaded::<S::Block>::default());
    let mut scratch = S::Block::default();
    let mut records = Vec::new();
    let mut load = |entry: &BufferEntry, loaded: &mut Loaded<S::Block>, records: &mut Vec<_>| {
        let read = loaded.read(source, entry, &mut scratch).is_ok();
        read && decode(*entry, layout, loaded, records, &mut log, false).is_ok()
    };
    // Offsets by the bytes of the records, and the time of the last one.
    let (mut left, mut last) = (HashMap::<Box<[u8]>, u32>::new(), i64::MIN);
    if load(first, &mut loaded, &mut records) {
        let records = records.iter().map(|record| loaded.record_at(*record));
        let after = records.filter(|record| record.location().in_buffer >= first.saved);
        for record in after.take(MAX_RECORDS) {
            left.insert(record.bytes().into(), record.location().in_buffer);
            last = last.max(record.timestamp().get());
        }
    }
    for entry in others
        .iter()
        .filter(|entry| entry.first_timestamp.get() <= last)
    {
        if left.is_empty() {
            break;
        }
        if load(entry, &mut loaded, &mut records) {
            let records = records.iter().map(|record| loaded.record_at(*record));
            stale.extend(records.filter_map(|record| left.remove(record.bytes())));
        }
    }
    stale.sort_unstable();
    stale
}
