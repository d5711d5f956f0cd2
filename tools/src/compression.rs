//! The compression of a new trace.

use etl_format::compress::Effort;
use etl_format::constants::CompressionFormat;
use etl_format::write::BufferCompressor;

use crate::{Error, Result};

/// How the buffers of a new trace are compressed.
///
/// ```
/// use etl_tools::{Compression, slice::Slicer};
///
/// let slicer = Slicer::new().compression(Compression::default());
/// # let _ = slicer;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The format, which the Windows that reads the trace must support.
    pub format: CompressionFormat,
    /// Whether to take more time for fewer bytes.
    pub effort: Effort,
}

/// The format of Windows itself, with the default effort.
impl Default for Compression {
    fn default() -> Self {
        Compression {
            format: CompressionFormat::XPRESS,
            effort: Effort::default(),
        }
    }
}

/// Makes the compressor of the new trace's buffers.
pub(crate) fn compressor(
    compression: Option<Compression>,
    threads: usize,
) -> Result<Option<BufferCompressor>> {
    let Some(Compression { format, effort }) = compression else {
        return Ok(None);
    };
    let compressor = BufferCompressor::new(format, effort).map_err(Error::output)?;
    Ok(Some(compressor.with_threads(threads)))
}
