//! Buffers in the order of the file, one in memory: what a pipe can deliver, too.

use crate::Ticks;
use crate::constants::MAX_EXPANSION;
use crate::error::Result;
use crate::headers::FileHeader;

use super::damage::{Damage, Log, Note};
use super::index::{BufferEntry, BufferWalk, Layout};
use super::limits::Limits;
use super::loaded::Loaded;
use super::options::Options;
use super::sequence::sequence_notes;
use super::source::Source;

/// The walk from buffer to buffer, with its limits and its faults.
#[derive(Debug)]
pub(super) struct Walker {
    pub header: FileHeader,
    pub log: Log,
    walk: BufferWalk,
    /// The buffers so far, for the remarks on their sequence.
    entries: Vec<BufferEntry>,
    limits: Limits,
}

impl Walker {
    pub fn open<S: Source>(source: &mut S, options: &Options) -> Result<Self> {
        let mut log = Log::new(options.mode);
        let limits = options.limits;
        let (walk, header) = BufferWalk::open(source, &limits, &mut log)?;
        Ok(Walker {
            header,
            log,
            walk,
            entries: Vec::new(),
            limits,
        })
    }

    /// The next buffer, with its bytes as the file has them in `block`; `None` at the end.
    pub fn next<S: Source>(
        &mut self,
        source: &mut S,
        block: &mut S::Block,
    ) -> Result<Option<BufferEntry>> {
        let next = self
            .walk
            .next(source, block, true, &self.limits, &mut self.log)?;
        match next {
            Some(entry) => {
                self.limits.check(entry.offset)?;
                self.entries.push(entry);
            }
            None => {
                let mut entries = core::mem::take(&mut self.entries);
                self.walk
                    .notes
                    .extend(sequence_notes(&mut entries, self.header.mode));
                self.log.finish();
            }
        }
        Ok(next)
    }

    pub fn layout(&self) -> &Layout {
        &self.walk.layout
    }

    /// What decoding a buffer takes, and the log for its faults.
    pub fn layout_and_log(&mut self) -> (&Layout, &mut Log) {
        (&self.walk.layout, &mut self.log)
    }

    pub fn notes(&self) -> &[Note] {
        &self.walk.notes
    }
}

/// Reads the buffers of a trace from its first byte to its last, without looking at records.
///
/// For records there is [`super::Records`].
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
    /// When the bytes are no trace that can be read; in [`super::Mode::Strict`] also when buffer 0
    /// is damaged.
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
    /// In [`super::Mode::Strict`] the first fault; in [`super::Mode::Salvage`] only what the source
    /// or a limit reports.
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

    /// Goes over the records of the current buffer, to find what is wrong with them.
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

    /// What could not be read so far.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.walker.log.damage
    }

    /// Remarks on the trace so far; those on the sequence of its buffers come at its end.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        self.walker.notes()
    }

    /// Whether buffers are compressed, by the header event.
    pub(crate) fn is_compressed(&self) -> bool {
        self.walker.layout().buffers.packed
    }

    /// Goes to the next buffer without decompressing it. It goes into the memory of one that is no
    /// longer needed, if there is one.
    pub(crate) fn next_stored(&mut self, memory: Option<Stored>) -> Result<Option<Stored>> {
        let Some(entry) = self.walker.next(&mut self.source, &mut self.loaded.raw)? else {
            return Ok(None);
        };
        let layout = self.walker.layout();
        let mut stored = match memory {
            Some(memory) => Stored { entry, ..memory },
            None => {
                let (layout, loaded) = (layout.clone(), Loaded::default());
                Stored {
                    entry,
                    layout,
                    loaded,
                    log: Log::new(self.walker.log.mode),
                }
            }
        };
        stored.loaded.raw.clear();
        stored
            .loaded
            .raw
            .extend_from_slice(self.loaded.raw.as_ref());
        Ok(Some(stored))
    }
}

/// A copy of a buffer with all that is needed to decompress it on any thread.
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
    /// In [`super::Mode::Strict`] when it does not decompress to as many bytes as it declares.
    pub fn decompress(&mut self) -> Result<()> {
        self.loaded.set(self.entry, &self.layout, &mut self.log)
    }

    /// Goes over the records, to find what is wrong with them.
    ///
    /// # Errors
    /// In [`super::Mode::Strict`] the first fault.
    pub fn check_records(&mut self) -> Result<()> {
        self.loaded
            .check_records(&self.layout.limits, &mut self.log)
    }

    /// What it is, once it has been decompressed: its data may correct its header.
    pub fn entry(&self) -> BufferEntry {
        self.loaded.entry
    }

    /// Its header and records, once it has been decompressed.
    pub fn bytes(&self) -> &[u8] {
        self.loaded.data()
    }

    /// The largest number of bytes that it takes when decompressed.
    pub fn max_bytes(&self) -> usize {
        let stored = self.loaded.raw.len();
        stored.saturating_add((self.entry.fill as usize).min(stored.saturating_mul(MAX_EXPANSION)))
    }
}
