//! Records as they stand in the file, one buffer in memory: what a pipe can give, too.

use crate::clock::Clock;
use crate::error::{Error, Result};

use super::damage::{Damage, Log, Mode, Note};
use super::header::FileHeader;
use super::index::{BufferEntry, BufferWalk, Layout};
use super::loaded::Loaded;
use super::record::Record;
use super::source::Source;
use super::{Limits, Options};

/// Reads a trace from its first byte to its last.
///
/// Within a buffer records are in time order, between buffers they are not; see
/// [`super::Ordered`] for that.
#[derive(Debug)]
pub struct FileOrder<S: Source> {
    source: S,
    limits: Limits,
    header: FileHeader,
    walk: BufferWalk,
    log: Log,
    loaded: Loaded<S::Block>,
    in_buffer: bool,
}

impl<S: Source> FileOrder<S> {
    /// Reads the header event and stands before the first record, which is that event.
    ///
    /// # Errors
    /// When the bytes are no trace that can be read; in [`Mode::Strict`] also when buffer 0 is
    /// damaged.
    pub fn open(mut source: S, options: &Options) -> Result<Self> {
        let mut log = Log::new(options.mode);
        let limits = options.limits;
        let (walk, header) = BufferWalk::open(&mut source, &limits, &mut log)?;
        let loaded = Loaded::default();
        Ok(FileOrder { source, limits, header, walk, log, loaded, in_buffer: false })
    }

    /// The header event.
    #[must_use]
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The clock of the trace's timestamps.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.header.clock()
    }

    /// The next record, or `None` at the end of the trace.
    ///
    /// # Errors
    /// In [`Mode::Strict`] the first fault; in [`Mode::Salvage`] only what the medium or a limit
    /// reports.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        loop {
            if self.in_buffer {
                if let Some((found, timestamp)) = self.loaded.next(&mut self.log) {
                    return Ok(Some(self.loaded.record(found, timestamp)));
                }
                self.log.check()?;
                self.in_buffer = false;
            }
            if self.next_buffer()?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Leaves the current buffer for the next one and returns what is known of it, or `None` at
    /// the end. [`FileOrder::next_record`] then gives its records.
    ///
    /// # Errors
    /// As [`FileOrder::next_record`].
    pub fn next_buffer(&mut self) -> Result<Option<&BufferEntry>> {
        let Some(entry) = self.walk()? else { return Ok(None) };
        self.loaded.set(entry, &self.walk.layout, &mut self.log)?;
        self.loaded.entry.first_timestamp =
            self.loaded.first_timestamp().unwrap_or(self.header.timestamp);
        self.in_buffer = true;
        Ok(Some(&self.loaded.entry))
    }

    /// Leaves the current buffer for the next one, which has no records here: its bytes are as they stand
    /// in the file, see [`FileOrder::raw`].
    pub(super) fn walk(&mut self) -> Result<Option<BufferEntry>> {
        self.log.records += self.loaded.leave();
        self.in_buffer = false;
        let block = &mut self.loaded.raw;
        let next = self.walk.next(&mut self.source, block, true, &self.limits, &mut self.log)?;
        if next.is_none() {
            self.log.finish();
        }
        Ok(next)
    }

    /// The bytes of the current buffer as they stand in the file, and what else is needed to decompress
    /// them.
    pub(super) fn raw(&self) -> (&[u8], &Layout) {
        (self.loaded.raw.as_ref(), &self.walk.layout)
    }

    /// Whether there may be something to decompress.
    pub(crate) fn is_compressed(&self) -> bool {
        self.walk.layout.packed
    }

    /// The bytes of the current buffer: header and records, decompressed. Empty before the first
    /// buffer.
    #[must_use]
    pub fn buffer_bytes(&self) -> &[u8] {
        self.loaded.data()
    }

    /// Calls `f` for every record that is left.
    ///
    /// # Errors
    /// As [`FileOrder::next_record`], and what `f` returns.
    pub fn for_each<E: From<Error>>(
        &mut self,
        mut f: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(record) = self.next_record()? {
            f(record)?;
        }
        Ok(())
    }

    /// What could not be read so far; complete at the end of the trace. Empty in
    /// [`Mode::Strict`].
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.log.damage
    }

    /// What there is to say about the trace so far; complete at its end.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.walk.notes
    }

    /// Buffers met so far.
    #[must_use]
    pub fn buffers(&self) -> u64 {
        self.walk.count
    }

    /// Records read so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.log.records + self.loaded.passed()
    }

    /// What happens at a fault.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.log.mode
    }
}
