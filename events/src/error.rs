//! The error of the crate.

use std::path::{Path, PathBuf};

use etl_analysis::UnknownProcess;

use crate::conditions::NoCondition;
use crate::input;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why events cannot be read. Every error of the crate converts to it with `?`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input cannot be opened: it does not exist, cannot be unpacked, or is not a trace.
    #[error(transparent)]
    Input(#[from] input::Error),
    /// The trace cannot be read, with the offset of the fault.
    #[error(transparent)]
    Trace(#[from] etl_format::Error),
    /// One of the traces of a recording cannot be read.
    #[error(transparent)]
    Recording(#[from] etl_analysis::Error),
    /// The trace has no process with the name or id that was asked for.
    #[error(transparent)]
    NoProcess(#[from] UnknownProcess),
    /// A condition on a field cannot be read.
    #[error(transparent)]
    Condition(#[from] NoCondition),
    /// A file cannot be opened.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why it cannot be opened.
        error: Box<Error>,
    },
}

impl Error {
    /// The error of a file.
    pub(crate) fn in_file(path: &Path, error: Error) -> Self {
        Error::File {
            path: path.to_owned(),
            error: Box::new(error),
        }
    }
}
