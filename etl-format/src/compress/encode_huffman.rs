//! Encoder of XPRESS with Huffman coding: each block of 64 KiB has its own code.

use super::encode::{put, put_wide_length};
use super::matches::{Chains, Match, SHORTEST};

const BLOCK: usize = 1 << 16;
const SYMBOLS: usize = 512;
/// The farthest a match reaches.
const MAX_DISTANCE: usize = (1 << 16) - 1;
/// Bits of the longest code.
const MAX_BITS: u8 = 15;
/// Ends the stream. It is also the symbol of a match of length 3 at distance 1, which is never
/// written.
const END: usize = 256;

/// An item of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    Literal(u8),
    Match(Match),
    End,
}

impl Item {
    fn symbol(self) -> usize {
        match self {
            Item::Literal(byte) => byte.into(),
            Item::Match(m) => 256 + (m.distance.ilog2() as usize * 16) + (m.len - SHORTEST).min(15),
            Item::End => END,
        }
    }
}

pub(super) fn encode(chains: &mut Chains, items: &mut Vec<Item>, data: &[u8], out: &mut Vec<u8>) {
    let mut position = 0;
    while position < data.len() {
        let end = data.len().min(position + BLOCK);
        items.clear();
        while position < end {
            if let Some(chosen) = chains.choose(data, position, MAX_DISTANCE, end)
                && (chosen.len > SHORTEST || chosen.distance > 1)
            {
                items.push(Item::Match(chosen));
                chains.cover(data, position + 1, position + chosen.len);
                position += chosen.len;
            } else {
                items.extend(data.get(position).map(|&byte| Item::Literal(byte)));
                position += 1;
            }
        }
        if end == data.len() {
            items.push(Item::End);
        }
        put_block(items, out);
    }
}

/// Writes a block: the lengths of its codes, then its items.
fn put_block(items: &[Item], out: &mut Vec<u8>) {
    let mut counts = [0u32; SYMBOLS];
    for item in items {
        if let Some(count) = counts.get_mut(item.symbol()) {
            *count += 1;
        }
    }
    // Decoders refuse the code of a single symbol, because it is incomplete: an unused symbol
    // completes it.
    if counts.iter().filter(|&&count| count > 0).count() == 1
        && let Some(unused) = counts.iter_mut().find(|count| **count == 0)
    {
        *unused = 1;
    }
    let lengths = code_lengths(counts);
    let codes = codes(&lengths);
    for pair in lengths.chunks_exact(2) {
        out.push(
            pair.iter()
                .rev()
                .fold(0, |byte, &length| byte << 4 | length),
        );
    }
    let mut bits = Bits::new(out);
    for &item in items {
        let symbol = item.symbol();
        let Some(&code) = codes.get(symbol) else {
            continue;
        };
        let Some(&length) = lengths.get(symbol) else {
            continue;
        };
        bits.write(code.into(), length.into());
        if let Item::Match(m) = item {
            let len = m.len - SHORTEST;
            if len >= 15 {
                match u8::try_from(len - 15) {
                    Ok(byte) if byte < 255 => bits.out.push(byte),
                    _ => put_wide_length(bits.out, len),
                }
            }
            let class = m.distance.ilog2();
            bits.write((m.distance - (1 << class)) as u32, class);
        }
    }
    bits.finish();
}

/// Lengths of a Huffman code for the counts. While a code is longer than allowed, the counts are
/// halved, rounded up, which flattens the tree.
fn code_lengths(mut counts: [u32; SYMBOLS]) -> [u8; SYMBOLS] {
    loop {
        let lengths = tree_depths(&counts);
        if lengths.iter().all(|&length| length <= MAX_BITS) {
            return lengths;
        }
        for count in &mut counts {
            *count = count.div_ceil(2);
        }
    }
}

/// A symbol that occurs. Leaves are ordered by count.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Leaf {
    count: u32,
    symbol: u16,
}

