//! Output files: complete under their name, or not there at all.
//!
//! A command writes to a temporary file in the directory of the target, which is renamed to the
//! target once it is complete ([`Sink::commit`]). A command that fails or is killed leaves the
//! target as it was. Pipes and devices receive the complete trace at the end.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Seek};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::{
    thread,
    time::{Duration, Instant},
};

use etl_events::input::Temporary;
use etl_format::read::FileSource;
use etl_format::write;
use etl_tools::output::{CompleteFile, Existing};
use etl_tools::{Error, Side};

use crate::error::Failure;
use crate::input;
use crate::output;
use crate::unfinished::{self, Unfinished};

/// Bytes that are collected before they are written: enough for the system to use large pages, and
/// few enough to stay in a processor's cache.
const CHUNK: usize = 1 << 18;

/// The arguments of every command that writes a file.
#[derive(Debug, clap::Args)]
pub(crate) struct SinkArgs {
    /// Write to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the output file if it exists
    #[arg(long)]
    force: bool,
}

/// An output file, and its description in messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Its path; `-` is standard output.
    pub path: &'a Path,
    /// Whether an existing file is replaced.
    pub force: bool,
    /// The content, in words: `a trace`.
    pub content: &'static str,
    /// The option that names it; empty if the user does not choose it.
    pub option: &'static str,
    /// Whether it replaces a file that the command has read.
    pub replaces_input: bool,
}

/// The failure that the output is an input.
fn is_input(name: &str) -> Failure {
    Failure::new(name, "is one of the inputs, which are never overwritten")
}

impl Wanted<'_> {
    /// The advice to choose another file, at a place.
    fn choose(&self, file: &str, place: &str) -> String {
        match self.option {
            "" => format!("choose {file}{place}"),
            option => format!("choose {file} with {option}{place}"),
        }
    }
}

impl Wanted<'_> {
    /// Opens a pipe or a device.
    fn open_stream(&self, name: &str) -> Result<Target, Failure> {
        let to = open_stream(self.path).map_err(|e| match e.kind() {
            io::ErrorKind::NotConnected => Failure::io(name, &e).hint(format!(
                "start the program that reads it first, or {}",
                self.choose("a file", "")
            )),
            _ => Failure::io(name, &e),
        })?;
        let temporary = Temporary::create().map_err(|e| Failure::io(name, &e))?;
        Ok(Target::Stream {
            file: temporary.into_file(),
            to: Some(to),
        })
    }

    /// Creates the temporary file of a regular file.
    fn create_file(&self, name: &str) -> Result<Target, Failure> {
        let on_existing = if self.force {
            Existing::Replace
        } else {
            Existing::Keep
        };
        let created = unfinished::create(
            || CompleteFile::create(self.path, on_existing),
            CompleteFile::temporary_path,
        );
        let (file, unfinished) = created.map_err(|e| match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Failure::new(name, "its directory does not exist").hint(format!(
                    "create it first, or {}",
                    self.choose("another file", "")
                ))
            }
            // The text of the error names the temporary file, which means nothing to the user.
            kind => Failure::new(
                name,
                format!("cannot create a file in its directory: {kind}"),
            )
            .hint(self.choose("a file", " in a directory that you may write to")),
        })?;
        Ok(Target::Named { file, unfinished })
    }
}

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct Sink {
    name: String,
    /// The content, in words.
    content: &'static str,
    /// The path that is not replaced if the command has read it.
    protected: Option<PathBuf>,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A regular file.
    Named {
        file: CompleteFile,
        unfinished: Unfinished,
    },
    /// Standard output (`None`), a pipe or a device: written in one go at the end.
    Stream { file: File, to: Option<File> },
}

impl Sink {
    /// Opens the output of a command: `content` is its content in words. `inputs` are files that
    /// the command reads. They, and all files that it opens before [`Sink::commit`], are never
    /// overwritten, by any name or link, not even with `--force`.
    ///
    /// # Errors
    /// If the output is one of the inputs, exists without `--force`, or cannot be created.
    pub fn create<'a>(
        args: &SinkArgs,
        content: &'static str,
        inputs: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Self, Failure> {
        let wanted = Wanted {
            path: &args.output,
            force: args.force,
            content,
            option: "-o",
            replaces_input: false,
        };
        Self::open(wanted, inputs)
    }

