//! The replacement of files by another one, which a killed process leaves to the next one.
//!
//! The journal names the new file and the old ones before the new one gets its name. If the process
//! ends before that, the old files stay; if it ends after that, the next process removes them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::failed;
use crate::{Error, Result};

/// The name of the journal. Engines ignore names that begin with a dot.
const NAME: &str = ".replaced.json";

/// A file that replaces others. All paths are from the folder of the data set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Replacement {
    /// The new file; none if the old ones have no rows that stay.
    pub new: Option<PathBuf>,
    pub old: Vec<PathBuf>,
}

impl Replacement {
    /// Gives a finished file its name, and removes the files that it replaces.
    pub fn carry_out(&self, root: &Path, finished: Option<&Path>) -> Result<()> {
        let journal = root.join(NAME);
        let text = serde_json::to_string_pretty(self).map_err(io::Error::from);
        text.and_then(|text| fs::write(&journal, text + "\n"))
            .map_err(|error| failed(&journal, error))?;
        if let (Some(new), Some(finished)) = (&self.new, finished) {
            let new = root.join(new);
            fs::rename(finished, &new).map_err(|error| failed(&new, error))?;
        }
        self.remove_old(root)
    }

    fn remove_old(&self, root: &Path) -> Result<()> {
        for old in &self.old {
            remove_file(&root.join(old))?;
        }
        remove_file(&root.join(NAME))
    }

    /// Whether all paths are inside the data set: a journal may come from elsewhere.
    fn is_inside(&self) -> bool {
        let mut paths = self.new.iter().chain(&self.old);
        paths.all(|path| {
            let mut parts = path.components();
            parts.all(|part| matches!(part, std::path::Component::Normal(_)))
        })
    }
}

/// Finishes a replacement that a killed process began, or gives it up.
pub(super) fn recover(root: &Path) -> Result<()> {
    let journal = root.join(NAME);
    let text = match fs::read_to_string(&journal) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(&journal, error)),
    };
    // A journal that is not complete was written before anything was replaced.
    let Ok(replacement) = serde_json::from_str::<Replacement>(&text) else {
        return remove_file(&journal);
    };
    if !replacement.is_inside() {
        let reason = "it names files outside of the data set".to_owned();
        return Err(Error::NoEntry(journal.display().to_string(), reason));
    }
    match &replacement.new {
        Some(new) if !root.join(new).is_file() => remove_file(&journal),
        _ => replacement.remove_old(root),
    }
}

/// Removes a file, if it exists.
pub(super) fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, error)),
        _ => Ok(()),
    }
}
