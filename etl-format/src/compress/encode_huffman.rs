//! Encoder of XPRESS with Huffman coding: each block of 64 KiB has its own code.

use super::encode::{put, wide_length};
use super::matches::{Chains, Match, SHORTEST};

const BLOCK: usize = 1 << 16;
const SYMBOLS: usize = 512;
/// The farthest a match reaches.
const REACH: usize = (1 << 16) - 1;
/// Longest code.
const BITS: u8 = 15;
/// Ends the stream; as a match it would be of length 3 at distance 1, which is never written.
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
    let mut at = 0;
    while at < data.len() {
        let end = data.len().min(at + BLOCK);
        items.clear();
        while at < end {
            let found = chains.choose(data, at, REACH, end);
            let found = found.filter(|m| m.len > SHORTEST || m.distance > 1);
            if let Some(found) = found {
                items.push(Item::Match(found));
                chains.cover(data, at + 1, at + found.len);
                at += found.len;
            } else {
                items.extend(data.get(at).map(|&b| Item::Literal(b)));
                at += 1;
            }
        }
        if end == data.len() {
            items.push(Item::End);
        }
        block(items, out);
    }
}

fn block(items: &[Item], out: &mut Vec<u8>) {
    let mut counts = [0u32; SYMBOLS];
    for item in items {
        if let Some(count) = counts.get_mut(item.symbol()) {
            *count += 1;
        }
    }
    // A code of one symbol would be incomplete, which decoders refuse: a second one fills it up.
    if counts.iter().filter(|&&c| c > 0).count() == 1 {
        let spare = usize::from(counts.first().is_some_and(|&c| c > 0));
        put_count(&mut counts, spare);
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
        let (Some(&code), Some(&length)) = (codes.get(symbol), lengths.get(symbol)) else {
            continue;
        };
        bits.write(code.into(), length.into());
        if let Item::Match(m) = item {
            let len = m.len - SHORTEST;
            if len >= 15 {
                match u8::try_from(len - 15) {
                    Ok(byte) if byte < 255 => bits.out.push(byte),
                    _ => wide_length(bits.out, len),
                }
            }
            let class = m.distance.ilog2();
            bits.write((m.distance - (1 << class)) as u32, class);
        }
    }
    bits.finish();
}

fn put_count(counts: &mut [u32; SYMBOLS], symbol: usize) {
    if let Some(count) = counts.get_mut(symbol) {
        *count = 1;
    }
}

/// Lengths of a Huffman code for the counts, none above the longest allowed: while one is, the
/// counts are evened out, which flattens the tree.
fn code_lengths(mut counts: [u32; SYMBOLS]) -> [u8; SYMBOLS] {
    loop {
        let lengths = tree(&counts);
        if lengths.iter().all(|&length| length <= BITS) {
            return lengths;
        }
        counts
            .iter_mut()
            .for_each(|count| *count = count.div_ceil(2));
    }
}

fn tree(counts: &[u32; SYMBOLS]) -> [u8; SYMBOLS] {
    let mut leaves = [(0u32, 0u16); SYMBOLS];
    let mut used = 0;
    for (symbol, &count) in counts.iter().enumerate().filter(|&(_, &c)| c > 0) {
        if let Some(leaf) = leaves.get_mut(used) {
            *leaf = (count, symbol as u16);
        }
        used += 1;
    }
    let leaves = leaves.get_mut(..used).unwrap_or_default();
    leaves.sort_unstable();
    // Two queues, each in order of weight: the leaves, and the nodes as they are made.
    let mut weights = [0u32; 2 * SYMBOLS];
    let mut parents = [0u16; 2 * SYMBOLS];
    for (weight, leaf) in weights.iter_mut().zip(leaves.iter()) {
        *weight = leaf.0;
    }
    let (mut leaf, mut node) = (0, used);
    let total = (2 * used).saturating_sub(1);
    for made in used..total {
        let mut sum = 0;
        for _ in 0..2 {
            let weight = |i: usize| weights.get(i).copied().unwrap_or(u32::MAX);
            let take_leaf = leaf < used && (node >= made || weight(leaf) <= weight(node));
            let taken = if take_leaf { &mut leaf } else { &mut node };
            sum += weight(*taken);
            if let Some(parent) = parents.get_mut(*taken) {
                *parent = made as u16;
            }
            *taken += 1;
        }
        if let Some(weight) = weights.get_mut(made) {
            *weight = sum;
        }
    }
    let mut depths = [0u8; 2 * SYMBOLS];
    for i in (0..total.saturating_sub(1)).rev() {
        let parent = parents.get(i).map_or(0, |&p| usize::from(p));
        let depth = depths.get(parent).copied().unwrap_or(0).saturating_add(1);
        if let Some(place) = depths.get_mut(i) {
            *place = depth;
        }
    }
    let mut lengths = [0; SYMBOLS];
    for (leaf, &depth) in leaves.iter().zip(&depths) {
        if let Some(length) = lengths.get_mut(usize::from(leaf.1)) {
            *length = depth;
        }
    }
    lengths
}

/// The canonical codes: by length, then by symbol.
fn codes(lengths: &[u8; SYMBOLS]) -> [u16; SYMBOLS] {
    let mut codes = [0; SYMBOLS];
    let mut next = 0u32;
    for length in 1..=BITS {
        for (code, _) in codes.iter_mut().zip(lengths).filter(|&(_, &l)| l == length) {
            *code = next as u16;
            next += 1;
        }
        next <<= 1;
    }
    codes
}

/// Bits into 16-bit words. A decoder holds two words ahead of the bytes between them, so the places
/// of two words are always kept free.
struct Bits<'a> {
    out: &'a mut Vec<u8>,
    places: [usize; 2],
    word: u32,
    free: u32,
}

impl<'a> Bits<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        let at = out.len();
        out.extend([0; 4]);
        Bits {
            out,
            places: [at, at + 2],
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
