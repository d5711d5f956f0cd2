//! Temporary files, whose errors name their directory: that may be full, or not exist.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// A temporary file without a name, which disappears with the process.
#[derive(Debug)]
pub struct Temporary(File);

/// A temporary file cannot be created, read or written.
#[derive(Debug, thiserror::Error)]
#[error("a temporary file in {directory} is needed, and fails: {reason}", directory = .directory.display())]
pub struct TemporaryError {
    directory: PathBuf,
    reason: String,
}

impl TemporaryError {
    /// What the user can do about it.
    pub const HINT: &str = if cfg!(windows) {
        "set the environment variable TMP to a directory with enough space"
    } else {
        "set the environment variable TMPDIR to a directory with enough space"
    };

    /// The error of a temporary file among errors of input and output.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    fn wrap(error: &io::Error) -> io::Error {
        // The text of an error of the system; other errors name the file, which means nothing to
        // the user.
        let reason = match error.raw_os_error() {
            Some(_) => error.to_string(),
            None => error.kind().to_string(),
        };
        io::Error::new(
            error.kind(),
            TemporaryError {
                directory: std::env::temp_dir(),
                reason,
            },
        )
    }
}

impl Temporary {
    /// Creates a temporary file.
    ///
    /// # Errors
    /// A [`TemporaryError`], as for all its operations.
    pub fn create() -> io::Result<Self> {
        tempfile::tempfile()
            .map(Temporary)
            .map_err(|error| TemporaryError::wrap(&error))
    }

    /// The file, whose errors do not name the directory.
    #[must_use]
    pub fn into_file(self) -> File {
        self.0
    }

    /// Removes all bytes.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn clear(&mut self) -> io::Result<()> {
        let cleared = self.0.set_len(0).and_then(|()| self.0.rewind());
        cleared.map_err(|error| TemporaryError::wrap(&error))
    }
}

impl Read for Temporary {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0
            .read(bytes)
            .map_err(|error| TemporaryError::wrap(&error))
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .write(bytes)
            .map_err(|error| TemporaryError::wrap(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(|error| TemporaryError::wrap(&error))
    }
}

impl Seek for Temporary {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0
            .seek(to)
            .map_err(|error| TemporaryError::wrap(&error))
    }
}
