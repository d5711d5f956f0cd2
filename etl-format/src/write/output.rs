//! Where the bytes of a trace go.

use std::io::{Seek, SeekFrom, Write};

use crate::error::Result;

use super::put::unwritable;

/// A file to write: bytes at offsets.
pub trait Output {
    /// Writes all of `bytes` at `at`, counted from the first byte of the trace.
    ///
    /// # Errors
    /// Errors of the output; [`crate::ErrorKind::Unwritable`] from an output that is not seekable.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()>;

    /// Whether written bytes can be overwritten.
    fn is_seekable(&self) -> bool;

    /// Writes buffered bytes.
    ///
    /// # Errors
    /// Errors of the output.
    fn flush(&mut self) -> Result<()>;
}

/// A seekable file. The trace begins at its first byte.
#[derive(Debug)]
pub struct File<W> {
    inner: W,
    /// The current position of the file; unknown before the first write.
    at: Option<u64>,
}

impl<W: Write + Seek> File<W> {
    /// Takes a file to write to.
    pub fn new(inner: W) -> Self {
        File { inner, at: None }
    }

    /// The file.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write + Seek> Output for File<W> {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        if self.at != Some(at) {
            self.inner.seek(SeekFrom::Start(at))?;
        }
        self.at = None;
        self.inner.write_all(bytes)?;
        self.at = at.checked_add(bytes.len() as u64);
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.inner.flush()?)
    }
}

/// A pipe. Written bytes cannot be changed, so the header has the values of the start.
#[derive(Debug)]
pub struct Pipe<W> {
    inner: W,
    at: u64,
}

impl<W: Write> Pipe<W> {
    /// Takes a pipe to write to.
    pub fn new(inner: W) -> Self {
        Pipe { inner, at: 0 }
    }

    /// The pipe.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Output for Pipe<W> {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        if at != self.at {
            return Err(unwritable("a pipe cannot go back; this mode needs a seekable file"));
        }
        self.inner.write_all(bytes)?;
        self.at = at.saturating_add(bytes.len() as u64);
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        false
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.inner.flush()?)
    }
}
