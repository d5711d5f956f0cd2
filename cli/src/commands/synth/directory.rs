//! Writes the files of a scenario to a directory.

use std::fmt;
use std::fs;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use etl_format::ErrorKind;
use etl_format::write::Output;
use etl_synth::{FileSystem, ReadSeek};
use etl_tools::output::sync_directory_of;

use super::TRUTH;
use crate::error::Failure;
use crate::input;
use crate::sink;
use crate::unfinished::{self, Unfinished};

/// The end of the names of files with the findings that a verifier has to report.
const EXPECTED: &str = ".expected.json";

/// A directory that receives its files all at once: until then they are in a temporary directory in
/// it.
pub(crate) struct Directory {
    target: PathBuf,
    temporary: tempfile::TempDir,
    _unfinished: Unfinished,
    files: Vec<String>,
    /// The names of the traces of each recording.
    recordings: Vec<Vec<String>>,
}

/// A file that was moved to the target.
pub(crate) struct WrittenFile {
    pub name: String,
    /// In bytes.
    pub size: u64,
}

/// A file of a directory. Its errors have its name in the target.
pub(super) struct NamedFile {
    file: fs::File,
    path: PathBuf,
}

/// Why a file cannot be written.
#[derive(Debug)]
struct Unwritten {
    path: PathBuf,
    error: io::Error,
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for Unwritten {}

impl NamedFile {
    fn failed(&self, error: io::Error) -> io::Error {
        unwritten(&self.path, error)
    }
}

fn unwritten(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        Unwritten {
            path: path.to_owned(),
            error,
        },
    )
}

impl Write for NamedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| self.failed(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.failed(error))
    }
}

impl Seek for NamedFile {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to).map_err(|error| self.failed(error))
    }
}

/// The failure of writing a file of a directory, if that is why a simulation ended.
pub(super) fn write_failure(error: &io::Error) -> Option<Failure> {
    let inner = error.get_ref()?;
    if let Some(Unwritten { path, error }) = inner.downcast_ref() {
        return Some(Failure::io(path.display(), error));
    }
    match &inner.downcast_ref::<etl_format::Error>()?.kind {
        ErrorKind::Io(error) => write_failure(error),
        _ => None,
    }
}

impl Directory {
    pub(super) fn new(target: &Path) -> Result<Self, Failure> {
        const HINT: &str = "choose a directory that you may write to";
        fs::create_dir_all(target)
            .map_err(|error| sink::directory_failure(target, &error, HINT))?;
        // On the same file system, so that files can be renamed.
        let mut builder = tempfile::Builder::new();
        builder.prefix(".etlkit-");
        let (temporary, _unfinished) =
            unfinished::create(|| builder.tempdir_in(target), |made| Some(made.path()))
                .map_err(|error| sink::directory_failure(target, &error, HINT))?;
        Ok(Directory {
            target: target.to_owned(),
            temporary,
            _unfinished,
            files: Vec::new(),
            recordings: Vec::new(),
        })
    }

