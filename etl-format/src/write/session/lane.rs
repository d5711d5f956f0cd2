//! The buffer that a processor is writing to, and those that wait for the file.

use std::collections::VecDeque;

use crate::constants::{BUFFER_HEADER_SIZE, BufferFlags};

/// The current buffer of one processor.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Room for the header, then records; empty when no buffer is in use.
    pub bytes: Vec<u8>,
    /// Records in it.
    pub events: u64,
    /// Latest timestamp in it.
    pub latest: Option<i64>,
    /// What is to be told of losses by the next buffer that is sealed.
    pub losses: BufferFlags,
    /// The timestamped record that was written last, if any is in it, and those without behind it.
    pub group: Option<Group>,
    /// Records without a timestamp that wait for one with theirs.
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

/// A record that waits for its place.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The record, aligned.
    pub bytes: Vec<u8>,
    /// The timestamp that it is to take over.
    pub moment: i64,
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

/// Finished bytes that wait to learn whether they are the last of the file.
#[derive(Debug)]
pub(super) struct Held {
    pub at: u64,
    pub bytes: Vec<u8>,
}
