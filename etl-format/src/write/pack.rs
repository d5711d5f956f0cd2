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

    /// Packers for other threads, which give the same bytes as this one. Buffers are packed on as many
    /// threads more; without any, on the caller's alone.
    fn others(&self) -> Vec<Box<dyn Packer + Send>> {
        Vec::new()
    }
}

impl<P: Packer + ?Sized> Packer for Box<P> {
    fn format(&self) -> CompressionFormat {
        (**self).format()
    }

    fn pack(&mut self, input: &[u8], out: &mut Vec<u8>) {
        (**self).pack(input, out);
    }

    fn others(&self) -> Vec<Box<dyn Packer + Send>> {
        (**self).others()
    }
}

impl<P: Packer + ?Sized> Packer for &mut P {
    fn format(&self) -> CompressionFormat {
        (**self).format()
    }

    fn pack(&mut self, input: &[u8], out: &mut Vec<u8>) {
        (**self).pack(input, out);
    }

    fn others(&self) -> Vec<Box<dyn Packer + Send>> {
        (**self).others()
    }
}

/// More than these are not started.
const MOST_THREADS: usize = 64;

/// Packs buffers with the encoders of [`crate::compress`].
#[derive(Clone, Debug)]
pub struct BufferPacker {
    format: CompressionFormat,
    compressor: Compressor,
    others: usize,
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
                Ok(BufferPacker { format, compressor: Compressor::new(effort), others: 0 })
            }
            _ => Err(unwritable("compressed buffers are XPRESS, LZNT1 or XPRESS_HUFF")),
        }
    }

    /// Packs on so many threads, the caller's own among them; 0 is 1, and 64 are the most. What is
    /// written is the same for any number.
    ///
    /// Up to eight buffers for each thread are held, or four megabytes, whichever is less.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.others = threads.clamp(1, MOST_THREADS) - 1;
        self
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

    fn others(&self) -> Vec<Box<dyn Packer + Send>> {
        let one = BufferPacker { others: 0, ..self.clone() };
        (0..self.others).map(|_| Box::new(one.clone()) as Box<dyn Packer + Send>).collect()
    }
}
