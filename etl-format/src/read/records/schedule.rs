//! The buffers of a reader: their order, their ranks, and when each must be opened.

use crate::read::index::BufferEntry;
use crate::read::options::{Order, OrderCheck};

use super::run::{MergeKey, Rank};

/// All buffers, in the order of streams and then of time.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    entries: Vec<BufferEntry>,
    ranks: Vec<Rank>,
    order: Order,
    check: OrderCheck,
}

/// A buffer of a schedule.
pub(super) struct Scheduled {
    pub entry: BufferEntry,
    pub rank: Rank,
}

impl Schedule {
    pub fn new(mut entries: Vec<BufferEntry>, order: Order, check: OrderCheck) -> Self {
        let ranks = match order {
            // Time within a stream comes first, so that a wrapped or shuffled file is put in order
            // by the timestamps of its records.
            Order::Time => {
                entries.sort_by_key(|e| {
                    (
                        !e.is_header(),
                        e.processor,
                        e.first_timestamp,
                        e.sequence_number,
                        e.offset,
                    )
                });
                ranks(&entries)
            }
            // All buffers belong to one stream.
            Order::File => {
                entries.sort_by_key(|e| e.offset);
                vec![Rank::default(); entries.len()]
            }
        };
        Schedule {
            entries,
            ranks,
            order,
            check,
        }
    }

    pub fn entries(&self) -> &[BufferEntry] {
        &self.entries
    }

    pub fn get(&self, index: usize) -> Option<Scheduled> {
        Some(Scheduled {
            entry: *self.entries.get(index)?,
            rank: *self.ranks.get(index)?,
        })
    }

    /// The number of streams, at least 1.
    pub fn streams(&self) -> usize {
        let last = self.ranks.iter().map(|rank| rank.stream()).max();
        last.unwrap_or(0) + 1
    }

    /// Whether records of a buffer are sorted by time.
    pub fn sorts(&self) -> bool {
        self.order == Order::Time
    }

    /// The first buffers of all streams.
    pub fn first_of_streams(&self) -> Vec<usize> {
        (0..self.ranks.len())
            .filter(|&index| self.predecessor(index).is_none())
            .collect()
    }

    /// The buffer after this one in its stream.
    pub fn successor(&self, index: usize) -> Option<usize> {
        let next = index + 1;
        (self.predecessor(next)? == index).then_some(next)
    }

    fn predecessor(&self, index: usize) -> Option<usize> {
        let before = index.checked_sub(1)?;
        (self.stream(before) == self.stream(index)).then_some(before)
    }

    fn stream(&self, index: usize) -> Option<usize> {
        self.ranks.get(index).map(|rank| rank.stream())
    }

    /// When a buffer is opened: at the timestamp of its earliest record if that is certain,
    /// otherwise at `lookahead`.
    pub fn key(&self, index: usize, lookahead: i64) -> MergeKey {
        let Some(Scheduled { entry, rank }) = self.get(index) else {
            return MergeKey::buffer(i64::MAX, Rank::LAST);
        };
        match (self.order, self.check) {
            // After the last record of the current buffer.
            (Order::File, _) => MergeKey::buffer(i64::MAX, Rank::LAST),
            (Order::Time, OrderCheck::Scan | OrderCheck::FirstRecord) => {
                MergeKey::buffer(entry.first_timestamp.get(), rank)
            }
            // Before the record with that timestamp.
            (Order::Time, OrderCheck::Lookahead) => MergeKey::buffer(lookahead, Rank::default()),
        }
    }

    /// The order in which buffers are probably opened, to read them ahead.
    pub fn likely_order(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.entries.len()).collect();
        order.sort_by_key(|&index| self.likely_time(index));
        order
    }

    /// The timestamp at which a buffer is probably opened.
    fn likely_time(&self, index: usize) -> i64 {
        let index = match (self.order, self.check) {
            // The entries are sorted by offset, and stay so.
            (Order::File, _) => None,
            (Order::Time, OrderCheck::Scan | OrderCheck::FirstRecord) => Some(index),
            (Order::Time, OrderCheck::Lookahead) => self.predecessor(index),
        };
        let entry = index.and_then(|index| self.entries.get(index));
        entry.map_or(i64::MIN, |entry| entry.first_timestamp.get())
    }
}

/// The rank of each buffer among equal timestamps: its stream, and its position there by sequence
/// number.
fn ranks(entries: &[BufferEntry]) -> Vec<Rank> {
    let mut order: Vec<_> = (0..entries.len()).zip(entries).collect();
    order.sort_by_key(|(_, e)| (!e.is_header(), e.processor, e.sequence_number, e.offset));
    let mut ranks = vec![Rank::default(); entries.len()];
    let mut stream = 0u32;
    let mut position = 0u32;
    let mut last_key = None;
    for (index, e) in order {
        let key = (!e.is_header(), e.processor);
        match last_key {
            Some(last_key) if last_key == key => position = position.saturating_add(1),
            Some(_) => {
                stream = stream.saturating_add(1);
                position = 0;
            }
            None => {}
        }
        last_key = Some(key);
        if let Some(rank) = ranks.get_mut(index) {
            *rank = Rank::new(stream, position);
        }
    }
    ranks
}
