//! Opening files.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file or a named pipe for reading.
///
/// # Errors
/// Errors of the system; [`IsADirectory`](io::ErrorKind::IsADirectory) for a directory on every
/// system, and [`Unsupported`](io::ErrorKind::Unsupported) for what is neither a file nor a pipe.
pub fn open_file(path: &Path) -> io::Result<File> {
    // Windows cannot open a directory at all.
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    #[cfg(unix)]
    let is_pipe = std::os::unix::fs::FileTypeExt::is_fifo(&kind);
    #[cfg(not(unix))]
    let is_pipe = false;
    if !kind.is_file() && !is_pipe {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "is neither a file nor a pipe",
        ));
    }
    Ok(file)
}
