//! Which paths name the same file, by any name or link.

use std::collections::HashMap;
use std::path::Path;

/// Device and number of a file: the same for all paths to it.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(windows)]
type Identity = same_file::Handle;

#[cfg(not(any(unix, windows)))]
type Identity = std::path::PathBuf;

/// The identity of a file, if it exists. Nothing is opened: opening a named pipe waits for the
/// program at its other end, and takes what it writes.
#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

#[cfg(windows)]
fn identity(path: &Path) -> Option<Identity> {
    same_file::Handle::from_path(path).ok()
}

#[cfg(not(any(unix, windows)))]
fn identity(path: &Path) -> Option<Identity> {
    path.canonicalize().ok()
}

/// Whether two paths name the same file.
#[must_use]
pub fn is_same_file(first: &Path, second: &Path) -> bool {
    match (identity(first), identity(second)) {
        (Some(first), Some(second)) => first == second,
        _ => false,
    }
}

/// Files, to find one that is named twice.
///
/// ```
/// use std::path::Path;
///
/// use etl_events::input::FileIdentities;
///
/// let mut files = FileIdentities::default();
/// assert_eq!(files.insert(Path::new("Cargo.toml")), None);
/// assert_eq!(files.insert(Path::new("./Cargo.toml")), Some(Path::new("Cargo.toml")));
/// ```
#[derive(Debug, Default)]
pub struct FileIdentities<'p> {
    paths: HashMap<Identity, &'p Path>,
}

impl<'p> FileIdentities<'p> {
    /// Adds a file. Returns the first path of the same file, if it was added before; `None` for a
    /// file that does not exist.
    pub fn insert(&mut self, path: &'p Path) -> Option<&'p Path> {
        let identity = identity(path)?;
        match self.paths.get(&identity) {
            Some(first) => Some(first),
            None => {
                self.paths.insert(identity, path);
                None
            }
        }
    }
}
