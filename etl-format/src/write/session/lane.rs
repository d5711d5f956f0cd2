//! The current buffer of each processor, and sealed buffers that wait for the file.

use std::collections::VecDeque;

use crate::constants::{BUFFER_HEADER_SIZE, BufferFlags};

/// The current buffer of one processor.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Space for the header, then records; empty when no buffer is in use.
    pub bytes: Vec<u8>,
    /// Records in it.
    pub events: u64,
    /// Latest timestamp in it.
    pub latest: Option<i64>,
    /// Loss flags for the next buffer that is sealed.
    pub losses: BufferFlags,
    /// Whether the next record begins a buffer, even if it fits into this one.
    pub is_cut: bool,
    /// Loss flags for that buffer.
    pub carried: BufferFlags,
    /// In how many buffers of a relogger's sources events were lost whose records are written now.
    pub lossy: u32,
    /// The last timestamped record in it, with the records without timestamp after it.
    pub group: Option<Group>,
    /// Records without a timestamp that wait for a record with the same timestamp.
    pub waiting: VecDeque<Waiting>,
}

/// A timestamped record and those that take over its timestamp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// Where it begins in the buffer.
    pub at: usize,
    /// Its timestamp.
    pub timestamp: i64,
    /// Records in it.
    pub events: u64,
}

/// A record that waits for its position.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The record, aligned.
    pub bytes: Vec<u8>,
    /// The timestamp that it should take over.
    pub timestamp: i64,
}

impl Lane {
    /// Whether there is anything to seal.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= BUFFER_HEADER_SIZE
    }
}

/// A buffer that takes no more records.
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

/// A finished buffer that may be the last of the file.
#[derive(Debug)]
pub(super) struct Held {
    pub at: u64,
    pub bytes: Vec<u8>,
}
