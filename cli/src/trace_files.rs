//! The traces that the user named: directories are replaced by the traces in them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Failure;
use crate::input::{self, InputArgs};

/// A file to read, or a directory that cannot be read.
pub(crate) type Found = Result<PathBuf, (PathBuf, Failure)>;

/// Replaces directories by the traces in them and in their subdirectories. A directory without a
/// trace is reported on standard error. Standard input is read once, and a file of an archive is
/// named for the archive alone.
pub(crate) fn expand(files: &[PathBuf], args: &InputArgs) -> Vec<Found> {
    let mut out = Vec::new();
    let mut stdin = false;
    for file in files {
        let is_stdin = input::is_stdin(file);
        if is_stdin || !file.is_dir() {
            let found = match is_stdin && stdin {
                true => Err((file.clone(), input::stdin_twice())),
                false => Ok(file.clone()),
            };
            stdin |= is_stdin;
            out.push(found);
            continue;
        }
        if args.member.is_some() {
            let message = "is a directory, and --member chooses from a ZIP archive";
            let failure = Failure::new(input::display(file), message);
            out.push(Err((file.clone(), failure.hint("name the archive"))));
            continue;
        }
        let found = traces_in(file);
        if found.is_empty() {
            stderr_line!(
                "note: {}: contains no .etl file, packed or not",
                input::display(file)
            );
        }
        out.extend(found);
    }
    out
}

/// The error that the directories that the user named have no trace.
pub(crate) fn none_found() -> Failure {
    Failure::new("", "there is no trace to read")
        .hint("name the traces, or the directory that contains them")
}

/// The traces of a directory and its subdirectories, in the order of their paths. Links to
/// directories are not followed, since they may lead back.
fn traces_in(directory: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        if let Err(e) = list(&directory, &mut directories, &mut found) {
            let failure = Failure::io(input::display(&directory), &e);
            found.push(Err((directory, failure)));
        }
    }
    let path = |found: &Found| match found {
        Ok(path) | Err((path, _)) => path.clone(),
    };
    found.sort_by_cached_key(path);
    found
}

/// Adds the subdirectories and the traces of a directory.
fn list(
    directory: &Path,
    directories: &mut Vec<PathBuf>,
    found: &mut Vec<Found>,
) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            directories.push(path);
        } else if is_trace(&path) && fs::metadata(&path).map_or(true, |file| file.is_file()) {
            // A link to nothing is an error when it is opened.
            found.push(Ok(path));
        }
    }
    Ok(())
}

/// Whether the name of a file is that of a trace, packed or not.
fn is_trace(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let name = [".zip", ".gz", ".zst"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(&name);
    name.ends_with(".etl")
}
