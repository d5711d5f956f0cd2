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
const LAST: u64 = 1 << 32;
/// Only that bit is left.
const USED_UP: u64 = 1;

/// Input that is looked at in one go: the literals of a flag word and what follows them, which is
/// the next flag word, or a token and the byte with its length.
const ITEM: usize = 40;

/// In place of the half of a byte that the next long length takes: there is none.
const NO_HALF: u32 = 0x10;

/// The state of a decoder.
struct Decoder {
    /// Bytes read.
    at: usize,
    /// Bytes produced.
    to: usize,
    /// Flags to come, from the bottom.
    flags: u64,
    /// The upper half of a byte whose lower half was a length: a length that does not fit its token
    /// takes half a byte, and the next such takes the other. [`NO_HALF`] if none is left.
    half: u32,
}

#[inline(never)]
pub(super) fn decode(input: &[u8], output: &mut [u8], progress: &mut Progress) -> Option<()> {
    // First far from both ends, where whole steps need no check of the length; then to the end with
    // care. Where something is wrong, all of it with care, which finds the place.
    let mut decoder = START.roomy(input, output).unwrap_or(START);
    let whole = decoder.careful(input, output);
    *progress = Progress {
        produced: decoder.to,
        consumed: decoder.at,
    };
    whole
}

/// Nothing is decoded.
const START: Decoder = Decoder {
    at: 0,
    to: 0,
    flags: USED_UP,
    half: NO_HALF,
};

/// The flags of a word, the first at the bottom: zeros are counted faster from there.
#[inline(always)]
fn flags_of(word: u32) -> u64 {
    u64::from(word.reverse_bits()) | LAST
}

impl Decoder {
    /// Decodes while a whole item's input and a step's output are there.
    ///
    /// Whether a length is long is as good as random, so that nothing branches on it until it is
    /// longer than half a byte can hold. The next item waits for the offset after this one, so that
    /// the steps from its token to that offset are few.
    fn roomy(self, input: &[u8], output: &mut [u8]) -> Option<Self> {
        let Decoder {
            mut at,
            mut to,
            mut flags,
            mut half,
        } = self;
        while let Some(item) = input.get(at..).and_then(|i| i.first_chunk::<ITEM>())
            && let Some(space) = output
                .get_mut(to..)
                .and_then(|o| o.first_chunk_mut::<RUN>())
        {
            // All that a flag word can ask for is copied at once, wanted or not: what is too much
            // is written again later.
            *space = *item.first_chunk()?;
            let literals = flags.trailing_zeros() as usize;
            let word = item.as_slice().u32_at(literals)?;
            at += literals;
            to += literals;
            flags >>= literals;
            if flags == USED_UP {
                flags = flags_of(word);
                at += 4;
                continue;
            }
            flags >>= 1;
            let short = word & 7;
            at += 2 + ((short + half / NO_HALF) >> 3) as usize;
            let shared = if half == NO_HALF {
                word >> 16 & 0xff
            } else {
                half | NO_HALF << 4
            };
            let long = short == 7;
            half = if long { shared >> 4 } else { half };
            let mut len = (short + if long { shared & 15 } else { 0 }) as usize;
            if len == 7 + 15 {
                (len, at) = longer(input, at)?;
            }
            let distance = (word as usize & 0xffff) / 8 + 1;
            to = repeat(output, to, distance, len.saturating_add(SHORTEST))?;
        }
        Some(Decoder {
            at,
            to: to.min(output.len()),
            flags,
            half,
        })
    }

    /// Decodes to the end of the output, and checks the remaining length at each step.
    fn careful(&mut self, input: &[u8], output: &mut [u8]) -> Option<()> {
        while self.to < output.len() {
            if self.flags == USED_UP {
                self.flags = flags_of(input.u32_at(self.at)?);
                self.at += 4;
            }
            let literal = self.flags & 1 == 0;
            self.flags >>= 1;
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
                len += self.nibble(input, &mut at)?;
            }
            if len == 7 + 15 {
                (len, at) = longer(input, at)?;
            }
            self.to = repeat(
                output,
                self.to,
                usize::from(token >> 3) + 1,
                len.saturating_add(SHORTEST),
            )?;
            self.at = at;
        }
        Some(())
    }

    /// The half byte of the next length that does not fit its token.
    fn nibble(&mut self, input: &[u8], at: &mut usize) -> Option<usize> {
        let mut shared = self.half | NO_HALF << 4;
        if self.half == NO_HALF {
            shared = input.u8_at(*at)?.into();
            *at += 1;
        }
        self.half = shared >> 4;
        Some(shared as usize & 15)
    }
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
