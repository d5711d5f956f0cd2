//! Panics of the libraries that parse PDBs, as errors.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

use super::error::{Error, Reason, Result};

thread_local! {
    /// Whether the thread is in a reader whose panics are errors.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls a reader of a file. The readers of PDBs are known to panic where lengths in a file
/// contradict each other; that is an error of the file like any other, and nothing is printed.
///
/// A program that is built with `panic = "abort"` ends at such a panic. The lengths that are known
/// to cause one are checked before ([`super::validate`]).
pub(super) fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    silence_guarded_panics();
    let was_guarded = IS_GUARDED.replace(true);
    // What the reader had is dropped.
    let result = catch_unwind(AssertUnwindSafe(read));
    IS_GUARDED.set(was_guarded);
    result.unwrap_or_else(|_| Err(Error::new(path, Reason::Contradiction)))
}

/// Panics of guarded threads are not printed; all others are, as before.
fn silence_guarded_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_GUARDED.get() {
                print(info);
            }
        }));
    });
}
