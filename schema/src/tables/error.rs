//! Errors in tables, and the numbers in them.

/// An error in a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct TableError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl TableError {
    pub(super) fn new(file: &str, line: usize, what: String) -> Self {
        TableError {
            file: file.to_owned(),
            line,
            what,
        }
    }
}

/// Reads a number; the error states what is wrong with it.
pub(super) fn number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    etl_format::parse_number(text)
        .ok_or_else(|| format!("{text} is not a number, or too large here"))
}