    /// As [`Sink::create`], for any file that the user or the tool names.
    ///
    /// # Errors
    /// As [`Sink::create`].
    pub fn open<'a>(
        wanted: Wanted<'_>,
        inputs: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Self, Failure> {
        let path = wanted.path;
        if input::is_stdin(path) {
            return Self::standard_output(wanted.content);
        }
        let name = path.display().to_string();
        for input in inputs {
            if !input::is_stdin(input) && input::is_same_file(input, path) {
                return Err(is_input(&name).hint(wanted.choose("another file", "")));
            }
        }
        if !wanted.replaces_input && input::was_opened(path) {
            return Err(is_input(&name).hint(wanted.choose("another file", "")));
        }
        let target = fs::metadata(path).ok();
        if target.is_none() && path.to_string_lossy().ends_with(std::path::is_separator) {
            return Err(Failure::new(&name, "is the name of a directory")
                .hint(wanted.choose("the name of a file", "")));
        }
        let target = match target {
            Some(target) if target.is_dir() => {
                let failure = Failure::new(&name, "is a directory");
                return Err(failure.hint(wanted.choose("a file in it", "")));
            }
            Some(target) if !target.is_file() => wanted.open_stream(&name)?,
            _ if fs::symlink_metadata(path).is_ok() && !wanted.force => {
                return Err(Failure::new(&name, "exists already").hint("--force replaces it"));
            }
            _ => wanted.create_file(&name)?,
        };
        Ok(Sink {
            name,
            content: wanted.content,
            protected: (!wanted.replaces_input).then(|| path.to_owned()),
            target,
        })
    }

    fn standard_output(content: &'static str) -> Result<Self, Failure> {
        let name = "(standard output)";
        if io::stdout().is_terminal() {
            return Err(
                Failure::new(name, format!("refusing to write {content} to a terminal"))
                    .hint("choose a file with -o, or pipe the output into another program"),
            );
        }
        let file = Temporary::create()
            .map_err(|e| Failure::io(name, &e))?
            .into_file();
        let target = Target::Stream { file, to: None };
        Ok(Sink {
            name: name.to_owned(),
            content,
            protected: None,
            target,
        })
    }

    /// The name of the output in messages and reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is standard output, a pipe or a device.
    #[cfg(feature = "parquet")]
    pub fn is_stream(&self) -> bool {
        matches!(self.target, Target::Stream { .. })
    }

    /// The file to write to and to read back, at its beginning.
    pub fn file(&mut self) -> &mut File {
        match &mut self.target {
            Target::Named { file, .. } => file.file(),
            Target::Stream { file, .. } => file,
        }
    }

    /// Discards the written bytes, to begin again.
    pub fn clear(&mut self) -> Result<(), Failure> {
        let name = self.name.clone();
        let file = self.file();
        file.set_len(0)
            .and_then(|()| file.rewind())
            .map_err(|e| Failure::io(name, &e))
    }

    /// The file as the output of a trace writer.
    pub fn medium(&mut self) -> write::TraceFile<BufWriter<&mut File>> {
        write::TraceFile::new(BufWriter::with_capacity(CHUNK, self.file()))
    }

    /// A reader of the bytes that were written so far.
    pub fn written(&mut self) -> Result<FileSource<&mut File>, Failure> {
        let name = self.name.clone();
        FileSource::new(self.file()).map_err(|e| Failure::io(name, &e))
    }

    /// How many bytes were written.
    pub fn size(&mut self) -> Result<u64, Failure> {
        let name = self.name.clone();
        let metadata = self.file().metadata();
        metadata.map(|m| m.len()).map_err(|e| Failure::io(name, &e))
    }

    /// The failure of writing the output.
    pub fn failure(&self, error: &etl_format::Error) -> Failure {
        // The offset of a failed write means nothing to the user.
        match &error.kind {
            etl_format::ErrorKind::Io(e) => Failure::io(&self.name, e),
            _ => Failure::trace(&self.name, error),
        }
    }

    /// The failure of an operation that reads the trace `name` and writes this one.
    pub fn operation_failure(&self, name: &str, error: &Error) -> Failure {
        match error.side() {
            Side::Output => self.failure(error.format_error()),
            _ => Failure::trace(name, error.format_error()),
        }
    }

    /// Renames the complete file to its target, or copies it to the stream.
    ///
    /// # Errors
    /// If the disk is full, the command has read the target, or another process created it.
    pub fn commit(self) -> Result<(), Failure> {
        let name = self.name;
        if let Some(path) = &self.protected
            && input::was_opened(path)
        {
            return Err(is_input(&name).hint("choose another file"));
        }
        match self.target {
            Target::Named {
                mut file,
                unfinished,
            } => {
                let synced = file.sync();
                let committed = synced.and_then(|()| unfinished::without_signals(|| file.commit()));
                drop(unfinished);
                committed.map_err(|e| match e.kind() {
                    io::ErrorKind::AlreadyExists => {
                        Failure::new(&name, "was created by another process")
                            .hint("--force replaces it")
                    }
                    _ => Failure::io(&name, &e),
                })
            }
            Target::Stream { mut file, to } => {
                file.rewind().map_err(|e| Failure::io(&name, &e))?;
                let out: Box<dyn io::Write> = match to {
                    None => Box::new(io::stdout().lock()),
                    Some(to) => Box::new(to),
                };
                let mut out = Counted { out, bytes: 0 };
                io::copy(&mut file, &mut out)
                    .and_then(|_| io::Write::flush(&mut out))
                    .map_err(|e| stream_failure(&name, self.content, &e, out.bytes))
            }
        }
    }

