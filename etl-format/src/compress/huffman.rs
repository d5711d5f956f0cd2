//! Decoder of XPRESS with Huffman coding (MS-XCA "LZ77+Huffman"): blocks of 64 KiB, each with its
//! own code.
//!
//! The publication ends a stream with the symbol that also is a match of length 3 at distance 1.
//! Here the size of the output is known, so the symbol is always a match and the end needs no sign.

use super::Progress;
use super::copy::repeat;
use crate::cursor::Bytes;

/// Bytes of a decompressed block.
const BLOCK: usize = 1 << 16;
/// Symbols: 256 literals, and 256 matches of 16 distance classes and 16 lengths.
const SYMBOLS: usize = 512;
/// Bytes of the table of code lengths: 4 bits per symbol.
const TABLE: usize = SYMBOLS / 2;
/// Longest code.
const BITS: u32 = 15;
const SHORTEST: usize = 3;

pub(super) fn decode(input: &[u8], output: &mut [u8], progress: &mut Progress) -> Option<()> {
    let mut code = Code::default();
    while progress.produced < output.len() {
        let table = input.at(progress.consumed, TABLE)?;
        code.build(table)?;
        let mut bits = Bits::new(input, progress.consumed + TABLE);
        let end = (progress.produced + BLOCK).min(output.len());
        let whole = block(&code, &mut bits, output, &mut progress.produced, end);
        progress.consumed = bits.at.min(input.len());
        whole?;
    }
    Some(())
}

fn block(
    code: &Code,
    bits: &mut Bits<'_>,
    output: &mut [u8],
    produced: &mut usize,
    end: usize,
) -> Option<()> {
    while *produced < end {
        let symbol = code.next(bits)?;
        if bits.overrun() {
            return None;
        }
        if let Ok(literal) = u8::try_from(symbol) {
            *output.get_mut(*produced)? = literal;
            *produced += 1;
            continue;
        }
        let class = u32::from(symbol - 256) >> 4;
        let len = match usize::from(symbol & 15) {
            15 => bits.long_length()?,
            short => short,
        };
        let distance = (1usize << class) + usize::try_from(bits.take(class)).ok()?;
        if bits.overrun() {
            return None;
        }
        *produced = repeat(output, *produced, distance, len.saturating_add(SHORTEST))?;
    }
    Some(())
}

/// Bits from the top of 16-bit words; bytes between the words are read past the ones in hand.
struct Bits<'a> {
    input: &'a [u8],
    at: usize,
    /// Bits in hand, the next one on top.
    hand: u32,
    /// Bits in hand beyond the 16 that are always there.
    extra: i32,
    /// Words that were read past the end of the input.
    missing: u32,
}

impl<'a> Bits<'a> {
    fn new(input: &'a [u8], at: usize) -> Self {
        let mut bits = Bits {
            input,
            at,
            hand: 0,
            extra: 16,
            missing: 0,
        };
        bits.hand = u32::from(bits.word()) << 16;
        bits.hand |= u32::from(bits.word());
        bits
    }

    fn word(&mut self) -> u16 {
        let word = self.input.u16_at(self.at);
        if word.is_none() {
            self.missing += 1;
        }
        self.at = self.at.saturating_add(2);
        word.unwrap_or(0)
    }

    /// The next 15 bits, without taking them.
    #[inline]
    fn peek(&self) -> usize {
        (self.hand >> (32 - BITS)) as usize
    }

    fn skip(&mut self, count: u32) {
        self.hand = self.hand.checked_shl(count).unwrap_or(0);
        self.extra -= count as i32;
        if self.extra < 0 {
            let word = u32::from(self.word());
            self.hand |= word.checked_shl(self.extra.unsigned_abs()).unwrap_or(0);
            self.extra += 16;
        }
    }

    fn take(&mut self, count: u32) -> u32 {
        let value = if count == 0 {
            0
        } else {
            self.hand >> (32 - count)
        };
        self.skip(count);
        value
    }

    /// A length that a symbol cannot hold: a byte, 16 or 32 bits, out of the byte stream.
    fn long_length(&mut self) -> Option<usize> {
        let byte = self.input.u8_at(self.at)?;
        self.at += 1;
        if byte < 255 {
            return Some(usize::from(byte) + 15);
        }
        let mut len = usize::from(self.input.u16_at(self.at)?);
        self.at += 2;
        if len == 0 {
            len = usize::try_from(self.input.u32_at(self.at)?).ok()?;
            self.at += 4;
        }
        (len >= 15).then_some(len)
    }

    /// Whether bits were taken that are not there. Words fetched ahead may be missing at the end.
    fn overrun(&self) -> bool {
        let in_hand = self.extra + 16;
        in_hand < self.missing.saturating_mul(16).cast_signed()
    }
}

/// A canonical Huffman code as a table over the next 15 bits.
struct Code {
    /// For each value of the next bits, the symbol, shifted by [`SHIFT`], and the length of its
    /// code.
    table: Box<[u16]>,
}

/// Bits that hold the length of a code.
const SHIFT: u32 = 4;

impl Default for Code {
    fn default() -> Self {
        Code {
            table: vec![0; 1 << BITS].into_boxed_slice(),
        }
    }
}

impl Code {
    /// Fills the table from the lengths of the codes; `None` when they make no complete code, which
    /// the publication refuses.
    fn build(&mut self, lengths: &[u8]) -> Option<()> {
        let lengths = || lengths.iter().flat_map(|&pair| [pair & 15, pair >> 4]);
        let entries = |length: u8| (1usize << BITS) >> length;
        // The entries of each length, and then where the next code of that length has its own:
        // after those of all shorter codes.
        let mut places = [0; 1 + BITS as usize];
        for length in lengths() {
            *places.get_mut(usize::from(length))? += entries(length);
        }
        let mut end = 0;
        for place in places.iter_mut().skip(1) {
            end += core::mem::replace(place, end);
        }
        if end != self.table.len() {
            return None;
        }
        for (symbol, length) in (0u16..).zip(lengths()).filter(|&(_, length)| length > 0) {
            let place = places.get_mut(usize::from(length))?;
            let next = *place + entries(length);
            let entry = symbol << SHIFT | u16::from(length);
            self.table.get_mut(*place..next)?.fill(entry);
            *place = next;
        }
        Some(())
    }

    fn next(&self, bits: &mut Bits<'_>) -> Option<u16> {
        let entry = *self.table.get(bits.peek())?;
        bits.skip((entry & ((1 << SHIFT) - 1)).into());
        Some(entry >> SHIFT)
    }
}
