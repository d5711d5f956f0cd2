//! Values of CSV that all rows of an event have in common.

use super::column::Column;

/// Whether all rows of an event have the same value in a column. A provider whose name only the
/// trace knows may get it later.
pub(super) const fn is_shared(column: Column) -> bool {
    use Column::{
        Channel, Event, Hook, Id, Keyword, Keywords, Kind, Level, LevelName, Opcode, OpcodeName,
        Provider, ProviderGuid, Task, TaskName, Version,
    };
    matches!(
        column,
        Kind | ProviderGuid
            | Provider
            | Hook
            | Id
            | Version
            | Opcode
            | Task
            | Level
            | Keyword
            | Event
            | Channel
            | OpcodeName
            | TaskName
            | LevelName
            | Keywords
    )
}

/// The values that all rows of an event have in common, as CSV.
#[derive(Clone, Debug)]
pub(super) struct SharedValues {
    /// With a comma after each.
    text: Vec<u8>,
    /// Where each column begins and ends.
    spans: [(usize, usize); Column::ALL.len()],
}

impl SharedValues {
    /// `write` writes the value of a column.
    pub(super) fn new(mut write: impl FnMut(&mut Vec<u8>, Column)) -> Self {
        let (mut text, mut spans) = (Vec::new(), [(0, 0); Column::ALL.len()]);
        for (column, span) in Column::ALL.iter().zip(&mut spans).filter(|(c, _)| is_shared(**c)) {
            let start = text.len();
            write(&mut text, *column);
            *span = (start, text.len());
            text.push(b',');
        }
        SharedValues { text, spans }
    }

    /// Where a column begins and ends.
    pub(super) fn span(&self, column: Column) -> (usize, usize) {
        self.spans.get(column as usize).copied().unwrap_or_default()
    }

    /// The bytes between two places.
    pub(super) fn slice(&self, from: usize, to: usize) -> &[u8] {
        self.text.get(from..to).unwrap_or_default()
    }
}