    /// Writes all bytes of the file, and commits it.
    ///
    /// # Errors
    /// As [`Sink::commit`].
    pub fn write(mut self, bytes: &[u8]) -> Result<(), Failure> {
        io::Write::write_all(self.file(), bytes).map_err(|e| Failure::io(&self.name, &e))?;
        self.commit()
    }

    /// Commits the file, then prints the report: to standard output, or to standard error if the
    /// file itself goes to standard output, by any name.
    ///
    /// # Errors
    /// As [`Sink::commit`].
    pub fn finish(self, report: &str) -> Result<(), Failure> {
        let is_stdout = match &self.target {
            Target::Stream { to: None, .. } => true,
            Target::Stream { to: Some(to), .. } => is_standard_output(to),
            Target::Named { .. } => false,
        };
        self.commit()?;
        if is_stdout {
            output::write_stderr(format_args!("{report}"));
            Ok(())
        } else {
            Ok(output::print(report)?)
        }
    }
}

/// Whether a file is the pipe to which standard output goes: `/dev/stdout`, for example.
#[cfg(unix)]
fn is_standard_output(file: &File) -> bool {
    use rustix::fs::{FileType, fstat};
    let Ok(file) = fstat(file) else { return false };
    let Ok(stdout) = fstat(io::stdout()) else {
        return false;
    };
    file.st_dev == stdout.st_dev
        && file.st_ino == stdout.st_ino
        && FileType::from_raw_mode(file.st_mode) == FileType::Fifo
}

#[cfg(not(unix))]
fn is_standard_output(_: &File) -> bool {
    false
}

/// How long a named pipe may have no reader: a reader that was just started needs some time.
#[cfg(unix)]
const PATIENCE: Duration = Duration::from_secs(1);

/// Opens a pipe or a device. A named pipe without a reader is refused: opening it would wait
/// forever.
#[cfg(unix)]
fn open_stream(path: &Path) -> io::Result<File> {
    use rustix::fs::{OFlags, fcntl_setfl};
    use rustix::io::Errno;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let since = Instant::now();
    loop {
        match options.open(path) {
            Ok(file) => {
                fcntl_setfl(&file, OFlags::empty())?;
                return Ok(file);
            }
            Err(e) if e.raw_os_error() != Some(Errno::NXIO.raw_os_error()) => return Err(e),
            Err(_) if since.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(10)),
            Err(_) => {
                let reason = "no program reads from this pipe";
                return Err(io::Error::new(io::ErrorKind::NotConnected, reason));
            }
        }
    }
}

#[cfg(not(unix))]
fn open_stream(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

/// The failure of writing a file to a stream. A closed pipe is a failure: half a file is useless.
fn stream_failure(name: &str, content: &str, error: &io::Error, bytes: u64) -> Failure {
    if error.kind() != io::ErrorKind::BrokenPipe {
        return Failure::io(name, error);
    }
    let message = format!("output pipe closed after {bytes} bytes; the output is truncated");
    Failure::new(name, message).hint(format!(
        "write {content} to a file with -o, and read the file"
    ))
}

/// Counts the bytes that are written.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: io::Write> io::Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes = self.bytes.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The failure of creating a directory for output.
pub(crate) fn directory_failure(path: &Path, error: &io::Error, hint: &str) -> Failure {
    let message = match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            "is a file, not a directory".to_owned()
        }
        _ => error.to_string(),
    };
    Failure::new(path.display().to_string(), message).hint(hint)
}

