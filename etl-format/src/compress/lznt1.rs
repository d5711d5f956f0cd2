//! Decoder of LZNT1: chunks of at most 4096 bytes, each compressed by itself.

use super::Progress;
use super::copy::repeat;
use super::matches::{Match, SHORTEST};
use crate::cursor::Bytes;

/// The largest number of bytes of a decompressed chunk; matches do not cross chunks.
const CHUNK: usize = 4096;

pub(super) fn decode(input: &[u8], output: &mut [u8], progress: &mut Progress) -> Option<()> {
    while progress.produced < output.len() {
        // A header of zero ends the data.
        let header = input.u16_at(progress.consumed).filter(|&h| h != 0)?;
        let len = usize::from(header & 0xfff) + 1;
        let start = progress.consumed + 2;
        // If the input ends inside the chunk, its beginning is decoded.
        let packed = input.get(start..)?;
        let packed = packed.get(..len).unwrap_or(packed);
        let space = output.get_mut(progress.produced..)?;
        let max_len = space.len().min(CHUNK);
        let space = space.get_mut(..max_len)?;
        let mut in_chunk = Progress::default();
        if header & 0x8000 != 0 {
            decode_chunk(packed, space, &mut in_chunk);
        } else {
            copy_chunk(packed, space, &mut in_chunk);
        }
        progress.produced += in_chunk.produced;
        // The next chunk begins at the end of this one, so a chunk that is not used up ends the
        // data.
        if progress.produced < output.len() && in_chunk.consumed < len {
            progress.consumed = start + in_chunk.consumed;
            return None;
        }
        progress.consumed = start + len.min(input.len().saturating_sub(start));
    }
    Some(())
}

/// Copies a chunk that is stored uncompressed.
fn copy_chunk(packed: &[u8], space: &mut [u8], progress: &mut Progress) {
    let len = packed.len().min(space.len());
    if let (Some(to), Some(from)) = (space.get_mut(..len), packed.get(..len)) {
        to.copy_from_slice(from);
    }
    progress.consumed = len;
    progress.produced = len;
}

/// Decodes a compressed chunk: a byte of flags, the first at the bottom, then eight items, and so
/// on. Returns `None` if the chunk ends before the space is full, or is damaged.
fn decode_chunk(packed: &[u8], space: &mut [u8], progress: &mut Progress) -> Option<()> {
    let Progress { produced, consumed } = progress;
    let mut flags = 0u8;
    let mut flag_count = 0;
    loop {
        if flag_count == 0 {
            // Flags without items may end the chunk.
            flags = packed.u8_at(*consumed)?;
            flag_count = 8;
            *consumed += 1;
        }
        if *produced == space.len() || *consumed == packed.len() {
            return Some(());
        }
        let is_match = flags & 1 != 0;
        if is_match {
            let token = packed.u16_at(*consumed)?;
            let Match { len, distance } = split_token(token, *produced);
            *produced = repeat(space, *produced, distance, len)?;
            *consumed += 2;
        } else {
            *space.get_mut(*produced)? = packed.u8_at(*consumed)?;
            *consumed += 1;
            *produced += 1;
        }
        flags >>= 1;
        flag_count -= 1;
    }
}

/// The match that a token describes. The more bytes of the chunk have been produced, the more bits
/// of the token are the distance: from 4 to 12.
fn split_token(token: u16, produced: usize) -> Match {
    let distance_bits = (usize::BITS - produced.saturating_sub(1).leading_zeros()).clamp(4, 12);
    let length_bits = 16 - distance_bits;
    Match {
        len: usize::from(token & ((1 << length_bits) - 1)) + SHORTEST,
        distance: usize::from(token >> length_bits) + 1,
    }
}
