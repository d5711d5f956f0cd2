//! The entries of a data set: one for each of its traces.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etl_format::read::Source;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::failed;
use super::layout::word;
use crate::{Error, Result};

/// The folder of entries. Engines ignore names that begin with an underscore.
pub(super) const FOLDER: &str = "_traces";
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

    /// A hash of which a test chooses the bytes.
    #[cfg(test)]
    pub(super) fn from_bytes(bytes: [u8; 32]) -> Self {
        Hash(bytes)
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
    /// The rows of its tables, by the folder of the table; tables without rows are left out.
    pub rows: BTreeMap<String, u64>,
    /// The version of the tables.
    pub schema: u32,
}

impl Entry {
    pub fn new(trace: String, file: &str, hash: &Hash, selection: &str) -> Self {
        Entry {
            trace,
            file: file.to_owned(),
            hash: hash.to_string(),
            selection: selection.to_owned(),
            tables: Vec::new(),
            rows: BTreeMap::new(),
            schema: crate::SCHEMA_VERSION,
        }
    }

    /// Announces the entry: until it is complete, the files of its new tables are removed by the
    /// next process that opens the data set.
    pub fn announce(&self, root: &Path) -> Result<()> {
        let folder = root.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        let path = announced_path(root, &self.trace);
        let text = serde_json::to_string_pretty(self).map_err(io::Error::from);
        text.and_then(|text| fs::write(&path, text + "\n"))
            .map_err(|error| failed(&path, error))
    }

    /// Makes the announced entry the entry of its trace.
    pub fn complete(&self, root: &Path) -> Result<()> {
        let path = path(root, &self.trace);
        fs::rename(announced_path(root, &self.trace), &path).map_err(|error| failed(&path, error))
    }
}

/// The path of an entry.
pub(super) fn path(root: &Path, trace: &str) -> PathBuf {
    root.join(FOLDER).join(format!("{trace}.json"))
}

/// The path of an entry whose files are not complete.
pub(super) fn announced_path(root: &Path, trace: &str) -> PathBuf {
    root.join(FOLDER).join(format!(".{trace}.json"))
}

/// The name of a trace: the stem of its file, and the hash or its beginning.
pub(super) fn trace_name(file: &str, hash: &str) -> String {
    let name = etl_format::file_name(file);
    let lower = name.to_ascii_lowercase();
    let ends = [".etl", ".nettrace"].map(|extension| lower.find(extension));
    let end = ends.into_iter().flatten().min();
    let stem = end.and_then(|end| name.get(..end)).unwrap_or(name);
    format!("{}-{hash}", word(stem))
}

/// The names of the traces whose entries were announced and not completed: a run was killed.
pub(super) fn announced(root: &Path) -> Result<Vec<String>> {
    let mut traces = Vec::new();
    for path in files(root)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(stem) = name.strip_suffix(".json") else {
            continue;
        };
        if let Some(trace) = stem.strip_prefix('.') {
            traces.push(trace.to_owned());
        }
    }
    traces.sort();
    Ok(traces)
}

/// The files in the folder of entries.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(&folder, error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry.map_err(|error| failed(&folder, error))?.path());
    }
    Ok(files)
}

/// The entries of a data set, in the order of their names.
pub(super) fn read_all(root: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for path in files(root)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(stem) = name.strip_suffix(".json") else {
            continue;
        };
        if stem.starts_with('.') {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
        let entry: Entry = serde_json::from_str(&text)
            .map_err(|error| Error::NoEntry(path.display().to_string(), error.to_string()))?;
        if entry.schema != crate::SCHEMA_VERSION {
            return Err(Error::OtherVersion(entry.trace, entry.schema));
        }
        // The name becomes part of paths.
        if entry.trace != stem {
            let reason = "it has the name of another trace".to_owned();
            return Err(Error::NoEntry(path.display().to_string(), reason));
        }
        entries.push(entry);
    }
    entries.sort_by(|a, b| a.trace.cmp(&b.trace));
    Ok(entries)
}
