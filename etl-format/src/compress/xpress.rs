//! Plain XPRESS (MS-XCA "Plain LZ77"): 32 flags, then 32 items, each a literal or a match.

use super::Progress;
use super::copy::repeat;
use crate::cursor::Bytes;

/// A match is this long at least.
const SHORTEST: usize = 3;

/// Literals that can be copied in one go without looking: as many as a flag word has bits.
const RUN: usize = 32;

/// Behind the last flag of a word stands a bit of ours, so that counting zeros finds its end.
const LAST: u64 = 1 << 31;
/// Only that bit is left.
const USED_UP: u64 = 1 << 63;

/// Input that one item needs at most: a flag word, its literals, a token and the longest length.
const ITEM: usize = 64;

/// Where a decoder stands.
struct Decoder {
    /// Bytes read.
    at: usize,
    /// Bytes produced.
    to: usize,
    /// Flags to come, from the top.
    flags: u64,
    /// Where the byte stands whose upper half is the next long length: a length that does not fit
    /// its token takes half a byte, and the next such takes the other.
    half: Option<usize>,
}

#[inline(never)]
pub(super) fn decode(input: &[u8], output: &mut [u8], progress: &mut Progress) -> Option<()> {
    let mut decoder = Decoder { at: 0, to: 0, flags: USED_UP, half: None };
    // First with room to spare on both sides, where whole steps can be copied unasked; then to the
    // end with care.
    let whole = decoder.roomy(input, output).and_then(|()| decoder.careful(input, output));
    *progress = Progress { produced: decoder.to, consumed: decoder.at };
    whole
}

impl Decoder {
    /// Decodes while a whole item's input and a step's output are there.
    fn roomy(&mut self, input: &[u8], output: &mut [u8]) -> Option<()> {
        let (mut at, mut to, mut flags) = (self.at, self.to, self.flags);
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
            *space = *item.first_chunk()?;
            let literals = flags.leading_zeros();
            at += literals as usize;
            to += literals as usize;
            flags <<= literals;
            if flags == USED_UP {
                continue;
            }
            flags <<= 1;
            (self.at, self.to) = (at, to);
            let token = item.as_slice().u16_at(literals as usize)?;
            at += 2;
            let distance = usize::from(token >> 3) + 1;
            let mut len = usize::from(token & 7);
            if len == 7 {
                len = long_length(input, &mut at, &mut self.half)?;
            }
            to = repeat(output, to, distance, len + SHORTEST)?;
        }
        (self.at, self.to, self.flags) = (at, to.min(output.len()), flags);
        Some(())
    }

    /// Decodes to the end of the output, looking at each step whether there is room.
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
            self.to = repeat(output, self.to, usize::from(token >> 3) + 1, len + SHORTEST)?;
            self.at = at;
        }
        Some(())
    }
}

/// The length of a match that its token cannot hold: a nibble, a byte, 16 or 32 bits, whichever is
/// the first that can.
#[inline(always)]
fn long_length(input: &[u8], at: &mut usize, half: &mut Option<usize>) -> Option<usize> {
    let nibble = match half.take() {
        Some(place) => input.u8_at(place)? >> 4,
        None => {
            *half = Some(*at);
            *at += 1;
            input.u8_at(*at - 1)? & 15
        }
    };
    if nibble < 15 {
        return Some(usize::from(nibble) + 7);
    }
    let byte = input.u8_at(*at)?;
    *at += 1;
    if byte < 255 {
        return Some(usize::from(byte) + 7 + 15);
    }
    let mut len = usize::from(input.u16_at(*at)?);
    *at += 2;
    if len == 0 {
        len = usize::try_from(input.u32_at(*at)?).ok()?;
        *at += 4;
    }
    // A length that a shorter form could hold is damage.
    (len >= 7 + 15).then_some(len)
}
