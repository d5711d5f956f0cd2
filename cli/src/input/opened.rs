//! The files that this run has opened for reading. They are never overwritten.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::is_same_file;

thread_local! {
    /// The files that this thread opened: the thread that writes the output also opens the inputs.
    static OPENED: RefCell<BTreeSet<PathBuf>> = const { RefCell::new(BTreeSet::new()) };
}

/// Begins a run.
pub(crate) fn forget_opened() {
    OPENED.with_borrow_mut(BTreeSet::clear);
}

/// Notes that a file is an input of this run.
pub(crate) fn note_opened(path: &Path) {
    OPENED.with_borrow_mut(|opened| {
        if !opened.contains(path) {
            opened.insert(path.to_owned());
        }
    });
}

/// Whether a file was opened in this run, by any name or link.
pub(crate) fn was_opened(path: &Path) -> bool {
    OPENED.with_borrow(|opened| opened.iter().any(|input| is_same_file(input, path)))
}
