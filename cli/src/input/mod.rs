//! Opens the inputs that the user named: files or standard input, packed or not.

mod about;
mod ahead;
mod any;
mod args;
mod identity;
mod map;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use etl_format::read::{FileSource, Limits, Options, Records, Source, Spooled, Trace};
use etl_tools::input::Bytes;

use crate::error::Failure;
use crate::missing_header;

use ahead::Ahead;
use any::AnyBytes;

pub(crate) use about::About;
pub(crate) use any::AnySource;
pub(crate) use args::InputArgs;
pub(crate) use etl_tools::input::{binary_format, what};
pub(crate) use identity::{is_same, reject_twice, stdin_twice};
pub(crate) use map::Mapped;

/// The name of `-` in messages and reports.
const STDIN: &str = "(standard input)";

/// Bytes that are enough to recognize the type of a file.
const HEAD: usize = 512;

/// Bytes of a script, of settings, or of a list.
const MAX_TEXT: u64 = 64 << 20;

/// An opened input.
#[derive(Debug)]
pub(crate) struct Input {
    about: About,
    data: Data,
    /// A file that is read ahead.
    ahead: Option<Ahead>,
    limits: Limits,
}

#[derive(Debug)]
enum Data {
    /// All bytes of the input: mapped, or in memory.
    Bytes(Mapped),
    /// A file that is read in blocks.
    File(FileSource<File>),
}

impl Input {
    /// Opens a file, or standard input for `-`, for reading in any order, and unpacks it if
    /// necessary.
    ///
    /// # Errors
    /// When the file does not exist, cannot be read or cannot be unpacked.
    pub fn open(path: &Path, args: &InputArgs) -> Result<Self, Failure> {
        let name = display(path);
        let bytes = match is_stdin(path) || is_stdin_pipe(path) {
            true => stdin(),
            false => Bytes::of_file(open_file(path)?).map_err(|e| Failure::io(&name, &e))?,
        };
        let (bytes, mut about) = unpacked(bytes, name, args)?;
        let (mut data, ahead) = match bytes.whole().map_err(|e| Failure::input(&about.name, &e))? {
            Spooled::Memory(bytes) => (Data::Bytes(Mapped::Memory(bytes)), None),
            Spooled::File(file) => {
                let size = file.size();
                let file = file.into_inner();
                let ahead = Ahead::new(&file, size.unwrap_or(0));
                let data = match args.in_blocks(size) {
                    true => FileSource::new(file)
                        .map(Data::File)
                        .map_err(|e| Failure::io(&about.name, &e))?,
                    false => Data::Bytes(Mapped::new(&file, &about.name)?),
                };
                (data, ahead)
            }
        };
        if about.head.from.is_some() {
            // Only here the error can name what the trace was unpacked from.
            Records::stream(data.source(None), &Options::salvage())
                .map_err(|error| about.not_a_trace(&error))?;
            about.head.from = None;
        }
        let limits = args.limits(data.source(None).size().unwrap_or(0));
        Ok(Input { about, data, ahead, limits })
    }

    /// What messages about the input need.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Bytes of the input.
    pub fn size(&mut self) -> u64 {
        self.source().size().unwrap_or(0)
    }

    /// The bounds for reading it.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sets the bounds for reading it beside others.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The source of a reader.
    pub fn source(&mut self) -> AnySource<'_> {
        self.data.source(self.ahead.as_mut())
    }

    /// The trace, within the limits of the user, and what messages about it need.
    ///
    /// # Errors
    /// When this is not a trace, when it has neither a header event nor a record, and for damage in
    /// strict mode.
    pub fn trace(&mut self, options: &Options) -> Result<(Trace<AnySource<'_>>, &About), Failure> {
        let Input { about, data, ahead, limits } = self;
        let options = &Options { limits: *limits, ..*options };
        let mut trace = Trace::open(data.source(ahead.as_mut()), options)
            .map_err(|error| about.unreadable(options.mode, &error))?;
        missing_header::ensure_records(&about.name, &mut trace)?;
        Ok((trace, about))
    }
}

impl Data {
    fn source<'s>(&'s mut self, ahead: Option<&'s mut Ahead>) -> AnySource<'s> {
        let bytes = match self {
            Data::Bytes(mapped) => AnyBytes::Memory(mapped.bytes()),
            Data::File(file) => AnyBytes::File(file),
        };
        AnySource { bytes, ahead }
    }
}

/// Whether the user means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Parses the name of a directory that is written to.
pub(crate) fn directory() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if is_stdin(&path) {
            return Err("several files are written to it: name a directory (`./-` is one as well)");
        }
        Ok(path)
    })
}

