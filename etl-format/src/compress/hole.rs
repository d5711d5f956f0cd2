//! Holes in compressed data: runs of zeros or 0xFF that no encoder writes.
//!
//! A sector that was never written, or could not be read, has such bytes. Decoders accept them and
//! produce bytes that were never written, so decoding ends before them.

use crate::constants::{CompressionFormat, FILLER};

/// Bytes that are compared at a time. Each hole covers at least one such block.
const BLOCK: usize = 32;

/// The shortest run of equal bytes that is a hole.
///
/// XPRESS writes a run of equal bytes as one match, so only a few zeros come together: 15 in real
/// traces. LZNT1 can leave 4096 bytes as they are, zeros among them, if all the others are without
/// repetitions; the code table of XPRESS_HUFF has up to 256 zeros.
fn shortest(format: CompressionFormat) -> Option<usize> {
    match format {
        CompressionFormat::XPRESS => Some(64),
        CompressionFormat::LZNT1 | CompressionFormat::XPRESS_HUFF => Some(1024),
        _ => None,
    }
}

/// The compressed bytes before the first hole.
pub(crate) fn before_hole(format: CompressionFormat, packed: &[u8]) -> &[u8] {
    let Some(shortest) = shortest(format) else {
        return packed;
    };
    let mut end = 0;
    for (number, block) in packed.chunks_exact(BLOCK).enumerate() {
        let byte = block.first().copied().unwrap_or(1);
        let from = number * BLOCK;
        // Blocks of a run that was found too short are not looked at again.
        if from < end || !matches!(byte, 0 | FILLER) || block.iter().any(|&b| b != byte) {
            continue;
        }
        let Some((before, rest)) = packed.split_at_checked(from) else {
            return packed;
        };
        let start = before
            .iter()
            .rposition(|&b| b != byte)
            .map_or(0, |at| at + 1);
        end = rest
            .iter()
            .position(|&b| b != byte)
            .map_or(packed.len(), |len| from + len);
        if end - start >= shortest {
            return packed.get(..start).unwrap_or(packed);
        }
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_hole_ends_at_runs_of_zeros_and_filler() {
        for byte in [0, FILLER] {
            for start in 0..70 {
                let mut packed = vec![7; 300];
                packed[start..start + 63].fill(byte);
                assert_eq!(before_hole(CompressionFormat::XPRESS, &packed).len(), 300);
                packed[start + 63] = byte;
                assert_eq!(before_hole(CompressionFormat::XPRESS, &packed).len(), start);
                assert_eq!(
                    before_hole(CompressionFormat::XPRESS_HUFF, &packed).len(),
                    300
                );
            }
        }
    }

    #[test]
    fn before_hole_leaves_stored_data() {
        assert_eq!(before_hole(CompressionFormat::NONE, &[0; 4096]).len(), 4096);
    }
}
