//! Copies of records, for later or for another thread.

use super::record::{Record, RecordLocation};
use crate::constants::RecordKind;

/// The fields of a record besides its bytes.
#[derive(Clone, Copy, Debug)]
struct Kept {
    timestamp: i64,
    /// Bytes of the record; there are no longer ones.
    len: u32,
    /// Index of its buffer in the batch.
    buffer: u32,
    in_buffer: u32,
    kind: RecordKind,
    own_timestamp: bool,
    stale: bool,
}

/// Copies of records.
///
/// A reader lends its records one at a time. A batch can go to another thread, which processes it
/// while the reader continues. Its memory can be used again.
///
/// ```
/// use etl_format::read::{RecordBatch, Options, Records, Source};
///
/// /// Processes all records on another thread.
/// fn count<S: Source>(records: &mut Records<S>) -> etl_format::Result<usize> {
///     let (send, take) = std::sync::mpsc::sync_channel::<RecordBatch>(2);
///     std::thread::scope(|scope| {
///         let other = scope.spawn(move || take.iter().map(|b| b.records().count()).sum());
///         let mut batch = RecordBatch::default();
///         while let Some(record) = records.next_record()? {
///             batch.push(&record);
///             if batch.bytes() > 1 << 16 && send.send(std::mem::take(&mut batch)).is_err() {
///                 break;
///             }
///         }
///         let _ = send.send(batch);
///         drop(send);
///         Ok(other.join().unwrap_or(0))
///     })
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RecordBatch {
    bytes: Vec<u8>,
    records: Vec<Kept>,
    /// The location of the first record of each run of records from the same buffer.
    buffers: Vec<RecordLocation>,
}

impl RecordBatch {
    /// Adds a copy of a record.
    #[inline]
    pub fn push(&mut self, record: &Record<'_>) {
        let location = record.location();
        let same = |last: &RecordLocation| {
            RecordLocation {
                in_buffer: location.in_buffer,
                ..*last
            } == location
        };
        if !self.buffers.last().is_some_and(same) {
            self.buffers.push(location);
        }
        self.bytes.extend_from_slice(record.bytes());
        self.records.push(Kept {
            timestamp: record.timestamp().get(),
            len: record.bytes().len() as u32,
            // Memory cannot hold more.
            buffer: (self.buffers.len() - 1) as u32,
            in_buffer: location.in_buffer,
            kind: record.kind(),
            own_timestamp: record.has_own_timestamp(),
            stale: record.is_stale(),
        });
    }

    /// The records, in the order in which they were added.
    #[inline]
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> + '_ {
        let mut rest = self.bytes.as_slice();
        self.records.iter().filter_map(move |kept| {
            let (bytes, remaining) = rest.split_at_checked(kept.len as usize)?;
            rest = remaining;
            let buffer = *self.buffers.get(kept.buffer as usize)?;
            let location = RecordLocation {
                in_buffer: kept.in_buffer,
                ..buffer
            };
            let Kept {
                kind,
                own_timestamp,
                timestamp,
                stale,
                ..
            } = *kept;
            let record = Record::from_parts(bytes, kind, own_timestamp, timestamp, location);
            Some(record.with_stale(stale))
        })
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes of all the records.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes the records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
        self.buffers.clear();
    }
}
