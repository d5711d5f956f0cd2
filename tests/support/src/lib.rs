//! Finds real traces and other programs for tests, runs other projects' readers, and marks the
//! tests that need them.
//!
//! A test that needs something outside of the repository has an attribute above `#[test]`:
//!
//! ```ignore
//! #[needs(trace = "perfview/net.4.5.2.x64.etl", python)]
//! #[test]
//! fn counts_agree_with_dissect() { .. }
//! ```
//!
//! | argument | needed | looked for in |
//! |---|---|---|
//! | `traces` | the directory of real traces | `$ETLKIT_SHARED/traces`, or `../shared/traces` |
//! | `trace = "PATH"` | one of them | the same |
//! | `python` | an interpreter with `scripts/requirements.txt` | `$ETLKIT_PYTHON`, or `.venv` |
//! | `node` | Node.js with `scripts/node/package.json` | `$ETLKIT_NODE_MODULES`, or `.node` |
//! | `tshark` | the reader of packet captures | the search path |
//! | `clang` | compiler, linker and symbolizer of LLVM | the search path |
//! | `chromium` | the browser | `$ETLKIT_CHROMIUM`, or the search path |
//! | `time` | a minute or so, which a quick run of the tests does not have | `ETLKIT_WHOLE=1` |
//!
//! If it is missing, the test is ignored, with the reason. With `ETLKIT_REQUIRE_SHARED=1` (traces),
//! `ETLKIT_REQUIRE_FOREIGN=1` (python), `ETLKIT_REQUIRE_NODE=1`, `ETLKIT_REQUIRE_TSHARK=1`,
//! `ETLKIT_REQUIRE_CLANG=1` or `ETLKIT_REQUIRE_CHROMIUM=1` the test runs and fails.
//! The attribute checks when the test is
//! compiled; a change of one of these variables compiles the test again.
#![allow(clippy::panic)] // Tests fail by panicking.

use std::cell::Cell;
use std::path::{Path, PathBuf};

pub use etl_test_macros::needs;

#[allow(clippy::missing_docs_in_private_items)]
mod find;
mod foreign;

pub use foreign::{foreign, perfetto_ui, trace_processor};

/// The folder of the packages for Node.js.
#[must_use]
pub fn node_packages() -> PathBuf {
    find::node_packages_path(&root())
}

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

std::thread_local! {
    static TRACES_DECLARED: Cell<bool> = const { Cell::new(false) };
}

/// Says that the test of this thread needs real traces; `#[needs(..)]` calls it.
pub fn declare_traces() {
    TRACES_DECLARED.set(true);
}

/// The directory of the real traces.
///
/// # Panics
/// When it is missing, and in a test that does not declare its need: it would fail where there are
/// no real traces, in place of being ignored.
#[must_use]
pub fn traces() -> PathBuf {
    assert!(
        TRACES_DECLARED.get(),
        "a test with real traces lacks #[needs(traces)]"
    );
    let directory = find::traces_directory(&root());
    assert!(
        directory.is_dir(),
        "the real traces are missing: {}",
        directory.display()
    );
    directory
}

/// One of the real traces, by its path in the directory of traces.
///
/// # Panics
/// When it is missing.
#[must_use]
pub fn trace(name: &str) -> PathBuf {
    let path = traces().join(name);
    assert!(
        path.is_file(),
        "a real trace is missing: {}",
        path.display()
    );
    path
}

/// All real traces, sorted. Directories in `ETLKIT_EXTRA_TRACES` (separated as in `PATH`) are
/// searched as well.
///
/// # Panics
/// When there are none.
#[must_use]
pub fn all_traces() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let extra = std::env::var_os("ETLKIT_EXTRA_TRACES").unwrap_or_default();
    for directory in [traces()].into_iter().chain(std::env::split_paths(&extra)) {
        collect(&directory, &mut found);
    }
    found.sort();
    assert!(
        !found.is_empty(),
        "there are no traces in {}",
        traces().display()
    );
    found
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("etl"))
        {
            found.push(path);
        }
    }
}

/// The Python interpreter with the packages of `scripts/requirements.txt`.
///
/// # Panics
/// When it is missing.
#[must_use]
pub fn python() -> PathBuf {
    let path = find::python_path(&root());
    assert!(
        path.is_file(),
        "the Python readers are missing: run scripts/install.sh venv"
    );
    path
}

/// A program in the search path.
///
/// # Panics
/// When it is missing.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    find::program_path(name).unwrap_or_else(|| panic!("the program {name} is missing"))
}

/// The browser.
///
/// # Panics
/// When it is missing.
#[must_use]
pub fn chromium() -> PathBuf {
    find::chromium_path().unwrap_or_else(|| panic!("no Chromium: run scripts/install.sh chromium"))
}
