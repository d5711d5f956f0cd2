//! Reads the records of a trace in time order or in the order of the file.
//!
//! # Time order
//! Each buffer is a run of records in time order, and the buffers of one processor follow each
//! other in time. So the reader has two buffers per processor open, the current one and the next,
//! and returns the earliest record of all. It checks these assumptions:
//!
//! * All records of a buffer are located when it is opened. If they are not in time order, they are
//!   sorted, stably ([`OrderReport::sorted_buffers`]).
//! * If buffers of one processor overlap in time, they are open at the same time, and the merge
//!   still returns exact order ([`OrderReport::overlaps`]).
//! * A record that is earlier than a whole earlier buffer of its processor, and earlier than a
//!   record already returned, is returned late and counted ([`OrderReport::late`]).
//!   [`OrderCheck::Scan`] reads every record beforehand and opens each buffer in time for its
//!   earliest record.
//!
//! [`OrderCheck::FirstRecord`] saves the memory of the second buffer.
//!
//! Without late records the result is a stable sort of the whole trace by timestamp. Equal
//! timestamps come in the order of processors, then of sequence numbers, then of offsets in the
//! buffer. The buffer with the file header comes before all processors.
//!
//! # File order
//! The same merge over a single stream: each buffer is opened after the last record of the buffer
//! before it, and records are not sorted. The buffers of a pipe are unknown in advance, so the
//! reader walks from buffer to buffer.

mod parallel;
mod prefetch;
mod run;
mod scan;
mod schedule;

pub(super) use run::decode;
pub(super) use scan::scan;

use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::Ticks;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::headers::FileHeader;

use super::buffers::Walker;
use super::damage::{Damage, Mode, Note};
use super::index::{Index, Layout};
use super::limits::{Budget, Limits};
use super::loaded::RecordRef;
use super::options::{Options, Order};
use super::record::Record;
use super::source::Source;
use super::tally::Tally;

#[cfg(doc)]
use super::options::OrderCheck;
use prefetch::Prefetcher;
use run::{Due, MergeKey, Rank, Run, held_bytes};
use schedule::{Schedule, Scheduled};

/// The index of the current run if there is none.
const NO_RUN: usize = usize::MAX;

/// What the reader did to return records in time order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrderReport {
    /// Number of the buffers whose records were sorted.
    pub sorted_buffers: u64,
    /// Number of the buffers that begin before an earlier buffer of the same processor ends.
    pub overlaps: u64,
    /// Number of the records that were returned after a later record; always 0 with
    /// [`OrderCheck::Scan`](crate::read::OrderCheck).
    pub late: u64,
    /// The largest number of bytes in memory at once: buffers, and 16 bytes for each of their
    /// records.
    pub held: u64,
}

impl OrderReport {
    /// Whether the records of each processor were in time order, so that they only had to be
    /// merged.
    #[must_use]
    pub fn was_in_order(&self) -> bool {
        *self
            == OrderReport {
                held: self.held,
                ..OrderReport::default()
            }
    }
}

