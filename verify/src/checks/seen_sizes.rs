//! The sizes of kernel records that need no comparison with their layout any more.

use etl_format::cursor::Bytes;
use etl_format::read::Record;

/// Kinds and sizes that are remembered.
const SLOTS: usize = 1 << 8;

/// Kinds of kernel records, each with a size that fits the layout of the kind.
///
/// A kernel trace has a few dozen of them, and millions of records.
#[derive(Clone, Debug)]
pub(super) struct SeenSizes {
    /// The first word of records: version, kind, size and hook.
    words: Vec<u64>,
}

impl Default for SeenSizes {
    fn default() -> Self {
        SeenSizes {
            words: vec![0; SLOTS],
        }
    }
}

impl SeenSizes {
    /// Whether all records like this one fit.
    #[inline(always)]
    pub fn has(&self, record: &Record<'_>) -> bool {
        let word = first_word(record);
        word != 0 && self.words.get(slot(word)) == Some(&word)
    }

    /// Remembers that all records like this one fit.
    pub fn add(&mut self, record: &Record<'_>) {
        let word = first_word(record);
        if let Some(slot) = self.words.get_mut(slot(word)) {
            *slot = word;
        }
    }
}

#[inline(always)]
fn first_word(record: &Record<'_>) -> u64 {
    record.bytes().u64_at(0).unwrap_or(0)
}

/// The place of a word: the upper 8 bits of its product with the golden ratio.
#[inline(always)]
fn slot(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
}
