//! Decoder of LZNT1: chunks of at most 4096 bytes, each compressed by itself.

use super::Progress;
use super::copy::repeat;
use crate::cursor::Bytes;

/// The largest number of bytes of a decompressed chunk; matches do not cross chunks.
const CHUNK: usize = 4096;

pub(super) fn decode(input: &[u8], output: &mut [u8], progress: &mut Progress) -> Option<()> {
    while progress.produced < output.len() {
        // A header of zero ends the data.
        let header = input.u16_at(progress.consumed).filter(|&h| h != 0)?;
        let len = usize::from(header & 0xfff) + 1;
        let start = progress.consumed + 2;
        // A chunk that the input cuts short is decoded as far as it goes.
        let packed = input.get(start..)?;
        let packed = packed.get(..len).unwrap_or(packed);
        let space = output.get_mut(progress.produced..)?;
        let most = space.len().min(CHUNK);
        let space = space.get_mut(..most)?;
        let (read, made) = if header & 0x8000 != 0 {
            chunk(packed, space)
        } else {
            plain(packed, space)
        };
        progress.produced += made;
        // Only a chunk that was used up leads to the next one.
        if progress.produced < output.len() && read < len {
            progress.consumed = start + read;
            return None;
        }
        progress.consumed = start + len.min(input.len().saturating_sub(start));
    }
    Some(())
}

/// A chunk that is stored as it is. Bytes read and made.
fn plain(packed: &[u8], space: &mut [u8]) -> (usize, usize) {
    let len = packed.len().min(space.len());
    if let (Some(to), Some(from)) = (space.get_mut(..len), packed.get(..len)) {
        to.copy_from_slice(from);
    }
    (len, len)
}

/// A packed chunk: 8 flags from the bottom, then 8 items. Bytes read and made.
fn chunk(packed: &[u8], space: &mut [u8]) -> (usize, usize) {
    let (mut at, mut to) = (0, 0);
    let (mut flags, mut left) = (0u8, 0);
    loop {
        if left == 0 {
            // Flags without items may end the chunk.
            let Some(byte) = packed.u8_at(at) else {
                return (at, to);
            };
            (flags, left) = (byte, 8);
            at += 1;
        }
        if to == space.len() || at == packed.len() {
            return (at, to);
        }
        let is_match = flags & 1 != 0;
        if is_match {
            let Some(token) = packed.u16_at(at) else {
                return (at, to);
            };
            let (distance, len) = split(token, to);
            match repeat(space, to, distance, len) {
                Some(end) => to = end,
                None => return (at, to),
            }
            at += 2;
        } else {
            let (Some(byte), Some(place)) = (packed.u8_at(at), space.get_mut(to)) else {
                return (at, to);
            };
            *place = byte;
            at += 1;
            to += 1;
        }
        flags >>= 1;
        left -= 1;
    }
}

/// Distance and length of a match: the more bytes there are to reach back over, the more bits of
/// the token are distance, from 4 up to 12.
fn split(token: u16, made: usize) -> (usize, usize) {
    let reach = (usize::BITS - made.saturating_sub(1).leading_zeros()).clamp(4, 12);
    // These bits are the length's; the distance has the rest.
    let bits = 16 - reach;
    let len = usize::from(token & ((1 << bits) - 1)) + 3;
    (usize::from(token >> bits) + 1, len)
}
