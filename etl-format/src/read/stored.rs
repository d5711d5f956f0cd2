//! Buffers as they stand in the file, to be decompressed by whoever has the time.

use crate::error::Result;

use super::damage::Log;
use super::file_order::FileOrder;
use super::index::{BufferEntry, Layout};
use super::limits::EXPANSION;
use super::loaded::Loaded;
use super::source::Source;

/// A buffer with all that is needed to decompress it anywhere.
#[derive(Debug)]
pub(crate) struct Stored {
    entry: BufferEntry,
    layout: Layout,
    loaded: Loaded<Vec<u8>>,
    log: Log,
}

impl Stored {
    /// Decompresses the buffer, once.
    ///
    /// # Errors
    /// In [`super::Mode::Strict`] when it does not give as many bytes as it declares.
    pub fn open(&mut self) -> Result<()> {
        self.loaded.set(self.entry, &self.layout, &mut self.log)
    }

    /// What is known of the buffer.
    pub fn entry(&self) -> BufferEntry {
        self.entry
    }

    /// Its header and records; decompressed, once it has been opened.
    pub fn bytes(&self) -> &[u8] {
        self.loaded.data()
    }

    /// Bytes that it takes at most, opened.
    pub fn cost(&self) -> usize {
        let stored = self.loaded.raw.len();
        stored.saturating_add((self.entry.fill as usize).min(stored.saturating_mul(EXPANSION)))
    }
}

impl<S: Source> FileOrder<S> {
    /// Leaves the current buffer for the next one, which is not opened; or `None` at the end. It goes
    /// into the memory of one that is no longer needed, if there is one.
    ///
    /// # Errors
    /// As [`FileOrder::next_record`].
    pub(crate) fn next_stored(&mut self, memory: Option<Stored>) -> Result<Option<Stored>> {
        let Some(entry) = self.walk()? else { return Ok(None) };
        let (raw, layout) = self.raw();
        let mut stored = match memory {
            Some(memory) => Stored { entry, ..memory },
            None => {
                let (layout, loaded) = (layout.clone(), Loaded::default());
                Stored { entry, layout, loaded, log: Log::new(self.mode()) }
            }
        };
        stored.loaded.raw.clear();
        stored.loaded.raw.extend_from_slice(raw);
        Ok(Some(stored))
    }
}
