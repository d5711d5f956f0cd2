//! The bytes of a PDB for its reader, within limits that its size sets.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use pdb_addr2line::pdb::{Source, SourceSlice, SourceView};

use super::error::{Error, Reason, Result};

/// How often a file may be read in full: streams may share pages in a damaged file.
const MAX_READS: u64 = 4;

/// A file whose streams are read on demand, together no more than a few times its size.
pub(crate) struct BoundedFile {
    file: File,
    len: u64,
    left: u64,
}

/// The first bytes of a container with a compressed PDB.
pub(super) const MSFZ_MAGIC: &[u8] = b"Microsoft MSFZ Container";

impl BoundedFile {
    /// Opens the file of a Windows PDB.
    ///
    /// # Errors
    /// When it cannot be read, or is compressed.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(|error| Error::io(path, error))?;
        let mut magic = Vec::new();
        let limit = MSFZ_MAGIC.len() as u64;
        let read = (&mut file).take(limit).read_to_end(&mut magic);
        read.map_err(|error| Error::io(path, error))?;
        if magic == MSFZ_MAGIC {
            return Err(Error::new(path, Reason::Msfz));
        }
        let len = file
            .metadata()
            .map_err(|error| Error::io(path, error))?
            .len();
        Ok(BoundedFile {
            file,
            len,
            left: len.saturating_mul(MAX_READS),
        })
    }
}

impl fmt::Debug for BoundedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoundedFile({} bytes)", self.len)
    }
}

#[derive(Debug)]
struct View(Vec<u8>);

impl SourceView<'_> for View {
    fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl<'s> Source<'s> for BoundedFile {
    fn view(
        &mut self,
        slices: &[SourceSlice],
    ) -> io::Result<Box<dyn SourceView<'s> + Send + Sync>> {
        let sizes = slices.iter().map(|slice| slice.size as u64);
        let total = sizes.fold(0u64, u64::saturating_add);
        if total > self.len || total > self.left {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "its streams are larger than the file",
            ));
        }
        self.left -= total;
        let mut bytes = Vec::with_capacity(usize::try_from(total).unwrap_or(0));
        for slice in slices {
            self.file.seek(SeekFrom::Start(slice.offset))?;
            let size = slice.size as u64;
            if (&mut self.file).take(size).read_to_end(&mut bytes)? as u64 != size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(Box::new(View(bytes)))
    }
}
