//! Memory maps of files: the only `unsafe` of the tools.

use std::fs::File;

use memmap2::Mmap;

use crate::error::Failure;

/// All bytes of a file.
#[derive(Debug)]
pub(crate) enum Mapped {
    /// A file, mapped.
    Map(Mmap),
    /// Bytes in memory. An empty file cannot be mapped.
    Memory(Vec<u8>),
}

impl Mapped {
    /// Maps an open file into memory; `name` is for messages.
    ///
    /// # Errors
    /// When the system cannot map it.
    pub fn new(file: &File, name: &str) -> Result<Self, Failure> {
        let failure = |e: std::io::Error| Failure::io(name, &e);
        if file.metadata().map_err(failure)?.len() == 0 {
            return Ok(Mapped::Memory(Vec::new()));
        }
        // SAFETY: the map is only read. If another process writes to the file, the bytes change
        // under the reader, which accepts any bytes and checks each index. If another process
        // truncates the file, an access ends this process (SIGBUS). SECURITY.md describes both;
        // `--no-mmap` avoids them.
        #[allow(unsafe_code)]
        let mapped = unsafe { Mmap::map(file) }.map_err(failure)?;
        Ok(Mapped::Map(mapped))
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Mapped::Map(map) => map,
            Mapped::Memory(bytes) => bytes,
        }
    }
}
