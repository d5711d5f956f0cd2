//! The output of a session's writer: a file, and in mode NEWFILE the files after it.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use etl_format::write::Output;

/// Writes to a file that does not exist yet: offsets and bytes.
type PendingWrites = Vec<(u64, Vec<u8>)>;

#[derive(Default)]
struct OpenFiles {
    current: Option<Box<dyn Output>>,
    /// Files that the writer has started and that are not created yet.
    pending: Vec<PendingWrites>,
}

/// An output that the session shares with its writer, because only the session can create files.
#[derive(Clone, Default)]
pub(super) struct FileSequence(Rc<RefCell<OpenFiles>>);

impl FileSequence {
    pub fn new(medium: Box<dyn Output>) -> Self {
        FileSequence(Rc::new(RefCell::new(OpenFiles {
            current: Some(medium),
            pending: Vec::new(),
        })))
    }

    /// The writer starts its next file.
    pub fn next(&self) {
        self.0.borrow_mut().pending.push(Vec::new());
    }

    /// Creates the files that the writer has started.
    pub fn create_pending(
        &self,
        mut create: impl FnMut() -> io::Result<Box<dyn Output>>,
    ) -> io::Result<()> {
        let mut files = self.0.borrow_mut();
        for written in std::mem::take(&mut files.pending) {
            let mut medium = create()?;
            for (at, bytes) in written {
                medium.write_at(at, &bytes).map_err(io::Error::other)?;
            }
            files.current = Some(medium);
        }
        Ok(())
    }
}

impl Output for FileSequence {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> etl_format::Result<()> {
        let mut files = self.0.borrow_mut();
        let files = &mut *files;
        match (files.pending.last_mut(), &mut files.current) {
            (Some(written), _) => written.push((at, bytes.to_vec())),
            (None, Some(medium)) => medium.write_at(at, bytes)?,
            (None, None) => {}
        }
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        let files = self.0.borrow();
        !files.pending.is_empty() || files.current.as_ref().is_none_or(|m| m.is_seekable())
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        let mut files = self.0.borrow_mut();
        match (files.pending.is_empty(), &mut files.current) {
            (true, Some(medium)) => medium.flush(),
            _ => Ok(()),
        }
    }
}
