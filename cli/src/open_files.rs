//! The number of files that the process may have open.

use std::io;

/// Files that a command has open beside its inputs: its output, temporary files, and the files that
/// are read ahead.
#[cfg(unix)]
const OTHER_FILES: u64 = 64;

/// The most inputs that may stay open at the same time.
#[cfg(unix)]
pub(crate) fn max_inputs() -> u64 {
    use rustix::process::{Resource, getrlimit};
    let limit = getrlimit(Resource::Nofile).current;
    limit.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES)
}

/// Windows has no such limit.
#[cfg(not(unix))]
pub(crate) fn max_inputs() -> u64 {
    u64::MAX
}

/// Raises the limit to the largest that the system allows without privileges: `merge --no-mmap` has
/// all its inputs open, and many systems start programs with 256 or 1,024.
#[cfg(unix)]
pub(crate) fn raise_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With the old limit, an error of opening states what to do.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Windows has no such limit.
#[cfg(not(unix))]
pub(crate) fn raise_limit() {}

/// Whether a file cannot be opened because too many are open.
#[cfg(unix)]
pub(crate) fn are_too_many(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}

#[cfg(not(unix))]
pub(crate) fn are_too_many(_: &io::Error) -> bool {
    false
}
