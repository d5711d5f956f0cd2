//! Opens the inputs that the user named: files or standard input, packed or not.

mod about;
mod args;
mod opened;
mod silence;
mod twice;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use etl_events::eventpipe::{self, ConversionReport};
use etl_events::input::{self, Bytes, Unpacked};
use etl_format::read::{Limits, Options, Trace};

use crate::error::Failure;
use crate::open_files;

pub(crate) use about::About;
pub(crate) use args::InputArgs;
pub(crate) use etl_events::input::{AnySource, binary_format, is_same_file, what};
pub(crate) use opened::{forget_opened, note_opened, was_opened};
pub(crate) use silence::Silence;
pub(crate) use twice::{reject_twice, stdin_twice};

/// The name of `-` in messages and reports.
const STDIN: &str = "(standard input)";

/// Bytes of a script, of settings, or of a list.
const MAX_TEXT: u64 = 64 << 20;

/// An opened input.
#[derive(Debug)]
pub(crate) struct Input {
    about: About,
    input: input::Input,
    limits: Limits,
}

impl Input {
    /// Opens a file, or standard input for `-`, for reading in any order, and unpacks it if
    /// necessary.
    ///
    /// # Errors
    /// If the file does not exist, cannot be read or cannot be unpacked.
    pub fn open(path: &Path, args: &InputArgs) -> Result<Self, Failure> {
        let name = display(path);
        let bytes = bytes_of(path, &name)?;
        let mut input = input::Input::new(bytes, &name, &args.options())
            .map_err(|error| Failure::input(&name, &error))?;
        if args.closes_files() {
            input = input
                .close_between_reads(path)
                .map_err(|error| Failure::io(&name, &error))?;
        }
        let limits = args.limits(input.size());
        Ok(Input {
            about: About {
                name,
                head: input.head().clone(),
            },
            input,
            limits,
        })
    }

    /// The parts of messages about the input.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The conversion, if the input is an EventPipe stream.
    pub fn conversion(&self) -> Option<&ConversionReport> {
        self.about.head.conversion.as_ref()
    }

    /// Bytes of the input.
    pub fn size(&mut self) -> u64 {
        self.input.size()
    }

    /// The bounds for reading it.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sets the bounds for reading it together with other inputs.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The source of a reader.
    pub fn source(&mut self) -> AnySource<'_> {
        self.input.source()
    }

    /// Checks that a trace has a header event or a record.
    ///
    /// # Errors
    /// If it has neither: then it only looks like a trace.
    pub fn ensure_records(&mut self) -> Result<(), Failure> {
        let checked = self.input.ensure_records(self.limits);
        checked.map_err(|error| Failure::input(&self.about.name, &error))
    }

    /// The trace, within the limits of the user, and the parts of messages about it.
    ///
    /// # Errors
    /// If it is not a trace, if it has neither a header event nor a record, and for damage in
    /// strict mode, also of the EventPipe stream that it was.
    pub fn trace(&mut self, options: &Options) -> Result<(Trace<AnySource<'_>>, &About), Failure> {
        self.ensure_records()?;
        self.about.check_stream(options.mode)?;
        let Input {
            about,
            input,
            limits,
        } = self;
        let options = &Options {
            limits: *limits,
            ..*options
        };
        let trace = input
            .trace(options)
            .map_err(|error| about.unreadable(options.mode, &error))?;
        Ok((trace, about))
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

/// Whether the path names a pipe, which can be read once.
pub(crate) fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    if let Ok(metadata) = std::fs::metadata(path)
        && std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type())
    {
        return true;
    }
    is_stdin_pipe(path)
}

/// The name of a file in messages and reports.
pub(crate) fn display(path: &Path) -> String {
    if is_stdin(path) {
        STDIN.to_owned()
    } else {
        path.display().to_string()
    }
}

/// The bytes of a file, or of standard input for `-`.
fn bytes_of(path: &Path, name: &str) -> Result<Bytes, Failure> {
    if is_stdin(path) || is_stdin_pipe(path) {
        return Ok(stdin());
    }
    Bytes::of_file(open_file(path)?).map_err(|e| Failure::io(name, &e))
}

/// The trace of an EventPipe stream.
pub(crate) struct ConvertedStream {
    /// The bytes of the trace.
    pub reader: Box<dyn Read>,
    pub conversion: ConversionReport,
}

