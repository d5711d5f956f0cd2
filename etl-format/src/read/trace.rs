//! A trace with an index of its buffers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use crate::Ticks;
use crate::clock::Clock;
use crate::constants::CompressionFormat;
use crate::error::{Error, Result};
use crate::headers::FileHeader;

use super::damage::{Damage, Log, Mode, Note};
use super::index::{BufferEntry, BufferWalk, Extent, Index};
use super::opening::Opened;
use super::options::{Options, Order, OrderCheck};
use super::records::{Records, scan};
use super::sequence::sequence_notes;
use super::source::{FileSource, Source};
use super::stale;

/// A trace with an index of its buffers, whose records are not read yet. The index has about 40
/// bytes per buffer.
///
/// ```
/// use etl_format::read::{Options, Order, Trace};
/// use etl_format::FileHeader;
/// use etl_format::write::Session;
///
/// let bytes = Session::in_memory(FileHeader::new().with_logger_name("mine"))?.finish()?;
/// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
/// assert_eq!(trace.header().logger_name(), "mine");
/// assert_eq!(trace.buffers().len(), 1, "only the buffer of the header");
/// let mut records = trace.records(Order::File)?;
/// assert!(records.next_record()?.is_some(), "the header event");
/// assert!(records.next_record()?.is_none());
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Trace<S: Source> {
    source: S,
    index: Index,
    format: CompressionFormat,
}

impl Trace<FileSource<File>> {
    /// Opens a trace file, which is read piece by piece.
    ///
    /// ```
    /// use etl_format::read::{Options, Trace};
    ///
    /// let path = std::env::temp_dir().join("there is no such file.etl");
    /// let error = Trace::open_path(path, &Options::salvage()).unwrap_err();
    /// assert!(error.is_io());
    /// ```
    ///
    /// # Errors
    /// As [`Trace::open`], and if the file cannot be opened.
    pub fn open_path(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        Trace::open(FileSource::new(File::open(path)?)?, options)
    }
}

impl<S: Source> Trace<S> {
    /// Reads the header event and every buffer's header.
    ///
    /// # Errors
    /// If the bytes are not a readable trace; in [`Mode::Strict`] also at the first damaged buffer,
    /// or if buffers are missing.
    pub fn open(mut source: S, options: &Options) -> Result<Self> {
        let mut log = Log::new(options.mode);
        let limits = &options.limits;
        let Opened { mut walk, header } = BufferWalk::open(&mut source, limits, &mut log)?;
        let format = walk.layout.format;
        let mut buffers = Vec::new();
        let mut block = S::Block::default();
        while let Some(entry) =
            walk.next(&mut source, &mut block, Extent::Head, limits, &mut log)?
        {
            limits.check(entry.offset)?;
            buffers.push(entry);
        }
        let BufferWalk {
            layout, mut notes, ..
        } = walk;
        // If a buffer's first record has no timestamp, a later one is used.
        scan(
            &mut source,
            &mut buffers,
            &layout,
            Mode::Salvage,
            1,
            |entry| entry.first_timestamp == Ticks::MIN,
        )?;
        notes.extend(sequence_notes(&mut buffers, &header));
        if is_appended(&buffers) {
            // The header counts the buffers of the session that wrote it.
            notes.retain(|note| !matches!(note, Note::BufferCount { .. }));
        }
        let clock = if header.is_known() {
            header.clock()
        } else {
            assumed_clock(&buffers)
        };
        let stale = stale::find(&mut source, &buffers, &layout);
        let index = Index {
            options: *options,
            header,
            clock,
            buffers,
            layout,
            notes,
            damage: log.damage,
            stale,
        };
        Ok(Trace {
            source,
            index,
            format,
        })
    }

    /// The options with which the trace was opened.
    #[must_use]
    pub fn options(&self) -> Options {
        self.index.options
    }

    /// Sets how far later readers look ahead for time order.
    pub fn set_order_check(&mut self, check: OrderCheck) {
        self.index.options.order_check = check;
    }

