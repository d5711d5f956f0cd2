//! What writers prepare once for all events of one head.

use std::ops::Range;

/// The members of a JSON object that all events of a head have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonMembers {
    pub kind: Vec<u8>,
    /// The provider and the numbers of the event.
    pub numbers: Vec<u8>,
    /// How many bytes of `numbers` are about the provider.
    pub provider: usize,
    pub event: Vec<u8>,
}

/// The values of CSV that all events of a head have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct CsvValues {
    /// The values, with a comma after each.
    pub text: Vec<u8>,
    /// The bytes of `text` that belong to each column, by the number of the column.
    pub spans: Vec<Range<usize>>,
}

impl CsvValues {
    /// The bytes of a column; empty if it is not among the values.
    pub fn span(&self, column: usize) -> Range<usize> {
        self.spans.get(column).cloned().unwrap_or_default()
    }

    /// The text in a range of bytes.
    pub fn slice(&self, range: Range<usize>) -> &[u8] {
        self.text.get(range).unwrap_or_default()
    }
}
