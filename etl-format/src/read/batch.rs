//! Copies of records, for later or for another thread.

use super::record::{Record, RecordInfo, RecordLocation};
use crate::constants::RecordKind;

/// The fields of a record in a batch, except its bytes.
#[derive(Clone, Copy, Debug)]
struct Copied {
    timestamp: i64,
    /// Bytes of the record.
    len: u32,
    /// Index of its buffer in the batch.
    buffer: u32,
    in_buffer: u32,
    kind: RecordKind,
    has_own_timestamp: bool,
    is_stale: bool,
}

/// Copies of records.
///
/// A reader lends its records one at a time. A batch can be sent to another thread, which processes
/// it while the reader continues. Its memory can be used again.
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
    records: Vec<Copied>,
    /// A new entry for each run of records from the same buffer: the location of the first record.
    buffers: Vec<RecordLocation>,
}

impl RecordBatch {
    /// Adds a copy of a record.
    #[inline]
    pub fn push(&mut self, record: &Record<'_>) {
        let location = record.location();
        let in_buffer = location.in_buffer;
        let is_same_buffer = match self.buffers.last() {
            Some(&first) => RecordLocation { in_buffer, ..first } == location,
            None => false,
        };
        if !is_same_buffer {
            self.buffers.push(location);
        }
        self.bytes.extend_from_slice(record.bytes());
        self.records.push(Copied {
            timestamp: record.timestamp().get(),
            len: record.bytes().len() as u32,
            // More buffers do not fit into memory.
            buffer: (self.buffers.len() - 1) as u32,
            in_buffer,
            kind: record.kind(),
            has_own_timestamp: record.has_own_timestamp(),
            is_stale: record.is_stale(),
        });
    }

    /// The records, in the order in which they were added.
    #[inline]
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> + '_ {
        let mut rest = self.bytes.as_slice();
        self.records.iter().filter_map(move |copied| {
            let (bytes, remaining) = rest.split_at_checked(copied.len as usize)?;
            rest = remaining;
            let first_in_buffer = *self.buffers.get(copied.buffer as usize)?;
            let info = RecordInfo {
                kind: copied.kind,
                has_own_timestamp: copied.has_own_timestamp,
                is_stale: copied.is_stale,
                timestamp: copied.timestamp,
                location: RecordLocation {
                    in_buffer: copied.in_buffer,
                    ..first_in_buffer
                },
            };
            Some(Record::with_info(bytes, info))
        })
    }

    /// The number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether the batch contains no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes of all records together.
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
