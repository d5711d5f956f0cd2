//! Memory maps of files: the only `unsafe` of the crate.

use std::fs::File;
use std::io::{self, Read, Seek};

/// All bytes of a file: mapped into memory, or read into it.
#[derive(Debug)]
pub struct Mapped(Content);

#[derive(Debug)]
enum Content {
    #[cfg(feature = "mmap")]
    Map(memmap2::Mmap),
    /// An empty file cannot be mapped.
    Memory(Vec<u8>),
}

impl Mapped {
    /// Maps a file into memory. Without the feature `mmap`, reads it into memory.
    ///
    /// # Errors
    /// When the system cannot map or read it.
    pub fn new(file: &File) -> io::Result<Self> {
        #[cfg(feature = "mmap")]
        if file.metadata()?.len() > 0 {
            return Ok(Mapped(Content::Map(map(file)?)));
        }
        Mapped::read(file)
    }

    /// Reads all bytes of a file into memory.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(mut file: &File) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(Mapped::from(bytes))
    }

    /// All bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            #[cfg(feature = "mmap")]
            Content::Map(map) => map,
            Content::Memory(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Mapped {
    fn from(bytes: Vec<u8>) -> Self {
        Mapped(Content::Memory(bytes))
    }
}

#[cfg(feature = "mmap")]
fn map(file: &File) -> io::Result<memmap2::Mmap> {
    // SAFETY: the map is only read. If another process writes to the file, the bytes change under
    // the reader, which accepts any bytes and checks each index. If another process truncates the
    // file, an access ends this process (SIGBUS). SECURITY.md describes both, and how to avoid
    // them.
    #[allow(unsafe_code)]
    unsafe {
        memmap2::Mmap::map(file)
    }
}
