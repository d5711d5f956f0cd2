//! Opens traces: files, pipes and bytes, packed or not.

use std::io::{self, Read};
use std::path::Path;

use etl_format::read::{Limits, Options, Records, Source as _, Spooled, Trace};

use super::any::AnySource;
use super::bytes::{Bytes, ReadSeek};
use super::data::Data;
use super::error::Error;
use super::file::open_file;
use super::head::Head;
use super::map::Mapped;
use super::packing::Unpacker;
use super::unpacker::Unpacked;

/// How inputs are opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputOptions {
    /// How packed input is unpacked.
    pub unpacker: Unpacker,
    /// The size in bytes of the largest file that is mapped into memory; larger ones are read in
    /// blocks. Default: every file is mapped, if the feature `mmap` is on.
    pub max_mapped: u64,
}

impl Default for InputOptions {
    fn default() -> Self {
        InputOptions {
            unpacker: Unpacker::default(),
            max_mapped: u64::MAX,
        }
    }
}

/// An opened input: the unpacked bytes of a trace, which can be read in any order.
///
/// ```
/// use etl_events::input::{Input, InputOptions};
///
/// let error = Input::from_bytes(b"BSJB".to_vec(), &InputOptions::default()).unwrap_err();
/// assert_eq!(error.to_string(), "this is portable debug symbols (.pdb), not an .etl trace");
/// ```
#[derive(Debug)]
pub struct Input {
    head: Head,
    data: Data,
    /// Whether the bytes were unpacked, converted or read from a pipe. They may be in a temporary
    /// file without a name.
    is_temporary: bool,
}

impl Input {
    /// Opens a file or a named pipe, and unpacks it if it is packed.
    ///
    /// # Errors
    /// When it does not exist, cannot be read or unpacked, or has the format of another program.
    pub fn open(path: &Path, options: &InputOptions) -> Result<Self, Error> {
        let file = open_file(path)?;
        Input::new(Bytes::of_file(file)?, &path.to_string_lossy(), options)
    }

    /// Reads a pipe to its end, and unpacks it if it is packed. A long one is kept in a temporary
    /// file (feature `unpack`).
    ///
    /// # Errors
    /// As [`Input::open`].
    pub fn from_reader(reader: impl Read + 'static, options: &InputOptions) -> Result<Self, Error> {
        Input::new(Bytes::Pipe(Box::new(reader)), "", options)
    }

    /// Unpacks a reader that can seek if it is packed. A trace that is not packed is never in
    /// memory as a whole.
    ///
    /// # Errors
    /// As [`Input::open`].
    ///
    /// ```
    /// use std::io::Cursor;
    ///
    /// use etl_events::input::{Input, InputOptions};
    /// use etl_format::read::{Options, Order};
    ///
    /// let file = Cursor::new(etl_events::testing::trace());
    /// let mut input = Input::from_seekable(file, &InputOptions::default())?;
    /// let mut trace = input.trace(&Options::salvage())?;
    /// assert!(trace.records(Order::Time)?.next_record()?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_seekable(
        reader: impl ReadSeek + 'static,
        options: &InputOptions,
    ) -> Result<Self, Error> {
        Input::new(Bytes::Seekable(Box::new(reader)), "", options)
    }

    /// Unpacks bytes if they are packed.
    ///
    /// # Errors
    /// When they cannot be unpacked, or have the format of another program.
    pub fn from_bytes(bytes: Vec<u8>, options: &InputOptions) -> Result<Self, Error> {
        Input::new(Bytes::Whole(Spooled::Memory(bytes)), "", options)
    }

    /// Unpacks opened bytes if they are packed. Errors recognize some formats by the `name` of the
    /// file.
    ///
    /// # Errors
    /// When they cannot be read or unpacked, or have the format of another program.
    pub fn new(bytes: Bytes, name: &str, options: &InputOptions) -> Result<Self, Error> {
        let Unpacked { bytes, mut head } = options.unpacker.open(bytes)?;
        let limit = options.unpacker.max_unpacked;
        let is_whole = !matches!(bytes, Bytes::Pipe(_));
        let is_temporary = !is_whole || head.from.is_some() || head.conversion.is_some();
        // Unpacked input has limits of its own.
        let bytes = if head.from.is_none() {
            bytes.ensure_trace()?
        } else {
            bytes
        };
        let mut data = match bytes {
            Bytes::Seekable(reader) => Data::of_reader(reader)?,
            bytes => Data::new(bytes.whole_within(limit)?, options.max_mapped)?,
        };
        if head.from.is_some() {
            // Only here the error can name what the trace was unpacked from.
            Records::stream(data.source_now(), &Options::salvage())
                .map_err(|error| head.not_a_trace(name, &error))?;
            head.from = None;
        }
        Ok(Input {
            head,
            data,
            is_temporary,
        })
    }

    /// Closes the file at the path, which is this input, and opens it again for each read. So
    /// thousands of inputs can be read at the same time, although a process may have only some
    /// hundred files open. Without effect on an input that is mapped, in memory, or unpacked.
    ///
    /// # Errors
    /// When the properties of the file cannot be read. Later reads fail if another file has the
    /// path by then.
    pub fn close_between_reads(self, path: &Path) -> io::Result<Self> {
        if self.is_temporary {
            return Ok(self);
        }
        let data = self.data.close_between_reads(path)?;
        Ok(Input { data, ..self })
    }

    /// The first bytes, for messages.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Checks that a trace has a header event or a record: without both, it only looks like one.
    /// Reads the first buffers only; an input that is not a trace at all is not an error here.
    ///
    /// # Errors
    /// When it has neither, or when reading fails.
    pub fn ensure_records(&mut self, limits: Limits) -> Result<(), Error> {
        self.head.ensure_records(self.data.source_now(), limits)
    }

    /// All bytes of the unpacked input: mapped into memory, or read into it if the input is larger
    /// than [`InputOptions::max_mapped`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn into_mapped(self) -> io::Result<Mapped> {
        self.data.into_mapped()
    }

    /// Bytes of the unpacked input.
    pub fn size(&mut self) -> u64 {
        self.data.source_now().size().unwrap_or(0)
    }

    /// The source of a reader.
    pub fn source(&mut self) -> AnySource<'_> {
        self.data.source()
    }

    /// The trace.
    ///
    /// # Errors
    /// When this is not a trace, and for damage in strict mode.
    pub fn trace(&mut self, options: &Options) -> etl_format::Result<Trace<AnySource<'_>>> {
        Trace::open(self.source(), options)
    }
}
