//! A file that stays open, or that is opened for each read: a process may have only so many files
//! open. In their place, another reader that can seek.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::bytes::ReadSeek;
use super::file::open_file;
use super::map::Mapped;

/// A file that is read.
pub(super) enum Handle {
    Open(File),
    Closed(ClosedFile),
    Other(Box<dyn ReadSeek>),
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Handle::Open(file) => f.debug_tuple("Open").field(file).finish(),
            Handle::Closed(file) => f.debug_tuple("Closed").field(file).finish(),
            Handle::Other(_) => f.write_str("Other"),
        }
    }
}

/// A file that is opened for each read.
#[derive(Debug)]
pub(super) struct ClosedFile {
    path: PathBuf,
    identity: Identity,
    len: u64,
    position: u64,
}

/// Device and number of a file: another file that gets its name has another identity.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Identity {
            device: metadata.dev(),
            number: metadata.ino(),
        }
    }

    /// Other systems have no limit of open files that a merge reaches.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Identity {
            device: 0,
            number: 0,
        }
    }
}

impl ClosedFile {
    /// The file at the path, which was opened as `file`.
    fn new(file: &File, path: &Path) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(ClosedFile {
            path: path.to_owned(),
            identity: Identity::of(&metadata),
            len: metadata.len(),
            position: 0,
        })
    }

    /// Opens the file again.
    fn open(&self) -> io::Result<File> {
        let file = open_file(&self.path)?;
        if Identity::of(&file.metadata()?) != self.identity {
            return Err(io::Error::other("the file was replaced while it was read"));
        }
        Ok(file)
    }
}

impl Handle {
    /// Closes the file at the path. Each read opens it again. Another reader stays open.
    pub fn closed(self, path: &Path) -> io::Result<Self> {
        match self {
            Handle::Open(file) => Ok(Handle::Closed(ClosedFile::new(&file, path)?)),
            other => Ok(other),
        }
    }

    /// All bytes, in memory.
    pub fn into_mapped(self) -> io::Result<Mapped> {
        match self {
            Handle::Open(file) => Mapped::read(&file),
            Handle::Closed(closed) => Mapped::read(&closed.open()?),
            Handle::Other(mut reader) => {
                let mut bytes = Vec::new();
                reader.rewind()?;
                reader.read_to_end(&mut bytes)?;
                Ok(Mapped::from(bytes))
            }
        }
    }
}

impl Read for Handle {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Handle::Open(file) => file.read(space),
            Handle::Other(reader) => reader.read(space),
            Handle::Closed(closed) => {
                let mut file = closed.open()?;
                file.seek(SeekFrom::Start(closed.position))?;
                let len = file.read(space)?;
                closed.position += len as u64;
                Ok(len)
            }
        }
    }
}

impl Seek for Handle {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let closed = match self {
            Handle::Open(file) => return file.seek(to),
            Handle::Other(reader) => return reader.seek(to),
            Handle::Closed(closed) => closed,
        };
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(distance) => closed.len.checked_add_signed(distance),
            SeekFrom::Current(distance) => closed.position.checked_add_signed(distance),
        };
        closed.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(closed.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_files_are_read_as_open_ones_until_replaced() {
        let here = std::env::temp_dir().join(format!("etl-events-{}", std::process::id()));
        std::fs::create_dir_all(&here).unwrap();
        let path = here.join("closed.bin");
        std::fs::write(&path, b"0123456789").unwrap();
        let mut handle = Handle::Open(File::open(&path).unwrap())
            .closed(&path)
            .unwrap();
        let mut space = [0; 4];
        assert_eq!(handle.seek(SeekFrom::End(0)).unwrap(), 10);
        assert_eq!(handle.seek(SeekFrom::Start(3)).unwrap(), 3);
        assert_eq!(handle.read(&mut space).unwrap(), 4);
        assert_eq!(&space, b"3456");
        assert_eq!(handle.read(&mut space).unwrap(), 3);
        assert_eq!(&space[..3], b"789");
        assert!(handle.seek(SeekFrom::End(-11)).is_err());
        // The old file still has its number while the new one is written.
        let other = here.join("other.bin");
        std::fs::write(&other, b"another").unwrap();
        std::fs::rename(&other, &path).unwrap();
        let error = handle.read(&mut space).unwrap_err();
        #[cfg(unix)]
        assert_eq!(error.to_string(), "the file was replaced while it was read");
        std::fs::remove_dir_all(&here).unwrap();
    }
}
