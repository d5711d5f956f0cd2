//! What a session's writer writes to: a file of the store, and in mode NEWFILE the next one.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use etl_format::write::Output;

/// What was written to a file that is not there yet: offsets and bytes.
type Written = Vec<(u64, Vec<u8>)>;

#[derive(Default)]
struct Files {
    current: Option<Box<dyn Output>>,
    /// Files that the writer has gone on to, and that nobody has made so far.
    waiting: Vec<Written>,
}

/// A place to write that its owner and the writer share, because only the owner can make files.
#[derive(Clone, Default)]
pub(super) struct Disk(Rc<RefCell<Files>>);

impl Disk {
    pub fn new(medium: Box<dyn Output>) -> Self {
        Disk(Rc::new(RefCell::new(Files { current: Some(medium), waiting: Vec::new() })))
    }

    /// The writer begins its next file.
    pub fn next(&self) {
        self.0.borrow_mut().waiting.push(Vec::new());
    }

    /// Makes the files that the writer has gone on to, one after the other by `make`.
    pub fn catch_up(
        &self,
        mut make: impl FnMut() -> io::Result<Box<dyn Output>>,
    ) -> io::Result<()> {
        let mut files = self.0.borrow_mut();
        for written in std::mem::take(&mut files.waiting) {
            let mut medium = make()?;
            for (at, bytes) in written {
                medium.write_at(at, &bytes).map_err(io::Error::other)?;
            }
            files.current = Some(medium);
        }
        Ok(())
    }
}

impl Output for Disk {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> etl_format::Result<()> {
        let mut files = self.0.borrow_mut();
        let files = &mut *files;
        match (files.waiting.last_mut(), &mut files.current) {
            (Some(written), _) => written.push((at, bytes.to_vec())),
            (None, Some(medium)) => medium.write_at(at, bytes)?,
            (None, None) => {}
        }
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        let files = self.0.borrow();
        !files.waiting.is_empty() || files.current.as_ref().is_none_or(|m| m.is_seekable())
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        let mut files = self.0.borrow_mut();
        match (files.waiting.is_empty(), &mut files.current) {
            (true, Some(medium)) => medium.flush(),
            _ => Ok(()),
        }
    }
}
