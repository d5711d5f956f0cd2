//! Formats the selected records of one trace.

use etl_events::rows::RowWriter;
use etl_events::{EventDecoder, Selection};
use etl_format::read::Record;

/// Formats the selected records of one trace. Clones on several threads format records in the same
/// way if each gets all records with schemas.
#[derive(Clone)]
pub(super) struct Lines<'s> {
    pub(super) decoder: EventDecoder<'s>,
    pub(super) selection: Selection,
    pub(super) rows: RowWriter,
    /// Whether selected records are only counted.
    pub(super) is_count: bool,
}

impl Lines<'_> {
    /// Writes a record if it is selected; returns whether it is.
    #[inline]
    pub(super) fn write(&mut self, out: &mut Vec<u8>, record: &Record<'_>) -> bool {
        if self.is_count {
            self.decoder.learn(record);
            return self.decoder.admits(record, &self.selection);
        }
        let Some(event) = self.decoder.select(record, &self.selection) else {
            return false;
        };
        self.rows.write(out, &event);
        true
    }
}
