//! Compression formats of traces: decoders that never write beyond the declared size, and encoders.
//!
//! `RtlCompressBuffer` has the same formats, published as MS-XCA. Every compressed trace seen
//! so far is plain XPRESS, one stream per buffer; the other two are decoded from the publication.

mod copy;
mod encode;
mod encode_huffman;
mod hole;
mod huffman;
mod lznt1;
mod matches;
mod xpress;

#[cfg(test)]
mod tests;

use crate::constants::CompressionFormat;

pub(crate) use hole::before_hole;

/// Compressed bytes that decompress to fewer bytes than the caller requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeFault {
    /// The requested format.
    pub format: CompressionFormat,
    /// Valid bytes at the start of the output.
    pub produced: usize,
    /// Bytes of the input that decompress to the valid bytes.
    pub consumed: usize,
}

impl DecodeFault {
    /// Whether the format is supported. Then the bytes are damaged.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.format.name().is_some()
    }
}

impl core::fmt::Display for DecodeFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let DecodeFault {
            format,
            produced,
            consumed,
        } = *self;
        if self.is_known() {
            write!(
                f,
                "{format} data is damaged after {consumed} bytes, which decompress to {produced}"
            )
        } else {
            write!(f, "{}", UnknownFormat(format))
        }
    }
}

impl core::error::Error for DecodeFault {}

/// Fills `output` from `input`. A shorter output receives the beginning of the decompressed data;
/// the rest of `input` is ignored.
///
/// The only allocation is the fixed code table of XPRESS_HUFF.
///
/// ```
/// use etl_format::compress::{Effort, compress, decompress};
/// use etl_format::constants::CompressionFormat;
///
/// let mut packed = Vec::new();
/// compress(CompressionFormat::XPRESS, &[7; 1_000], Effort::Default, &mut packed)?;
/// assert!(packed.len() < 100);
/// let mut unpacked = [0; 1_000];
/// decompress(CompressionFormat::XPRESS, &packed, &mut unpacked)?;
/// assert_eq!(unpacked, [7; 1_000]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the input is damaged or ends too early; the bytes produced before that are valid. An unknown
/// format produces nothing.
pub fn decompress(
    format: CompressionFormat,
    input: &[u8],
    output: &mut [u8],
) -> Result<(), DecodeFault> {
    let mut progress = Progress::default();
    match decode(format, input, output, &mut progress) {
        Some(()) => Ok(()),
        None => Err(DecodeFault {
            format,
            produced: progress.produced,
            consumed: progress.consumed,
        }),
    }
}

/// Fills `output` as [`decompress`] does. The progress is set also if nothing is wrong; `None` if
/// the output is not full.
pub(crate) fn decode(
    format: CompressionFormat,
    input: &[u8],
    output: &mut [u8],
    progress: &mut Progress,
) -> Option<()> {
    match format {
        CompressionFormat::XPRESS => xpress::decode(input, output, progress),
        CompressionFormat::XPRESS_HUFF => huffman::decode(input, output, progress),
        CompressionFormat::LZNT1 => lznt1::decode(input, output, progress),
        CompressionFormat::NONE | CompressionFormat::DEFAULT => {
            copy_stored(input, output, progress)
        }
        _ => None,
    }
}

/// Whether the data may end with this number of bytes that no output needs.
///
/// Windows writes an additional flag word if the items use up the last one, and nothing else; the
/// XPRESS buffers of all real traces seen are like this. LZNT1 may end with an empty chunk.
/// XPRESS_HUFF ends with a symbol of its own and whole words.
pub(crate) fn is_end(format: CompressionFormat, unused: usize) -> bool {
    let max_unused = if format == CompressionFormat::XPRESS_HUFF {
        16
    } else {
        4
    };
    unused <= max_unused
}

/// How much work an encoder puts into finding repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Effort {
    /// Compares few candidates.
    Fast,
    /// Compares some candidates, and looks one byte ahead.
    #[default]
    Default,
    /// Compares many candidates: the output is smaller, and compression slower.
    Best,
}

/// A format without an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no compression format {0}")]
pub struct UnknownFormat(pub CompressionFormat);

/// Compresses buffers one after the other, with tables that are allocated once. The output does not
/// depend on earlier buffers.
///
/// ```
/// use etl_format::compress::{Compressor, Effort};
/// use etl_format::constants::CompressionFormat;
///
/// let mut compressor = Compressor::new(Effort::Fast);
/// let mut packed = Vec::new();
/// for format in [CompressionFormat::XPRESS, CompressionFormat::LZNT1] {
///     packed.clear();
///     compressor.compress(format, &[7; 1_000], &mut packed)?;
///     assert!(packed.len() < 100, "{format}");
/// }
/// # Ok::<(), etl_format::compress::UnknownFormat>(())
/// ```
#[derive(Clone, Debug)]
pub struct Compressor {
    chains: matches::Chains,
    items: Vec<encode_huffman::Item>,
}

impl Compressor {
    /// An encoder of the given effort.
    #[must_use]
    pub fn new(effort: Effort) -> Self {
        Compressor {
            chains: matches::Chains::new(effort),
            items: Vec::new(),
        }
    }

    /// Appends `input`, compressed, to `output`; at most 4 GiB of input. Incompressible input grows
    /// a little, so compare the sizes. NONE and DEFAULT append the input unchanged.
    ///
    /// # Errors
    /// If the format is unknown; then nothing is appended.
    pub fn compress(
        &mut self,
        format: CompressionFormat,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), UnknownFormat> {
        self.chains.reset();
        match format {
            CompressionFormat::XPRESS => encode::xpress(&mut self.chains, input, output),
            CompressionFormat::LZNT1 => encode::lznt1(&mut self.chains, input, output),
            CompressionFormat::XPRESS_HUFF => {
                encode_huffman::encode(&mut self.chains, &mut self.items, input, output);
            }
            CompressionFormat::NONE | CompressionFormat::DEFAULT => {
                output.extend_from_slice(input);
            }
            _ => return Err(UnknownFormat(format)),
        }
        Ok(())
    }
}

/// Appends `input`, compressed, to `output`: [`Compressor::compress`] for a single buffer.
///
/// # Errors
/// If the format is unknown; then nothing is appended.
pub fn compress(
    format: CompressionFormat,
    input: &[u8],
    effort: Effort,
    output: &mut Vec<u8>,
) -> Result<(), UnknownFormat> {
    Compressor::new(effort).compress(format, input, output)
}

/// How far a decoder has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Bytes of the output.
    pub produced: usize,
    /// Bytes of the input that decompress to the produced bytes.
    pub consumed: usize,
}

fn copy_stored(input: &[u8], output: &mut [u8], progress: &mut Progress) -> Option<()> {
    let len = input.len().min(output.len());
    output.get_mut(..len)?.copy_from_slice(input.get(..len)?);
    *progress = Progress {
        produced: len,
        consumed: len,
    };
    (len == output.len()).then_some(())
}
