//! The output of a session's writer: a file, and in mode NEWFILE the files after it.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use etl_format::BufferHeader;
use etl_format::write::Output;

use crate::truth::FileRange;

/// Writes to a file that does not exist yet: offsets and bytes.
type PendingWrites = Vec<(u64, Vec<u8>)>;

/// Buffers that outputs have written since the tracker looked last: sequence number and location.
pub(super) type WrittenBuffers = Rc<RefCell<Vec<(i64, FileRange)>>>;

struct OpenFiles {
    /// The current file: its name, and where its bytes go.
    current: (Arc<str>, Box<dyn Output>),
    /// Where the last of its buffers ends.
    end: u64,
    /// Files that the writer has started and that are not created yet.
    pending: Vec<PendingWrites>,
}

/// An output that the session shares with its writer, because only the session can create files. It
/// reports the location of each buffer.
#[derive(Clone)]
pub(super) struct FileSequence {
    files: Rc<RefCell<OpenFiles>>,
    written: WrittenBuffers,
}

impl FileSequence {
    pub fn new(file: &str, medium: Box<dyn Output>, written: &WrittenBuffers) -> Self {
        let files = OpenFiles {
            current: (file.into(), medium),
            end: 0,
            pending: Vec::new(),
        };
        FileSequence {
            files: Rc::new(RefCell::new(files)),
            written: Rc::clone(written),
        }
    }

    /// The writer starts its next file.
    pub fn next(&self) {
        self.files.borrow_mut().pending.push(Vec::new());
    }

    /// Where the last buffer of the current file ends.
    pub fn end(&self) -> u64 {
        self.files.borrow().end
    }

    /// Creates the files that the writer has started. `create` receives the end of the file before.
    pub fn create_pending(
        &mut self,
        mut create: impl FnMut(u64) -> io::Result<(Arc<str>, Box<dyn Output>)>,
    ) -> io::Result<()> {
        let pending = std::mem::take(&mut self.files.borrow_mut().pending);
        for writes in pending {
            let current = create(self.end())?;
            let mut files = self.files.borrow_mut();
            files.current = current;
            files.end = 0;
            drop(files);
            for (at, bytes) in writes {
                self.write_at(at, &bytes).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }
}

impl Output for FileSequence {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> etl_format::Result<()> {
        let OpenFiles {
            current: (file, medium),
            end: last,
            pending,
        } = &mut *self.files.borrow_mut();
        if let Some(writes) = pending.last_mut() {
            writes.push((at, bytes.to_vec()));
            return Ok(());
        }
        // The last byte of a preallocated file is not a buffer.
        if let Ok(header) = BufferHeader::parse(bytes, at) {
            let end = at.saturating_add(bytes.len() as u64);
            *last = end.max(*last);
            if !header.is_header() {
                let range = FileRange {
                    file: Arc::clone(file),
                    start: at,
                    end,
                };
                self.written
                    .borrow_mut()
                    .push((header.sequence_number, range));
            }
        }
        medium.write_at(at, bytes)
    }

    fn is_seekable(&self) -> bool {
        let OpenFiles {
            current: (_, medium),
            pending,
            ..
        } = &*self.files.borrow();
        !pending.is_empty() || medium.is_seekable()
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        let OpenFiles {
            current: (_, medium),
            pending,
            ..
        } = &mut *self.files.borrow_mut();
        if pending.is_empty() {
            medium.flush()
        } else {
            Ok(())
        }
    }
}
