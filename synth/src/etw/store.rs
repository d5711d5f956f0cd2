//! Where the files go.

use core::fmt;
use std::cell::{Cell, RefCell};
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

use etl_format::write::Output;

/// A place for files.
pub trait Store {
    /// Makes a file.
    ///
    /// # Errors
    /// Whatever the place reports.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Output>>;

    /// A file that is there, to be gone on with. By default it is made once more with its bytes.
    ///
    /// # Errors
    /// Whatever the place reports, and when there is no such file.
    fn reopen(&mut self, name: &str) -> io::Result<Box<dyn Output>> {
        let mut bytes = Vec::new();
        self.open(name)?.read_to_end(&mut bytes)?;
        let mut medium = self.create(name)?;
        medium.write_at(0, &bytes).map_err(io::Error::other)?;
        Ok(medium)
    }

    /// A finished file, to read it piece by piece.
    ///
    /// # Errors
    /// Whatever the place reports, and when there is no such file.
    fn open(&mut self, name: &str) -> io::Result<Box<dyn Reading>>;

    /// Cuts a finished file off behind `len` bytes.
    ///
    /// # Errors
    /// Whatever the place reports, and when there is no such file.
    fn cut(&mut self, name: &str, len: u64) -> io::Result<()>;

    /// Writes bytes over those of a finished file, from an offset on.
    ///
    /// # Errors
    /// Whatever the place reports, and when there is no such file.
    fn overwrite(&mut self, name: &str, at: u64, bytes: &[u8]) -> io::Result<()>;
}

/// What a finished file is read through.
pub trait Reading: Read + Seek {}

impl<R: Read + Seek> Reading for R {}

/// Files in memory, in the order in which they were made.
#[derive(Debug, Default)]
pub struct Memory {
    files: Vec<(String, Rc<RefCell<Vec<u8>>>)>,
}

impl Memory {
    /// The files.
    #[must_use]
    pub fn into_files(self) -> Vec<(String, Vec<u8>)> {
        self.files.into_iter().map(|(name, bytes)| (name, bytes.take())).collect()
    }

    fn find(&self, name: &str) -> io::Result<&Rc<RefCell<Vec<u8>>>> {
        let found = self.files.iter().find(|(n, _)| n == name).map(|(_, bytes)| bytes);
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such file"))
    }
}

impl Store for Memory {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Output>> {
        let bytes = Rc::new(RefCell::new(Vec::new()));
        self.files.retain(|(n, _)| n != name);
        self.files.push((name.to_owned(), Rc::clone(&bytes)));
        Ok(Box::new(Growing(bytes)))
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn Reading>> {
        Ok(Box::new(Shared { file: Rc::clone(self.find(name)?), at: 0 }))
    }

    fn cut(&mut self, name: &str, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.find(name)?.borrow_mut().truncate(len);
        Ok(())
    }

    fn overwrite(&mut self, name: &str, at: u64, bytes: &[u8]) -> io::Result<()> {
        let file = Rc::clone(self.find(name)?);
        Growing(file).write_at(at, bytes).map_err(io::Error::other)
    }
}

/// A file in memory that is read.
struct Shared {
    file: Rc<RefCell<Vec<u8>>>,
    at: u64,
}

impl Read for Shared {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let file = self.file.borrow();
        let at = usize::try_from(self.at).unwrap_or(usize::MAX);
        let read = file.get(at..).unwrap_or_default().read(into)?;
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let end = self.file.borrow().len() as u64;
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => end.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let before = || io::Error::new(io::ErrorKind::InvalidInput, "before the first byte");
        self.at = at.ok_or_else(before)?;
        Ok(self.at)
    }
}

/// Bytes that grow as they are written.
struct Growing(Rc<RefCell<Vec<u8>>>);

impl Output for Growing {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> etl_format::Result<()> {
        let too_far = || io::Error::new(io::ErrorKind::OutOfMemory, "beyond the address space");
        let at = usize::try_from(at).map_err(|_| etl_format::Error::from(too_far()))?;
        let end = at.checked_add(bytes.len()).ok_or_else(|| etl_format::Error::from(too_far()))?;
        let mut file = self.0.borrow_mut();
        if file.len() < end {
            file.resize(end, 0);
        }
        if let Some(place) = file.get_mut(at..end) {
            place.copy_from_slice(bytes);
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

/// Counts what is written, and forgets it or hands it on to another place.
#[derive(Default)]
pub struct Counted {
    bytes: Rc<Cell<u64>>,
    to: Option<Box<dyn Store>>,
}

impl Counted {
    /// Counts what goes to another place.
    #[must_use]
    pub fn on_the_way_to(store: impl Store + 'static) -> Self {
        Counted { bytes: Rc::default(), to: Some(Box::new(store)) }
    }

    /// Bytes so far, of all files: each as far as it was written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    fn kept(&mut self) -> io::Result<&mut dyn Store> {
        match &mut self.to {
            Some(store) => Ok(store.as_mut()),
            None => Err(io::Error::new(io::ErrorKind::Unsupported, "what was written is gone")),
        }
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Store for Counted {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Output>> {
        let to = self.to.as_mut().map(|store| store.create(name)).transpose()?;
        Ok(Box::new(CountedFile { bytes: Rc::clone(&self.bytes), end: 0, to }))
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn Reading>> {
        self.kept()?.open(name)
    }

    fn cut(&mut self, name: &str, len: u64) -> io::Result<()> {
        self.kept()?.cut(name, len)
    }

    fn overwrite(&mut self, name: &str, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.kept()?.overwrite(name, at, bytes)
    }
}

struct CountedFile {
    bytes: Rc<Cell<u64>>,
    end: u64,
    to: Option<Box<dyn Output>>,
}

impl Output for CountedFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> etl_format::Result<()> {
        // Nobody looks at them: they are written all the same.
        let bytes = core::hint::black_box(bytes);
        let end = at.saturating_add(bytes.len() as u64).max(self.end);
        self.bytes.set(self.bytes.get().saturating_add(end - self.end));
        self.end = end;
        self.to.as_mut().map_or(Ok(()), |file| file.write_at(at, bytes))
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        self.to.as_mut().map_or(Ok(()), |file| file.flush())
    }
}
