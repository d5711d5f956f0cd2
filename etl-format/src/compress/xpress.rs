//! Decoder of plain XPRESS (MS-XCA "Plain LZ77"): 32 flags, then 32 items, each a literal or a
//! match.

use super::Progress;
use super::copy::repeat;
use crate::cursor::Bytes;

/// A match is this long at least.
const SHORTEST: usize = 3;

/// Literals that can be copied in one go without looking: as many as a flag word has bits.
const RUN: usize = 32;

/// A marker bit follows the last flag of a word, so that counting zeros finds its end.
const LAST: u64 = 1 << 31;
/// Only that bit is left.
const USED_UP: u64 = 1 << 63;

/// Input that is looked at in one go: a flag word or its literals, a token, and the half byte and
/// the byte of its length.
const ITEM: usize = 40;

/// In place of the half of a byte that the next long length takes: there is none.
const NO_HALF: u32 = 0x100;

/// The state of a decoder.
struct Decoder {
    /// Bytes read.
    at: usize,
    /// Bytes produced.
    to: usize,
    /// Flags to come, from the top.
    flags: u64,
    /// The upper half of a byte whose lower half was a length: a length that does not fit its token
    /// takes half a byte, and the next such takes the other. [`NO_HALF`] if none is left.
    half: u32,
}

#[inline(never)]
pub(super) fn decode(input: &[u8], output: &mut [u8], progress: &mut Progress) -> Option<()> {
    let mut decoder = Decoder { at: 0, to: 0, flags: USED_UP, half: NO_HALF };
    // First far from both ends, where whole steps need no check of the length; then to the end with
    // care.
    let whole = decoder.roomy(input, output).and_then(|()| decoder.careful(input, output));
    *progress = Progress { produced: decoder.to, consumed: decoder.at };
    whole
}

impl Decoder {
    /// Decodes while a whole item's input and a step's output are there.
    ///
    /// Whether a length is long is as good as random, so that nothing branches on it until it is
    /// longer than half a byte can hold.
    fn roomy(&mut self, input: &[u8], output: &mut [u8]) -> Option<()> {
        let (mut at, mut to, mut flags, mut half) = (self.at, self.to, self.flags, self.half);
        while let Some(item) = input.get(at..).and_then(|i| i.first_chunk::<ITEM>()) {
            if flags == USED_UP {
                flags = u64::from(item.as_slice().u32_at(0)?) << 32 | LAST;
                at += 4;
                continue;
            }
            let Some(space) = output.get_mut(to..).and_then(|o| o.first_chunk_mut::<RUN>()) else {
                break;
            };
            // All that a flag word can ask for is copied at once, wanted or not: what is too much
            // is written again later.
            let literals = flags.leading_zeros() as usize;
            *space = *item.first_chunk()?;
            at += literals;
            to += literals;
            flags <<= literals;
            if flags == USED_UP {
                continue;
            }
            flags <<= 1;
            (self.at, self.to) = (at, to);
            let word = item.as_slice().u32_at(literals)?;
            let distance = (word as usize & 0xffff) / 8 + 1;
            let long = mask(word & 7 == 7);
            let fresh = mask(half == NO_HALF);
            let shared = word >> 16 & 0xff;
            let nibble = (shared & fresh | half & !fresh) & 15;
            half = (shared >> 4 & fresh | NO_HALF & !fresh) & long | half & !long;
            at += (2 + (long & fresh & 1)) as usize;
            let mut len = ((word & 7) + (nibble & long)) as usize;
            if len == 7 + 15 {
                (len, at) = longer(input, at)?;
            }
            to = repeat(output, to, distance, len.saturating_add(SHORTEST))?;
        }
        (self.at, self.to, self.flags, self.half) = (at, to.min(output.len()), flags, half);
        Some(())
    }

    /// Decodes to the end of the output, and checks the remaining length at each step.
    fn careful(&mut self, input: &[u8], output: &mut [u8]) -> Option<()> {
        while self.to < output.len() {
            if self.flags == USED_UP {
                self.flags = u64::from(input.u32_at(self.at)?) << 32 | LAST;
                self.at += 4;
            }
            let literal = self.flags & USED_UP == 0;
            self.flags <<= 1;
            if literal {
                *output.get_mut(self.to)? = input.u8_at(self.at)?;
                self.at += 1;
                self.to += 1;
                continue;
            }
            let mut at = self.at;
            let token = input.u16_at(at)?;
            at += 2;
            let mut len = usize::from(token & 7);
            if len == 7 {
                len = long_length(input, &mut at, &mut self.half)?;
            }
            self.to =
                repeat(output, self.to, usize::from(token >> 3) + 1, len.saturating_add(SHORTEST))?;
            self.at = at;
        }
        Some(())
    }
}

/// All bits, or none.
#[inline(always)]
fn mask(all: bool) -> u32 {
    0u32.wrapping_sub(all.into())
}

/// The length of a match that its token cannot hold: a nibble, a byte, 16 or 32 bits, whichever is
/// the first that can.
fn long_length(input: &[u8], at: &mut usize, half: &mut u32) -> Option<usize> {
    let nibble = if *half == NO_HALF {
        let shared = u32::from(input.u8_at(*at)?);
        *at += 1;
        *half = shared >> 4;
        shared & 15
    } else {
        core::mem::replace(half, NO_HALF)
    };
    if nibble < 15 {
        return Some(nibble as usize + 7);
    }
    let (len, after) = longer(input, *at)?;
    *at = after;
    Some(len)
}

/// The length of a match that is too long for half a byte, and the offset after it.
#[inline(always)]
fn longer(input: &[u8], at: usize) -> Option<(usize, usize)> {
    let byte = input.u8_at(at)?;
    if byte < 255 {
        return Some((usize::from(byte) + 7 + 15, at + 1));
    }
    longest(input, at + 1)
}

/// The length of a match that is too long for a byte as well, and the offset after it.
#[cold]
fn longest(input: &[u8], at: usize) -> Option<(usize, usize)> {
    let (mut len, mut after) = (usize::from(input.u16_at(at)?), at + 2);
    if len == 0 {
        len = usize::try_from(input.u32_at(after)?).ok()?;
        after += 4;
    }
    // A length that a shorter form could hold is damage.
    (len >= 7 + 15).then_some((len, after))
}
