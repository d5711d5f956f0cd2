//! Opened bytes, packed or not.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};

use etl_format::read::{FileSource, Options, Records, Reused, Source as _, Spooled};

use super::error::Error;
use super::size::size;
#[cfg(feature = "unpack")]
use super::temporary::Temporary;

/// Bytes of a pipe, or of unpacked input, that are kept in memory. Longer input goes to a temporary
/// file.
#[cfg(feature = "unpack")]
pub(super) const MAX_IN_MEMORY: usize = 16 << 20;

/// The longest pipe that is read without the feature `unpack`, which has temporary files.
#[cfg(not(feature = "unpack"))]
const MAX_IN_MEMORY: u64 = 1 << 30;

/// The longest pipe that is read to its end, unless the user sets another limit.
pub(super) const MAX_PIPE: u64 = 16 << 30;

/// A pipe with more bytes must have a trace in so many first bytes.
const BEGINNING: usize = 1 << 20;

/// A reader that can seek, such as the file of a browser. Its traces may be used on any thread.
pub trait ReadSeek: Read + Seek + Send + Sync {}
impl<T: Read + Seek + Send + Sync> ReadSeek for T {}

/// Opened bytes, packed or not.
pub enum Bytes {
    /// All bytes, in a file or in memory.
    Whole(Spooled<File>),
    /// A reader that can seek. A trace that is not packed is read from it piece by piece.
    Seekable(Box<dyn ReadSeek>),
    /// A pipe, which is read front to back.
    Pipe(Box<dyn Read>),
}

/// Bytes whose beginning was read.
pub(super) struct Peeked {
    /// The first bytes.
    pub head: Vec<u8>,
    /// All bytes.
    pub bytes: Bytes,
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bytes::Whole(whole) => f.debug_tuple("Whole").field(whole).finish(),
            Bytes::Seekable(_) => f.write_str("Seekable"),
            Bytes::Pipe(_) => f.write_str("Pipe"),
        }
    }
}

impl Bytes {
    /// The bytes of a file. A named pipe cannot seek: it is read front to back.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of_file(file: File) -> io::Result<Self> {
        if file.metadata().is_ok_and(|m| m.is_file()) {
            Ok(Bytes::Whole(Spooled::File(FileSource::new(file)?)))
        } else {
            Ok(Bytes::Pipe(Box::new(file)))
        }
    }

    /// Reads the first `len` bytes.
    pub(super) fn peek(self, len: usize) -> io::Result<Peeked> {
        match self {
            Bytes::Whole(mut whole) => {
                let mut block = Reused::default();
                whole.read(0, len, &mut block)?;
                Ok(Peeked {
                    head: block.as_ref().to_vec(),
                    bytes: Bytes::Whole(whole),
                })
            }
            Bytes::Seekable(mut reader) => {
                let mut head = Vec::new();
                reader.rewind()?;
                (&mut reader).take(len as u64).read_to_end(&mut head)?;
                Ok(Peeked {
                    head,
                    bytes: Bytes::Seekable(reader),
                })
            }
            Bytes::Pipe(mut pipe) => {
                let mut head = Vec::new();
                (&mut pipe).take(len as u64).read_to_end(&mut head)?;
                let whole = Cursor::new(head.clone()).chain(pipe);
                Ok(Peeked {
                    head,
                    bytes: Bytes::Pipe(Box::new(whole)),
                })
            }
        }
    }

    /// The bytes front to back.
    ///
    /// # Errors
    /// When the file cannot seek.
    pub fn reader(self) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Bytes::Whole(Spooled::Memory(bytes)) => Box::new(Cursor::new(bytes)),
            Bytes::Whole(Spooled::File(file)) => {
                let mut file = file.into_inner();
                file.rewind()?;
                Box::new(file)
            }
            Bytes::Seekable(mut reader) => {
                reader.rewind()?;
                reader
            }
            Bytes::Pipe(pipe) => pipe,
        })
    }

    /// All bytes: in memory, or in a temporary file if a pipe or another reader has many.
    ///
    /// # Errors
    /// When they cannot be read or unpacked, and for more than 16 GiB of a pipe or another reader.
    pub fn whole(self) -> Result<Spooled<File>, Error> {
        self.whole_within(None)
    }

    /// As [`Bytes::whole`], with another limit for pipes.
    pub(super) fn whole_within(self, limit: Option<u64>) -> Result<Spooled<File>, Error> {
        match self {
            Bytes::Whole(whole) => Ok(whole),
            other => spool(other.reader()?, limit.unwrap_or(MAX_PIPE)),
        }
    }

    /// Rejects a pipe whose first MiB has no trace, before the rest is read: the pipe may have no
    /// end (`< /dev/zero`).
    pub(super) fn ensure_trace(self) -> Result<Self, Error> {
        if !matches!(self, Bytes::Pipe(_)) {
            return Ok(self);
        }
        let Peeked { head, bytes } = self.peek(BEGINNING)?;
        if head.len() < BEGINNING || Records::stream(head.as_slice(), &Options::salvage()).is_ok() {
            return Ok(bytes);
        }
        let message = format!(
            "the first {} of the pipe contain no trace",
            size(BEGINNING as u64)
        );
        Err(Error::new(message).hint_text("if a trace follows, write it to a file first"))
    }
}

/// Reads a reader to its end. More than `max` bytes are an error.
#[cfg(feature = "unpack")]
pub(super) fn spool(reader: impl Read, max: u64) -> Result<Spooled<File>, Error> {
    let reader = reader.take(max.saturating_add(1));
    let spooled = Spooled::new(reader, MAX_IN_MEMORY, Temporary::create)?;
    let len = match &spooled {
        Spooled::Memory(bytes) => bytes.len() as u64,
        Spooled::File(file) => file.size().unwrap_or(0),
    };
    if len > max {
        return Err(too_long(max));
    }
    Ok(match spooled {
        Spooled::Memory(bytes) => Spooled::Memory(bytes),
        Spooled::File(file) => Spooled::File(FileSource::new(file.into_inner().into_file())?),
    })
}

/// Reads a reader to its end. More than `max` bytes, or 1 GiB, are an error.
#[cfg(not(feature = "unpack"))]
fn spool(reader: impl Read, max: u64) -> Result<Spooled<File>, Error> {
    let max = max.min(MAX_IN_MEMORY);
    let mut bytes = Vec::new();
    reader.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(too_long(max));
    }
    Ok(Spooled::Memory(bytes))
}

fn too_long(max: u64) -> Error {
    Error::new(format!("the pipe has more than {}", size(max)))
        .hint_text("write it to a file, and open the file")
}
