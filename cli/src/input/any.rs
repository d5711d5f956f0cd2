//! The source of every reader: bytes in memory, or a file.

use std::fs::File;
use std::io;

use etl_format::read::{FileSource, Reused, Source};

/// Bytes in memory, or a file that is read in blocks.
#[derive(Debug)]
pub(crate) enum AnySource<'s> {
    /// Bytes in memory or mapped.
    Bytes(&'s [u8]),
    /// A file.
    File(&'s mut FileSource<File>),
}

/// The bytes of one read.
#[derive(Debug)]
pub(crate) enum AnyBlock<'s> {
    Bytes(&'s [u8]),
    Reused(Reused),
}

impl Default for AnyBlock<'_> {
    fn default() -> Self {
        AnyBlock::Bytes(&[])
    }
}

impl AsRef<[u8]> for AnyBlock<'_> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            AnyBlock::Bytes(bytes) => bytes,
            AnyBlock::Reused(reused) => reused.as_ref(),
        }
    }
}

impl<'s> Source for AnySource<'s> {
    type Block = AnyBlock<'s>;

    fn read(&mut self, offset: u64, len: usize, block: &mut AnyBlock<'s>) -> io::Result<()> {
        match self {
            AnySource::Bytes(bytes) => {
                let mut piece = &[][..];
                bytes.read(offset, len, &mut piece)?;
                *block = AnyBlock::Bytes(piece);
                Ok(())
            }
            AnySource::File(file) => {
                // Reuse the memory of an earlier read.
                if let AnyBlock::Bytes(_) = block {
                    *block = AnyBlock::Reused(Reused::default());
                }
                match block {
                    AnyBlock::Reused(reused) => file.read(offset, len, reused),
                    AnyBlock::Bytes(_) => Ok(()),
                }
            }
        }
    }

    fn size(&self) -> Option<u64> {
        match self {
            AnySource::Bytes(bytes) => Some(bytes.len() as u64),
            AnySource::File(file) => file.size(),
        }
    }
}
