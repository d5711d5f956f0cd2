//! The files that `etlverify` checks: directories are replaced by their traces.

use std::path::{Path, PathBuf};

use crate::error::Failure;
use crate::input;

/// Replaces directories by the traces in them, in the order of their names.
pub(super) fn expand(files: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut out = Vec::new();
    for file in files {
        if input::is_stdin(file) || !file.is_dir() {
            out.push(file.clone());
            continue;
        }
        let failure = |e: std::io::Error| Failure::io(input::display(file), &e);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(file).map_err(failure)? {
            let path = entry.map_err(failure)?.path();
            if is_trace(&path) && path.is_file() {
                found.push(path);
            }
        }
        if found.is_empty() {
            return Err(Failure::new(input::display(file), "contains no .etl file, packed or not")
                .hint("name the traces, or the directory that contains them"));
        }
        found.sort();
        out.extend(found);
    }
    Ok(out)
}

/// Whether the name of a file is that of a trace, packed or not.
fn is_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name =
        [".zip", ".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.ends_with(".etl")
}
