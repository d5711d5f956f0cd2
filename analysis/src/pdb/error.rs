//! The error of this crate: a PDB, or a place to look for PDBs, that cannot be read.

use std::path::{Path, PathBuf};

/// A PDB, or a place to look for PDBs, cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct Error {
    path: PathBuf,
    reason: String,
}

impl Error {
    pub(crate) fn new(path: &Path, reason: impl Into<String>) -> Self {
        Error { path: path.to_owned(), reason: reason.into() }
    }

    /// The file or directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// The result of reading a PDB.
pub type Result<T, E = Error> = std::result::Result<T, E>;
