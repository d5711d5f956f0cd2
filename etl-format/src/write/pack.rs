//! How a writer gets its buffers compressed.

use crate::compress::{Compressor, Effort};
use crate::constants::CompressionFormat;
use crate::error::Result;

use super::put::unwritable;

/// A compressor of whole buffers.
pub trait Packer {
    /// The format, which buffer 0 names.
    fn format(&self) -> CompressionFormat;

    /// Appends to `out` what stands for `input`. A result that is not shorter is not used: such a
    /// buffer stays plain.
    fn pack(&mut self, input: &[u8], out: &mut Vec<u8>);
}

/// Packs buffers with the encoders of [`crate::compress`].
#[derive(Clone, Debug)]
pub struct BufferPacker {
    format: CompressionFormat,
    compressor: Compressor,
}

impl BufferPacker {
    /// A packer of one of the formats that make buffers smaller: XPRESS, as Windows writes it, LZNT1, or
    /// XPRESS with Huffman coding.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unwritable`] for any other format.
    pub fn new(format: CompressionFormat, effort: Effort) -> Result<Self> {
        match format {
            CompressionFormat::XPRESS
            | CompressionFormat::LZNT1
            | CompressionFormat::XPRESS_HUFF => {
                Ok(BufferPacker { format, compressor: Compressor::new(effort) })
            }
            _ => Err(unwritable("compressed buffers are XPRESS, LZNT1 or XPRESS_HUFF")),
        }
    }
}

impl Packer for BufferPacker {
    fn format(&self) -> CompressionFormat {
        self.format
    }

    fn pack(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let before = out.len();
        if self.compressor.compress(self.format, input, out).is_err() {
            // Not to be: `new` takes known formats only. As long as the input, it is not used.
            out.truncate(before);
            out.extend_from_slice(input);
        }
    }
}
