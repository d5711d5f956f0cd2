//! How a writer gets its buffers compressed.

use crate::constants::CompressionFormat;

/// A compressor of whole buffers.
pub trait Packer {
    /// The format, which buffer 0 names.
    fn format(&self) -> CompressionFormat;

    /// Appends to `out` what stands for `input`. A result that is not shorter is not used: such a
    /// buffer stays plain.
    fn pack(&mut self, input: &[u8], out: &mut Vec<u8>);
}
