//! The bytes of a file, mapped into memory: the one place with `unsafe`.

use std::fs::File;

use memmap2::Mmap;

use crate::error::Failure;

/// Bytes that are all there at once.
#[derive(Debug)]
pub(crate) enum Mapped {
    /// A file, mapped.
    Map(Mmap),
    /// Bytes in memory; an empty file is none, for it cannot be mapped.
    Memory(Vec<u8>),
}

impl Mapped {
    /// Maps an open file into memory; `name` is for messages.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn new(file: &File, name: &str) -> Result<Self, Failure> {
        let failure = |e: std::io::Error| Failure::new(name, e.to_string());
        if file.metadata().map_err(failure)?.len() == 0 {
            return Ok(Mapped::Memory(Vec::new()));
        }
        // SAFETY: the map is only ever read. Should another process write to the file meanwhile, the
        // bytes change under the reader, which takes any bytes and indexes none unchecked; should it cut
        // the file short, the process dies of the access (SIGBUS). `--no-mmap` reads without a map;
        // SECURITY.md tells users of both.
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
