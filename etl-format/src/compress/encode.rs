//! Encoders of plain XPRESS and LZNT1.

use super::matches::{Chains, SHORTEST};

/// How far back a match of plain XPRESS reaches.
const REACH: usize = 1 << 13;

/// Plain XPRESS. The unused flags of the last word are 1, as Windows writes them; when all are
/// used, a word of ones follows.
pub(super) fn xpress(chains: &mut Chains, data: &[u8], out: &mut Vec<u8>) {
    let (mut flags, mut count) = (0u32, 0u32);
    let mut word = out.len();
    let mut half: Option<usize> = None;
    out.extend([0xff; 4]);
    let mut at = 0;
    while at < data.len() {
        let found = chains.choose(data, at, REACH, data.len());
        if let Some(found) = found {
            let len = found.len - SHORTEST;
            let token = (found.distance - 1) << 3 | len.min(7);
            out.extend((token as u16).to_le_bytes());
            if len >= 7 {
                long_length(out, len, &mut half);
            }
            chains.cover(data, at + 1, at + found.len);
            at += found.len;
        } else {
            out.extend(data.get(at));
            at += 1;
        }
        flags = flags << 1 | u32::from(found.is_some());
        count += 1;
        if count == 32 {
            put(out, word, &flags.to_le_bytes());
            (flags, count, word) = (0, 0, out.len());
            out.extend([0xff; 4]);
        }
    }
    if count > 0 {
        let unused = 32 - count;
        let last = flags << unused | ((1u32 << unused) - 1);
        put(out, word, &last.to_le_bytes());
    }
}

/// A length that its token cannot hold: half a byte, a byte, 16 or 32 bits.
fn long_length(out: &mut Vec<u8>, len: usize, half: &mut Option<usize>) {
    let nibble = (len - 7).min(15) as u8;
    match half.take() {
        Some(place) => {
            if let Some(byte) = out.get_mut(place) {
                *byte |= nibble << 4;
            }
        }
        None => {
            *half = Some(out.len());
            out.push(nibble);
        }
    }
    if nibble < 15 {
        return;
    }
    match u8::try_from(len - 22) {
        Ok(byte) if byte < 255 => out.push(byte),
        _ => wide_length(out, len),
    }
}

/// A length of 16 bits, or 16 zero bits and a length of 32 bits. A byte of 255 announces it.
pub(super) fn wide_length(out: &mut Vec<u8>, len: usize) {
    out.push(255);
    match u16::try_from(len) {
        Ok(len) => out.extend(len.to_le_bytes()),
        Err(_) => {
            out.extend([0, 0]);
            out.extend((len as u32).to_le_bytes());
        }
    }
}

/// Overwrites the bytes at `at`.
pub(super) fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = out.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// LZNT1: chunks of 4096 bytes, stored uncompressed where compression does not make them smaller.
pub(super) fn lznt1(chains: &mut Chains, data: &[u8], out: &mut Vec<u8>) {
    let mut begin = 0;
    for chunk in data.chunks(4096) {
        let header = out.len();
        let end = begin + chunk.len();
        out.extend([0, 0]);
        let (mut flags, mut count, mut place) = (0u8, 8, 0);
        let mut at = begin;
        while at < end {
            if count == 8 {
                (flags, count, place) = (0, 0, out.len());
                out.push(0);
            }
            let made = at - begin;
            // Bits of the token that are length; the distance has the rest.
            let bits = (4..=12)
                .rev()
                .find(|&b| b == 4 || 1usize << (16 - b) >= made)
                .unwrap_or(4);
            let most = (1usize << bits) - 1 + SHORTEST;
            if let Some(found) = chains.choose(data, at, made, end.min(at + most + 1)) {
                let len = found.len.min(most);
                let token = (found.distance - 1) << bits | (len - SHORTEST);
                out.extend((token as u16).to_le_bytes());
                flags |= 1 << count;
                chains.cover(data, at + 1, at + len);
                at += len;
            } else {
                out.extend(data.get(at));
                at += 1;
            }
            count += 1;
            put(out, place, &[flags]);
        }
        let mut size = out.len() - header - 2;
        let mut kind = 0xb000;
        if size >= chunk.len() {
            out.truncate(header + 2);
            out.extend(chunk);
            (size, kind) = (chunk.len(), 0x3000);
        }
        put(out, header, &(kind | (size - 1) as u16).to_le_bytes());
        begin = end;
    }
}
