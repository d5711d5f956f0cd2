//! Looks for PDBs by their identity in files and directories.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use etl_format::Guid;
use pdb_addr2line::pdb::PDB;
use symbolic_ppdb::PortablePdb;

use super::error::{Error, Reason, Result};
use super::guard::guarded;
use super::id::PdbId;
use super::portable;
use super::source::{BoundedFile, MSFZ_MAGIC};

/// How many directories below the given ones are searched.
const MAX_DEPTH: usize = 8;

/// How many files and directories are listed below the given ones.
const MAX_ENTRIES: usize = 1 << 20;

/// The first bytes of a portable PDB.
const PORTABLE_MAGIC: &[u8] = b"BSJB";

/// The first bytes of a Windows PDB.
const WINDOWS_MAGIC: &[u8] = b"Microsoft C/C++ ";

/// What kind of PDB a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PdbKind {
    /// A Windows PDB: offsets in an image.
    Windows,
    /// A portable PDB: methods and offsets in their IL.
    Portable,
}

/// The PDB that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Its file.
    pub path: PathBuf,
    /// What kind of PDB it is.
    pub kind: PdbKind,
}

/// The result of looking for a PDB.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Search {
    /// The PDB.
    pub found: Option<Found>,
    /// Files with its name that are another PDB, or that cannot be read.
    pub others: Vec<Error>,
}

/// Files and directories in which PDBs are looked for.
#[derive(Clone, Debug, Default)]
pub struct SymbolPaths {
    /// Files by their names in lower case, in the order in which they are looked at.
    files: BTreeMap<String, Vec<PathBuf>>,
    /// Files that were named one by one: they may have another name than their image states.
    named: Vec<PathBuf>,
}

impl SymbolPaths {
    /// Lists the PDBs in files and directories. Directories are searched with their
    /// subdirectories, so they may be the output of a build, or the cache of a symbol server
    /// (`name.pdb/GUIDAGE/name.pdb`). Of a text as in `_NT_SYMBOL_PATH`
    /// (`srv*C:\symbols*https://server;D:\build`), the directories are searched, not the servers.
    ///
    /// # Errors
    /// When a file or a directory does not exist, or cannot be read.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Result<Self> {
        let mut found = SymbolPaths::default();
        let mut left = MAX_ENTRIES;
        for path in paths {
            for path in parts(path) {
                let about = fs::metadata(&path);
                let about = about.map_err(|error| Error::io(&path, error))?;
                if about.is_dir() {
                    found.walk(&path, MAX_DEPTH, &mut left)?;
                } else {
                    found.add(path.clone());
                    found.named.push(path);
                }
            }
        }
        Ok(found)
    }

    fn add(&mut self, path: PathBuf) {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().to_lowercase());
        self.files
            .entry(name.unwrap_or_default())
            .or_default()
            .push(path);
    }

    /// Lists the files of a directory, in the order of their names.
    fn walk(&mut self, directory: &Path, depth: usize, left: &mut usize) -> Result<()> {
        let mut below = Vec::new();
        let entries = fs::read_dir(directory).map_err(|error| Error::io(directory, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| Error::io(directory, error))?;
            let after = left.checked_sub(1);
            *left = after.ok_or_else(|| Error::new(directory, Reason::TooManyFiles))?;
            // A link to a directory may lead back.
            let kind = entry.file_type();
            let kind = kind.map_err(|error| Error::io(directory, error))?;
            below.push((entry.path(), kind.is_dir()));
        }
        below.sort();
        for (path, is_directory) in below {
            if is_directory && depth > 0 {
                self.walk(&path, depth - 1, left)?;
            } else if path
                .extension()
                .is_some_and(|end| end.eq_ignore_ascii_case("pdb"))
            {
                self.add(path);
            }
        }
        Ok(())
    }

    /// Whether there is nothing to look at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The files in which PDBs are looked for.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.values().flatten().map(PathBuf::as_path)
    }

    /// The files that were named one by one and are not PDBs.
    #[must_use]
    pub fn not_pdbs(&self) -> Vec<&Path> {
        self.named
            .iter()
            .map(PathBuf::as_path)
            .filter(|path| !is_pdb(path))
            .collect()
    }

    /// Looks for a PDB. Files with its name are looked at first, then those that were named one by
    /// one.
    #[must_use]
    pub fn find(&self, id: &PdbId) -> Search {
        let mut search = Search::default();
        let name = id.name().to_lowercase();
        let by_name = self.files.get(&name).map_or(&[][..], Vec::as_slice);
        for path in by_name {
            match check(path, id) {
                Ok(kind) => {
                    search.found = Some(Found {
                        path: path.clone(),
                        kind,
                    });
                    return search;
                }
                Err(error) => search.others.push(error),
            }
        }
        for path in self.named.iter().filter(|path| !by_name.contains(path)) {
            if let Ok(kind) = check(path, id) {
                search.found = Some(Found {
                    path: path.clone(),
                    kind,
                });
                return search;
            }
        }
        search
    }
}

