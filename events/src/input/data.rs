//! The opened bytes of a trace.

use std::fs::File;
use std::io;
use std::path::Path;

use etl_format::read::{FileSource, Source as _, Spooled};

use super::ahead::Ahead;
use super::any::{AnyBytes, AnySource};
use super::bytes::ReadSeek;
use super::handle::Handle;
use super::map::Mapped;

/// The opened bytes of a trace.
#[derive(Debug)]
pub(super) struct Data {
    content: Content,
    /// The thread that reads a file ahead.
    ahead: Option<Ahead>,
}

#[derive(Debug)]
enum Content {
    /// All bytes: mapped, or in memory.
    Bytes(Mapped),
    /// A file that is read in blocks.
    File(FileSource<Handle>),
}

impl Data {
    /// Files of more than `max_mapped` bytes are read in blocks.
    pub fn new(bytes: Spooled<File>, max_mapped: u64) -> io::Result<Self> {
        let file = match bytes {
            Spooled::Memory(bytes) => {
                return Ok(Data {
                    content: Content::Bytes(Mapped::from(bytes)),
                    ahead: None,
                });
            }
            Spooled::File(file) => file,
        };
        let size = file.size();
        let file = file.into_inner();
        let ahead = Ahead::new(&file, size.unwrap_or(0));
        let is_mapped = cfg!(feature = "mmap") && size.unwrap_or(u64::MAX) <= max_mapped;
        let content = match is_mapped {
            true => Content::Bytes(Mapped::new(&file)?),
            false => Content::File(FileSource::new(Handle::Open(file))?),
        };
        Ok(Data { content, ahead })
    }

    /// The bytes of a reader that can seek, read in blocks.
    pub fn of_reader(reader: Box<dyn ReadSeek>) -> io::Result<Self> {
        let source = FileSource::new(Handle::Other(reader))?;
        Ok(Data {
            content: Content::File(source),
            ahead: None,
        })
    }

    /// All bytes.
    pub fn into_mapped(self) -> io::Result<Mapped> {
        match self.content {
            Content::Bytes(mapped) => Ok(mapped),
            Content::File(file) => file.into_inner().into_mapped(),
        }
    }

    /// Closes a file that is read in blocks, which is at the path. Each read opens it again.
    pub fn close_between_reads(self, path: &Path) -> io::Result<Self> {
        let content = match self.content {
            Content::Bytes(mapped) => Content::Bytes(mapped),
            Content::File(file) => {
                let handle = file.into_inner().closed(path)?;
                Content::File(FileSource::new(handle)?)
            }
        };
        Ok(Data {
            content,
            // The thread has the file open.
            ahead: None,
        })
    }

    /// A source that waits for the thread that reads ahead.
    pub fn source(&mut self) -> AnySource<'_> {
        AnySource {
            bytes: self.content.bytes(),
            ahead: self.ahead.as_mut(),
        }
    }

    /// A source for a short read, which does not wait.
    pub fn source_now(&mut self) -> AnySource<'_> {
        AnySource {
            bytes: self.content.bytes(),
            ahead: None,
        }
    }
}

impl Content {
    fn bytes(&mut self) -> AnyBytes<'_> {
        match self {
            Content::Bytes(mapped) => AnyBytes::Memory(mapped.bytes()),
            Content::File(file) => AnyBytes::File(file),
        }
    }
}
