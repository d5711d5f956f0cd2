//! An output in memory, which continues in a temporary file if it becomes long.

use std::fs::File;
use std::io;

use etl_format::read::Spooled;
use etl_format::write::Output;

#[cfg(feature = "unpack")]
use super::bytes::MAX_IN_MEMORY;
#[cfg(feature = "unpack")]
use super::stop::Stop;
#[cfg(feature = "unpack")]
use super::temporary::Temporary;
#[cfg(feature = "unpack")]
use etl_format::read::FileSource;
#[cfg(feature = "unpack")]
use etl_format::write::TraceFile;

/// The largest trace, unless the user allows more.
const MAX_SIZE: u64 = if cfg!(feature = "unpack") {
    16 << 30
} else {
    1 << 30
};

/// An output in memory, which continues in a temporary file if it becomes long. Without the feature
/// `unpack`, it stays in memory.
pub(super) struct SpooledOutput {
    place: Place,
    max_size: u64,
}

/// Where the bytes are.
enum Place {
    Memory(Vec<u8>),
    #[cfg(feature = "unpack")]
    File(TraceFile<Temporary>),
}

impl SpooledOutput {
    /// An output for at most `max_size` bytes.
    pub fn new(max_size: Option<u64>) -> Self {
        SpooledOutput {
            place: Place::Memory(Vec::new()),
            max_size: max_size.unwrap_or(MAX_SIZE),
        }
    }

    /// The bytes.
    pub fn into_spooled(self) -> io::Result<Spooled<File>> {
        match self.place {
            Place::Memory(bytes) => Ok(Spooled::Memory(bytes)),
            #[cfg(feature = "unpack")]
            Place::File(file) => {
                let file = file.into_inner().into_file();
                Ok(Spooled::File(FileSource::new(file)?))
            }
        }
    }

    /// Continues in a temporary file if the bytes up to this offset are too many for memory.
    #[cfg(feature = "unpack")]
    fn make_room(&mut self, end: u64) -> etl_format::Result<()> {
        // WebAssembly has no files.
        let has_files = !cfg!(target_family = "wasm");
        if let Place::Memory(bytes) = &self.place
            && end > MAX_IN_MEMORY as u64
            && has_files
        {
            let mut file = TraceFile::new(Temporary::create()?);
            file.write_at(0, bytes)?;
            self.place = Place::File(file);
        }
        Ok(())
    }

    #[cfg(not(feature = "unpack"))]
    fn make_room(&mut self, _: u64) -> etl_format::Result<()> {
        Ok(())
    }
}

/// The error of a trace that is longer than a limit.
#[cfg(feature = "unpack")]
fn too_long(limit: u64) -> io::Error {
    io::Error::other(Stop::Size(limit))
}

#[cfg(not(feature = "unpack"))]
fn too_long(limit: u64) -> io::Error {
    let limit = super::size(limit);
    io::Error::other(format!("the trace of the stream has more than {limit}"))
}

impl Output for SpooledOutput {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> etl_format::Result<()> {
        let end = offset.saturating_add(bytes.len() as u64);
        if end > self.max_size {
            return Err(too_long(self.max_size).into());
        }
        self.make_room(end)?;
        match &mut self.place {
            Place::Memory(memory) => memory.write_at(offset, bytes),
            #[cfg(feature = "unpack")]
            Place::File(file) => file.write_at(offset, bytes),
        }
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        match &mut self.place {
            Place::Memory(memory) => memory.flush(),
            #[cfg(feature = "unpack")]
            Place::File(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_at_refuses_more_than_the_limit() {
        let mut output = SpooledOutput::new(Some(4));
        output.write_at(0, b"abcd").unwrap();
        output.write_at(2, b"x").unwrap();
        assert_eq!(output.write_at(4, b"e").unwrap_err().code(), "io");
        let Spooled::Memory(bytes) = output.into_spooled().unwrap() else {
            panic!("it is short")
        };
        assert_eq!(bytes, b"abxd");
    }

    #[cfg(feature = "unpack")]
    #[test]
    fn a_long_output_continues_in_a_file() {
        use std::io::{Read, Seek};

        let mut output = SpooledOutput::new(None);
        output.write_at(0, b"abcd").unwrap();
        output.write_at(MAX_IN_MEMORY as u64, b"e").unwrap();
        output.write_at(1, b"x").unwrap();
        let Spooled::File(file) = output.into_spooled().unwrap() else {
            panic!("it is long")
        };
        let mut file = file.into_inner();
        file.rewind().unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), MAX_IN_MEMORY + 1);
        assert_eq!((&bytes[..4], bytes[MAX_IN_MEMORY]), (&b"axcd"[..], b'e'));
    }
}
