//! Output files that are complete under their name, or not there at all.
//!
//! A program that fails or is killed while it writes leaves an existing file as it was:
//!
//! ```
//! use std::io::Write;
//!
//! use etl_tools::output::{CompleteFile, Existing};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("slice.etl");
//! let mut file = CompleteFile::create(&path, Existing::Keep)?;
//! file.file().write_all(b"the bytes of a trace")?;
//! assert!(!path.exists(), "it has another name so far");
//! file.commit()?;
//! assert_eq!(std::fs::read(&path)?, b"the bytes of a trace");
//!
//! let other = CompleteFile::create(&path, Existing::Keep)?;
//! let error = other.commit().unwrap_err();
//! assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
//! # Ok::<(), std::io::Error>(())
//! ```

mod early;
mod unnamed;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use early::EarlySync;

/// Links that are followed from one to the next.
const MAX_LINKS: usize = 40;

/// What becomes of an existing file of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is kept, and the new file is not.
    Keep,
    /// It is replaced in one step. The new file gets its permissions.
    Replace,
}

/// A file that gets its name when it is complete.
///
/// Until [`commit`](Self::commit) it has no name on Linux, and the system removes it however the
/// program ends. Elsewhere it is a temporary file in the same directory, which is removed when this
/// is dropped. The bytes are brought to the disk while they are written.
#[derive(Debug)]
pub struct CompleteFile {
    /// Declared before the file, so that it has closed the file when the file is removed.
    early: Option<EarlySync>,
    file: Unfinished,
    path: PathBuf,
    existing: Existing,
}

/// A file that has not got its name yet.
#[derive(Debug)]
enum Unfinished {
    Unnamed(File),
    Temporary(NamedTempFile),
}

impl CompleteFile {
    /// Creates the file without its name. If `path` is a link, it stays one, and the file that it
    /// points to is written.
    ///
    /// # Errors
    /// When a file cannot be created in the directory of `path`.
    pub fn create(path: &Path, existing: Existing) -> io::Result<Self> {
        let path = linked(path);
        let directory = directory_of(&path);
        let permissions = permissions(fs::metadata(&path).ok());
        if let Some(file) = unnamed::create(directory, permissions.as_ref()) {
            let early = unnamed::reopen(&file).ok().map(EarlySync::start);
            return Ok(CompleteFile {
                early,
                file: Unfinished::Unnamed(file),
                path,
                existing,
            });
        }
        let mut builder = temporary_names();
        if let Some(permissions) = permissions {
            builder.permissions(permissions);
        }
        let file = builder.tempfile_in(directory)?;
        let early = file.reopen().ok().map(EarlySync::start);
        Ok(CompleteFile {
            early,
            file: Unfinished::Temporary(file),
            path,
            existing,
        })
    }

    /// The path of the temporary file, if it has one.
    #[must_use]
    pub fn temporary_path(&self) -> Option<&Path> {
        match &self.file {
            Unfinished::Unnamed(_) => None,
            Unfinished::Temporary(file) => Some(file.path()),
        }
    }

    /// The unfinished file, to write to and to read back.
    pub fn file(&mut self) -> &mut File {
        match &mut self.file {
            Unfinished::Unnamed(file) => file,
            Unfinished::Temporary(file) => file.as_file_mut(),
        }
    }

    /// Brings the bytes to the disk.
    ///
    /// # Errors
    /// When the disk fails or is full.
    pub fn sync(&mut self) -> io::Result<()> {
        drop(self.early.take());
        self.file().sync_all()
    }

    /// Brings the file to the disk and gives it its name. After [`sync`](Self::sync), it takes no
    /// time.
    ///
    /// # Errors
    /// When the disk fails or is full. The kind is [`AlreadyExists`](io::ErrorKind::AlreadyExists)
    /// if there is a file of this name and it is to be kept.
    pub fn commit(mut self) -> io::Result<()> {
        // The bytes must be on the disk before the name is.
        self.sync()?;
        let CompleteFile {
            file,
            path,
            existing,
            ..
        } = self;
        match file {
            Unfinished::Unnamed(file) => name(&file, &path, existing)?,
            Unfinished::Temporary(file) => {
                let named = match existing {
                    Existing::Keep => file.persist_noclobber(&path),
                    Existing::Replace => file.persist(&path),
                };
                named.map_err(|error| error.error)?;
            }
        }
        sync_directory_of(&path)
    }
}

/// Names of temporary files.
fn temporary_names() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".etlkit-").suffix(".part");
    builder
}

/// Gives a file without a name its name.
fn name(file: &File, path: &Path, existing: Existing) -> io::Result<()> {
    match unnamed::link(file, path) {
        Err(error)
            if error.kind() == io::ErrorKind::AlreadyExists && existing == Existing::Replace => {}
        linked => return linked,
    }
    // A name can only be replaced by another name.
    let directory = directory_of(path);
    let temporary = temporary_names().make_in(directory, |name| unnamed::link(file, name))?;
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The file that a path names, after all links, also if there is none yet.
fn linked(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = directory_of(&path).join(target),
            Err(_) => break,
        }
    }
    path
}

/// The directory of a file.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Brings the directory of a file to the disk, so that a power cut does not undo a rename that was
/// reported as done. Does nothing on systems that cannot.
///
/// # Errors
/// When the directory cannot be opened or the disk fails.
#[cfg(unix)]
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = match File::open(directory_of(path)) {
        Ok(directory) => directory,
        // A directory may be writable and not readable.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        Err(e) => return Err(e),
    };
    match directory.sync_all() {
        // Some file systems do not support it.
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        done => done,
    }
}

/// Brings the directory of a file to the disk. Does nothing: this system cannot.
///
/// # Errors
/// None.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps)] // As on Unix.
pub fn sync_directory_of(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The permissions of the new file: the same as of the file that it replaces, or the default of the
/// umask.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // Other systems have none.
fn permissions(replaced: Option<fs::Metadata>) -> Option<fs::Permissions> {
    use std::os::unix::fs::PermissionsExt;
    match replaced {
        Some(metadata) => Some(metadata.permissions()),
        None => Some(fs::Permissions::from_mode(0o666)),
    }
}

#[cfg(not(unix))]
fn permissions(_: Option<fs::Metadata>) -> Option<fs::Permissions> {
    None
}