/// Writes a small file, replacing an existing one in one step. A pipe or a device is written to.
///
/// # Errors
/// As [`Sink::create`] and [`Sink::commit`].
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    Sink::open(
        Wanted {
            path,
            force: true,
            content: "a file",
            option: "",
            replaces_input: true,
        },
        [],
    )?
    .write(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn args(output: &Path, force: bool) -> SinkArgs {
        SinkArgs {
            output: output.into(),
            force,
        }
    }

    fn put(args: &SinkArgs, inputs: &[&Path], bytes: &[u8]) -> Result<(), Failure> {
        let mut sink = Sink::create(args, "a trace", inputs.iter().copied())?;
        sink.file().write_all(bytes).unwrap();
        sink.commit()
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn commit_creates_a_complete_file() {
        let here = tempfile::tempdir().unwrap();
        let out = here.path().join("out.etl");
        let mut sink = Sink::create(&args(&out, false), "a trace", []).unwrap();
        sink.file().write_all(b"half").unwrap();
        assert!(!out.exists());
        drop(sink);
        assert_eq!(names(here.path()), [""; 0]);
        put(&args(&out, false), &[], b"whole").unwrap();
        assert_eq!(fs::read(&out).unwrap(), b"whole");
        assert_eq!(names(here.path()), ["out.etl"]);
    }

    #[test]
    fn commit_keeps_an_existing_file_without_force() {
        let here = tempfile::tempdir().unwrap();
        let out = here.path().join("out.etl");
        fs::write(&out, b"old").unwrap();
        assert!(
            put(&args(&out, false), &[], b"new")
                .unwrap_err()
                .to_string()
                .contains("--force")
        );
        assert_eq!(fs::read(&out).unwrap(), b"old");
        put(&args(&out, true), &[], b"new").unwrap();
        assert_eq!(fs::read(&out).unwrap(), b"new");
        // Another process creates the file in the meantime.
        let late = here.path().join("late.etl");
        let mut sink = Sink::create(&args(&late, false), "a trace", []).unwrap();
        sink.file().write_all(b"mine").unwrap();
        fs::write(&late, b"theirs").unwrap();
        assert!(sink.commit().is_err());
        assert_eq!(fs::read(&late).unwrap(), b"theirs");
        assert_eq!(names(here.path()), ["late.etl", "out.etl"]);
    }

    #[test]
    #[cfg(unix)]
    fn create_rejects_inputs_by_any_path() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
        let here = tempfile::tempdir().unwrap();
        let at = |name: &str| here.path().join(name);
        fs::write(at("in.etl"), b"in").unwrap();
        symlink(at("in.etl"), at("soft.etl")).unwrap();
        fs::hard_link(at("in.etl"), at("hard.etl")).unwrap();
        for name in ["in.etl", "soft.etl", "hard.etl", "./in.etl"] {
            let error = put(&args(&at(name), true), &[&at("in.etl")], b"x").unwrap_err();
            assert!(
                error.to_string().contains("one of the inputs"),
                "{name}: {error}"
            );
        }
        assert_eq!(fs::read(at("in.etl")).unwrap(), b"in");
        // A link to another file stays a link, and permissions stay.
        fs::write(at("other.etl"), b"old").unwrap();
        fs::set_permissions(at("other.etl"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink(at("other.etl"), at("link.etl")).unwrap();
        put(&args(&at("link.etl"), true), &[&at("in.etl")], b"new").unwrap();
        assert!(fs::symlink_metadata(at("link.etl")).unwrap().is_symlink());
        assert_eq!(fs::read(at("other.etl")).unwrap(), b"new");
        assert_eq!(fs::metadata(at("other.etl")).unwrap().mode() & 0o777, 0o640);
        // So does a link to a file that does not exist yet, also through another link.
        symlink("later.etl", at("dangling.etl")).unwrap();
        symlink(at("dangling.etl"), at("second.etl")).unwrap();
        put(&args(&at("second.etl"), true), &[&at("in.etl")], b"new").unwrap();
        assert!(
            fs::symlink_metadata(at("dangling.etl"))
                .unwrap()
                .is_symlink()
        );
        assert_eq!(fs::read(at("later.etl")).unwrap(), b"new");
        // A missing directory, and a directory instead of a file.
        assert!(put(&args(&at("none/out.etl"), false), &[], b"").is_err());
        assert!(put(&args(here.path(), true), &[], b"").is_err());
        // A device is written to.
        put(&args(Path::new("/dev/null"), false), &[], b"gone").unwrap();
    }

    #[test]
    fn file_that_was_read_is_not_replaced() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("names.pdb");
        fs::write(&file, b"read").unwrap();
        let target = args(&file, true);
        // It is opened after the output was chosen.
        let mut sink = Sink::create(&target, "a trace", []).unwrap();
        sink.file().write_all(b"new").unwrap();
        drop(input::open_file(&file).unwrap());
        sink.commit().unwrap_err();
        Sink::create(&target, "a trace", []).unwrap_err();
        assert_eq!(fs::read(&file).unwrap(), b"read");
        // A file that the tool keeps up to date is replaced.
        replace(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        input::forget_opened();
    }
}
