//! Records that a merge inserts before a record of its inputs.

use crate::error::Result;
use crate::write::record::Record;

/// Records to be inserted before another one, in their order.
#[derive(Clone, Debug, Default)]
pub struct Insertions {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Insertions {
    /// Adds a record.
    ///
    /// # Errors
    /// If it cannot be encoded, for example because it is too long. Then nothing is added.
    pub fn push(&mut self, record: &impl Record) -> Result<()> {
        let start = self.bytes.len();
        let encoded = record.encode(&mut self.bytes);
        if encoded.is_ok() {
            self.ends.push(self.bytes.len());
        } else {
            self.bytes.truncate(start);
        }
        encoded
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().filter_map(move |&end| {
            let record = self.bytes.get(start..end);
            start = end;
            record
        })
    }
}
