//! Where the files go.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use etl_format::write::Medium;

/// A place for files.
pub trait Store {
    /// Makes a file.
    ///
    /// # Errors
    /// Whatever the place reports.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Medium>>;

    /// The bytes of a finished file.
    ///
    /// # Errors
    /// Whatever the place reports, and when there is no such file.
    fn read(&mut self, name: &str) -> io::Result<Vec<u8>>;

    /// Changes the bytes of a finished file; the whole file is in memory meanwhile.
    ///
    /// # Errors
    /// Whatever the place reports.
    fn change(&mut self, name: &str, change: &mut dyn FnMut(&mut Vec<u8>)) -> io::Result<()>;
}

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
}

impl Store for Memory {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Medium>> {
        let bytes = Rc::new(RefCell::new(Vec::new()));
        self.files.retain(|(n, _)| n != name);
        self.files.push((name.to_owned(), Rc::clone(&bytes)));
        Ok(Box::new(Growing(bytes)))
    }

    fn read(&mut self, name: &str) -> io::Result<Vec<u8>> {
        let found = self.files.iter().find(|(n, _)| n == name).map(|(_, b)| b.borrow().clone());
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such file"))
    }

    fn change(&mut self, name: &str, change: &mut dyn FnMut(&mut Vec<u8>)) -> io::Result<()> {
        if let Some((_, bytes)) = self.files.iter().find(|(n, _)| n == name) {
            change(&mut bytes.borrow_mut());
        }
        Ok(())
    }
}

/// Bytes that grow as they are written.
struct Growing(Rc<RefCell<Vec<u8>>>);

impl Medium for Growing {
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

    fn can_go_back(&self) -> bool {
        true
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        Ok(())
    }
}

/// A medium behind a pointer.
pub(super) struct Boxed(pub Box<dyn Medium>);

impl Medium for Boxed {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> etl_format::Result<()> {
        self.0.write_at(at, bytes)
    }

    fn can_go_back(&self) -> bool {
        self.0.can_go_back()
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        self.0.flush()
    }
}

/// Where a session in memory writes: nowhere.
pub(super) struct Nowhere;

impl Medium for Nowhere {
    fn write_at(&mut self, _: u64, _: &[u8]) -> etl_format::Result<()> {
        Ok(())
    }

    fn can_go_back(&self) -> bool {
        true
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        Ok(())
    }
}
