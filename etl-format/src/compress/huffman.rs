//! Decoder of XPRESS with Huffman coding (MS-XCA "LZ77+Huffman"): blocks of 64 KiB, each with its
//! own code.
//!
//! MS-XCA ends a stream with the symbol of a match of length 3 at distance 1. Here the size of the
//! output is known, so that this symbol is always a match.

use super::Progress;
use super::copy::repeat;
use crate::cursor::Bytes;

/// Bytes of a decompressed block.
const BLOCK: usize = 1 << 16;
/// Symbols: 256 literals, and 256 matches of 16 distance classes and 16 lengths.
const SYMBOLS: usize = 512;
/// Bytes of the table of code lengths: 4 bits per symbol.
const TABLE: usize = SYMBOLS / 2;
/// Bits of the longest code.
const MAX_BITS: u32 = 15;
const SHORTEST: usize = 3;

pub(super) fn decode(input: &[u8], output: &mut [u8], progress: &mut Progress) -> Option<()> {
    let mut code = Code::default();
    while progress.produced < output.len() {
        let table = input.at(progress.consumed, TABLE)?;
        code.build(table)?;
        let mut bits = Bits::new(input, progress.consumed + TABLE);
        let end = (progress.produced + BLOCK).min(output.len());
        let whole = decode_block(&code, &mut bits, output, &mut progress.produced, end);
        progress.consumed = bits.position.min(input.len());
        whole?;
    }
    Some(())
}

fn decode_block(
    code: &Code,
    bits: &mut Bits<'_>,
    output: &mut [u8],
    produced: &mut usize,
    end: usize,
) -> Option<()> {
    while *produced < end {
        let symbol = code.next(bits)?;
        if bits.is_overrun() {
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
        if bits.is_overrun() {
            return None;
        }
        *produced = repeat(output, *produced, distance, len.saturating_add(SHORTEST))?;
    }
    Some(())
}

/// Reads bits from the top of 16-bit words. Two words are read ahead; bytes between the words come
/// after these two.
struct Bits<'a> {
    input: &'a [u8],
    /// Offset of the next word or byte in the input.
    position: usize,
    /// The bits that were read ahead, the next one on top.
    buffered: u32,
    /// Buffered bits beyond the 16 that are always there.
    extra: i32,
    /// Words that were read past the end of the input.
    missing: u32,
}

impl<'a> Bits<'a> {
    fn new(input: &'a [u8], position: usize) -> Self {
        let mut bits = Bits {
            input,
            position,
            buffered: 0,
            extra: 16,
            missing: 0,
        };
        bits.buffered = u32::from(bits.read_word()) << 16;
        bits.buffered |= u32::from(bits.read_word());
        bits
    }

    fn read_word(&mut self) -> u16 {
        let word = self.input.u16_at(self.position);
        if word.is_none() {
            self.missing += 1;
        }
        self.position = self.position.saturating_add(2);
        word.unwrap_or(0)
    }

    /// The next 15 bits, without taking them.
    #[inline]
    fn peek(&self) -> usize {
        (self.buffered >> (32 - MAX_BITS)) as usize
    }

    fn skip(&mut self, count: u32) {
        self.buffered = self.buffered.checked_shl(count).unwrap_or(0);
        self.extra -= count as i32;
        if self.extra < 0 {
            let word = u32::from(self.read_word());
            self.buffered |= word.checked_shl(self.extra.unsigned_abs()).unwrap_or(0);
            self.extra += 16;
        }
    }

    fn take(&mut self, count: u32) -> u32 {
        let value = if count == 0 {
            0
        } else {
            self.buffered >> (32 - count)
        };
        self.skip(count);
        value
    }

    /// A length that does not fit its symbol: a byte, 16 or 32 bits, from the bytes between words.
    fn long_length(&mut self) -> Option<usize> {
        let byte = self.input.u8_at(self.position)?;
        self.position += 1;
        if byte < 255 {
            return Some(usize::from(byte) + 15);
        }
        let mut len = usize::from(self.input.u16_at(self.position)?);
        self.position += 2;
        if len == 0 {
            len = usize::try_from(self.input.u32_at(self.position)?).ok()?;
            self.position += 4;
        }
        (len >= 15).then_some(len)
    }

    /// Whether more bits were taken than the input has. Words that were read ahead may be missing
    /// at the end.
    fn is_overrun(&self) -> bool {
        let buffered_bits = self.extra + 16;
        buffered_bits < self.missing.saturating_mul(16).cast_signed()
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
            table: vec![0; 1 << MAX_BITS].into_boxed_slice(),
        }
    }
}

impl Code {
    /// Fills the table from the lengths of the codes, two in a byte; `None` if they are not a
    /// complete code, which MS-XCA refuses.
    fn build(&mut self, pairs: &[u8]) -> Option<()> {
        // First the number of entries for each length. Then the first entry that is not filled yet:
        // the entries of a length follow the entries of all shorter ones.
        let mut next_entries = [0; 1 + MAX_BITS as usize];
        for length in code_lengths(pairs) {
            *next_entries.get_mut(usize::from(length))? += entry_count(length);
        }
        let mut end = 0;
        for next_entry in next_entries.iter_mut().skip(1) {
            end += core::mem::replace(next_entry, end);
        }
        if end != self.table.len() {
            return None;
        }
        for (symbol, length) in (0u16..).zip(code_lengths(pairs)) {
            if length == 0 {
                continue;
            }
            let next_entry = next_entries.get_mut(usize::from(length))?;
            let end = *next_entry + entry_count(length);
            let entry = symbol << SHIFT | u16::from(length);
            self.table.get_mut(*next_entry..end)?.fill(entry);
            *next_entry = end;
        }
        Some(())
    }

    fn next(&self, bits: &mut Bits<'_>) -> Option<u16> {
        let entry = *self.table.get(bits.peek())?;
        bits.skip((entry & ((1 << SHIFT) - 1)).into());
        Some(entry >> SHIFT)
    }
}

/// The lengths of the codes by symbol; 0 if the symbol has no code.
fn code_lengths(pairs: &[u8]) -> impl Iterator<Item = u8> {
    pairs.iter().flat_map(|&pair| [pair & 15, pair >> 4])
}

/// How many entries of the table begin with a code of this length.
fn entry_count(length: u8) -> usize {
    (1 << MAX_BITS) >> length
}
