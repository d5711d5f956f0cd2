//! Removes traces from a data set, and what a killed process left of them.

use std::path::Path;

use super::compact::{DataFile, rewrite_without};
use super::entry::{self, Entry};
use super::journal::remove_file;
use super::layout::{PACKED, files_in, is_part_of, table_folders, table_of_folder};
use super::{Dataset, is_among};
use crate::Result;

impl Dataset {
    /// The names of the traces of the data set, in their order.
    pub fn traces(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.trace.as_str())
    }

    /// Removes a trace, by its name in the data set. Returns whether the data set had it. Files with
    /// the rows of several traces are written again.
    ///
    /// # Errors
    /// When a file cannot be read, written or removed. Then the next process that opens the data
    /// set removes the rest.
    pub fn remove(&mut self, trace: &str) -> Result<bool> {
        let Some(index) = self.entries.iter().position(|entry| entry.trace == trace) else {
            return Ok(false);
        };
        let removed = self.entries.remove(index);
        removed.announce(&self.root)?;
        remove_file(&entry::path(&self.root, trace))?;
        remove_incomplete(&self.root, trace, None)?;
        Ok(true)
    }

    /// Removes tables of a trace, by their names in entries.
    pub(super) fn remove_tables(&self, trace: &str, names: &[String]) -> Result<()> {
        for folder in table_folders(&self.root)? {
            if is_among(&table_of_folder(&self.root, &folder), names) {
                remove_rows(&self.root, &folder, trace)?;
            }
        }
        Ok(())
    }
}

/// Removes the tables of a trace that its entry does not have, and its announced entry.
pub(super) fn remove_incomplete(root: &Path, trace: &str, entry: Option<&Entry>) -> Result<()> {
    for folder in table_folders(root)? {
        let table = table_of_folder(root, &folder);
        if !entry.is_some_and(|entry| is_among(&table, &entry.tables)) {
            remove_rows(root, &folder, trace)?;
        }
    }
    remove_file(&entry::announced_path(root, trace))
}

/// Removes the rows of a trace from the files of a folder.
fn remove_rows(root: &Path, folder: &Path, trace: &str) -> Result<()> {
    for path in files_in(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_part_of(&name, trace) {
            remove_file(&path)?;
        } else if name.starts_with(PACKED) {
            let file = DataFile::read(&path)?;
            if file.traces.contains_key(trace) {
                rewrite_without(root, &file, trace)?;
            }
        }
    }
    Ok(())
}
