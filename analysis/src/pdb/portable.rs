//! Source lines of .NET methods, from a portable PDB.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use symbolic_ppdb::{PortablePdb, PortablePdbCache, PortablePdbCacheConverter};

use super::error::{Error, Reason, Result};
use super::guard::guarded;
use super::texts::Texts;
use crate::profile::IlPoint;
use crate::symbols::SourceLine;

/// Portable PDBs of more bytes are not read.
const MAX_SIZE: u64 = 1 << 28;

/// The lines of methods in a metadata token.
const METHOD_TABLE: u32 = 0x06;

/// The bytes of a portable PDB.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_SIZE + 1).read_to_end(&mut bytes);
    read.map_err(|error| Error::io(path, error))?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(Error::new(path, Reason::TooLarge));
    }
    Ok(bytes)
}

/// The source lines of points in the IL of methods, from a portable PDB. The result has an element
/// for each point, which is `None` if the PDB has no line there.
///
/// # Errors
/// When the file cannot be read, or is damaged.
///
/// ```no_run
/// use std::path::Path;
///
/// use etl_analysis::pdb::source_lines;
/// use etl_analysis::profile::IlPoint;
///
/// let point = IlPoint { token: 0x0600_0012, offset: 4 };
/// for line in source_lines(Path::new("Orders.pdb"), &[point])?.into_iter().flatten() {
///     println!("{}:{}", line.file, line.line);
/// }
/// # Ok::<(), etl_analysis::pdb::Error>(())
/// ```
pub fn source_lines(path: &Path, points: &[IlPoint]) -> Result<Vec<Option<SourceLine>>> {
    let bytes = bytes(path)?;
    guarded(path, || {
        look_up(&bytes, points).map_err(|reason| Error::new(path, reason))
    })
}

fn look_up(bytes: &[u8], points: &[IlPoint]) -> Result<Vec<Option<SourceLine>>, Reason> {
    let pdb = PortablePdb::parse(bytes).map_err(Reason::malformed)?;
    let mut converter = PortablePdbCacheConverter::new();
    converter
        .process_portable_pdb(&pdb)
        .map_err(Reason::malformed)?;
    let mut table = Vec::new();
    converter.serialize(&mut table).map_err(Reason::malformed)?;
    let table = PortablePdbCache::parse(&table).map_err(Reason::malformed)?;
    let mut texts = Texts::default();
    let mut lines = Vec::with_capacity(points.len());
    for point in points {
        let is_method = point.token >> 24 == METHOD_TABLE;
        let entry = table.lookup(point.token & 0xff_ffff, point.offset);
        let line = entry.filter(|_| is_method);
        lines.push(line.map(|line| SourceLine {
            file: texts.get(line.file_name),
            line: line.line,
        }));
    }
    Ok(lines)
}
