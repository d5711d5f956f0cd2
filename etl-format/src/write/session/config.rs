//! The configuration of a session writer.

use crate::FileTime;
use crate::constants::{LogFileMode, PROCESSOR_INDEX_MASK};
use crate::error::Result;
use crate::headers::FileHeader;
use crate::write::BufferCompressor;
use crate::write::put::unwritable;
use crate::write::record::{Record, System};

/// The conventions that the buffer headers follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// The kernel since Windows 8: 16-bit processor indexes.
    #[default]
    Kernel,
    /// The kernel of Vista and Windows 7: 8-bit processor numbers, and a `SavedOffset` of 0 in
    /// buffer 0.
    LegacyKernel,
    /// A relogger: buffer 0 does not have the state of a flushed buffer, and every buffer has the
    /// time at which the file was made.
    Relogger {
        /// When the file is made.
        now: FileTime,
    },
}

/// The configuration of a session.
///
/// A [`FileHeader`] can be converted to the configuration of a session of the kernel.
///
/// ```
/// use etl_format::FileHeader;
/// use etl_format::write::{Session, SessionConfig};
///
/// let header = FileHeader { processors: 4, ..FileHeader::new() };
/// // All buffers are flushed once a second of the 10 MHz clock.
/// let mut config = SessionConfig::new(header);
/// config.flush_ticks = 10_000_000;
/// let session = Session::in_memory(config)?;
/// assert_eq!(session.summary().files, 1);
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SessionConfig {
    /// The header event while the session runs. Its mode, sizes and processors apply to the
    /// session.
    pub header: FileHeader,
    /// The conventions that the buffer headers follow.
    pub style: Style,
    /// Id of the session in buffer headers.
    pub logger_id: u16,
    /// All buffers are flushed after this many ticks of the session clock; 0 for never.
    pub flush_ticks: u64,
    /// Keep sealed buffers until [`super::Session::flush`] is called, as with a slow disk.
    /// Otherwise they are written at once.
    pub hold_sealed: bool,
    /// Compresses the buffers. The mode in the header must then be COMPRESSED.
    pub compressor: Option<BufferCompressor>,
    /// Records after the header event in buffer 0, each aligned.
    extras: Vec<u8>,
}

impl From<FileHeader> for SessionConfig {
    fn from(header: FileHeader) -> Self {
        SessionConfig::new(header)
    }
}

impl SessionConfig {
    /// A session with this header event, as the kernel writes it since Windows 8.
    #[must_use]
    pub fn new(header: FileHeader) -> Self {
        SessionConfig {
            header,
            logger_id: 1,
            ..SessionConfig::default()
        }
    }

    /// Adds a record to buffer 0, after the header event.
    ///
    /// # Errors
    /// As [`Record::encode`].
    pub fn add_header_record(&mut self, record: &impl Record) -> Result<()> {
        let mut bytes = Vec::new();
        record.encode(&mut bytes)?;
        crate::write::put::align(&mut self.extras);
        self.extras.append(&mut bytes);
        Ok(())
    }

    /// Adds an event of the header group, with thread, process and time of the header event.
    ///
    /// # Errors
    /// As [`Record::encode`].
    pub fn add_header_group(&mut self, hook: u16, payload: &[u8]) -> Result<()> {
        let header = &self.header;
        let record = System::new(hook, header.timestamp)
            .pointer_size(header.pointer_size)
            .process(header.process_id, header.thread_id)
            .payload(payload);
        self.add_header_record(&record)
    }

    pub(super) fn extras(&self) -> &[u8] {
        &self.extras
    }

    /// Checks that the settings can be combined.
    pub(super) fn check(&self) -> Result<()> {
        let header = &self.header;
        let mode = header.mode;
        let size = header.buffer_size;
        let is_compressed = self.compressor.is_some();
        if size == 0 || !size.is_multiple_of(1024) || size > 1 << 30 {
            return Err(unwritable(
                "the buffer size is a multiple of 1024, at most 1 GiB",
            ));
        }
        if header.processors == 0 || header.processors > u32::from(PROCESSOR_INDEX_MASK) + 1 {
            return Err(unwritable("a session has 1 to 2048 processors"));
        }
        if self.style == Style::LegacyKernel && header.processors > 256 {
            return Err(unwritable("Windows 7 counts at most 256 processors"));
        }
        if is_compressed != mode.has(LogFileMode::COMPRESSED) {
            return Err(unwritable("the mode COMPRESSED goes with a compressor"));
        }
        if mode.has(LogFileMode::CIRCULAR) && is_compressed {
            return Err(unwritable(
                "compressed buffers differ in size and cannot wrap around",
            ));
        }
        let Some(maximum) = header.maximum_bytes() else {
            if mode.has(LogFileMode::CIRCULAR)
                || mode.has(LogFileMode::NEWFILE)
                || mode.has(LogFileMode::PREALLOCATE)
            {
                return Err(unwritable(
                    "the modes CIRCULAR, NEWFILE and PREALLOCATE need a maximum file size",
                ));
            }
            return Ok(());
        };
        let min_size = u64::from(size).saturating_mul(u64::from(header.start_buffers).max(1) + 1);
        if maximum < min_size {
            return Err(unwritable(
                "the maximum file size does not hold the header and one buffer",
            ));
        }
        Ok(())
    }
}
