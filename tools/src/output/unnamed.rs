//! Files without a name. Linux removes them when the program ends, however it ends: by a signal, or
//! because memory or disk quota is used up.

use std::fs::{self, File};
use std::io;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;

/// Creates a file without a name in a directory. `None` if the system or the file system has no
/// such files.
#[cfg(target_os = "linux")]
pub(super) fn create(directory: &Path, permissions: Option<&fs::Permissions>) -> Option<File> {
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::{Mode, OFlags};
    let bits = permissions.map_or(0o666, PermissionsExt::mode);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::from_raw_mode(bits & 0o777)).ok()?;
    let file = File::from(opened);
    // The file gets its name by this path, which a container may not have.
    fs::metadata(path(&file)).ok()?;
    Some(file)
}

/// Gives the file a name, which must not exist.
#[cfg(target_os = "linux")]
pub(super) fn link(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    linkat(CWD, path(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}

/// A path by which the system finds an open file.
#[cfg(target_os = "linux")]
fn path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Opens the file again.
#[cfg(target_os = "linux")]
pub(super) fn reopen(file: &File) -> io::Result<File> {
    File::open(path(file))
}

/// `None`: other systems have no such files.
#[cfg(not(target_os = "linux"))]
pub(super) fn create(_: &Path, _: Option<&fs::Permissions>) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(super) fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn reopen(_: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}