/// Whether the path names standard input, and that is a pipe. It is not opened again: that would
/// wait for another writer.
fn is_stdin_pipe(path: &Path) -> bool {
    cfg!(unix) && path.as_os_str() == "/dev/stdin" && !path.is_file()
}

/// The name of a file in messages and reports.
pub(crate) fn display(path: &Path) -> String {
    if is_stdin(path) { STDIN.to_owned() } else { path.display().to_string() }
}

/// An input that is read front to back.
pub(crate) struct Stream {
    /// Its bytes, unpacked.
    pub reader: Box<dyn Read>,
    pub about: About,
}

/// Standard input, unpacked, for reading front to back.
///
/// # Errors
/// When it cannot be read or unpacked.
pub(crate) fn stdin_stream(args: &InputArgs) -> Result<Stream, Failure> {
    let (bytes, about) = unpacked(stdin(), STDIN.to_owned(), args)?;
    Ok(Stream { reader: bytes.reader().map_err(|e| Failure::io(STDIN, &e))?, about })
}

fn stdin() -> Bytes {
    Bytes::Pipe(Box::new(io::stdin().lock()))
}

/// Bytes, unpacked if necessary, and what messages about them need.
fn unpacked(bytes: Bytes, name: String, args: &InputArgs) -> Result<(Bytes, About), Failure> {
    match args.unpacker().open(bytes) {
        Ok((bytes, head)) => Ok((bytes, About { name, head })),
        Err(error) => Err(Failure::input(&name, &error)),
    }
}

/// Opens a file for reading.
pub(crate) fn open_file(path: &Path) -> Result<File, Failure> {
    let name = display(path);
    let pattern = name.contains(['*', '?']);
    let failure = |e: io::Error| match e.kind() {
        // Windows reports a pattern as an invalid name.
        kind if kind == io::ErrorKind::NotFound
            || (pattern && kind == io::ErrorKind::InvalidFilename) =>
        {
            let hint = if pattern {
                "no file matches this pattern, or it is quoted; `ls` lists the files"
            } else {
                "check the name; it is relative to the current directory. `-` reads standard input"
            };
            Failure::new(&name, "file not found").hint(hint)
        }
        io::ErrorKind::PermissionDenied => {
            Failure::new(&name, "permission denied").hint("check the permissions of the file")
        }
        _ => Failure::io(&name, &e),
    };
    // Windows cannot open a directory at all.
    if path.is_dir() {
        return Err(Failure::new(&name, "is a directory").hint("name the .etl files in it"));
    }
    let file = File::open(path).map_err(failure)?;
    let kind = file.metadata().map_err(failure)?.file_type();
    #[cfg(unix)]
    let pipe = std::os::unix::fs::FileTypeExt::is_fifo(&kind);
    #[cfg(not(unix))]
    let pipe = false;
    if !kind.is_file() && !pipe {
        return Err(Failure::new(&name, "is neither a file nor a pipe")
            .hint("name an .etl file; `-` reads standard input"));
    }
    Ok(file)
}

/// All bytes of a file, or of standard input for `-`.
///
/// # Errors
/// When the file does not exist or cannot be read.
pub(crate) fn read_all(path: &Path) -> Result<Vec<u8>, Failure> {
    read_up_to(path, u64::MAX)
}

fn read_up_to(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = match is_stdin(path) {
        true => io::stdin().lock().take(most).read_to_end(&mut bytes),
        false => open_file(path)?.take(most).read_to_end(&mut bytes),
    };
    read.map_err(|e| Failure::io(display(path), &e))?;
    Ok(bytes)
}

/// The text of a file of `kind`: a script, settings, a list.
///
/// # Errors
/// As [`read_all`]; when the file has another format, is not UTF-8, or is too long.
pub(crate) fn read_text(path: &Path, kind: &str) -> Result<String, Failure> {
    let bytes = read_up_to(path, MAX_TEXT + 1)?;
    let is_long = bytes.len() as u64 > MAX_TEXT;
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if !is_long => return Ok(text),
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    };
    let message = if Trace::open(bytes.as_slice(), &Options::salvage()).is_ok() {
        format!("this is an .etl trace, not {kind}")
    } else {
        match what(bytes.get(..HEAD).unwrap_or(&bytes)) {
            Some(what) if what != "text" || !is_long => format!("this is {what}, not {kind}"),
            _ if is_long => format!("this is longer than {} MiB", MAX_TEXT >> 20),
            _ => "this is not UTF-8 text".to_owned(),
        }
    };
    Err(Failure::new(display(path), message))
}
