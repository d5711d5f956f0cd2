//! Encoders of plain XPRESS and LZNT1.

use super::matches::{Chains, SHORTEST};

/// How far back a match of plain XPRESS reaches.
const MAX_DISTANCE: usize = 1 << 13;

/// Bytes of a chunk of LZNT1.
const CHUNK: usize = 4096;

/// Plain XPRESS. The unused flags of the last word are 1, as Windows writes them; if all flags are
/// used, a word of ones follows.
pub(super) fn xpress(chains: &mut Chains, data: &[u8], out: &mut Vec<u8>) {
    let mut flags = 0u32;
    let mut flag_count = 0u32;
    let mut flag_word = out.len();
    let mut shared_byte: Option<usize> = None;
    out.extend([0xff; 4]);
    let mut position = 0;
    while position < data.len() {
        let chosen = chains.choose(data, position, MAX_DISTANCE, data.len());
        if let Some(chosen) = chosen {
            let len = chosen.len - SHORTEST;
            let token = (chosen.distance - 1) << 3 | len.min(7);
            out.extend((token as u16).to_le_bytes());
            if len >= 7 {
                put_long_length(out, len, &mut shared_byte);
            }
            chains.cover(data, position + 1, position + chosen.len);
            position += chosen.len;
        } else {
            out.extend(data.get(position));
            position += 1;
        }
        flags = flags << 1 | u32::from(chosen.is_some());
        flag_count += 1;
        if flag_count == 32 {
            put(out, flag_word, &flags.to_le_bytes());
            flags = 0;
            flag_count = 0;
            flag_word = out.len();
            out.extend([0xff; 4]);
        }
    }
    if flag_count > 0 {
        let unused = 32 - flag_count;
        let last = flags << unused | ((1u32 << unused) - 1);
        put(out, flag_word, &last.to_le_bytes());
    }
}

/// Writes a length that does not fit its token: half a byte, a byte, 16 or 32 bits. Two lengths
/// share a byte; `shared_byte` is the offset of the byte that has a free half.
fn put_long_length(out: &mut Vec<u8>, len: usize, shared_byte: &mut Option<usize>) {
    let nibble = (len - 7).min(15) as u8;
    match shared_byte.take() {
        Some(offset) => {
            if let Some(byte) = out.get_mut(offset) {
                *byte |= nibble << 4;
            }
        }
        None => {
            *shared_byte = Some(out.len());
            out.push(nibble);
        }
    }
    if nibble < 15 {
        return;
    }
    match u8::try_from(len - 22) {
        Ok(byte) if byte < 255 => out.push(byte),
        _ => put_wide_length(out, len),
    }
}

/// Writes a length of 16 bits, or 16 zero bits and a length of 32 bits. A byte of 255 announces it.
pub(super) fn put_wide_length(out: &mut Vec<u8>, len: usize) {
    out.push(255);
    match u16::try_from(len) {
        Ok(len) => out.extend(len.to_le_bytes()),
        Err(_) => {
            out.extend([0, 0]);
            out.extend((len as u32).to_le_bytes());
        }
    }
}

/// Overwrites the bytes at an offset.
pub(super) fn put(out: &mut [u8], offset: usize, bytes: &[u8]) {
    if let Some(place) = out.get_mut(offset..offset + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// LZNT1: chunks of 4096 bytes, stored uncompressed if compression does not make them smaller.
pub(super) fn lznt1(chains: &mut Chains, data: &[u8], out: &mut Vec<u8>) {
    let mut begin = 0;
    for chunk in data.chunks(CHUNK) {
        let header = out.len();
        let end = begin + chunk.len();
        out.extend([0, 0]);
        put_items(chains, data, begin, end, out);
        let mut size = out.len() - header - 2;
        let mut kind = 0xb000;
        if size >= chunk.len() {
            out.truncate(header + 2);
            out.extend(chunk);
            size = chunk.len();
            kind = 0x3000;
        }
        put(out, header, &(kind | (size - 1) as u16).to_le_bytes());
        begin = end;
    }
}

/// Writes the literals and matches of a chunk of LZNT1, eight after each byte of flags.
fn put_items(chains: &mut Chains, data: &[u8], begin: usize, end: usize, out: &mut Vec<u8>) {
    let mut flags = 0u8;
    let mut flag_count = 8;
    let mut flag_byte = 0;
    let mut position = begin;
    while position < end {
        if flag_count == 8 {
            flags = 0;
            flag_count = 0;
            flag_byte = out.len();
            out.push(0);
        }
        let max_distance = position - begin;
        // Bits of the token that are the length; the others are the distance.
        let length_bits = (4..=12)
            .rev()
            .find(|&bits| bits == 4 || 1usize << (16 - bits) >= max_distance)
            .unwrap_or(4);
        let max_len = (1usize << length_bits) - 1 + SHORTEST;
        let match_end = end.min(position + max_len + 1);
        if let Some(chosen) = chains.choose(data, position, max_distance, match_end) {
            let len = chosen.len.min(max_len);
            let token = (chosen.distance - 1) << length_bits | (len - SHORTEST);
            out.extend((token as u16).to_le_bytes());
            flags |= 1 << flag_count;
            chains.cover(data, position + 1, position + len);
            position += len;
        } else {
            out.extend(data.get(position));
            position += 1;
        }
        flag_count += 1;
        put(out, flag_byte, &[flags]);
    }
}

#[cfg(test)]
mod tests {
    use super::put_long_length;

    #[test]
    fn lengths_take_a_byte_as_long_as_they_fit() {
        let bytes_of = |len: usize| {
            let mut out = Vec::new();
            put_long_length(&mut out, len, &mut None);
            out
        };
        assert_eq!(bytes_of(7), [0]);
        assert_eq!(bytes_of(21), [14]);
        assert_eq!(bytes_of(22), [15, 0]);
        assert_eq!(bytes_of(22 + 254), [15, 254]);
        // A byte of 255 announces 16 bits.
        assert_eq!(bytes_of(22 + 255), [15, 255, 21, 1]);
        assert_eq!(bytes_of(0x1_0000), [15, 255, 0, 0, 0, 0, 1, 0]);
    }
}
