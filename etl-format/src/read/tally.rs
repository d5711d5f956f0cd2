//! The damage map of a reader that reads buffers in any order.

use super::damage::{Damage, Log, Mode};
use super::index::BufferEntry;

/// Collects the record counts and faults of buffers. At the end it computes how many records
/// precede and follow each fault.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Faults among the buffers: known from the start.
    buffers: Vec<Damage>,
    /// Faults among records: offset of the buffer, and the fault with the records before it there.
    records: Vec<(u64, Damage)>,
    /// Offset, end and records of each buffer that was read.
    counts: Vec<(u64, u64, u64)>,
    /// The map: until it is complete, the faults in the order in which they were found.
    map: Vec<Damage>,
}

impl Tally {
    /// Starts with the damage found among the buffers.
    pub fn new(buffers: Vec<Damage>) -> Self {
        let map = buffers.clone();
        Tally {
            buffers,
            records: Vec::new(),
            counts: Vec::new(),
            map,
        }
    }

    /// Adds the result of a buffer that was read to its end.
    pub fn close(&mut self, entry: &BufferEntry, records: u64, damage: Vec<Damage>) {
        let offset = entry.offset;
        self.counts
            .push((offset, offset.saturating_add(entry.stored.into()), records));
        self.map.extend(damage.iter().cloned());
        self.records
            .extend(damage.into_iter().map(|damage| (offset, damage)));
    }

    /// Puts the map in file order and fills in the counts.
    pub fn finish(&mut self) {
        if self.buffers.is_empty() && self.records.is_empty() {
            return;
        }
        self.counts.sort_unstable();
        let mut sum = 0u64;
        for (_, _, count) in &mut self.counts {
            let before = sum;
            sum = sum.saturating_add(*count);
            *count = before;
        }
        // Records in the buffers that end before `offset`.
        let before = |offset: u64| {
            let n = self.counts.partition_point(|&(_, end, _)| end <= offset);
            self.counts.get(n).map_or(sum, |&(_, _, before)| before)
        };
        let buffers = self
            .buffers
            .drain(..)
            .map(|damage| (before(damage.range.start), damage));
        let records = self
            .records
            .drain(..)
            .map(|(offset, damage)| (before(offset), damage));
        let mut log = Log {
            records: sum,
            ..Log::new(Mode::Salvage)
        };
        log.damage = buffers
            .chain(records)
            .map(|(before, damage)| Damage {
                records_before: damage.records_before.saturating_add(before),
                ..damage
            })
            .collect();
        log.finish();
        self.map = log.damage;
    }

    pub fn map(&self) -> &[Damage] {
        &self.map
    }
}
