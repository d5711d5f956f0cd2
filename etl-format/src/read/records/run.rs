//! A buffer that is being merged, and its rank among the others.

use std::cmp::Ordering;

use crate::error::Result;
use crate::read::damage::{Log, Mode};
use crate::read::index::{BufferEntry, Layout};
use crate::read::loaded::{Loaded, RecordRef};

/// Rank of a run among equal timestamps: stream, then buffer within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rank(u64);

impl Rank {
    /// The rank after all others.
    pub const LAST: Rank = Rank(u64::MAX >> 1);

    pub fn new(stream: u32, position: u32) -> Self {
        Rank(u64::from(stream) << 32 | u64::from(position))
    }

    pub fn stream(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// The sort key of the merge as one number, because the merge compares keys more often than
/// anything else: timestamp, then rank (a trace has far fewer than 2³¹ streams). If both are the
/// same, a buffer that must be opened comes before records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MergeKey(u128);

impl MergeKey {
    /// The key after all others.
    pub const LAST: MergeKey = MergeKey(u128::MAX);

    /// The key of a record in a run of this rank.
    #[inline(always)]
    pub fn record(timestamp: i64, rank: Rank) -> Self {
        MergeKey(Self::buffer(timestamp, rank).0 | 1)
    }

    /// The key of a buffer that must be opened.
    #[inline(always)]
    pub fn buffer(timestamp: i64, rank: Rank) -> Self {
        // The top bit is inverted, so that unsigned numbers have the order of the signed ones.
        MergeKey(u128::from(timestamp.cast_unsigned() ^ 1 << 63) << 64 | u128::from(rank.0 << 1))
    }

    pub fn timestamp(self) -> i64 {
        ((self.0 >> 64) as u64 ^ 1 << 63).cast_signed()
    }
}

/// An item of the merge's heap, which has the smallest key on top: the next buffer of a stream, or
/// a run that is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub key: MergeKey,
    /// The index of the buffer's entry, or of the run.
    pub index: usize,
}

impl Due {
    /// Whether this is an open run, and not a buffer.
    pub fn is_open(self) -> bool {
        self.key.0 & 1 == 1
    }
}

impl PartialEq for Due {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// A buffer that is being merged.
#[derive(Debug)]
pub(super) struct Run<B> {
    pub loaded: Loaded<B>,
    pub rank: Rank,
    /// Its records in the order in which they are returned.
    pub records: Vec<RecordRef>,
    /// How many of them have been returned.
    pub returned: usize,
    /// Bytes in memory for it.
    pub held: u64,
    /// The largest number of bytes that its memory has contained.
    pub capacity: u64,
    /// The faults of this buffer.
    pub log: Log,
}

impl<B: Default> Run<B> {
    pub fn new(mode: Mode) -> Self {
        Run {
            loaded: Loaded::default(),
            rank: Rank::default(),
            records: Vec::new(),
            returned: 0,
            held: 0,
            capacity: 0,
            log: Log::new(mode),
        }
    }

    /// Uses the run for another buffer. Memory is used again, but a small buffer must not keep the
    /// memory of a large one.
    pub fn reset(&mut self, rank: Rank, held: u64) {
        self.rank = rank;
        self.held = held;
        self.returned = 0;
        if self.capacity > held.saturating_mul(4).saturating_add(0x1000) {
            self.loaded = Loaded::default();
            self.records = Vec::new();
            self.capacity = 0;
        }
        self.capacity = self.capacity.max(held);
    }
}

impl<B> Run<B> {
    /// The next record.
    #[inline(always)]
    pub fn next(&self) -> Option<RecordRef> {
        self.records.get(self.returned).copied()
    }

    /// The key of the next record.
    pub fn key(&self) -> Option<MergeKey> {
        let next = self.next()?;
        Some(MergeKey::record(next.timestamp, self.rank))
    }
}

/// Decompresses a buffer whose bytes have been read, and finds its records. Returns whether they
/// were out of order; with `sort` they are then in order.
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

/// Bytes in memory for a buffer, without the positions of its records.
pub(super) fn held_bytes(entry: &BufferEntry) -> u64 {
    let decompressed = if entry.compressed { entry.fill } else { 0 };
    u64::from(entry.stored) + u64::from(decompressed)
}
