//! The scan of buffers before they are read in time order: earliest timestamp, and whether sorted.

use std::sync::Arc;

use crate::Ticks;
use crate::constants::BUFFER_HEADER_SIZE;
use crate::error::{Error, Result};
use crate::read::damage::{Log, Mode};
use crate::read::index::{BufferEntry, Layout};
use crate::read::loaded::{Loaded, RecordRef};
use crate::read::source::Source;

use super::prefetch::{MAX_THREADS, MIN_BUFFERS, Prefetcher};
use super::run::decode;

/// Sets the first timestamp of the selected buffers to the earliest of all their records, and
/// whether their records are out of order. Up to `threads - 1` other threads decompress.
pub(in crate::read) fn scan<S: Source>(
    source: &mut S,
    entries: &mut [BufferEntry],
    layout: &Layout,
    mode: Mode,
    threads: usize,
    selected: impl Fn(&BufferEntry) -> bool,
) -> Result<()> {
    let others = threads.saturating_sub(1).min(MAX_THREADS);
    let compressed = entries
        .iter()
        .filter(|entry| entry.compressed && selected(entry))
        .count();
    if others == 0 || compressed < MIN_BUFFERS {
        return scan_here(source, entries, layout, mode, selected);
    }
    let mut order = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        if selected(entry) && !is_empty(entry) {
            order.push(index);
        }
    }
    std::thread::scope(|scope| {
        let layout = Arc::new(layout.clone());
        let mut prefetcher = Prefetcher::<S::Block>::new(order, &layout, mode, false);
        prefetcher.start(scope, others);
        for index in 0..entries.len() {
            if !entries.get(index).is_some_and(&selected) {
                continue;
            }
            match prefetcher.take(index, entries, source) {
                Some(mut job) => {
                    let unordered = job.sorted?;
                    job.log.check()?;
                    if let Some(entry) = entries.get_mut(index) {
                        entry.unordered = unordered;
                        entry.first_timestamp =
                            Ticks::new(earliest(&job.records).unwrap_or(layout.start));
                    }
                    prefetcher.recycle(job.loaded, job.records);
                }
                None => {
                    let entry = entries.get_mut(index..=index).unwrap_or_default();
                    scan_here(source, entry, &layout, mode, |_| true)?;
                }
            }
        }
        Ok(())
    })
}

fn scan_here<S: Source>(
    source: &mut S,
    entries: &mut [BufferEntry],
    layout: &Layout,
    mode: Mode,
    selected: impl Fn(&BufferEntry) -> bool,
) -> Result<()> {
    let mut loaded = Loaded::<S::Block>::default();
    let mut scratch = S::Block::default();
    let mut records = Vec::new();
    for entry in entries.iter_mut().filter(|entry| selected(entry)) {
        records.clear();
        if !is_empty(entry) {
            // Reading the records finds these faults again and reports them.
            let mut log = Log::new(mode);
            let read = loaded.read(source, entry, &mut scratch);
            read.map_err(|e| Error::new(entry.offset, e.into()))?;
            let unordered = decode(*entry, layout, &mut loaded, &mut records, &mut log, false)?;
            log.check()?;
            entry.unordered = unordered;
        }
        entry.first_timestamp = Ticks::new(earliest(&records).unwrap_or(layout.start));
    }
    Ok(())
}

/// Whether the buffer has no records, and is not read.
fn is_empty(entry: &BufferEntry) -> bool {
    entry.fill as usize <= BUFFER_HEADER_SIZE
}

fn earliest(records: &[RecordRef]) -> Option<i64> {
    records.iter().map(|record| record.timestamp).min()
}
