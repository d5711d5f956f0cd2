//! A trace with an index of its buffers.

use crate::Ticks;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use crate::clock::Clock;
use crate::constants::{CompressionFormat, LogFileMode};
use crate::error::{Error, Result};
use crate::headers::FileHeader;

use super::damage::{Damage, Log, Mode, Note};
use super::index::{BufferEntry, BufferWalk, Index};
use super::options::{Options, Order, OrderCheck};
use super::records::{Records, scan};
use super::sequence::sequence_notes;
use super::source::{FileSource, Source};
use super::stale;

/// A trace with an index of its buffers, whose records are not read yet. The index takes some 40
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
    /// As [`Trace::open`], and when the file cannot be opened.
    pub fn open_path(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        Trace::open(FileSource::new(File::open(path)?)?, options)
    }
}

impl<S: Source> Trace<S> {
    /// Reads the header event and every buffer's header.
    ///
    /// # Errors
    /// When the bytes are no trace that can be read; in [`Mode::Strict`] also at the first damaged
    /// buffer, or when buffers are missing.
    pub fn open(mut source: S, options: &Options) -> Result<Self> {
        let mut log = Log::new(options.mode);
        let limits = &options.limits;
        let (mut walk, header) = BufferWalk::open(&mut source, limits, &mut log)?;
        let format = walk.layout.format;
        let mut buffers = Vec::new();
        let mut block = S::Block::default();
        while let Some(entry) = walk.next(&mut source, &mut block, false, limits, &mut log)? {
            limits.check(entry.offset)?;
            buffers.push(entry);
        }
        let BufferWalk {
            layout, mut notes, ..
        } = walk;
        // If a buffer's first record has no timestamp, a later one is used.
        let unknown = |e: &BufferEntry| e.first_timestamp == Ticks::MIN;
        scan(
            &mut source,
            &mut buffers,
            &layout,
            Mode::Salvage,
            1,
            unknown,
        )?;
        notes.extend(sequence_notes(&mut buffers, header.mode));
        let clock = if header.is_known() {
            header.clock()
        } else {
            assumed_clock(&buffers)
        };
        let (options, damage) = (*options, log.damage);
        let stale = stale::find(&mut source, &buffers, &layout);
        let index = Index {
            options,
            header,
            clock,
            buffers,
            layout,
            notes,
            damage,
            stale,
        };
        Ok(Trace {
            source,
            index,
            format,
        })
    }

    /// The options.
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

    /// The clock of the trace's timestamps. Where the header event is lost
    /// ([`FileHeader::is_known`]), times count from the first record, by [`Clock::assumed`].
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

    /// How many buffers of a circular file are gone since newer ones were written over them; `None`
    /// where none are, or where the file is not circular.
    #[must_use]
    pub fn overwritten(&self) -> Option<u64> {
        let Index {
            header,
            buffers,
            notes,
            ..
        } = &self.index;
        if !header.mode.has(LogFileMode::CIRCULAR) {
            return None;
        }
        // The header's buffer stays where it is.
        let numbers = buffers.iter().skip(1).filter(|b| !b.rebuilt);
        let first = numbers.map(|b| b.sequence_number).min()?;
        // The header's buffer is number 0, and the next one 1, or what follows on those that are
        // kept.
        let gone = first.saturating_sub(i64::from(header.start_buffers.max(1)));
        // A number is missing as well where a buffer stayed empty: the file has to have been full.
        let found = buffers.len() as u64;
        let next = found
            .saturating_add(1)
            .saturating_mul(u64::from(header.buffer_size));
        let full = header.maximum_bytes().is_some_and(|maximum| next > maximum);
        let wrapped = notes.iter().any(|n| matches!(n, Note::Reordered { .. }));
        let counted = u64::from(header.buffers_written) > found;
        u64::try_from(gone)
            .ok()
            .filter(|gone| *gone > 0 && (full || wrapped || counted))
    }

    /// Damage among the buffers, without counts of records. The map of a reader
    /// ([`Records::damage`]) contains these faults with their counts, and those among records.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.index.damage
    }

    /// The compression format that its (first) file header names for compressed buffers; see
    /// [`BufferEntry::format`] for that of each.
    #[must_use]
    pub fn compression(&self) -> CompressionFormat {
        self.format
    }

    /// Leaves out buffers that are copies of another one with their number, byte by byte. Returns
    /// the remarks on the trace, which name them, by offset.
    ///
    /// # Errors
    /// Errors of the source.
    pub(crate) fn leave_copies(&mut self) -> Result<Vec<Note>> {
        let mut notes = self.index.notes.clone();
        notes.sort_by_key(Note::offset);
        let mut twice = BTreeMap::new();
        for (index, note) in notes.iter().enumerate() {
            if let Note::SequenceTwice { offset, number } = *note {
                twice.insert(offset, (number, index));
            }
        }
        let numbers: BTreeSet<_> = twice.values().map(|(number, _)| *number).collect();
        let mut known = BTreeMap::new();
        let mut kept = Vec::with_capacity(self.index.buffers.len());
        for entry in core::mem::take(&mut self.index.buffers) {
            if entry.is_header() {
                // Numbers start again.
                known.clear();
            }
            let number = entry.sequence_number;
            if let Some((_, index)) = twice.get(&entry.offset)
                && let Some(earlier) = known.get(&number)
                && self.is_copy(earlier, &entry)?
                && let Some(note) = notes.get_mut(*index)
            {
                *note = Note::BufferTwice {
                    offset: entry.offset,
                    number,
                };
                continue;
            }
            if numbers.contains(&number) {
                known.insert(number, entry);
            }
            kept.push(entry);
        }
        self.index.buffers = kept;
        Ok(notes)
    }

    /// Whether two buffers have the same bytes.
    fn is_copy(&mut self, one: &BufferEntry, other: &BufferEntry) -> Result<bool> {
        let mut blocks = [S::Block::default(), S::Block::default()];
        if one.stored != other.stored {
            return Ok(false);
        }
        for (entry, block) in [one, other].into_iter().zip(&mut blocks) {
            let read = self.source.read(entry.offset, entry.stored as usize, block);
            read.map_err(|e| Error::new(entry.offset, e.into()))?;
        }
        let [one, other] = &blocks;
        Ok(one.as_ref() == other.as_ref())
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

/// The clock of a trace without header event: times count from the first record.
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
