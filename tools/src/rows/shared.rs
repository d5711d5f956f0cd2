//! Values of CSV that all rows of an event have in common.

use std::ops::RangeInclusive;

use super::columns::Column;
use super::row::Row;

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
    /// Those of the event of a row.
    fn of(row: &Row<'_>, escape: fn(&mut Vec<u8>, &str)) -> Self {
        let (mut text, mut spans) = (Vec::new(), [(0, 0); Column::ALL.len()]);
        for (column, span) in Column::ALL.iter().zip(&mut spans).filter(|(c, _)| is_shared(**c)) {
            let start = text.len();
            match column {
                Column::Kind => row.write_kind(&mut text),
                Column::Keywords => escape(&mut text, &row.head.keyword_names()),
                column => row.head.cell(*column).write(&mut text, b"", escape),
            }
            *span = (start, text.len());
            text.push(b',');
        }
        SharedValues { text, spans }
    }

    fn span(&self, column: Column) -> (usize, usize) {
        self.spans.get(column as usize).copied().unwrap_or_default()
    }
}

impl Row<'_> {
    /// Writes the values of columns that follow each other and are shared.
    pub(super) fn write_shared(
        &self,
        out: &mut Vec<u8>,
        columns: &RangeInclusive<Column>,
        escape: fn(&mut Vec<u8>, &str),
    ) {
        let head = self.head;
        let values = head.values.get_or_init(|| Box::new(SharedValues::of(self, escape)));
        let slice = |from, to| values.text.get(from..to).unwrap_or_default();
        let (mut start, end) = (values.span(*columns.start()).0, values.span(*columns.end()).1);
        if head.provider.is_some()
            && head.provider_name.is_none()
            && columns.contains(&Column::Provider)
        {
            let provider = values.span(Column::Provider).0;
            out.extend_from_slice(slice(start, provider));
            escape(out, self.provider_name().unwrap_or_default());
            start = provider;
        }
        out.extend_from_slice(slice(start, end));
    }
}