    /// The temporary path of a file of the scenario. Names that leave the directory are rejected.
    fn temporary_path(&self, name: &str) -> io::Result<PathBuf> {
        match etl_synth::file_name_problem(name) {
            None => Ok(self.temporary.path().join(name)),
            Some(why) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("\"{name}\" is not a valid file name: {why}"),
            )),
        }
    }

    /// Creates a file that is not a trace.
    pub(super) fn file(&self, name: &str) -> io::Result<NamedFile> {
        let path = self.target.join(name);
        let file = fs::File::create(self.temporary.path().join(name));
        let file = file.map_err(|error| unwritten(&path, error))?;
        Ok(NamedFile { file, path })
    }

    pub(super) fn set_recordings(&mut self, recordings: Vec<Vec<String>>) {
        self.recordings = recordings;
    }

    /// The names of the traces of each recording.
    pub(super) fn recordings(&self) -> &[Vec<String>] {
        &self.recordings
    }

    /// Moves the files to the target, but never onto one of the inputs. Of several processes with
    /// the same target, one moves its files at a time.
    pub fn finish(self, force: bool, inputs: &[PathBuf]) -> Result<Vec<WrittenFile>, Failure> {
        let _lock =
            lock(&self.target).map_err(|error| Failure::io(self.target.display(), &error))?;
        let mut names = self.names()?;
        for name in &names {
            self.ensure_writable(name, force, inputs)?;
        }
        // Files that describe traces are removed first and written last, so that they never
        // describe other traces.
        self.remove_descriptions()?;
        names.sort_by_key(|name| name == TRUTH || name.ends_with(EXPECTED));
        let mut files = Vec::new();
        for name in names {
            let path = self.target.join(&name);
            let size = self
                .move_to_target(&name)
                .map_err(|error| Failure::io(path.display(), &error))?;
            files.push(WrittenFile { name, size });
        }
        sync_directory_of(&self.target.join(TRUTH))
            .map_err(|error| Failure::io(self.target.display(), &error))?;
        Ok(files)
    }

    /// The names of all files: in the order of the scenario, then the others.
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.temporary.path())? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        names.sort_by_key(|name| {
            let index = self.files.iter().position(|file| file == name);
            index.unwrap_or(usize::MAX)
        });
        Ok(names)
    }

    /// Checks that a file may be written to the target.
    fn ensure_writable(&self, name: &str, force: bool, inputs: &[PathBuf]) -> Result<(), Failure> {
        let path = self.target.join(name);
        for input in inputs {
            if !input::is_stdin(input)
                && (input::is_same_file(input, &path) || input::was_opened(&path))
            {
                return Err(Failure::new(
                    path.display().to_string(),
                    "is one of the inputs, which are never overwritten",
                )
                .hint("choose another directory with -o"));
            }
        }
        if !force && path.exists() {
            return Err(Failure::new(path.display().to_string(), "exists already")
                .hint("--force replaces it"));
        }
        Ok(())
    }

    /// Removes earlier files in the target that describe traces with these names.
    fn remove_descriptions(&self) -> Result<(), Failure> {
        let mut descriptions = Vec::new();
        for name in self.recordings.iter().flatten() {
            descriptions.push(format!("{name}{EXPECTED}"));
            if let Some(stem) = name.strip_suffix(".etl") {
                descriptions.push(format!("{stem}{EXPECTED}"));
            }
        }
        descriptions.push(TRUTH.to_owned());
        for name in descriptions {
            let path = self.target.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Failure::io(path.display(), &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Moves a file to the target. Returns its size.
    fn move_to_target(&self, name: &str) -> io::Result<u64> {
        let from = self.temporary.path().join(name);
        let file = fs::File::options().write(true).open(&from)?;
        // The bytes must be on the disk before the name is.
        file.sync_all()?;
        let size = file.metadata()?.len();
        fs::rename(&from, self.target.join(name))?;
        Ok(size)
    }
}

/// Waits until no other process has the lock of a directory, and takes it. The system removes it
/// with the process.
#[cfg(unix)]
fn lock(directory: &Path) -> io::Result<Option<fs::File>> {
    let file = fs::File::open(directory)?;
    match file.lock() {
        Ok(()) => Ok(Some(file)),
        // Some network file systems have no locks.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}

/// Other systems have no locks of directories: a file in it is locked, which only this tool uses.
#[cfg(not(unix))]
fn lock(directory: &Path) -> io::Result<Option<fs::File>> {
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(false);
    let file = options.open(directory.join(".etlkit-lock"))?;
    file.lock()?;
    Ok(Some(file))
}

impl FileSystem for Directory {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Output>> {
        // Rejects names that are not file names.
        self.temporary_path(name)?;
        let file = self.file(name)?;
        if !self.files.iter().any(|f| f == name) {
            self.files.push(name.to_owned());
        }
        // The session writes whole buffers: no further buffering is needed.
        Ok(Box::new(etl_format::write::TraceFile::new(file)))
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn ReadSeek>> {
        Ok(Box::new(fs::File::open(self.temporary_path(name)?)?))
    }

    fn truncate(&mut self, name: &str, len: u64) -> io::Result<()> {
        fs::File::options()
            .write(true)
            .open(self.temporary_path(name)?)?
            .set_len(len)
    }

    fn overwrite(&mut self, name: &str, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = fs::File::options()
            .write(true)
            .open(self.temporary_path(name)?)?;
        file.seek(io::SeekFrom::Start(at))?;
        file.write_all(bytes)
    }
}
