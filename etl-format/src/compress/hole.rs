//! Holes in compressed data: runs of zeros or 0xFF that no encoder writes.
//!
//! A sector that was never written, or could not be read, has such bytes. Decoders accept them and
//! produce bytes that were never written, so decoding ends before them.

use crate::constants::{CompressionFormat, FILLER};

/// Bytes that are compared at a time. Each hole covers at least one such block.
const BLOCK: usize = 32;

/// The shortest run of equal bytes that is a hole.
///
/// XPRESS writes a run of equal bytes as one match, so its runs of zeros are short: up to 15 in
/// real traces. LZNT1 stores 4096 bytes unchanged if they contain no other repetitions, and they
/// can include zeros; the code table of XPRESS_HUFF has up to 256 zeros.
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
        let block_start = number * BLOCK;
        // Blocks of a run that is too short are skipped.
        if block_start < end || !matches!(byte, 0 | FILLER) || block.iter().any(|&b| b != byte) {
            continue;
        }
        let Some((before, rest)) = packed.split_at_checked(block_start) else {
            return packed;
        };
        let last_other = before.iter().rposition(|&b| b != byte);
        let start = last_other.map_or(0, |offset| offset + 1);
        let run_len = rest.iter().position(|&b| b != byte);
        end = run_len.map_or(packed.len(), |len| block_start + len);
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
