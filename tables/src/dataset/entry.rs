//! The entries of a data set: one for each of its traces.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use etl_format::read::Source;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::failed;
use super::files::word;
use crate::{Error, Result};

/// The folder of entries. Engines ignore names that begin with an underscore.
const FOLDER: &str = "_traces";
/// Hexadecimal digits of the hash in the name of a trace.
const DIGITS: usize = 8;

/// The SHA-256 hash of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash of some bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Hash(Sha256::digest(bytes).into())
    }

    /// Its beginning, for names.
    pub(super) fn short(self) -> String {
        let all = self.to_string();
        all.get(..DIGITS).unwrap_or(&all).to_owned()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The hash of all bytes of a trace.
///
/// # Errors
/// When they cannot be read.
pub fn hash<S: Source>(source: &mut S) -> io::Result<Hash> {
    const STEP: usize = 1 << 20;
    let mut hasher = Sha256::new();
    let mut offset = 0;
    let mut block = S::Block::default();
    loop {
        source.read(offset, STEP, &mut block)?;
        let bytes = block.as_ref();
        if bytes.is_empty() {
            return Ok(Hash(hasher.finalize().into()));
        }
        hasher.update(bytes);
        offset += bytes.len() as u64;
    }
}

/// A trace that is in a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Its name: the value of `trace`.
    pub trace: String,
    /// The name of its file.
    pub file: String,
    pub hash: String,
    /// The selection of its rows, in words.
    pub selection: String,
    /// The tables that are complete.
    pub tables: Vec<String>,
    /// The version of the tables.
    pub schema: u32,
}

impl Entry {
    pub fn new(file: &str, hash: &super::Hash, selection: &str) -> Self {
        let name = etl_format::file_name(file);
        let stem = match name.to_ascii_lowercase().find(".etl") {
            Some(end) => name.get(..end).unwrap_or(name),
            None => name,
        };
        Entry {
            trace: format!("{}-{}", word(stem), hash.short()),
            file: file.to_owned(),
            hash: hash.to_string(),
            selection: selection.to_owned(),
            tables: Vec::new(),
            schema: crate::SCHEMA_VERSION,
        }
    }

    /// Writes the entry. A failure leaves no part of it.
    pub fn write(&self, root: &Path) -> Result<()> {
        let folder = root.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        let path = folder.join(format!("{}.json", self.trace));
        let unfinished = folder.join(format!(".{}.json", self.trace));
        self.write_and_rename(&unfinished, &path)
            .map_err(|error| failed(&path, error))
    }

    fn write_and_rename(&self, unfinished: &Path, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        fs::write(unfinished, text + "\n")?;
        fs::rename(unfinished, path)
    }
}

/// The entries of a data set, in the order of their names.
pub(super) fn read_all(root: &Path) -> Result<Vec<Entry>> {
    let folder = root.join(FOLDER);
    let files = match fs::read_dir(&folder) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(&folder, error)),
    };
    let mut entries = Vec::new();
    for file in files {
        let path = file.map_err(|error| failed(&folder, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || !name.ends_with(".json") {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
        let entry: Entry = serde_json::from_str(&text)
            .map_err(|error| Error::NoEntry(path.display().to_string(), error.to_string()))?;
        if entry.schema != crate::SCHEMA_VERSION {
            return Err(Error::OtherVersion(entry.trace, entry.schema));
        }
        entries.push(entry);
    }
    entries.sort_by(|a, b| a.trace.cmp(&b.trace));
    Ok(entries)
}
