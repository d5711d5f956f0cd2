//! The lock of a data set: one process writes to it at a time.
//!
//! The system removes the lock of a process that ends in any way. The file stays, and means nothing
//! by itself.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::failed;
use crate::{Error, Result};

/// The name of the locked file. Engines ignore names that begin with a dot.
const NAME: &str = ".lock";

/// The lock of a data set, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    /// The locked file, which is unlocked when it is closed.
    #[cfg_attr(not(test), expect(dead_code, reason = "it is kept open"))]
    file: File,
}

impl Lock {
    /// Takes the lock.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process has it.
    pub fn take(root: &Path) -> Result<Self> {
        Self::take_by(root, |file, path| match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(Error::Locked(root.display().to_string())),
            Err(TryLockError::Error(error)) => Err(failed(path, error)),
        })
    }

    /// Waits until no other process has the lock, and takes it.
    pub fn wait(root: &Path) -> Result<Self> {
        Self::take_by(root, |file, path| {
            file.lock().map_err(|error| failed(path, error))
        })
    }

    fn take_by(root: &Path, lock: impl Fn(&File, &Path) -> Result<()>) -> Result<Self> {
        let path = root.join(NAME);
        loop {
            fs::create_dir_all(root).map_err(|error| failed(root, error))?;
            let mut options = File::options();
            options.write(true).create(true).truncate(false);
            let file = match options.open(&path) {
                Ok(file) => file,
                // Another process has just removed its empty data set.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(&path, error)),
            };
            lock(&file, &path)?;
            if is_at(&file, &path) {
                return Ok(Lock { path, file });
            }
        }
    }

    /// Whether no other process can have a lock of the same data set.
    #[cfg(test)]
    pub fn is_valid(&self) -> bool {
        is_at(&self.file, &self.path)
    }

    /// Removes the file. A process that waits for it makes a new one.
    pub fn remove(&self) {
        // Without the file there is no lock; if it stays, it harms nobody.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a file still has its path: a process that ended with an empty data set has removed it.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(file), Ok(path)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    file.dev() == path.dev() && file.ino() == path.ino()
}

/// Other systems do not tell files apart without unsafe code.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}
