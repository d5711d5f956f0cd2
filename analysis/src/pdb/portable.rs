//! Source lines of .NET methods, from a portable PDB.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use symbolic_ppdb::{PortablePdb, PortablePdbCache, PortablePdbCacheConverter};

use super::error::{Error, Result};
use super::native::guarded;

/// Portable PDBs of more bytes are not read.
const MAX_SIZE: u64 = 1 << 28;

/// The lines of methods in a metadata token.
const METHOD_TABLE: u32 = 0x06;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SourceLine {
    /// Path of the source file as the compiler knew it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
}

/// The bytes of a portable PDB.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| Error::new(path, error.to_string());
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(Error::new(path, "the portable PDB is larger than 256 MiB"));
    }
    Ok(bytes)
}

/// The source lines of points in the IL of methods, each by the metadata token of the method and
/// the offset in its IL, from a portable PDB; `None` where the PDB has no line.
///
/// # Errors
/// When the file cannot be read, or is damaged.
pub fn source_lines(path: &Path, points: &[(u32, u32)]) -> Result<Vec<Option<SourceLine>>> {
    let bytes = bytes(path)?;
    guarded(path, || look_up(&bytes, points).map_err(|reason| Error::new(path, reason)))
}

fn look_up(bytes: &[u8], points: &[(u32, u32)]) -> Result<Vec<Option<SourceLine>>, String> {
    let pdb = PortablePdb::parse(bytes).map_err(|error| error.to_string())?;
    let mut converter = PortablePdbCacheConverter::new();
    converter.process_portable_pdb(&pdb).map_err(|error| error.to_string())?;
    let mut table = Vec::new();
    converter.serialize(&mut table).map_err(|error| error.to_string())?;
    let table = PortablePdbCache::parse(&table).map_err(|error| error.to_string())?;
    let mut last: Option<Arc<str>> = None;
    let line = |&(token, il_offset): &(u32, u32)| {
        let row = token & 0xff_ffff;
        let found = table.lookup(row, il_offset).filter(|_| token >> 24 == METHOD_TABLE)?;
        let known = last.take().filter(|known| **known == *found.file_name);
        let file = known.unwrap_or_else(|| found.file_name.into());
        last = Some(Arc::clone(&file));
        Some(SourceLine { file, line: found.line })
    };
    Ok(points.iter().map(line).collect())
}