/// The directories of a text as in `_NT_SYMBOL_PATH`; a path that exists is itself.
fn parts(path: PathBuf) -> Vec<PathBuf> {
    let Some(text) = path.to_str().filter(|text| text.contains(['*', ';'])) else {
        return vec![path];
    };
    if path.exists() {
        return vec![path];
    }
    let mut directories = Vec::new();
    for part in text.split([';', '*']).map(str::trim) {
        if is_directory(part) {
            directories.push(PathBuf::from(part));
        }
    }
    directories
}

/// Whether a part of a symbol path is a directory.
fn is_directory(part: &str) -> bool {
    let part = part.to_ascii_lowercase();
    let is_keyword = matches!(&*part, "" | "srv" | "symsrv" | "cache" | "symsrv.dll");
    !is_keyword && !part.contains("://")
}

/// Whether a file begins as PDBs do.
fn is_pdb(path: &Path) -> bool {
    let mut begin = Vec::new();
    let limit = MSFZ_MAGIC.len() as u64;
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut begin));
    let magics = [PORTABLE_MAGIC, WINDOWS_MAGIC, MSFZ_MAGIC];
    read.is_ok() && magics.iter().any(|magic| begin.starts_with(magic))
}

/// The kind of a file that is this PDB.
fn check(path: &Path, id: &PdbId) -> Result<PdbKind> {
    let mut magic = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut magic));
    read.map_err(|error| Error::io(path, error))?;
    if magic == PORTABLE_MAGIC {
        let guid = guarded(path, || portable_guid(path))?;
        if guid == id.guid() {
            return Ok(PdbKind::Portable);
        }
        return Err(other(path, guid.to_string(), id));
    }
    let file = guarded(path, || windows_identity(path))?;
    if file.guid == id.guid() && file.age == id.age() {
        return Ok(PdbKind::Windows);
    }
    Err(other(path, format!("{} age {}", file.guid, file.age), id))
}

fn other(path: &Path, found: String, id: &PdbId) -> Error {
    Error::new(
        path,
        Reason::OtherPdb {
            found,
            guid: id.guid(),
            age: id.age(),
        },
    )
}

fn portable_guid(path: &Path) -> Result<Guid> {
    let bytes = portable::bytes(path)?;
    let pdb = PortablePdb::parse(&bytes);
    let pdb = pdb.map_err(|error| Error::new(path, Reason::malformed(error)))?;
    let id = pdb
        .pdb_id()
        .ok_or_else(|| Error::new(path, Reason::NoIdentity))?;
    Ok(Guid::from_bytes(id.uuid().to_bytes_le()))
}

/// The identity of a Windows PDB.
struct Identity {
    guid: Guid,
    age: u32,
}

fn windows_identity(path: &Path) -> Result<Identity> {
    let file = BoundedFile::open(path)?;
    let pdb = PDB::open(file);
    let mut pdb = pdb.map_err(|error| Error::new(path, Reason::malformed(error)))?;
    let about = pdb.pdb_information();
    let about = about.map_err(|error| Error::new(path, Reason::malformed(error)))?;
    // Tools that change a PDB later increment the first age; the image has the second.
    let age = pdb
        .debug_information()
        .ok()
        .and_then(|debug| debug.age())
        .unwrap_or(about.age);
    Ok(Identity {
        guid: Guid::from_bytes(about.guid.to_bytes_le()),
        age,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_path_stands_for_its_directories() {
        let text = r"cache*C:\cache;srv*C:\symbols*https://example.org/symbols;D:\build";
        let expected = [r"C:\cache", r"C:\symbols", r"D:\build"].map(PathBuf::from);
        assert_eq!(parts(PathBuf::from(text)), expected);
        assert_eq!(parts(PathBuf::from("plain")), [PathBuf::from("plain")]);
    }

    #[test]
    fn a_path_that_does_not_exist_is_an_error() {
        let error = SymbolPaths::new([PathBuf::from("no/such/place")]).unwrap_err();
        assert_eq!(error.path(), Path::new("no/such/place"));
    }
}
