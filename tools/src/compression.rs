//! The compression of a new trace.

use etl_format::compress::Effort;
use etl_format::constants::CompressionFormat;
use etl_format::write::BufferCompressor;

use crate::{Error, Result};

/// Format and effort; `None` leaves the new trace uncompressed.
pub(crate) type Compression = Option<(CompressionFormat, Effort)>;

/// Makes the compressor of the new trace's buffers.
pub(crate) fn compressor(
    compression: Compression,
    threads: usize,
) -> Result<Option<BufferCompressor>> {
    let Some((format, effort)) = compression else { return Ok(None) };
    let compressor = BufferCompressor::new(format, effort).map_err(Error::output)?;
    Ok(Some(compressor.with_threads(threads)))
}
