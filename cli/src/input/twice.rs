//! Rejects files that are named twice.

use std::path::PathBuf;

use etl_events::input::FileIdentities;

use super::{STDIN, display, is_stdin, is_stdin_pipe};
use crate::error::Failure;

/// Rejects a file that is named twice.
pub(crate) fn reject_twice(files: &[PathBuf], hint: &str) -> Result<(), Failure> {
    let mut seen = FileIdentities::default();
    let mut has_stdin = false;
    for file in files {
        if is_stdin(file) || is_stdin_pipe(file) {
            if has_stdin {
                return Err(stdin_twice());
            }
            has_stdin = true;
            continue;
        }
        // A file that does not exist is reported when it is opened.
        let Some(first) = seen.insert(file) else {
            continue;
        };
        let name = display(file);
        let first = display(first);
        let other = if first == name {
            String::new()
        } else {
            format!(", first as {first}")
        };
        return Err(Failure::new(name, format!("is named twice{other}")).hint(hint));
    }
    Ok(())
}

/// The error that several files are standard input, which can be read once.
pub(crate) fn stdin_twice() -> Failure {
    Failure::new(STDIN, "only one of the files can be standard input")
        .hint("write the others to files")
}
