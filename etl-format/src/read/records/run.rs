//! A buffer that is being merged, and its rank among the others.

use crate::error::Result;
use crate::read::damage::{Log, Mode};
use crate::read::index::{BufferEntry, Layout};
use crate::read::loaded::{Loaded, RecordRef};

/// Rank of a run among equal timestamps: stream, then buffer within it.
pub(super) type Rank = (u32, u32);

/// The sort key of the merge: timestamp, then rank.
pub(super) type MergeKey = (i64, Rank);

/// The key after all others.
pub(super) const LAST_KEY: MergeKey = (i64::MAX, (u32::MAX, u32::MAX));

/// A buffer that is being merged.
#[derive(Debug)]
pub(super) struct Run<B> {
    pub loaded: Loaded<B>,
    pub rank: Rank,
    /// Its records in the order in which they are returned.
    pub records: Vec<RecordRef>,
    /// How many of them have been returned.
    pub returned: usize,
    /// Bytes that count as held for it.
    pub held: u64,
    /// The largest number of bytes that its memory has held.
    pub capacity: u64,
    /// The faults of this buffer.
    pub log: Log,
}

impl<B: Default> Run<B> {
    pub fn new(mode: Mode) -> Self {
        Run {
            loaded: Loaded::default(),
            rank: (0, 0),
            records: Vec::new(),
            returned: 0,
            held: 0,
            capacity: 0,
            log: Log::new(mode),
        }
    }

    /// Takes the run for another buffer. Memory is used again, but a small buffer must not keep
    /// that of a large one.
    pub fn reset(&mut self, rank: Rank, held: u64) {
        (self.rank, self.held, self.returned) = (rank, held, 0);
        if self.capacity > held.saturating_mul(4).saturating_add(0x1000) {
            (self.loaded, self.records, self.capacity) = (Loaded::default(), Vec::new(), 0);
        }
        self.capacity = self.capacity.max(held);
    }
}

impl<B> Run<B> {
    /// The key of the next record.
    #[inline(always)]
    pub fn key(&self) -> Option<MergeKey> {
        self.records.get(self.returned).map(|next| (next.timestamp, self.rank))
    }
}

/// Decompresses a buffer whose bytes have been read, and finds its records; returns whether they
/// were out of order. With `sort` they are then put in order.
pub(in crate::read) fn decode<B: AsRef<[u8]>>(
    entry: BufferEntry,
    layout: &Layout,
    loaded: &mut Loaded<B>,
    records: &mut Vec<RecordRef>,
    log: &mut Log,
    sort: bool,
) -> Result<bool> {
    loaded.set(entry, layout, log)?;
    let in_order = loaded.find_records(records, &layout.limits, log)?;
    if !in_order && sort {
        records.sort_by_key(|record| record.timestamp);
    }
    Ok(!in_order)
}

/// Bytes that count as held for a buffer before its records are known.
pub(super) fn held_bytes(entry: &BufferEntry) -> u64 {
    u64::from(entry.stored) + if entry.compressed { entry.fill.into() } else { 0 }
}

/// What waits in the merge's heap: the next buffer of a stream, or a run that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waiting {
    /// Index of the entry. Comes first: a buffer is opened before the records it looks ahead of.
    Buffer(usize),
    /// Index of an open run.
    Open(usize),
}
