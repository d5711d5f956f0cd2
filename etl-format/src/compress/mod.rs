//! The compression formats of compressed traces, each bounded by the size its buffer declares.
//!
//! The formats are those of `RtlCompressBuffer`, published as MS-XCA. Every compressed trace seen
//! so far is plain XPRESS, one stream per buffer; the other two are decoded from the publication.

mod copy;
mod huffman;
mod lznt1;
mod xpress;

#[cfg(test)]
mod tests;

use crate::constants::CompressionFormat;

/// Compressed bytes that do not stand for as many bytes as were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged after {consumed} bytes, which give {produced}")]
pub struct DecodeFault {
    /// Sound bytes at the start of the output.
    pub produced: usize,
    /// Bytes of the input that were used for them.
    pub consumed: usize,
}

/// Fills `output` from `input`, and ignores what is left of `input` then: a shorter output takes
/// just the beginning of what the input stands for.
///
/// Nothing is written but `output`, and nothing is allocated but the fixed code table of XPRESS_HUFF.
///
/// # Errors
/// When the input ends before, or is damaged; what was produced until then is sound. A format that
/// is not known produces nothing.
pub fn decompress(
    format: CompressionFormat,
    input: &[u8],
    output: &mut [u8],
) -> Result<(), DecodeFault> {
    let mut progress = Progress::default();
    let whole = match format {
        CompressionFormat::XPRESS => xpress::decode(input, output, &mut progress),
        CompressionFormat::XPRESS_HUFF => huffman::decode(input, output, &mut progress),
        CompressionFormat::LZNT1 => lznt1::decode(input, output, &mut progress),
        CompressionFormat::NONE | CompressionFormat::DEFAULT => {
            stored(input, output, &mut progress)
        }
        _ => None,
    };
    let Progress { produced, consumed } = progress;
    whole.ok_or(DecodeFault { produced, consumed })
}

/// How far a decoder has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    produced: usize,
    consumed: usize,
}

/// Not compressed at all.
fn stored(input: &[u8], output: &mut [u8], progress: &mut Progress) -> Option<()> {
    let len = input.len().min(output.len());
    output.get_mut(..len)?.copy_from_slice(input.get(..len)?);
    *progress = Progress { produced: len, consumed: len };
    (len == output.len()).then_some(())
}
