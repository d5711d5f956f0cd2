//! The packed file: a header, the index of providers, and blocks of tables, each compressed.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 4 | number of sections, little-endian |
//! | 8 each | bytes of a section, compressed and decompressed |
//! | | the sections: the index, then the blocks, as raw DEFLATE streams |

use crate::code::Numbers;
use crate::{Provider, block, index};

/// The first bytes.
pub(crate) const MAGIC: &[u8; 8] = b"ETLPROV1";

/// Bytes of decompressed data, at most: a guard against data that is no archive.
const MAX_SECTION: usize = 1 << 24;

/// A packed file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Archive<'a> {
    /// Compressed bytes, and the size of what they contain.
    sections: Vec<(&'a [u8], usize)>,
}

impl<'a> Archive<'a> {
    /// Reads the header; `None` for other data.
    pub fn open(data: &'a [u8]) -> Option<Self> {
        let mut input = Numbers(data.strip_prefix(MAGIC)?);
        let number = |input: &mut Numbers<'a>| {
            let bytes = input.take(4)?.first_chunk()?;
            usize::try_from(u32::from_le_bytes(*bytes)).ok()
        };
        let count = number(&mut input)?;
        let mut sizes = Vec::new();
        for _ in 0..count {
            sizes.push((number(&mut input)?, number(&mut input)?));
        }
        let sections = sizes
            .into_iter()
            .map(|(packed, size)| Some((input.take(packed)?, size)));
        Some(Archive {
            sections: sections.collect::<Option<_>>()?,
        })
    }

    pub fn block_count(&self) -> usize {
        self.sections.len().saturating_sub(1)
    }

    fn section(&self, at: usize) -> Option<Vec<u8>> {
        let (packed, size) = *self.sections.get(at)?;
        let size = size.min(MAX_SECTION);
        miniz_oxide::inflate::decompress_to_vec_with_limit(packed, size).ok()
    }

    /// The providers, by name.
    pub fn providers(&self) -> Option<Vec<Provider>> {
        index::read(&self.section(0)?)
    }

    /// The tables of a block.
    pub fn block(&self, at: usize) -> Option<Vec<String>> {
        block::read(&self.section(at.checked_add(1)?)?)
    }
}

/// The file of an index and of blocks.
pub(crate) fn write(sections: &[Vec<u8>]) -> Vec<u8> {
    /// The level with the smallest output.
    const LEVEL: u8 = 10;
    let packed = sections
        .iter()
        .map(|s| miniz_oxide::deflate::compress_to_vec(s, LEVEL));
    let packed: Vec<_> = packed.collect();
    let mut out = MAGIC.to_vec();
    let number = |out: &mut Vec<u8>, n: usize| out.extend((n as u32).to_le_bytes());
    number(&mut out, sections.len());
    for (packed, section) in packed.iter().zip(sections) {
        number(&mut out, packed.len());
        number(&mut out, section.len());
    }
    packed.iter().for_each(|packed| out.extend(packed));
    out
}
