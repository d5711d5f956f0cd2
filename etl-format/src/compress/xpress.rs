//! Decoder of plain XPRESS (MS-XCA "Plain LZ77"): 32 flags, then 32 items, each a literal or a
//! match.

use super::Progress;
use super::copy::repeat;
use crate::cursor::Bytes;

/// A match is this long at least.
const SHORTEST: usize = 3;

/// Literals that are copied at once without checking for matches: one for each bit of a flag word.
const RUN: usize = 32;

/// A marker bit follows the last flag of a word, so that counting zeros finds its end.
const END_MARKER: u64 = 1 << 32;
/// Flags of which only the marker bit is left.
const USED_UP: u64 = 1;

/// Bytes of input for one step: the literals of a flag word and what follows them, which is the
/// next flag word, or a token and the byte with its length.
const ITEM: usize = 40;

/// The value of [`Decoder::half`] if no half of a byte is left.
const NO_HALF: u32 = 0x10;

/// The state of a decoder.
struct Decoder {
    consumed: usize,
    produced: usize,
    /// Flags that are not used yet, the next one at the bottom.
    flags: u64,
    /// The upper half of a byte whose lower half was a length: a length that does not fit its token
    /// uses half a byte, and the next such length uses the other half. [`NO_HALF`] if none is left.
    half: u32,
}

#[inline(never)]
pub(super) fn decode(input: &[u8], output: &mut [u8], progress: &mut Progress) -> Option<()> {
    // Far from both ends, whole steps need no check of the length. The rest is decoded byte by
    // byte; if something is wrong, all of it, which finds the damaged place.
    let mut decoder = START.decode_steps(input, output).unwrap_or(START);
    let whole = decoder.decode_rest(input, output);
    *progress = Progress {
        produced: decoder.produced,
        consumed: decoder.consumed,
    };
    whole
}

/// The state before the first byte.
const START: Decoder = Decoder {
    consumed: 0,
    produced: 0,
    flags: USED_UP,
    half: NO_HALF,
};

/// The flags of a word, the first at the bottom: zeros are counted faster from there.
#[inline(always)]
fn flags_of(word: u32) -> u64 {
    u64::from(word.reverse_bits()) | END_MARKER
}

impl Decoder {
    /// Decodes while there is enough input for a whole item and enough output for a step.
    ///
    /// Whether a length is long is as good as random, so that nothing branches on it until it is
    /// longer than half a byte can hold. The processor cannot begin with the next item before it
    /// has the offset after this one, so that few operations lead from the token to that offset.
    fn decode_steps(self, input: &[u8], output: &mut [u8]) -> Option<Self> {
        let Decoder {
            mut consumed,
            mut produced,
            mut flags,
            mut half,
        } = self;
        while let Some(item) = input.get(consumed..).and_then(|i| i.first_chunk::<ITEM>())
            && let Some(space) = output
                .get_mut(produced..)
                .and_then(|o| o.first_chunk_mut::<RUN>())
        {
            // As many literals are copied as a flag word can have; later output overwrites what is
            // too much.
            *space = *item.first_chunk()?;
            let literals = flags.trailing_zeros() as usize;
            let word = item.as_slice().u32_at(literals)?;
            consumed += literals;
            produced += literals;
            flags >>= literals;
            if flags == USED_UP {
                flags = flags_of(word);
                consumed += 4;
                continue;
            }
            flags >>= 1;
            let short_len = word & 7;
            consumed += 2 + ((short_len + half / NO_HALF) >> 3) as usize;
            let shared_byte = if half == NO_HALF {
                word >> 16 & 0xff
            } else {
                half | NO_HALF << 4
            };
            let is_long = short_len == 7;
            half = if is_long { shared_byte >> 4 } else { half };
            let mut len = (short_len + if is_long { shared_byte & 15 } else { 0 }) as usize;
            if len == 7 + 15 {
                let long = long_length(input, consumed)?;
                len = long.len;
                consumed = long.end;
            }
            let distance = (word as usize & 0xffff) / 8 + 1;
            produced = repeat(output, produced, distance, len.saturating_add(SHORTEST))?;
        }
        Some(Decoder {
            consumed,
            produced: produced.min(output.len()),
            flags,
            half,
        })
    }

    /// Decodes to the end of the output, and checks the remaining length at each step.
    fn decode_rest(&mut self, input: &[u8], output: &mut [u8]) -> Option<()> {
        while self.produced < output.len() {
            if self.flags == USED_UP {
                self.flags = flags_of(input.u32_at(self.consumed)?);
                self.consumed += 4;
            }
            let is_literal = self.flags & 1 == 0;
            self.flags >>= 1;
            if is_literal {
                *output.get_mut(self.produced)? = input.u8_at(self.consumed)?;
                self.consumed += 1;
                self.produced += 1;
                continue;
            }
            // A token that is cut off is not consumed.
            let mut position = self.consumed;
            let token = input.u16_at(position)?;
            position += 2;
            let mut len = usize::from(token & 7);
            if len == 7 {
                len += self.half_byte(input, &mut position)?;
            }
            if len == 7 + 15 {
                let long = long_length(input, position)?;
                len = long.len;
                position = long.end;
            }
            let distance = usize::from(token >> 3) + 1;
            let len = len.saturating_add(SHORTEST);
            self.produced = repeat(output, self.produced, distance, len)?;
            self.consumed = position;
        }
        Some(())
    }

    /// The half byte of the next length that does not fit its token.
    fn half_byte(&mut self, input: &[u8], position: &mut usize) -> Option<usize> {
        let mut shared_byte = self.half | NO_HALF << 4;
        if self.half == NO_HALF {
            shared_byte = input.u8_at(*position)?.into();
            *position += 1;
        }
        self.half = shared_byte >> 4;
        Some(shared_byte as usize & 15)
    }
}

/// A length that does not fit half a byte.
struct LongLength {
    len: usize,
    /// The offset after it.
    end: usize,
}

/// The length of a match that does not fit half a byte: a byte, or more.
#[inline(always)]
fn long_length(input: &[u8], position: usize) -> Option<LongLength> {
    let byte = input.u8_at(position)?;
    if byte < 255 {
        return Some(LongLength {
            len: usize::from(byte) + 7 + 15,
            end: position + 1,
        });
    }
    wide_length(input, position + 1)
}

/// The length of a match that does not fit a byte: 16 bits, or 16 zero bits and 32 bits.
#[cold]
fn wide_length(input: &[u8], position: usize) -> Option<LongLength> {
    let mut len = usize::from(input.u16_at(position)?);
    let mut end = position + 2;
    if len == 0 {
        len = usize::try_from(input.u32_at(end)?).ok()?;
        end += 4;
    }
    // A length that a shorter form could hold is damage.
    (len >= 7 + 15).then_some(LongLength { len, end })
}