    /// The header event.
    #[must_use]
    pub fn header(&self) -> &FileHeader {
        &self.index.header
    }

    /// The clock of the trace's timestamps. If the header event is lost
    /// ([`FileHeader::is_known`]), the clock of [`Clock::assumed`] from the first record on.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.index.clock
    }

    /// The buffers in file order.
    #[must_use]
    pub fn buffers(&self) -> &[BufferEntry] {
        &self.index.buffers
    }

    /// Remarks on the trace and on the sequence of its buffers.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.index.notes
    }

    /// The offsets of the stale records in the first buffer, ascending: see [`Record::is_stale`].
    ///
    /// [`Record::is_stale`]: super::Record::is_stale
    #[must_use]
    pub fn stale_records(&self) -> &[u32] {
        &self.index.stale
    }

    /// How many buffers of a circular file are missing because newer buffers were written over
    /// them;
    /// `None` if there are none, or if the file is not circular or was never full.
    #[must_use]
    pub fn overwritten(&self) -> Option<u64> {
        let Index {
            header,
            buffers,
            notes,
            ..
        } = &self.index;
        // A file that was never full has lost its missing buffers in another way.
        let len = buffers.last().map_or(0, BufferEntry::file_end);
        if !header.may_have_overwritten(buffers.len() as u64, len) {
            return None;
        }
        // The buffer with the header is never overwritten.
        let numbers = buffers.iter().skip(1).filter(|b| !b.rebuilt);
        let first = numbers.map(|b| b.sequence_number).min()?;
        // The header's buffer has number 0, and the next one the number of the buffers that are
        // never overwritten.
        let overwritten = first.saturating_sub(i64::from(header.start_buffers.max(1)));
        let overwritten = u64::try_from(overwritten).ok().filter(|count| *count > 0)?;
        // Numbers are also missing for buffers that stayed empty, so the file must have been full.
        let count = buffers.len() as u64;
        let next_end = count
            .saturating_add(1)
            .saturating_mul(u64::from(header.buffer_size));
        let is_full = header
            .maximum_bytes()
            .is_some_and(|maximum| next_end > maximum);
        let is_wrapped = notes
            .iter()
            .any(|note| matches!(note, Note::Reordered { .. }));
        let counts_more = u64::from(header.buffers_written) > count;
        (is_full || is_wrapped || counts_more).then_some(overwritten)
    }

    /// Damage among the buffers, without counts of records. [`Records::damage`] contains these
    /// ranges with their counts, and damage among records.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.index.damage
    }

    /// The compression format that the first file header names. [`BufferEntry::format`] is the
    /// format of each buffer.
    #[must_use]
    pub fn compression(&self) -> CompressionFormat {
        self.format
    }

    /// Removes buffers that are copies of another buffer with the same number, byte for byte.
    /// Returns the notes on the trace by offset, with a note for each removed buffer.
    ///
    /// # Errors
    /// Errors of the source.
    pub(crate) fn remove_copies(&mut self) -> Result<Vec<Note>> {
        let mut notes = self.index.notes.clone();
        notes.sort_by_key(Note::offset);
        let mut note_of_offset = BTreeMap::new();
        let mut repeated_numbers = BTreeSet::new();
        for (index, note) in notes.iter().enumerate() {
            if let Note::SequenceTwice { offset, number } = *note {
                note_of_offset.insert(offset, index);
                repeated_numbers.insert(number);
            }
        }
        let mut entry_of_number = BTreeMap::new();
        let mut kept = Vec::with_capacity(self.index.buffers.len());
        let mut run = 0;
        for entry in core::mem::take(&mut self.index.buffers) {
            if entry.run != run {
                // Numbers start again.
                run = entry.run;
                entry_of_number.clear();
            }
            let number = entry.sequence_number;
            if let Some(index) = note_of_offset.get(&entry.offset)
                && let Some(earlier) = entry_of_number.get(&number)
                && self.is_copy(earlier, &entry)?
                && let Some(note) = notes.get_mut(*index)
            {
                *note = Note::BufferTwice {
                    offset: entry.offset,
                    number,
                };
                continue;
            }
            if repeated_numbers.contains(&number) {
                entry_of_number.insert(number, entry);
            }
            kept.push(entry);
        }
        self.index.buffers = kept;
        Ok(notes)
    }

    /// Whether two buffers have the same bytes.
    fn is_copy(&mut self, first: &BufferEntry, second: &BufferEntry) -> Result<bool> {
        if first.stored != second.stored {
            return Ok(false);
        }
        let first = self.read_stored(first)?;
        let second = self.read_stored(second)?;
        Ok(first.as_ref() == second.as_ref())
    }

    /// The bytes of a buffer as they are in the file.
    fn read_stored(&mut self, entry: &BufferEntry) -> Result<S::Block> {
        let mut block = S::Block::default();
        self.source
            .read(entry.offset, entry.stored as usize, &mut block)
            .map_err(|e| Error::new(entry.offset, e.into()))?;
        Ok(block)
    }

    /// Reads the records.
    ///
    /// ```
    /// use etl_format::constants::hook;
    /// use etl_format::read::{Options, Order, Trace};
    /// use etl_format::write::record::PerfInfo;
    /// use etl_format::FileHeader;
    /// use etl_format::write::Session;
    ///
    /// let mut session = Session::in_memory(FileHeader::new().with_processors(2))?;
    /// session.write(0, &PerfInfo::new(hook::SAMPLE, 3_000))?;
    /// session.write(1, &PerfInfo::new(hook::SAMPLE, 2_000))?;
    /// let bytes = session.finish()?;
    /// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
    /// let mut records = trace.records(Order::Time)?;
    /// let mut timestamps = Vec::new();
    /// while let Some(record) = records.next_record()? {
    ///     timestamps.push(record.timestamp());
    /// }
    /// assert_eq!(timestamps, [0, 2_000, 3_000]);
    /// # Ok::<(), etl_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// For [`Order::Time`] with [`OrderCheck::Scan`], as [`Records::next_record`].
    pub fn records(&mut self, order: Order) -> Result<Records<&mut S>> {
        let index = scanned(&mut self.source, self.index.clone(), order)?;
        Ok(Records::new(&mut self.source, index, order))
    }

    /// Reads the records of the buffers that `select` accepts, in the order of the file.
    pub fn records_of(&mut self, select: impl Fn(&BufferEntry) -> bool) -> Records<&mut S> {
        let mut index = self.index.clone();
        index.buffers.retain(select);
        index.notes.clear();
        index.damage.clear();
        Records::new(&mut self.source, index, Order::File)
    }

    /// [`Trace::records`] for a reader that owns the source.
    ///
    /// # Errors
    /// As [`Trace::records`].
    pub fn into_records(mut self, order: Order) -> Result<Records<S>> {
        let index = scanned(&mut self.source, self.index, order)?;
        Ok(Records::new(self.source, index, order))
    }
}

/// Whether a later session continued the file without a file header of its own.
fn is_appended(buffers: &[BufferEntry]) -> bool {
    let mut pairs = buffers.iter().zip(buffers.iter().skip(1));
    pairs.any(|(previous, next)| next.run != previous.run && !next.is_header())
}

/// The clock of a trace without header event, from the first record on.
fn assumed_clock(buffers: &[BufferEntry]) -> Clock {
    let data = buffers.iter().filter(|b| !b.is_header());
    let first = data
        .map(|b| b.first_timestamp)
        .filter(|timestamp| *timestamp > Ticks::MIN)
        .min();
    Clock::assumed(first.unwrap_or_default())
}

/// Scans all records first if the order and the options require it.
fn scanned<S: Source>(source: &mut S, mut index: Index, order: Order) -> Result<Index> {
    let Options {
        order_check,
        mode,
        threads,
        ..
    } = index.options;
    if order == Order::Time && order_check == OrderCheck::Scan {
        scan(
            source,
            &mut index.buffers,
            &index.layout,
            mode,
            threads,
            |_| true,
        )?;
    }
    Ok(index)
}
