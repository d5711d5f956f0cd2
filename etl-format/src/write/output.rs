//! Outputs for the bytes of a trace (memory, a seekable file, a pipe), and a finished output.

use std::io::{Seek, SeekFrom, Write};

use crate::error::Result;

use super::SessionSummary;
use super::put::unwritable;

/// An output for a trace: bytes at offsets.
///
/// Implemented for `Vec<u8>`, which keeps the trace in memory, for seekable files ([`TraceFile`])
/// and for pipes ([`Pipe`]).
pub trait Output {
    /// Writes all of `bytes` at an offset, counted from the first byte of the trace.
    ///
    /// # Errors
    /// Errors of the output; [`crate::ErrorKind::Unwritable`] from an output that is not seekable.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Whether written bytes can be overwritten.
    fn is_seekable(&self) -> bool;

    /// Writes buffered bytes.
    ///
    /// # Errors
    /// Errors of the output.
    fn flush(&mut self) -> Result<()>;
}

/// A trace in memory.
impl Output for Vec<u8> {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if let Ok(start) = usize::try_from(offset)
            && let Some(end) = start.checked_add(bytes.len())
        {
            if self.len() < end {
                self.resize(end, 0);
            }
            if let Some(place) = self.get_mut(start..end) {
                place.copy_from_slice(bytes);
            }
            return Ok(());
        }
        Err(unwritable("the trace is too long for memory"))
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A seekable file. The trace begins at its first byte.
///
/// ```
/// use std::io::Cursor;
/// use etl_format::write::{Output, TraceFile};
///
/// let mut file = TraceFile::new(Cursor::new(Vec::new()));
/// file.write_at(2, b"cd")?;
/// file.write_at(0, b"ab")?;
/// assert_eq!(file.into_inner().into_inner(), b"abcd");
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Debug)]
pub struct TraceFile<W> {
    inner: W,
    /// The current position of the file; unknown before the first write and after an error.
    position: Option<u64>,
}

impl<W: Write + Seek> TraceFile<W> {
    /// A trace in `inner`.
    pub fn new(inner: W) -> Self {
        TraceFile {
            inner,
            position: None,
        }
    }

    /// The file.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write + Seek> Output for TraceFile<W> {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.position != Some(offset) {
            self.inner.seek(SeekFrom::Start(offset))?;
        }
        self.position = None;
        self.inner.write_all(bytes)?;
        self.position = offset.checked_add(bytes.len() as u64);
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.inner.flush()?)
    }
}

/// A pipe. Written bytes cannot be changed, so the header has the values from the start of the
/// session.
///
/// ```
/// use etl_format::read::{Options, Records};
/// use etl_format::FileHeader;
/// use etl_format::write::{Pipe, Session};
///
/// let session = Session::create(Pipe::new(Vec::new()), FileHeader::new())?;
/// let bytes = session.finish()?.into_inner();
/// let records = Records::stream(bytes.as_slice(), &Options::default())?;
/// assert!(!records.header().is_closed(), "a pipe cannot complete the header");
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Pipe<W> {
    inner: W,
    position: u64,
}

impl<W: Write> Pipe<W> {
    /// A trace through `inner`.
    pub fn new(inner: W) -> Self {
        Pipe { inner, position: 0 }
    }

    /// The pipe.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Output for Pipe<W> {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if offset != self.position {
            return Err(unwritable(
                "a pipe cannot go back; this mode needs a seekable file",
            ));
        }
        self.inner.write_all(bytes)?;
        self.position = offset.saturating_add(bytes.len() as u64);
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        false
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.inner.flush()?)
    }
}

/// A finished trace: the output that it was written to, and a report on it.
///
/// ```
/// use etl_format::FileHeader;
/// use etl_format::write::{Finished, Session};
///
/// let finished: Finished<Vec<u8>> = Session::in_memory(FileHeader::new())?.close(None)?;
/// assert_eq!(finished.report.buffers_written, 1);
/// assert_eq!(finished.output.len(), 0x1_0000, "one buffer of 64 KiB");
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished<O, R = SessionSummary> {
    /// The output, for example the bytes in memory.
    pub output: O,
    /// What was written and lost, and other results of the writer.
    pub report: R,
}
