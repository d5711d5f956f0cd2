//! Reads buffers in the order of the file, also from a pipe; one is in memory.

use crate::Ticks;
use crate::constants::MAX_EXPANSION;
use crate::error::Result;
use crate::headers::FileHeader;

use super::damage::{Damage, Log, Note};
use super::index::{BufferEntry, BufferWalk, Extent, Layout};
use super::limits::Limits;
use super::loaded::Loaded;
use super::opening::Opened;
use super::options::Options;
use super::sequence::sequence_notes;
use super::source::Source;

/// The walk from buffer to buffer, with its limits and its faults.
#[derive(Debug)]
pub(super) struct Walker {
    pub header: FileHeader,
    pub log: Log,
    pub walk: BufferWalk,
    /// The buffers so far, for the remarks on their sequence.
    entries: Vec<BufferEntry>,
    limits: Limits,
}

impl Walker {
    pub fn open<S: Source>(source: &mut S, options: &Options) -> Result<Self> {
        let mut log = Log::new(options.mode);
        let limits = options.limits;
        let Opened { walk, header } = BufferWalk::open(source, &limits, &mut log)?;
        Ok(Walker {
            header,
            log,
            walk,
            entries: Vec::new(),
            limits,
        })
    }

    /// Reads the next buffer into `block`, without decompressing it; `None` at the end.
    pub fn next<S: Source>(
        &mut self,
        source: &mut S,
        block: &mut S::Block,
    ) -> Result<Option<BufferEntry>> {
        let next = self
            .walk
            .next(source, block, Extent::Whole, &self.limits, &mut self.log)?;
        match next {
            Some(entry) => {
                self.limits.check(entry.offset)?;
                self.entries.push(entry);
            }
            None => {
                let mut entries = core::mem::take(&mut self.entries);
                let notes = sequence_notes(&mut entries, &self.header);
                self.walk.notes.extend(notes);
                self.log.finish();
            }
        }
        Ok(next)
    }
}

/// Reads the buffers of a trace from its first byte to its last. [`super::Records`] reads records.
///
/// ```
/// use etl_format::read::{Buffers, Options};
/// # use etl_format::FileHeader;
/// # use etl_format::write::Session;
/// # let bytes = Session::in_memory(FileHeader::new())?.finish()?;
///
/// let mut buffers = Buffers::open(bytes.as_slice(), &Options::default())?;
/// let first = buffers.next_buffer()?.map(|buffer| (buffer.offset, buffer.is_header()));
/// assert_eq!(first, Some((0, true)));
/// assert_eq!(buffers.bytes().len(), 0x1_0000, "uncompressed");
/// assert!(buffers.next_buffer()?.is_none());
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Buffers<S: Source> {
    source: S,
    walker: Walker,
    loaded: Loaded<S::Block>,
}

impl<S: Source> Buffers<S> {
    /// Reads the header event.
    ///
    /// # Errors
    /// If the bytes are not a readable trace; in [`super::Mode::Strict`] also if buffer 0 is
    /// damaged.
    pub fn open(mut source: S, options: &Options) -> Result<Self> {
        let walker = Walker::open(&mut source, options)?;
        Ok(Buffers {
            source,
            walker,
            loaded: Loaded::default(),
        })
    }

    /// The header event.
    #[must_use]
    pub fn header(&self) -> &FileHeader {
        &self.walker.header
    }

    /// Goes to the next buffer, decompresses it and returns its entry, or `None` at the end.
    ///
    /// # Errors
    /// In [`super::Mode::Strict`] the first fault; in [`super::Mode::Salvage`] only errors of the
    /// source and exceeded limits.
    pub fn next_buffer(&mut self) -> Result<Option<&BufferEntry>> {
        let Some(entry) = self.walker.next(&mut self.source, &mut self.loaded.raw)? else {
            return Ok(None);
        };
        self.loaded
            .set(entry, &self.walker.walk.layout, &mut self.walker.log)?;
        let start = self.walker.header.timestamp;
        let first_timestamp = self.loaded.first_timestamp().map(Ticks::new);
        self.loaded.entry.first_timestamp = first_timestamp.unwrap_or(start);
        Ok(Some(&self.loaded.entry))
    }

    /// Reads all records of the current buffer to report their faults.
    ///
    /// # Errors
    /// As [`Buffers::next_buffer`].
    pub(crate) fn check_records(&mut self) -> Result<()> {
        self.loaded
            .check_records(&self.walker.limits, &mut self.walker.log)
    }

    /// The bytes of the current buffer: header and records, decompressed. Empty before the first
    /// buffer.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.loaded.data()
    }

    /// The ranges that could not be read so far.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.walker.log.damage
    }

    /// Remarks on the trace so far. Remarks on the sequence of its buffers are added at its end.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.walker.walk.notes
    }

    /// Whether buffers are compressed, by the header event.
    pub(crate) fn is_compressed(&self) -> bool {
        self.walker.walk.layout.buffers.packed
    }

    /// Goes to the next buffer without decompressing it. `memory` is a buffer that is no longer
    /// needed, whose memory is used again.
    pub(crate) fn next_stored(&mut self, memory: Option<Stored>) -> Result<Option<Stored>> {
        let Some(entry) = self.walker.next(&mut self.source, &mut self.loaded.raw)? else {
            return Ok(None);
        };
        let mut stored = match memory {
            Some(memory) => Stored { entry, ..memory },
            None => Stored {
                entry,
                layout: self.walker.walk.layout.clone(),
                loaded: Loaded::default(),
                log: Log::new(self.walker.log.mode),
            },
        };
        let raw = &mut stored.loaded.raw;
        raw.clear();
        raw.extend_from_slice(self.loaded.raw.as_ref());
        Ok(Some(stored))
    }
}

/// A copy of a buffer with everything that is needed to decompress it on any thread.
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
    /// In [`super::Mode::Strict`] if it does not decompress to as many bytes as it declares.
    pub fn decompress(&mut self) -> Result<()> {
        self.loaded.set(self.entry, &self.layout, &mut self.log)
    }

    /// Reads all records to report their faults.
    ///
    /// # Errors
    /// In [`super::Mode::Strict`] the first fault.
    pub fn check_records(&mut self) -> Result<()> {
        self.loaded
            .check_records(&self.layout.limits, &mut self.log)
    }

    /// The entry of the buffer after [`Stored::decompress`], which corrects wrong sizes.
    pub fn entry(&self) -> BufferEntry {
        self.loaded.entry
    }

    /// Header and records, after [`Stored::decompress`].
    pub fn bytes(&self) -> &[u8] {
        self.loaded.data()
    }

    /// The largest number of bytes of memory that the decompressed buffer can need.
    pub fn max_bytes(&self) -> usize {
        let stored = self.loaded.raw.len();
        stored.saturating_add((self.entry.fill as usize).min(stored.saturating_mul(MAX_EXPANSION)))
    }
}
