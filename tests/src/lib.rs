//! What the tests of this workspace share: where the real traces are, and the foreign readers.
//!
//! Real traces stand in a directory beside the repository, `../shared/traces`, or below the one that
//! `ETLKIT_SHARED` names. Foreign readers are Python packages in the virtual environment `.venv` of
//! the repository (made by `scripts/venv.sh`), or in the one whose interpreter `ETLKIT_PYTHON`
//! names. A test that misses what it needs says so loudly and passes; with
//! `ETLKIT_REQUIRE_SHARED=1` or `ETLKIT_REQUIRE_FOREIGN=1` it fails instead.

pub mod fuzz;
pub mod reencode;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn required(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|v| v == "1")
}

/// Tells that a test cannot do its work, or fails it where it has to.
fn missing(what: &str, variable: &str) {
    assert!(!required(variable), "{what} is missing, and {variable}=1 demands it");
    eprintln!("\n*** SKIPPED: {what} is missing; this test has shown nothing ***\n");
}

/// The directory of the real traces.
///
/// # Panics
/// When it is missing and demanded.
#[must_use]
pub fn traces() -> Option<PathBuf> {
    let shared = std::env::var_os("ETLKIT_SHARED")
        .map_or_else(|| root().join("../shared"), PathBuf::from)
        .join("traces");
    if shared.is_dir() {
        return Some(shared);
    }
    missing(&format!("the directory of real traces {}", shared.display()), "ETLKIT_REQUIRE_SHARED");
    None
}

/// One of the real traces, by its path below the directory of traces.
///
/// # Panics
/// When it is missing and demanded.
#[must_use]
pub fn trace(name: &str) -> Option<PathBuf> {
    let path = traces()?.join(name);
    if path.is_file() {
        return Some(path);
    }
    missing(&format!("the trace {name}"), "ETLKIT_REQUIRE_SHARED");
    None
}

/// All real traces, sorted; none where they are missing and not demanded. Directories in
/// `ETLKIT_EXTRA_TRACES` (separated as in `PATH`) are searched as well.
///
/// # Panics
/// When they are missing and demanded.
#[must_use]
pub fn all_traces() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let extra = std::env::var_os("ETLKIT_EXTRA_TRACES").unwrap_or_default();
    for directory in traces().into_iter().chain(std::env::split_paths(&extra)) {
        collect(&directory, &mut found);
    }
    found.sort();
    if found.is_empty() && traces().is_some() {
        missing("every trace of the directory of real traces", "ETLKIT_REQUIRE_SHARED");
    }
    found
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("etl")) {
            found.push(path);
        }
    }
}

/// The interpreter of an environment with the foreign readers.
///
/// # Panics
/// When it is missing and demanded.
#[must_use]
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os("ETLKIT_PYTHON")
        .map_or_else(|| root().join(".venv/bin/python"), PathBuf::from);
    if python.is_file() {
        return Some(python);
    }
    missing(
        "the Python environment with the foreign readers (scripts/venv.sh)",
        "ETLKIT_REQUIRE_FOREIGN",
    );
    None
}

/// Runs one of the scripts in `tests/foreign` on files; one JSON value per line that it prints. A script that ends
/// with 3 lacks a package.
///
/// # Panics
/// When there is no interpreter and one is demanded, or when the script fails.
#[must_use]
pub fn foreign(script: &str, files: &[PathBuf]) -> Option<Vec<serde_json::Value>> {
    let output = Command::new(python()?)
        .arg(root().join("tests/foreign").join(script))
        .args(files)
        .output()
        .expect("the interpreter runs");
    if output.status.code() == Some(3) {
        let lacking = String::from_utf8_lossy(&output.stderr);
        let what = format!("what {script} needs of scripts/requirements.txt ({})", lacking.trim());
        missing(&what, "ETLKIT_REQUIRE_FOREIGN");
        return None;
    }
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("the script prints UTF-8");
    Some(lines.lines().map(|l| serde_json::from_str(l).expect("the script prints JSON")).collect())
}

/// The `COUNT` lines of a PerfView baseline: event name to count.
///
/// # Panics
/// When the file cannot be read.
#[must_use]
pub fn baseline_counts(path: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read(path).expect("the baseline is readable");
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .filter_map(|line| line.trim_start_matches('\u{feff}').strip_prefix("COUNT "))
        .filter_map(|line| line.trim().rsplit_once(':'))
        .filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?)))
        .collect()
}

/// The code of the format chapter runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/format.md")]
pub struct FormatChapter;

/// The code of the project's page is compiled with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct ProjectPage;
