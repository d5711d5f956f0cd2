//! Panics of the libraries that parse PDBs, as errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::error::{Error, Reason, Result};

/// Calls a reader of a file. The readers of PDBs are known to panic where lengths in a file
/// contradict each other; that is an error of the file as any other is.
pub(super) fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the reader had is dropped.
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(Error::new(path, Reason::Contradiction)))
}
