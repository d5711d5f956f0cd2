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

/// The largest size of a decompressed section: a guard against data that is not an archive.
const MAX_SECTION: usize = 1 << 24;

/// A packed file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Archive<'a> {
    sections: Vec<Section<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Section<'a> {
    compressed: &'a [u8],
    /// Bytes of the decompressed section.
    size: usize,
}

/// The sizes of a section in the header of the file.
struct Sizes {
    compressed: usize,
    decompressed: usize,
}

impl<'a> Archive<'a> {
    /// Reads the header; `None` for other data.
    pub fn open(data: &'a [u8]) -> Option<Self> {
        let mut input = Numbers(data.strip_prefix(MAGIC)?);
        let count = read_u32(&mut input)?;
        let mut sizes = Vec::new();
        for _ in 0..count {
            sizes.push(Sizes {
                compressed: read_u32(&mut input)?,
                decompressed: read_u32(&mut input)?,
            });
        }
        let mut sections = Vec::new();
        for sizes in sizes {
            sections.push(Section {
                compressed: input.take(sizes.compressed)?,
                size: sizes.decompressed,
            });
        }
        Some(Archive { sections })
    }

    pub fn block_count(&self) -> usize {
        self.sections.len().saturating_sub(1)
    }

    fn decompress(&self, index: usize) -> Option<Vec<u8>> {
        let Section { compressed, size } = *self.sections.get(index)?;
        let size = size.min(MAX_SECTION);
        miniz_oxide::inflate::decompress_to_vec_with_limit(compressed, size).ok()
    }

    /// The providers, by name.
    pub fn providers(&self) -> Option<Vec<Provider>> {
        index::read(&self.decompress(0)?)
    }

    /// The tables of a block.
    pub fn block(&self, block: usize) -> Option<Vec<String>> {
        block::read(&self.decompress(block.checked_add(1)?)?)
    }
}

/// Packs an index and blocks into a file.
pub(crate) fn write(sections: &[Vec<u8>]) -> Vec<u8> {
    /// The level with the smallest output.
    const LEVEL: u8 = 10;
    let compressed: Vec<_> = sections
        .iter()
        .map(|section| miniz_oxide::deflate::compress_to_vec(section, LEVEL))
        .collect();
    let mut out = MAGIC.to_vec();
    put_u32(&mut out, sections.len());
    for (compressed, section) in compressed.iter().zip(sections) {
        put_u32(&mut out, compressed.len());
        put_u32(&mut out, section.len());
    }
    for compressed in &compressed {
        out.extend(compressed);
    }
    out
}

fn read_u32(input: &mut Numbers<'_>) -> Option<usize> {
    let bytes = input.take(4)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*bytes)).ok()
}

fn put_u32(out: &mut Vec<u8>, number: usize) {
    out.extend((number as u32).to_le_bytes());
}