/// Converts an EventPipe stream.
///
/// # Errors
/// If the file does not exist, cannot be read, unpacked or converted, or is not a stream.
pub(crate) fn converted(
    path: &Path,
    args: &InputArgs,
    mode: eventpipe::Mode,
) -> Result<ConvertedStream, Failure> {
    let name = display(path);
    let mut unpacker = args.options().unpacker;
    unpacker.eventpipe.mode = mode;
    let Unpacked { bytes, head } = unpacker
        .open(bytes_of(path, &name)?)
        .map_err(|error| Failure::input(&name, &error))?;
    let Some(conversion) = head.conversion else {
        let message = match binary_format(&head.bytes) {
            Some(format) => format!("this is {format}, not an EventPipe stream (.nettrace)"),
            None => "this is not an EventPipe stream (.nettrace)".to_owned(),
        };
        return Err(Failure::new(name, message).hint("all other commands read .etl traces"));
    };
    let reader = bytes.reader().map_err(|error| Failure::io(name, &error))?;
    Ok(ConvertedStream { reader, conversion })
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
/// If it cannot be read or unpacked.
pub(crate) fn stdin_stream(args: &InputArgs) -> Result<Stream, Failure> {
    let Unpacked { bytes, head } = args
        .options()
        .unpacker
        .open(stdin())
        .map_err(|error| Failure::input(STDIN, &error))?;
    let reader = bytes.reader().map_err(|error| Failure::io(STDIN, &error))?;
    Ok(Stream {
        reader,
        about: About {
            name: STDIN.to_owned(),
            head,
        },
    })
}

fn stdin() -> Bytes {
    Bytes::Pipe(Box::new(io::stdin().lock()))
}

/// Opens a file for reading, as an input of this run.
pub(crate) fn open_file(path: &Path) -> Result<File, Failure> {
    note_opened(path);
    input::open_file(path).map_err(|error| not_opened(&display(path), &error))
}

/// The failure of opening the file `name`.
fn not_opened(name: &str, error: &io::Error) -> Failure {
    if open_files::are_too_many(error) {
        return Failure::new(name, "too many files are open").hint(
            "omit --no-mmap, raise the limit of the system (`ulimit -n`), or merge in two steps",
        );
    }
    let is_pattern = name.contains(['*', '?']);
    match error.kind() {
        // Windows reports a pattern as an invalid name.
        io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename if is_pattern => {
            Failure::new(name, "file not found")
                .hint("no file matches this pattern, or it is quoted; `ls` lists the files")
        }
        io::ErrorKind::NotFound => Failure::new(name, "file not found").hint(
            "check the name; it is relative to the current directory. `-` reads standard input",
        ),
        io::ErrorKind::PermissionDenied => {
            Failure::new(name, "permission denied").hint("check the permissions of the file")
        }
        io::ErrorKind::IsADirectory => {
            Failure::new(name, "is a directory").hint("name the traces in it")
        }
        io::ErrorKind::Unsupported => {
            Failure::io(name, error).hint("name an .etl file; `-` reads standard input")
        }
        _ => Failure::io(name, error),
    }
}

/// The first bytes of a file, or of standard input for `-`: at most `max_len`.
///
/// # Errors
/// If the file does not exist or cannot be read.
pub(crate) fn read_up_to(path: &Path, max_len: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = match is_stdin(path) {
        true => io::stdin().lock().take(max_len).read_to_end(&mut bytes),
        false => open_file(path)?.take(max_len).read_to_end(&mut bytes),
    };
    read.map_err(|e| Failure::io(display(path), &e))?;
    Ok(bytes)
}

/// The text of a file of `kind`: a script, settings, a list.
///
/// # Errors
/// As [`read_up_to`]; if the file has another format, is not UTF-8, or is too long.
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
        match what(bytes.get(..input::Head::SIZE).unwrap_or(&bytes)) {
            Some(what) if what != "text" || !is_long => format!("this is {what}, not {kind}"),
            _ if is_long => format!("this is longer than {} MiB", MAX_TEXT >> 20),
            _ => "this is not UTF-8 text".to_owned(),
        }
    };
    Err(Failure::new(display(path), message))
}
