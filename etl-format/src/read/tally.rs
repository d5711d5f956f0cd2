//! The damage of a trace whose buffers are read in any order.

use super::damage::{Damage, Log, Mode};
use super::index::BufferEntry;

/// Collects the record counts and the damage of buffers. At the end it computes how many records
/// are before and after each damaged range.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Damage among the buffers, which is found when the trace is opened.
    among_buffers: Vec<Damage>,
    among_records: Vec<RecordDamage>,
    /// The buffers that were read.
    counts: Vec<BufferCount>,
    /// All damage; until it is complete, in the order in which it was found.
    damage: Vec<Damage>,
}

/// Damage among the records of a buffer, with the number of the buffer's records before it.
#[derive(Debug)]
struct RecordDamage {
    /// File offset of the buffer.
    buffer_offset: u64,
    damage: Damage,
}

/// A buffer that was read; ordered by file offset.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BufferCount {
    offset: u64,
    end: u64,
    records: u64,
}

impl Tally {
    /// Starts with the damage found among the buffers.
    pub fn new(buffers: Vec<Damage>) -> Self {
        Tally {
            damage: buffers.clone(),
            among_buffers: buffers,
            among_records: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Adds the result of a buffer that was read to its end.
    pub fn close(&mut self, entry: &BufferEntry, records: u64, damage: Vec<Damage>) {
        let offset = entry.offset;
        self.counts.push(BufferCount {
            offset,
            end: offset.saturating_add(entry.stored.into()),
            records,
        });
        self.damage.extend(damage.iter().cloned());
        for damage in damage {
            self.among_records.push(RecordDamage {
                buffer_offset: offset,
                damage,
            });
        }
    }

    /// Puts the damage in the order of the file and sets the counts.
    pub fn finish(&mut self) {
        if self.among_buffers.is_empty() && self.among_records.is_empty() {
            return;
        }
        let before = RecordsBefore::new(core::mem::take(&mut self.counts));
        let mut log = Log {
            records: before.total,
            ..Log::new(Mode::Salvage)
        };
        for damage in self.among_buffers.drain(..) {
            let records = before.offset(damage.range.start);
            log.damage.push(with_records_before(damage, records));
        }
        for RecordDamage {
            buffer_offset,
            damage,
        } in self.among_records.drain(..)
        {
            let records = before.offset(buffer_offset);
            log.damage.push(with_records_before(damage, records));
        }
        log.finish();
        self.damage = log.damage;
    }

    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

fn with_records_before(mut damage: Damage, records: u64) -> Damage {
    damage.records_before = damage.records_before.saturating_add(records);
    damage
}

/// Numbers of records before offsets in the file.
struct RecordsBefore {
    /// Each buffer with the number of records before it.
    buffers: Vec<BufferCount>,
    /// Records of all buffers.
    total: u64,
}

impl RecordsBefore {
    fn new(mut buffers: Vec<BufferCount>) -> Self {
        buffers.sort_unstable();
        let mut total = 0u64;
        for buffer in &mut buffers {
            let before = total;
            total = total.saturating_add(buffer.records);
            buffer.records = before;
        }
        RecordsBefore { buffers, total }
    }

    /// Records in the buffers that end at or before an offset.
    fn offset(&self, offset: u64) -> u64 {
        let index = self.buffers.partition_point(|buffer| buffer.end <= offset);
        match self.buffers.get(index) {
            Some(buffer) => buffer.records,
            None => self.total,
        }
    }
}
