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
    /// When it cannot be encoded, for example when it is too long. Nothing is added then.
    pub fn push(&mut self, record: &impl Record) -> Result<()> {
        let from = self.bytes.len();
        match record.encode(&mut self.bytes) {
            Ok(()) => {
                self.ends.push(self.bytes.len());
                Ok(())
            }
            Err(error) => {
                self.bytes.truncate(from);
                Err(error)
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &[u8]> {
        let begins = core::iter::once(0).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .filter_map(|(from, to)| self.bytes.get(from..*to))
    }
}
