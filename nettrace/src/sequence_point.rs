//! Sequence points: how many events each thread has captured so far.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::frame::Encoding;
use crate::time::Ticks;

/// States the number of the last event of each thread. All events before it in the stream are
/// earlier, all events after it are later.
///
/// The stacks and label lists before it are forgotten. [`LossTracker`](crate::LossTracker) finds
/// lost events with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SequencePoint {
    /// File offset of its content.
    pub offset: u64,
    /// Its time.
    pub timestamp: Ticks,
    /// The threads that have captured events. one_collect names none.
    pub threads: Vec<ThreadSequence>,
    /// Whether all threads of version 6 are forgotten.
    pub forgets_threads: bool,
    /// Whether all metadata is forgotten. In version 6 only.
    pub forgets_metadata: bool,
}

/// How many events a thread has captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSequence {
    /// The thread, as [`Event::capture_thread`](crate::Event::capture_thread).
    pub capture_thread: u64,
    /// The number of its last event, lost events included. The first event has number 1.
    pub sequence_number: u32,
}

impl SequencePoint {
    /// `limit` is the memory that its threads may take.
    pub(crate) fn read(cursor: &mut Cursor<'_>, encoding: Encoding, limit: u64) -> Result<Self> {
        const FORGETS_THREADS: u32 = 1;
        const FORGETS_METADATA: u32 = 2;
        let offset = cursor.offset();
        let timestamp = Ticks::new(cursor.i64("the time of a sequence point")?);
        let flags = match encoding {
            Encoding::Objects => 0,
            Encoding::Blocks => cursor.u32("the flags of a sequence point")?,
        };
        let count = cursor.u32("the number of threads of a sequence point")?;
        let mut threads = Vec::new();
        for _ in 0..count {
            threads.push(ThreadSequence::read(cursor, encoding)?);
            let need = size_of_val(threads.as_slice()) as u64;
            if need > limit {
                return Err(Error::limit(
                    offset,
                    "the threads of a sequence point",
                    need,
                    limit,
                ));
            }
        }
        Ok(SequencePoint {
            offset,
            timestamp,
            threads,
            forgets_threads: flags & FORGETS_THREADS != 0,
            forgets_metadata: flags & FORGETS_METADATA != 0,
        })
    }
}

impl ThreadSequence {
    fn read(cursor: &mut Cursor<'_>, encoding: Encoding) -> Result<Self> {
        let thread = "a thread of a sequence point";
        let number = "the sequence number of a thread";
        Ok(match encoding {
            Encoding::Objects => ThreadSequence {
                capture_thread: cursor.u64(thread)?,
                sequence_number: cursor.u32(number)?,
            },
            Encoding::Blocks => ThreadSequence {
                capture_thread: cursor.var64(thread)?,
                sequence_number: cursor.var32(number)?,
            },
        })
    }
}