/// Reads the records of a trace one after the other.
///
/// [`super::Trace::records`] reads a slice or a seekable file in either order; [`Records::stream`]
/// reads any source in the order of the file, also a pipe. In time order two buffers per processor
/// are in memory, and more if buffers overlap in time; in file order one.
///
/// A record borrows from its buffer, so only one record is lent at a time. Therefore this is not an
/// `Iterator`.
///
/// ```
/// use etl_format::read::{Options, Order, Trace};
/// # use etl_format::FileHeader;
/// # use etl_format::write::Session;
/// # let bytes = Session::in_memory(FileHeader::new())?.finish()?;
///
/// let mut trace = Trace::open(bytes.as_slice(), &Options::salvage())?;
/// let mut records = trace.records(Order::Time)?;
/// while let Some(record) = records.next_record()? {
///     assert!(record.is_kernel(), "only the header event is in this trace");
/// }
/// assert_eq!((records.count(), records.damage().len()), (1, 0));
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Records<S: Source> {
    source: S,
    header: FileHeader,
    clock: Clock,
    notes: Vec<Note>,
    layout: Arc<Layout>,
    limits: Limits,
    mode: Mode,
    threads: usize,
    tally: Tally,
    records: u64,
    /// The error that ended the reading.
    failed: Option<Error>,
    schedule: Schedule,
    /// The walk that finds the buffers of a stream.
    walker: Option<Box<Walker>>,
    heap: BinaryHeap<Due>,
    runs: Vec<Run<S::Block>>,
    /// Runs whose memory can be used again.
    free: Vec<usize>,
    /// The run that returns the next record.
    current: usize,
    /// The current run continues up to this key.
    bound: MergeKey,
    /// The timestamp of that key. Records before it are returned without comparing keys.
    bound_timestamp: i64,
    /// The latest timestamp that was returned.
    latest: i64,
    /// Bytes in memory.
    held: u64,
    /// Latest timestamp of each stream's buffers opened so far.
    ends: Vec<i64>,
    report: OrderReport,
    /// Offsets of the stale records in the first buffer.
    stale: Vec<u32>,
    /// Whether stale records are left out.
    omits_stale: bool,
    /// Memory for filler, which is read only to be checked.
    scratch: S::Block,
    /// Buffers that other threads decode.
    prefetcher: Option<Prefetcher<S::Block>>,
}

impl<S: Source> Records<S> {
    /// Reads a source in the order of the file without an index of its buffers, so that a pipe can
    /// be read.
    ///
    /// # Errors
    /// If the bytes are not a readable trace; in [`Mode::Strict`] also if buffer 0 is damaged.
    pub fn stream(mut source: S, options: &Options) -> Result<Self> {
        let walker = Walker::open(&mut source, options)?;
        let index = Index {
            options: *options,
            header: walker.header.clone(),
            clock: walker.header.clock(),
            buffers: Vec::new(),
            layout: walker.walk.layout.clone(),
            notes: Vec::new(),
            damage: Vec::new(),
            stale: Vec::new(),
        };
        let mut records = Self::new(source, index, Order::File);
        records.walker = Some(Box::new(walker));
        Ok(records)
    }

    /// Marks the stale records of a stream, whose offsets [`super::Trace::stale_records`] found.
    #[must_use]
    pub fn with_stale_records(self, stale: &[u32]) -> Self {
        Records {
            stale: stale.to_vec(),
            ..self
        }
    }

    /// Leaves out the records that are marked as stale ([`Record::is_stale`]).
    #[must_use]
    pub fn without_stale_records(self) -> Self {
        Records {
            omits_stale: true,
            ..self
        }
    }

    pub(super) fn new(source: S, index: Index, order: Order) -> Self {
        let Index {
            options,
            header,
            clock,
            buffers,
            layout,
            notes,
            damage,
            stale,
        } = index;
        let schedule = Schedule::new(buffers, order, options.order_check);
        let mut records = Records {
            source,
            header,
            clock,
            notes,
            layout: Arc::new(layout),
            limits: options.limits,
            mode: options.mode,
            threads: options.threads,
            tally: Tally::new(damage),
            records: 0,
            failed: None,
            walker: None,
            heap: BinaryHeap::new(),
            runs: Vec::new(),
            free: Vec::new(),
            current: NO_RUN,
            bound: MergeKey::LAST,
            bound_timestamp: i64::MAX,
            latest: i64::MIN,
            held: 0,
            ends: vec![i64::MIN; schedule.streams()],
            report: OrderReport::default(),
            scratch: S::Block::default(),
            prefetcher: None,
            stale,
            omits_stale: false,
            schedule,
        };
        for index in records.schedule.first_of_streams() {
            records.queue_buffer(index, i64::MIN);
        }
        records
    }

