//! Shared code of the tests: fuzz targets, an encoder of decoded records, and calls of other
//! projects' readers.

pub mod bytes;
pub mod fuzz;
pub mod reencode;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use etl_test_support::{python, root};

/// Runs one of the scripts in `tests/foreign` on files and returns the JSON value of each line that
/// it prints.
///
/// # Panics
/// When there is no interpreter, or the script fails.
#[must_use]
pub fn foreign(script: &str, files: &[PathBuf]) -> Vec<serde_json::Value> {
    let output = Command::new(python())
        .arg(root().join("tests/foreign").join(script))
        .args(files)
        .output()
        .expect("the interpreter runs");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("the script prints UTF-8");
    lines.lines().map(|l| serde_json::from_str(l).expect("the script prints JSON")).collect()
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

/// Runs the code of docs/format.md with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/format.md")]
pub struct FormatChapter;

/// Compiles the code of README.md with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct ProjectPage;
