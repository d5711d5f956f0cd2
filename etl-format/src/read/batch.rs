//! Records kept for a while, or handed to another thread.

use super::record::{Place, Record};
use crate::constants::RecordKind;

/// What is kept of a record besides its bytes.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// Offset behind its bytes in the batch.
    end: usize,
    stamp: i64,
    place: Place,
    kind: RecordKind,
    own_stamp: bool,
}

/// Copies of records, one behind the other.
///
/// A reader lends its records one at a time; a batch of them can be given to another thread, which
/// looks at them while the reader goes on. Its memory can be used again.
///
/// ```
/// use etl_format::read::{Batch, Options, Ordered, Source};
///
/// /// Looks at all records on a thread of its own.
/// fn count<S: Source>(records: &mut Ordered<S>) -> etl_format::Result<usize> {
///     let (send, take) = std::sync::mpsc::sync_channel::<Batch>(2);
///     std::thread::scope(|scope| {
///         let other = scope.spawn(move || take.iter().map(|b| b.records().count()).sum());
///         let mut batch = Batch::default();
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
pub struct Batch {
    bytes: Vec<u8>,
    records: Vec<Kept>,
}

impl Batch {
    /// Adds a copy of a record.
    #[inline]
    pub fn push(&mut self, record: &Record<'_>) {
        self.bytes.extend_from_slice(record.bytes());
        self.records.push(Kept {
            end: self.bytes.len(),
            stamp: record.stamp(),
            place: record.place(),
            kind: record.kind(),
            own_stamp: record.has_own_stamp(),
        });
    }

    /// The records, in the order in which they were added.
    #[inline]
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> + '_ {
        let mut at = 0;
        self.records.iter().map(move |&Kept { end, stamp, place, kind, own_stamp }| {
            let bytes = self.bytes.get(at..end).unwrap_or_default();
            at = end;
            Record::from_parts(bytes, kind, own_stamp, stamp, place)
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

    /// Forgets the records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }
}
