//! Which paths name the same file, by whatever name or link.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{STDIN, display, is_stdin, is_stdin_pipe};
use crate::error::Failure;

/// What is the same for all paths to a file.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(not(unix))]
type Identity = same_file::Handle;

/// The identity of a file, if it exists. Nothing is opened: opening a named pipe waits for the
/// program at its other end, and takes what it writes.
#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    same_file::Handle::from_path(path).ok()
}

/// Whether two paths name the same file.
pub(crate) fn is_same(a: &Path, b: &Path) -> bool {
    matches!((identity(a), identity(b)), (Some(a), Some(b)) if a == b)
}

/// Rejects a file that is named twice.
pub(crate) fn reject_twice(files: &[PathBuf], hint: &str) -> Result<(), Failure> {
    let mut seen: HashMap<Identity, &Path> = HashMap::new();
    let mut stdin = false;
    for file in files {
        if is_stdin(file) || is_stdin_pipe(file) {
            if stdin {
                return Err(stdin_twice());
            }
            stdin = true;
            continue;
        }
        // A file that does not exist is reported when it is opened.
        let Some(identity) = identity(file) else { continue };
        if let Some(first) = seen.insert(identity, file) {
            let (name, first) = (display(file), display(first));
            let other = if first == name { String::new() } else { format!(", first as {first}") };
            return Err(Failure::new(name, format!("is named twice{other}")).hint(hint));
        }
    }
    Ok(())
}

/// The error that several files are standard input, which can be read once.
pub(crate) fn stdin_twice() -> Failure {
    Failure::new(STDIN, "only one of the files can be standard input")
        .hint("write the others to files")
}
