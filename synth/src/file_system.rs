//! Where a simulation writes its files: the [`FileSystem`] trait, and files in memory.

use std::cell::RefCell;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::rc::Rc;

use etl_format::write::Output;

/// Where the files of a simulation are written, and where it reads them again (merges, faults,
/// edits).
pub trait FileSystem {
    /// Creates a file, or replaces one of the same name.
    ///
    /// # Errors
    /// Any I/O error.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Output>>;

    /// Opens an existing file for appending. By default the file is created again with its bytes.
    ///
    /// # Errors
    /// Any I/O error; the file does not exist.
    fn reopen(&mut self, name: &str) -> io::Result<Box<dyn Output>> {
        let mut bytes = Vec::new();
        self.open(name)?.read_to_end(&mut bytes)?;
        let mut medium = self.create(name)?;
        medium.write_at(0, &bytes).map_err(io::Error::other)?;
        Ok(medium)
    }

    /// Opens a finished file for reading.
    ///
    /// # Errors
    /// Any I/O error; the file does not exist.
    fn open(&mut self, name: &str) -> io::Result<Box<dyn ReadSeek>>;

    /// Truncates a finished file to `len` bytes.
    ///
    /// # Errors
    /// Any I/O error; the file does not exist.
    fn truncate(&mut self, name: &str, len: u64) -> io::Result<()>;

    /// Overwrites bytes of a finished file from `offset` on.
    ///
    /// # Errors
    /// Any I/O error; the file does not exist.
    fn overwrite(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// A readable and seekable file.
pub trait ReadSeek: Read + Seek {}

impl<R: Read + Seek> ReadSeek for R {}

/// A file that a simulation wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedFile {
    /// Its name, without a directory.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Files in memory, in the order of their creation.
///
/// ```
/// use std::io::Read;
/// use etl_synth::{FileSystem, MemoryFileSystem};
///
/// let mut files = MemoryFileSystem::default();
/// files.create("a.etl")?.write_at(0, b"abcd")?;
/// files.truncate("a.etl", 3)?;
/// let mut text = String::new();
/// files.open("a.etl")?.read_to_string(&mut text)?;
/// assert_eq!(text, "abc");
/// assert_eq!(files.into_files()[0].bytes, b"abc");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryFileSystem {
    files: Vec<(String, Rc<RefCell<Vec<u8>>>)>,
}

impl MemoryFileSystem {
    /// Returns all files.
    #[must_use]
    pub fn into_files(self) -> Vec<SimulatedFile> {
        let files = self.files.into_iter();
        files
            .map(|(name, bytes)| SimulatedFile {
                name,
                bytes: bytes.take(),
            })
            .collect()
    }

    fn find(&self, name: &str) -> io::Result<&Rc<RefCell<Vec<u8>>>> {
        let content = self
            .files
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, bytes)| bytes);
        content.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "file not found"))
    }
}

impl FileSystem for MemoryFileSystem {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Output>> {
        let bytes = Rc::new(RefCell::new(Vec::new()));
        self.files.retain(|(n, _)| n != name);
        self.files.push((name.to_owned(), Rc::clone(&bytes)));
        Ok(Box::new(MemoryFile(bytes)))
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn ReadSeek>> {
        Ok(Box::new(MemoryReader {
            file: Rc::clone(self.find(name)?),
            at: 0,
        }))
    }

    fn truncate(&mut self, name: &str, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.find(name)?.borrow_mut().truncate(len);
        Ok(())
    }

    fn overwrite(&mut self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let file = Rc::clone(self.find(name)?);
        MemoryFile(file)
            .write_at(offset, bytes)
            .map_err(io::Error::other)
    }
}

/// A reader of a file in memory.
struct MemoryReader {
    file: Rc<RefCell<Vec<u8>>>,
    at: u64,
}

impl MemoryReader {
    /// Reads from the position, or moves it.
    fn at<T>(&mut self, act: impl FnOnce(&mut Cursor<&[u8]>) -> io::Result<T>) -> io::Result<T> {
        let file = self.file.borrow();
        let mut cursor = Cursor::new(file.as_slice());
        cursor.set_position(self.at);
        let done = act(&mut cursor)?;
        self.at = cursor.position();
        Ok(done)
    }
}

impl Read for MemoryReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.at(|cursor| cursor.read(into))
    }
}

impl Seek for MemoryReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at(|cursor| cursor.seek(to))
    }
}

/// A file in memory that grows as it is written.
struct MemoryFile(Rc<RefCell<Vec<u8>>>);

impl Output for MemoryFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> etl_format::Result<()> {
        let start = usize::try_from(at).ok();
        let Some((at, end)) = start.and_then(|at| Some((at, at.checked_add(bytes.len())?))) else {
            let message = "the offset does not fit into the address space";
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, message).into());
        };
        let mut file = self.0.borrow_mut();
        if file.len() < end {
            file.resize(end, 0);
        }
        if let Some(target) = file.get_mut(at..end) {
            target.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        Ok(())
    }
}

/// Device names of Windows, which no file may have, with or without an extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
/// The digits of ports; Windows takes the superscript ones for 1 to 3.
const PORTS: [char; 13] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '\u{b9}', '\u{b2}', '\u{b3}',
];

/// Why a name is not a valid file name on every operating system; `None` if it is valid.
///
/// ```
/// use etl_synth::file_name_problem;
///
/// assert_eq!(file_name_problem("clr.etl"), None);
/// assert_eq!(file_name_problem("logs/clr.etl"), Some("it contains a directory"));
/// assert_eq!(file_name_problem("nul.etl"), Some("it is the name of a device on Windows"));
/// ```
#[must_use]
pub fn file_name_problem(name: &str) -> Option<&'static str> {
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_ascii_lowercase();
    let port = stem
        .strip_prefix("com")
        .or_else(|| stem.strip_prefix("lpt"));
    let device = DEVICES.contains(&&*stem)
        || port.is_some_and(|n| n.chars().count() == 1 && n.starts_with(PORTS));
    if name.is_empty() {
        Some("it is empty")
    } else if name.contains(['/', '\\', ':']) || name == "." || name == ".." {
        Some("it contains a directory")
    } else if name.contains(['<', '>', '"', '|', '?', '*']) || name.contains(char::is_control) {
        Some("it contains a character that Windows does not allow in names")
    } else if name.ends_with(['.', ' ']) {
        Some("it ends with a dot or a space, which Windows removes")
    } else if device {
        Some("it is the name of a device on Windows")
    } else if name.len() > 200 {
        Some("it is longer than 200 bytes")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_problem_accepts_names_valid_on_every_system() {
        for fine in [
            "a.etl",
            "part%d.etl",
            "a.etl_4312",
            "x {mmddhhmm}.etl",
            "common.etl",
            "com10.etl",
            "..a",
        ] {
            assert_eq!(file_name_problem(fine), None, "{fine}");
        }
        for (name, why) in [
            ("", "empty"),
            ("../a.etl", "directory"),
            ("..", "directory"),
            ("a\\b", "directory"),
            ("C:a", "directory"),
            ("a?.etl", "character"),
            ("a\u{7}", "character"),
            ("a.etl.", "dot"),
            ("NUL.etl", "device"),
            ("com1", "device"),
            ("COM\u{b9}.etl", "device"),
            ("conout$", "device"),
        ] {
            assert!(
                file_name_problem(name).is_some_and(|problem| problem.contains(why)),
                "{name}"
            );
        }
    }
}
