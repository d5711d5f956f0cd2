//! Records of a session without buffers per processor, in the order of time.
//!
//! Operations are simulated in one go, one processor after the other: what happens on another
//! processor meanwhile is simulated later. Such a session keeps its records until nothing earlier
//! can come.

use etl_format::Ticks;
use std::collections::BTreeMap;

use etl_format::write::record::Record;

use crate::time::Nanos;

/// A record that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub processor: u16,
    pub number: u64,
    pub timestamp: Option<Ticks>,
    pub bytes: Vec<u8>,
    /// Its bytes in a buffer.
    pub len: usize,
}

/// The records that wait, by time and number of the event.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    records: BTreeMap<(Nanos, u64), Waiting>,
    len: usize,
}

impl Unsettled {
    /// The bytes of the records in buffers.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn push(
        &mut self,
        at: Nanos,
        processor: u16,
        number: u64,
        record: &impl Record,
        len: usize,
    ) -> etl_format::Result<()> {
        let mut bytes = Vec::with_capacity(len);
        record.encode(&mut bytes)?;
        let timestamp = record.timestamp();
        self.len = self.len.saturating_add(len);
        self.records.insert(
            (at, number),
            Waiting {
                processor,
                number,
                timestamp,
                bytes,
                len,
            },
        );
        Ok(())
    }

    /// Takes the earliest record before a time.
    pub fn pop_before(&mut self, at: Nanos) -> Option<Waiting> {
        let first = self
            .records
            .first_entry()
            .filter(|first| first.key().0 < at)?;
        let record = first.remove();
        self.len = self.len.saturating_sub(record.len);
        Some(record)
    }
}