/// The depth of each symbol in a Huffman tree for the counts.
fn tree_depths(counts: &[u32; SYMBOLS]) -> [u8; SYMBOLS] {
    fn weight_of(weights: &[u32], node: usize) -> u32 {
        weights.get(node).copied().unwrap_or(u32::MAX)
    }

    let mut leaves = [Leaf::default(); SYMBOLS];
    let mut used = 0;
    for (symbol, &count) in (0..).zip(counts).filter(|&(_, &count)| count > 0) {
        if let Some(leaf) = leaves.get_mut(used) {
            *leaf = Leaf { count, symbol };
        }
        used += 1;
    }
    let leaves = leaves.get_mut(..used).unwrap_or_default();
    leaves.sort_unstable();
    // Two queues, each in order of weight: the leaves, and the nodes in the order in which they are
    // made.
    let mut weights = [0u32; 2 * SYMBOLS];
    let mut parents = [0u16; 2 * SYMBOLS];
    for (weight, leaf) in weights.iter_mut().zip(leaves.iter()) {
        *weight = leaf.count;
    }
    let mut next_leaf = 0;
    let mut next_node = used;
    let total = (2 * used).saturating_sub(1);
    for new_node in used..total {
        let mut sum = 0;
        for _ in 0..2 {
            let leaf_weight = weight_of(&weights, next_leaf);
            let is_leaf = next_leaf < used
                && (next_node >= new_node || leaf_weight <= weight_of(&weights, next_node));
            let child = if is_leaf {
                &mut next_leaf
            } else {
                &mut next_node
            };
            sum += weight_of(&weights, *child);
            if let Some(parent) = parents.get_mut(*child) {
                *parent = new_node as u16;
            }
            *child += 1;
        }
        if let Some(weight) = weights.get_mut(new_node) {
            *weight = sum;
        }
    }
    let mut depths = [0u8; 2 * SYMBOLS];
    for node in (0..total.saturating_sub(1)).rev() {
        let parent = parents.get(node).copied().unwrap_or(0);
        let parent_depth = depths.get(usize::from(parent)).copied().unwrap_or(0);
        if let Some(depth) = depths.get_mut(node) {
            *depth = parent_depth.saturating_add(1);
        }
    }
    let mut lengths = [0; SYMBOLS];
    for (leaf, &depth) in leaves.iter().zip(&depths) {
        if let Some(length) = lengths.get_mut(usize::from(leaf.symbol)) {
            *length = depth;
        }
    }
    lengths
}

/// The canonical codes: by length, then by symbol.
fn codes(lengths: &[u8; SYMBOLS]) -> [u16; SYMBOLS] {
    let mut codes = [0; SYMBOLS];
    let mut next = 0u32;
    for length in 1..=MAX_BITS {
        for (code, &code_length) in codes.iter_mut().zip(lengths) {
            if code_length == length {
                *code = next as u16;
                next += 1;
            }
        }
        next <<= 1;
    }
    codes
}

/// Writes bits into 16-bit words. A decoder reads two words ahead of the bytes between them, so the
/// places of two words are always kept free.
struct Bits<'a> {
    out: &'a mut Vec<u8>,
    /// Offsets of the next two words.
    places: [usize; 2],
    word: u32,
    /// Bits of the word that are not used yet.
    free: u32,
}

impl<'a> Bits<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        let first = out.len();
        out.extend([0; 4]);
        Bits {
            out,
            places: [first, first + 2],
            word: 0,
            free: 16,
        }
    }

    fn write(&mut self, bits: u32, count: u32) {
        if count <= self.free {
            self.free -= count;
            self.word = self.word << count | bits;
            return;
        }
        let left = count - self.free;
        let full = self.word << self.free | bits >> left;
        let [place, next] = self.places;
        put(self.out, place, &(full as u16).to_le_bytes());
        self.places = [next, self.out.len()];
        self.out.extend([0; 2]);
        self.word = bits & ((1 << left) - 1);
        self.free = 16 - left;
    }

    fn finish(self) {
        let [place, _] = self.places;
        put(
            self.out,
            place,
            &((self.word << self.free) as u16).to_le_bytes(),
        );
    }
}