    /// Queues a buffer for the time at which it must be opened.
    fn queue_buffer(&mut self, index: usize, lookahead: i64) {
        let key = self.schedule.key(index, lookahead);
        self.heap.push(Due { key, index });
    }

    /// The header event.
    #[must_use]
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The clock of the timestamps.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The next record, or `None` at the end of the trace.
    ///
    /// # Errors
    /// In [`Mode::Strict`] the first fault; in [`Mode::Salvage`] only errors of the source and
    /// exceeded limits.
    #[inline(always)]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        // The current run continues until another one is due.
        if let Err(error) = self.advance() {
            return Err(self.fail(error));
        }
        let Some(run) = self.runs.get_mut(self.current) else {
            return Ok(None);
        };
        let Some(record) = run.next() else {
            return Ok(None);
        };
        if self.records.is_multiple_of(Budget::RECORDS)
            && let Err(error) = self.limits.check(run.loaded.entry.offset)
        {
            // All later calls return the error.
            self.current = NO_RUN;
            self.failed = Some(error.clone());
            return Err(error);
        }
        run.returned += 1;
        if record.timestamp < self.latest {
            self.report.late += 1;
        } else {
            self.latest = record.timestamp;
        }
        self.records += 1;
        Ok(Some(run.loaded.record_at(record)))
    }

    /// The record that [`Records::next_record`] returned last, until another method reads further.
    /// `None` before the first record and after the last one.
    ///
    /// ```
    /// use etl_format::read::{Options, Order, Trace};
    ///
    /// /// The first record of a provider.
    /// fn first(trace: &[u8], provider: etl_format::Guid) -> etl_format::Result<Option<usize>> {
    ///     let mut trace = Trace::open(trace, &Options::salvage())?;
    ///     let mut records = trace.records(Order::Time)?;
    ///     while let Some(record) = records.next_record()? {
    ///         if record.provider() == Some(provider) {
    ///             break;
    ///         }
    ///     }
    ///     Ok(records.current_record().map(|record| record.payload().len()))
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn current_record(&self) -> Option<Record<'_>> {
        let run = self.runs.get(self.current)?;
        let index = run.returned.checked_sub(1)?;
        let record = run.records.get(index)?;
        Some(run.loaded.record_at(*record))
    }

    /// The timestamp of the record that [`Records::next_record`] will return, or `None` at the end
    /// of the trace. It allows to merge several traces.
    ///
    /// ```
    /// use etl_format::read::{Options, Order, Trace};
    /// # use etl_format::FileHeader;
    /// # use etl_format::write::Session;
    /// # let bytes = Session::in_memory(FileHeader::new())?.finish()?;
    ///
    /// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
    /// let mut records = trace.records(Order::Time)?;
    /// // The record stays the next one: several traces can be merged by it.
    /// let timestamp = records.next_timestamp()?;
    /// assert_eq!(records.next_record()?.map(|record| record.timestamp()), timestamp);
    /// assert_eq!(records.next_timestamp()?, None);
    /// # Ok::<(), etl_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Records::next_record`].
    #[inline]
    pub fn next_timestamp(&mut self) -> Result<Option<Ticks>> {
        if let Err(error) = self.advance() {
            return Err(self.fail(error));
        }
        let next = self.runs.get(self.current).and_then(Run::next);
        Ok(next.map(|next| Ticks::new(next.timestamp)))
    }

    /// Makes the run with the next record the current one; at the end there is none.
    #[inline(always)]
    fn advance(&mut self) -> Result<()> {
        match self.runs.get(self.current).and_then(Run::next) {
            Some(next) if next.timestamp < self.bound_timestamp => Ok(()),
            _ => self.switch(),
        }
    }

    /// Handles the end of the trace, or the error that ended the reading.
    #[cold]
    #[inline(never)]
    fn end(&mut self) -> Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => {
                self.tally.finish();
                Ok(())
            }
        }
    }

    /// Keeps the error that ended the reading.
    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.failed = Some(error.clone());
        error
    }

    /// Switches to the run that is due next, and opens buffers when they are due.
    fn switch(&mut self) -> Result<()> {
        let key = self.runs.get(self.current).and_then(Run::key);
        if key.is_some_and(|key| key <= self.bound) {
            return Ok(());
        }
        let previous = core::mem::replace(&mut self.current, NO_RUN);
        match key {
            // One step for both: the run that is due leaves the heap, and the previous one joins
            // it.
            Some(key) => {
                let mut due = Due {
                    key,
                    index: previous,
                };
                if let Some(mut next) = self.heap.peek_mut() {
                    core::mem::swap(&mut due, &mut next);
                }
                if self.select(due)? {
                    return Ok(());
                }
            }
            None => self.close(previous),
        }
        loop {
            if self.failed.is_some() {
                return self.end();
            }
            let Some(due) = self.heap.pop() else {
                if self.walk()? {
                    continue;
                }
                return self.end();
            };
            if self.select(due)? {
                return Ok(());
            }
        }
    }

    /// Makes an open run the current one, or opens a buffer and queues its run. Returns whether
    /// there is a current run now.
    #[inline(always)]
    fn select(&mut self, due: Due) -> Result<bool> {
        if due.is_open() {
            self.current = due.index;
            self.bound = self.heap.peek().map_or(MergeKey::LAST, |next| next.key);
            self.bound_timestamp = self.bound.timestamp();
            return Ok(true);
        }
        let index = self.open(due.index)?;
        let key = self.runs.get(index).and_then(Run::key);
        if let Some(next) = self.schedule.successor(due.index) {
            self.queue_buffer(next, key.map_or(i64::MIN, MergeKey::timestamp));
        }
        self.queue_run(index, key);
        Ok(false)
    }

    /// Queues a run that is open; closes it if it has no records.
    fn queue_run(&mut self, index: usize, key: Option<MergeKey>) {
        match key {
            Some(key) => self.heap.push(Due { key, index }),
            None => self.close(index),
        }
    }

    /// Closes a run that has returned all its records.
    #[cold]
    #[inline(never)]
    fn close(&mut self, index: usize) {
        let Some(run) = self.runs.get_mut(index) else {
            return;
        };
        self.held = self.held.saturating_sub(run.held);
        match &mut self.walker {
            Some(walker) => {
                walker.log.records += run.loaded.leave();
                self.failed = walker.log.check().err();
            }
            None => {
                self.failed = run.log.check().err();
                let damage = core::mem::take(&mut run.log.damage);
                self.tally
                    .close(&run.loaded.entry, run.loaded.passed(), damage);
            }
        }
        self.free.push(index);
    }

    /// A run for a buffer of `held` bytes.
    fn free_run(&mut self, rank: Rank, held: u64) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.runs.push(Run::new(self.mode));
            self.runs.len() - 1
        });
        if let Some(run) = self.runs.get_mut(index) {
            run.reset(rank, held);
        }
        index
    }

    /// Reads a buffer and locates its records.
    fn open(&mut self, entry_index: usize) -> Result<usize> {
        let Some(Scheduled { entry, rank }) = self.schedule.get(entry_index) else {
            return Ok(NO_RUN);
        };
        let held = held_bytes(&entry);
        self.hold(held, entry.offset)?;
        let index = self.free_run(rank, held);
        let Some(run) = self.runs.get_mut(index) else {
            return Ok(index);
        };
        let source = &mut self.source;
        let prefetcher = self.prefetcher.as_mut();
        let job = prefetcher.and_then(|p| p.take(entry_index, self.schedule.entries(), source));
        let sorted = match (job, &mut self.prefetcher) {
            (Some(job), Some(prefetcher)) => {
                let loaded = core::mem::replace(&mut run.loaded, job.loaded);
                prefetcher.recycle(loaded, core::mem::replace(&mut run.records, job.records));
                run.log = job.log;
                job.sorted?
            }
            _ => {
                let read = run.loaded.read(source, &entry, &mut self.scratch);
                read.map_err(|e| Error::new(entry.offset, e.into()))?;
                let Run {
                    loaded,
                    records,
                    log,
                    ..
                } = run;
                decode(
                    entry,
                    &self.layout,
                    loaded,
                    records,
                    log,
                    self.schedule.sorts(),
                )?
            }
        };
        self.finish_open(index, sorted, entry.offset)?;
        Ok(index)
    }

    /// Reads the next buffer of a stream, and queues its run; `false` at the end.
    fn walk(&mut self) -> Result<bool> {
        let Some(mut walker) = self.walker.take() else {
            return Ok(false);
        };
        let opened = self.walk_with(&mut walker);
        self.walker = Some(walker);
        let Some(index) = opened? else {
            return Ok(false);
        };
        let key = self.runs.get(index).and_then(Run::key);
        self.queue_run(index, key);
        Ok(true)
    }

    fn walk_with(&mut self, walker: &mut Walker) -> Result<Option<usize>> {
        let index = self.free_run(Rank::default(), 0);
        let Some(run) = self.runs.get_mut(index) else {
            return Ok(None);
        };
        let Some(entry) = walker.next(&mut self.source, &mut run.loaded.raw)? else {
            return Ok(None);
        };
        run.held = held_bytes(&entry);
        let held = run.held;
        let Run {
            loaded, records, ..
        } = run;
        let layout = &walker.walk.layout;
        let sorted = decode(entry, layout, loaded, records, &mut walker.log, false)?;
        self.hold(held, entry.offset)?;
        self.finish_open(index, sorted, entry.offset)?;
        Ok(Some(index))
    }

    /// Marks stale records in a run that was just opened, and updates the report.
    fn finish_open(&mut self, index: usize, sorted: bool, offset: u64) -> Result<()> {
        let Some(run) = self.runs.get_mut(index) else {
            return Ok(());
        };
        if offset == 0 && !self.stale.is_empty() {
            for record in &mut run.records {
                record.mark_stale(&self.stale);
            }
            if self.omits_stale {
                run.records.retain(|record| !record.is_stale());
            }
        }
        self.report.sorted_buffers += u64::from(sorted);
        if let Some(first) = run.records.first()
            && let Some(last) = run.records.last()
            && let Some(end) = self.ends.get_mut(run.rank.stream())
        {
            self.report.overlaps += u64::from(first.timestamp < *end);
            *end = last.timestamp.max(*end);
        }
        let bytes = run.records.len() as u64 * RecordRef::COST + run.loaded.grown();
        run.held += bytes;
        self.hold(bytes, offset)?;
        self.limits.check(offset)
    }

    /// Adds bytes that are in memory for the buffer at `offset`, and checks the limit.
    fn hold(&mut self, bytes: u64, offset: u64) -> Result<()> {
        self.held += bytes;
        self.report.held = self.report.held.max(self.held);
        if self.schedule.sorts() && self.held > self.limits.held {
            let kind = ErrorKind::Limit {
                what: "the buffers held for time order",
                need: self.held,
                limit: self.limits.held,
            };
            return Err(Error::new(offset, kind));
        }
        Ok(())
    }

    /// How far the records are from time order so far; complete at the end of the trace.
    #[must_use]
    pub fn report(&self) -> OrderReport {
        self.report
    }

    /// The ranges that could not be read. At the end of the trace they are complete and in the
    /// order of the file, for every order of reading, and include [`super::Trace::damage`]. Before
    /// that, the counts of records are not set, and faults in buffers that are being read are
    /// missing. Empty in [`Mode::Strict`].
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        match &self.walker {
            Some(walker) => &walker.log.damage,
            None => self.tally.damage(),
        }
    }

    /// Notes on the trace: [`super::Trace::notes`], or the notes on the stream so far.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        match &self.walker {
            Some(walker) => &walker.walk.notes,
            None => &self.notes,
        }
    }

    /// Records read so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.records
    }
}
