//! The current buffer of each processor, and sealed buffers that wait for the file.

use std::collections::VecDeque;

use crate::constants::{BUFFER_HEADER_SIZE, BufferFlags};
use crate::headers::BufferHeader;

/// The current buffer of one processor.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Space for the header, then records; empty if no buffer is in use.
    pub bytes: Vec<u8>,
    /// Number of records in the buffer.
    pub events: u64,
    /// Latest timestamp in the buffer.
    pub latest: Option<i64>,
    /// Loss flags for the next buffer that is sealed.
    pub losses: BufferFlags,
    /// Whether the next record begins a buffer, even if it fits into this one.
    pub is_cut: bool,
    /// Loss flags for the buffer that the next record begins.
    pub carried: BufferFlags,
    /// The number of a relogger's source buffers with lost events whose records are written now.
    pub lossy_sources: u32,
    /// The last timestamped record in the buffer, with the records without timestamp after it.
    pub group: Option<Group>,
    /// Records without a timestamp that wait for a record with the same timestamp.
    pub waiting: VecDeque<Waiting>,
}

/// A timestamped record, and the records after it that readers return with its timestamp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// Where the group begins in the buffer.
    pub offset: usize,
    pub timestamp: i64,
    /// Number of records in the group.
    pub events: u64,
}

/// A record that waits for its position.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The record, aligned.
    pub bytes: Vec<u8>,
    /// The timestamp that readers should return for the record.
    pub timestamp: i64,
}

impl Lane {
    /// Whether the buffer has no records.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= BUFFER_HEADER_SIZE
    }
}

/// A buffer that receives no more records.
#[derive(Debug)]
pub(super) struct Sealed {
    pub bytes: Vec<u8>,
    pub processor: u16,
    pub sequence: i64,
    pub losses: BufferFlags,
    pub current_offset: u32,
    pub events: u64,
    pub latest: Option<i64>,
}

/// A finished buffer that may be the last buffer of the file.
#[derive(Debug)]
pub(super) struct Held {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// A buffer that is being compressed.
#[derive(Debug)]
pub(super) struct PackedBuffer {
    pub header: BufferHeader,
    /// Number of records.
    pub events: u64,
}
