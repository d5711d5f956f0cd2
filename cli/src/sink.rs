//! Where a tool that makes a file puts it: whole under its name, or not at all.
//!
//! What is written goes to a temporary file beside the target, which takes the target's name when
//! all of it is there ([`Sink::commit`]). A tool that fails, or is killed, leaves the target as it was.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use etl_format::read::Damage;
use etl_format::write;
use etl_tools::Failed;
use tempfile::NamedTempFile;

use crate::Outcome;
use crate::error::Failure;
use crate::input::{self, Mapped};
use crate::problem;

/// Bytes gathered before they are written.
const CHUNK: usize = 1 << 20;

/// The arguments of every tool that makes a file.
#[derive(Debug, clap::Args)]
pub(crate) struct SinkArgs {
    /// File to write; `-` writes standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the output file if it is there
    #[arg(long)]
    force: bool,
}

/// A file in the making.
#[derive(Debug)]
pub(crate) struct Sink {
    name: String,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A file with a name: the temporary one, the name, and whether what bears it may go.
    Named { file: NamedTempFile, path: PathBuf, force: bool },
    /// Standard output, or what is no regular file: written in one go at the end.
    Stream { file: File, path: Option<PathBuf> },
}

impl Sink {
    /// Readies the output. `inputs` are the files the tool reads: none of them is ever written to,
    /// whatever name or link leads to it, `--force` or not.
    ///
    /// # Errors
    /// When the output is one of the inputs, is there already and `--force` is not given, or cannot
    /// be made.
    pub fn create<'a>(
        args: &SinkArgs,
        inputs: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Self, Failure> {
        let path = args.output.as_path();
        if input::is_stdin(path) {
            return Self::standard_output();
        }
        let name = path.display().to_string();
        let failure = |e: io::Error| Failure::new(&name, e.to_string());
        for input in inputs {
            if !input::is_stdin(input) && same_file::is_same_file(input, path).unwrap_or(false) {
                return Err(Failure::new(&name, "is one of the inputs; inputs stay as they are")
                    .hint("name another file with -o"));
            }
        }
        let there = fs::symlink_metadata(path).ok();
        let target = fs::metadata(path).ok();
        if target.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(Failure::new(&name, "is a directory").hint("name a file in it with -o"));
        }
        if target.as_ref().is_some_and(|t| !t.is_file()) {
            let file = tempfile::tempfile().map_err(failure)?;
            return Ok(Sink { name, target: Target::Stream { file, path: Some(path.into()) } });
        }
        if there.is_some() && !args.force {
            return Err(Failure::new(&name, "is there already").hint("--force replaces it"));
        }
        // A link stays one: what it leads to is replaced.
        let path =
            if target.is_some() { fs::canonicalize(path).map_err(failure)? } else { path.into() };
        let directory = directory_of(&path);
        let mut builder = tempfile::Builder::new();
        builder.prefix(".etlkit-").suffix(".part");
        if let Some(permissions) = permissions(target.as_ref()) {
            builder.permissions(permissions);
        }
        let file = builder.tempfile_in(directory).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => Failure::new(&name, "its directory is not there")
                .hint("make it first, or name another file with -o"),
            // The error's own text names the temporary file, which is nobody's business.
            kind => Failure::new(&name, format!("no file can be made in its directory: {kind}"))
                .hint("name a file with -o in a directory that you may write to"),
        })?;
        Ok(Sink { name, target: Target::Named { file, path, force: args.force } })
    }

    fn standard_output() -> Result<Self, Failure> {
        let name = "(standard output)";
        if io::stdout().is_terminal() {
            return Err(Failure::new(name, "is a terminal, and a trace is no text")
                .hint("name a file with -o, or pipe the output"));
        }
        let file = tempfile::tempfile().map_err(|e| Failure::new(name, e.to_string()))?;
        Ok(Sink { name: name.to_owned(), target: Target::Stream { file, path: None } })
    }

    /// How the output is called in messages and reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file to write to, and to read back from: empty, at its beginning.
    pub fn file(&mut self) -> &mut File {
        match &mut self.target {
            Target::Named { file, .. } => file.as_file_mut(),
            Target::Stream { file, .. } => file,
        }
    }

    /// The file as what a trace is written to.
    pub fn medium(&mut self) -> write::File<BufWriter<&mut File>> {
        write::File::new(BufWriter::with_capacity(CHUNK, self.file()))
    }

    /// The bytes written so far.
    pub fn map(&mut self) -> Result<Mapped, Failure> {
        let name = self.name.clone();
        Mapped::new(self.file(), &name)
    }

    /// How many bytes were written.
    pub fn size(&mut self) -> Result<u64, Failure> {
        let name = self.name.clone();
        let metadata = self.file().metadata();
        metadata.map(|m| m.len()).map_err(|e| Failure::new(name, e.to_string()))
    }

    /// The failure of writing the output.
    pub fn failure(&self, error: &etl_format::Error) -> Failure {
        // An offset of a fault of the medium means nothing.
        match &error.kind {
            etl_format::ErrorKind::Io(e) => Failure::new(&self.name, e.to_string()),
            _ => Failure::trace(&self.name, error),
        }
    }

    /// The failure of a tool that reads the trace `name` and writes this one.
    pub fn failed(&self, name: &str, failed: &Failed) -> Failure {
        match failed {
            Failed::Reading(error) => Failure::trace(name, error),
            Failed::Writing(error) => self.failure(error),
        }
    }

    /// Gives the finished file its name, or sends it where it goes.
    ///
    /// # Errors
    /// When the disk is full, or the name was taken meanwhile.
    pub fn commit(self) -> Result<(), Failure> {
        let name = self.name;
        let failure = |e: io::Error| Failure::new(&name, e.to_string());
        match self.target {
            Target::Named { file, path, force } => {
                // The name must not be there before the bytes are.
                file.as_file().sync_all().map_err(failure)?;
                let kept = if force { file.persist(&path) } else { file.persist_noclobber(&path) };
                match kept {
                    Ok(_) => keep_names(&path).map_err(failure),
                    Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => {
                        Err(Failure::new(&name, "was made by someone else meanwhile")
                            .hint("--force replaces it"))
                    }
                    Err(e) => Err(failure(e.error)),
                }
            }
            Target::Stream { mut file, path } => {
                file.seek(SeekFrom::Start(0)).map_err(failure)?;
                match path {
                    None => {
                        // Of text one may have seen enough; a piece of a trace is none.
                        let mut out = Counted { out: io::stdout().lock(), bytes: 0 };
                        io::copy(&mut file, &mut out)
                            .and_then(|_| io::Write::flush(&mut out))
                            .map_err(|e| unread(&name, &e, out.bytes))?;
                    }
                    Some(path) => {
                        let out = fs::OpenOptions::new().write(true).open(path).map_err(failure)?;
                        let mut out = Counted { out, bytes: 0 };
                        io::copy(&mut file, &mut out).map_err(|e| unread(&name, &e, out.bytes))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// [`Sink::commit`], and then what the tool has to say of its work: on standard output, or on
    /// standard error when the file itself goes there.
    ///
    /// # Errors
    /// As [`Sink::commit`].
    pub fn finish(self, report: &str) -> Result<(), Failure> {
        let taken = self.is_standard_output();
        self.commit()?;
        Ok(tell(taken, report)?)
    }

    /// [`Sink::finish`], behind warnings of what of the trace `name` could not be read.
    ///
    /// # Errors
    /// As [`Sink::commit`].
    pub fn finish_of(
        self,
        name: &str,
        damage: &[Damage],
        report: &str,
    ) -> Result<Outcome, Failure> {
        problem::warn(name, damage);
        self.finish(report)?;
        Ok(if damage.is_empty() { Outcome::Fine } else { Outcome::Findings })
    }

    fn is_standard_output(&self) -> bool {
        matches!(self.target, Target::Stream { path: None, .. })
    }
}

/// The failure of sending a trace somewhere: where the reader left, what it has is not the whole.
fn unread(name: &str, error: &io::Error, bytes: u64) -> Failure {
    if error.kind() != io::ErrorKind::BrokenPipe {
        return Failure::new(name, error.to_string());
    }
    let message = format!("the reader left after {bytes} bytes: what it has is not a whole trace");
    Failure::new(name, message).hint("write a file with -o, and read that as far as you like")
}

/// Counts what goes out.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: io::Write> io::Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.out.write(bytes)?;
        self.bytes = self.bytes.saturating_add(taken as u64);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The failure of making a directory for what is written.
pub(crate) fn no_directory(path: &Path, error: &io::Error, hint: &str) -> Failure {
    let message = match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            "is a file, not a directory".to_owned()
        }
        _ => error.to_string(),
    };
    Failure::new(path.display().to_string(), message).hint(hint)
}

/// Writes a small file that may be there already: whole, or what was there stays.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = directory_of(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".etlkit-").suffix(".part");
    if let Some(permissions) = permissions(fs::metadata(path).ok().as_ref()) {
        builder.permissions(permissions);
    }
    let mut file = builder.tempfile_in(directory)?;
    io::Write::write_all(&mut file, bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    keep_names(path)
}

/// Where a file's name stands.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Has the system write down that a file bears a name now, so that a power cut does not undo what was
/// reported as done.
#[cfg(unix)]
pub(crate) fn keep_names(path: &Path) -> io::Result<()> {
    match File::open(directory_of(path)) {
        Ok(directory) => match directory.sync_all() {
            // Some file systems cannot be asked for it, and keep the order by themselves or not at all.
            Err(e)
                if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
            {
                Ok(())
            }
            done => done,
        },
        // One may write to a directory that one may not read.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(e) => Err(e),
    }
}

/// Elsewhere directories cannot be asked for it.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn keep_names(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Prints a report, on standard error when standard output is taken.
fn tell(taken: bool, text: &str) -> io::Result<()> {
    if taken {
        crate::output::say_aside(format_args!("{}", crate::output::inert(text)));
        Ok(())
    } else {
        crate::output::print(text)
    }
}

/// The permissions of the new file: those of the one it replaces, or what the user's mask leaves.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // Elsewhere there are none to set.
fn permissions(replaced: Option<&fs::Metadata>) -> Option<fs::Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(replaced.map_or_else(|| fs::Permissions::from_mode(0o666), fs::Metadata::permissions))
}

#[cfg(not(unix))]
fn permissions(_: Option<&fs::Metadata>) -> Option<fs::Permissions> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn args(output: &Path, force: bool) -> SinkArgs {
        SinkArgs { output: output.into(), force }
    }

    fn put(args: &SinkArgs, inputs: &[&Path], bytes: &[u8]) -> Result<(), Failure> {
        let mut sink = Sink::create(args, inputs.iter().copied())?;
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
    fn a_file_appears_whole_or_not_at_all() {
        let here = tempfile::tempdir().unwrap();
        let out = here.path().join("out.etl");
        let mut sink = Sink::create(&args(&out, false), []).unwrap();
        sink.file().write_all(b"half").unwrap();
        assert!(!out.exists());
        drop(sink);
        assert_eq!(names(here.path()), [""; 0]);
        put(&args(&out, false), &[], b"whole").unwrap();
        assert_eq!(fs::read(&out).unwrap(), b"whole");
        assert_eq!(names(here.path()), ["out.etl"]);
    }

    #[test]
    fn what_is_there_stays_without_force() {
        let here = tempfile::tempdir().unwrap();
        let out = here.path().join("out.etl");
        fs::write(&out, b"old").unwrap();
        assert!(put(&args(&out, false), &[], b"new").unwrap_err().to_string().contains("--force"));
        assert_eq!(fs::read(&out).unwrap(), b"old");
        put(&args(&out, true), &[], b"new").unwrap();
        assert_eq!(fs::read(&out).unwrap(), b"new");
        // Someone makes the file while the tool works.
        let late = here.path().join("late.etl");
        let mut sink = Sink::create(&args(&late, false), []).unwrap();
        sink.file().write_all(b"mine").unwrap();
        fs::write(&late, b"theirs").unwrap();
        assert!(sink.commit().is_err());
        assert_eq!(fs::read(&late).unwrap(), b"theirs");
        assert_eq!(names(here.path()), ["late.etl", "out.etl"]);
    }

    #[test]
    #[cfg(unix)]
    fn inputs_stay_whatever_leads_to_them() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
        let here = tempfile::tempdir().unwrap();
        let at = |name: &str| here.path().join(name);
        fs::write(at("in.etl"), b"in").unwrap();
        symlink(at("in.etl"), at("soft.etl")).unwrap();
        fs::hard_link(at("in.etl"), at("hard.etl")).unwrap();
        for name in ["in.etl", "soft.etl", "hard.etl", "./in.etl"] {
            let told = put(&args(&at(name), true), &[&at("in.etl")], b"x").unwrap_err();
            assert!(told.to_string().contains("one of the inputs"), "{name}: {told}");
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
        // A directory that is not there, and one in place of a file.
        assert!(put(&args(&at("none/out.etl"), false), &[], b"").is_err());
        assert!(put(&args(here.path(), true), &[], b"").is_err());
        // A device takes what it is sent.
        put(&args(Path::new("/dev/null"), false), &[], b"gone").unwrap();
    }
}
