//! The traces that the user named: directories are replaced by the traces in them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Failure;
use crate::input::{self, InputArgs};

/// A file to read, or why a file or directory cannot be read.
pub(crate) type Found = Result<PathBuf, Unreadable>;

/// A file or directory that cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub path: PathBuf,
    pub reason: Failure,
}

impl Unreadable {
    /// The failure of reading it, which names it.
    pub fn failure(&self) -> Failure {
        let name = input::display(&self.path);
        let message = self.reason.message_about(&name);
        Failure::new(name, message)
    }
}

fn found_path(found: &Found) -> &Path {
    match found {
        Ok(path) => path,
        Err(unreadable) => &unreadable.path,
    }
}

/// How the names of files and directories begin that this tool has not finished. If it was killed,
/// they are still there.
pub(crate) const UNFINISHED: &str = ".etlkit-";

/// Replaces directories by the traces in them and in their subdirectories. A directory without a
/// trace is reported on standard error. Standard input can be named once, and --member only with an
/// archive.
pub(crate) fn expand(files: &[PathBuf], args: &InputArgs) -> Vec<Found> {
    let mut out = Vec::new();
    let mut has_stdin = false;
    for file in files {
        let path = file.clone();
        if input::is_stdin(file) {
            out.push(if has_stdin {
                let reason = input::stdin_twice();
                Err(Unreadable { path, reason })
            } else {
                Ok(path)
            });
            has_stdin = true;
            continue;
        }
        if !file.is_dir() {
            out.push(Ok(path));
            continue;
        }
        if args.member.is_some() {
            let message = "is a directory, and --member chooses from a ZIP archive";
            let reason = Failure::new(input::display(file), message).hint("name the archive");
            out.push(Err(Unreadable { path, reason }));
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

/// The failure that the named directories contain no trace.
pub(crate) fn none_found() -> Failure {
    Failure::new("", "there is no trace to read")
        .hint("name the traces, or the directory that contains them")
}

/// The traces of a directory and its subdirectories, in the order of their paths. Links to
/// directories are not followed, since they may lead back. Directories that this tool has not
/// finished are left out.
fn traces_in(directory: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        if let Err(e) = list(&directory, &mut directories, &mut found) {
            let reason = Failure::io(input::display(&directory), &e);
            found.push(Err(Unreadable {
                path: directory,
                reason,
            }));
        }
    }
    found.sort_by(|a, b| found_path(a).cmp(found_path(b)));
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
            let name = entry.file_name();
            if !name.to_string_lossy().starts_with(UNFINISHED) {
                directories.push(path);
            }
        } else if is_trace(&path) {
            if input::is_pipe(&path) {
                // Opening it would wait for a program that may never come.
                let name = input::display(&path);
                stderr_line!("note: {name}: is a named pipe and is left out: name it to read it");
            } else if fs::metadata(&path).map_or(true, |file| file.is_file()) {
                // A link to nothing is an error when it is opened.
                found.push(Ok(path));
            }
        }
    }
    Ok(())
}

/// Whether a file is a trace by its name, packed or not.
fn is_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    let mut unpacked = name.as_str();
    for extension in [".zip", ".gz", ".zst"] {
        if let Some(stem) = name.strip_suffix(extension) {
            unpacked = stem;
        }
    }
    unpacked.ends_with(".etl") || unpacked.ends_with(".nettrace")
}
