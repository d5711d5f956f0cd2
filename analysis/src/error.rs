//! The error of this crate: a file that could not be read.

/// A file of a recording could not be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{name}: {source}")]
pub struct Error {
    file: usize,
    name: String,
    source: etl_format::Error,
}

impl Error {
    /// An error while a file was read. `file` is its index in the recording.
    #[must_use]
    pub fn new(file: usize, name: &str, source: etl_format::Error) -> Self {
        Error {
            file,
            name: name.to_owned(),
            source,
        }
    }

    /// Index of the file in its recording.
    #[must_use]
    pub fn file(&self) -> usize {
        self.file
    }

    /// The name that the file was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What went wrong when the file was read.
    #[must_use]
    pub fn into_source(self) -> etl_format::Error {
        self.source
    }
}

/// The result of reading a recording.
pub type Result<T, E = Error> = std::result::Result<T, E>;
