//! Compression of buffers: format, effort and threads.

use crate::compress::{Compressor, Effort};
use crate::constants::CompressionFormat;
use crate::error::Result;

use super::put::unwritable;

/// The largest number of threads that compress or decompress buffers.
pub(crate) const MAX_THREADS: usize = 64;

/// Compresses the buffers of a trace with the encoders of [`crate::compress`].
///
/// A buffer that does not become shorter stays uncompressed.
///
/// ```
/// use etl_format::compress::Effort;
/// use etl_format::constants::{CompressionFormat, LogFileMode};
/// use etl_format::FileHeader;
/// use etl_format::write::{BufferCompressor, Session, SessionConfig};
///
/// let mut header = FileHeader::new();
/// header.mode = LogFileMode::SEQUENTIAL | LogFileMode::COMPRESSED;
/// header.set_log_version();
/// let mut config = SessionConfig::new(header);
/// config.compressor = Some(BufferCompressor::new(CompressionFormat::XPRESS, Effort::Default)?);
/// assert!(Session::in_memory(config)?.is_compressed());
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BufferCompressor {
    format: CompressionFormat,
    compressor: Compressor,
    threads: usize,
}

impl BufferCompressor {
    /// A compressor for XPRESS, which Windows writes, for LZNT1, or for XPRESS with Huffman coding.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unwritable`] for any other format.
    pub fn new(format: CompressionFormat, effort: Effort) -> Result<Self> {
        match format {
            CompressionFormat::XPRESS
            | CompressionFormat::LZNT1
            | CompressionFormat::XPRESS_HUFF => Ok(BufferCompressor {
                format,
                compressor: Compressor::new(effort),
                threads: 1,
            }),
            _ => Err(unwritable(
                "compressed buffers are XPRESS, LZNT1 or XPRESS_HUFF",
            )),
        }
    }

    /// Sets the number of threads, the caller's thread included; 0 means 1, and 64 is the maximum.
    /// The bytes written are the same for any number.
    ///
    /// Each thread has up to eight buffers in memory, at most 4 MiB.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads.clamp(1, MAX_THREADS);
        self
    }

    /// The format, which buffer 0 states.
    #[must_use]
    pub fn format(&self) -> CompressionFormat {
        self.format
    }

    /// Threads that compress, the caller's thread included.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Appends the compressed form of `input` to `out`.
    pub(crate) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let before = out.len();
        if self.compressor.compress(self.format, input, out).is_err() {
            // Cannot happen, because `new` accepts known formats only. The caller discards output
            // that is as long as the input.
            out.truncate(before);
            out.extend_from_slice(input);
        }
    }
}
