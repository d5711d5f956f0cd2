//! The buffers of a reader: their order, their ranks, and when each is to be opened.

use crate::read::index::BufferEntry;
use crate::read::options::{Order, OrderCheck};

use super::run::{MergeKey, Rank};

/// All buffers, in the order of streams and then of time.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    entries: Vec<BufferEntry>,
    ranks: Vec<Rank>,
    streams: usize,
    order: Order,
    check: OrderCheck,
}

impl Schedule {
    pub fn new(mut entries: Vec<BufferEntry>, order: Order, check: OrderCheck) -> Self {
        let (ranks, streams) = match order {
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
            // All buffers count as those of one processor.
            Order::File => {
                entries.sort_by_key(|e| e.offset);
                (vec![Rank::default(); entries.len()], 1)
            }
        };
        Schedule {
            entries,
            ranks,
            streams,
            order,
            check,
        }
    }

    pub fn entries(&self) -> &[BufferEntry] {
        &self.entries
    }

    pub fn entry(&self, index: usize) -> Option<(BufferEntry, Rank)> {
        Some((*self.entries.get(index)?, *self.ranks.get(index)?))
    }

    pub fn streams(&self) -> usize {
        self.streams
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
        let stream = |index: usize| self.ranks.get(index).map(|rank| rank.stream());
        index
            .checked_sub(1)
            .filter(|&before| stream(before) == stream(index))
    }

    /// When a buffer is opened: at the timestamp of its earliest record if that is known for sure,
    /// else at `lookahead`.
    pub fn key(&self, index: usize, lookahead: i64) -> MergeKey {
        let Some((entry, rank)) = self.entry(index) else {
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

    /// The order in which buffers are probably opened, for reading them ahead.
    pub fn likely_order(&self) -> Vec<usize> {
        let time = |index: usize| {
            let at = match (self.order, self.check) {
                // The entries are sorted by offset, and stay so.
                (Order::File, _) => None,
                (Order::Time, OrderCheck::Scan | OrderCheck::FirstRecord) => Some(index),
                (Order::Time, OrderCheck::Lookahead) => self.predecessor(index),
            };
            at.and_then(|at| self.entries.get(at))
                .map_or(i64::MIN, |entry| entry.first_timestamp.get())
        };
        let mut order: Vec<_> = (0..self.entries.len()).collect();
        order.sort_by_key(|&index| time(index));
        order
    }
}

/// The rank of each buffer among equal timestamps (its stream, and its position there by sequence
/// number), and the number of streams.
fn ranks(entries: &[BufferEntry]) -> (Vec<Rank>, usize) {
    let mut order: Vec<_> = (0..entries.len()).zip(entries).collect();
    order.sort_by_key(|(_, e)| (!e.is_header(), e.processor, e.sequence_number, e.offset));
    let mut ranks = vec![Rank::default(); entries.len()];
    let (mut stream, mut position) = (0u32, 0u32);
    let mut last = None;
    for (index, e) in order {
        let key = (!e.is_header(), e.processor);
        match last {
            Some(last) if last == key => position = position.saturating_add(1),
            Some(_) => (stream, position) = (stream.saturating_add(1), 0),
            None => {}
        }
        last = Some(key);
        if let Some(rank) = ranks.get_mut(index) {
            *rank = Rank::new(stream, position);
        }
    }
    (ranks, stream as usize + 1)
}
