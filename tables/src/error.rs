//! The error of this crate.

use arrow_schema::ArrowError;
use etl_format::ErrorKind;

/// Why a table cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] etl_format::Error),
    /// The trace cannot be read as a recording of a machine.
    #[error(transparent)]
    Recording(#[from] etl_analysis::Error),
    /// There is no such table.
    #[error("no table `{0}`: the tables are {known}, and PROVIDER.EVENT for the events of one kind", known = crate::tables::names())]
    NoTable(String),
    /// The table has no such column.
    #[error("table `{table}` has no column `{column}`: it has {known}")]
    NoColumn {
        /// The table.
        table: String,
        /// The column that was asked for.
        column: String,
        /// The columns that it has.
        known: String,
    },
    /// No event of this kind is in the trace.
    #[error("the trace has no event `{0}` whose fields are known")]
    NoEvent(String),
    /// The trace cannot be verified.
    #[error(transparent)]
    Verify(etl_verify::Error),
    /// A batch cannot be made or written.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// A file cannot be written.
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(std::io::Error),
    /// An entry of a data set cannot be read.
    #[error("{0}: this is not an entry of a data set: {1}")]
    NoEntry(String, String),
    /// A data set was written with other tables.
    #[error("the data set has {0} with version {1} of the tables; write to a new folder")]
    OtherVersion(String, u32),
    /// A data set has a trace with another selection of rows.
    #[error("the data set has {0} with another selection ({words}); write to another folder", words = words(.1))]
    OtherSelection(String, String),
    /// Another process writes to the data set.
    #[error("{0}: another process writes to this data set")]
    Locked(String),
    /// A Parquet file cannot be written.
    #[cfg(feature = "parquet")]
    #[error(transparent)]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The batches have no reader any more.
    #[error("the batches have no reader any more")]
    Stopped,
}

impl Error {
    /// Whether more memory would help: the trace, or what is made of it, exceeds its limits.
    #[must_use]
    pub fn needs_memory(&self) -> bool {
        match self.trace_error() {
            Some(error) => matches!(
                error.kind,
                ErrorKind::Limit { .. } | ErrorKind::Budget { .. }
            ),
            None => false,
        }
    }

    /// The error of reading the trace, if that is the reason.
    #[must_use]
    pub fn trace_error(&self) -> Option<&etl_format::Error> {
        match self {
            Error::Trace(error) => Some(error),
            Error::Recording(error) | Error::Verify(etl_verify::Error::Trace(error)) => {
                std::error::Error::source(error)?.downcast_ref()
            }
            Error::Arrow(ArrowError::ExternalError(error)) => {
                error.downcast_ref::<Error>()?.trace_error()
            }
            _ => None,
        }
    }
}

/// The result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        match error {
            Error::Arrow(error) => error,
            error => ArrowError::ExternalError(Box::new(error)),
        }
    }
}

/// A selection in words.
fn words(selection: &str) -> String {
    if selection.is_empty() {
        "everything".to_owned()
    } else {
        format!("`{selection}`")
    }
}
