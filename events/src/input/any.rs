//! The source of every reader: bytes in memory, or a file.

use std::io;

use etl_format::read::{FileSource, Reused, Source};

use super::ahead::Ahead;
use super::handle::Handle;

/// Bytes in memory, or a file that is read in blocks; a file may be read ahead.
#[derive(Debug)]
pub struct AnySource<'s> {
    pub(super) bytes: AnyBytes<'s>,
    pub(super) ahead: Option<&'s mut Ahead>,
}

/// Where the bytes are.
#[derive(Debug)]
pub(super) enum AnyBytes<'s> {
    /// In memory or mapped.
    Memory(&'s [u8]),
    /// In a file.
    File(&'s mut FileSource<Handle>),
}

/// The bytes of one read.
#[derive(Debug)]
pub enum AnyBlock<'s> {
    /// Bytes in memory.
    Bytes(&'s [u8]),
    /// A copy of bytes of a file.
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
        if let Some(ahead) = &mut self.ahead {
            ahead.wait_for(offset, len);
        }
        match &mut self.bytes {
            AnyBytes::Memory(bytes) => {
                let mut piece = &[][..];
                bytes.read(offset, len, &mut piece)?;
                *block = AnyBlock::Bytes(piece);
                Ok(())
            }
            AnyBytes::File(file) => {
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
        match &self.bytes {
            AnyBytes::Memory(bytes) => Some(bytes.len() as u64),
            AnyBytes::File(file) => file.size(),
        }
    }
}
