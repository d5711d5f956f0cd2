//! Time order: a merge over the buffers of all processors.
//!
//! # How
//! Each buffer is a run of records in time order. The buffers of one processor follow each other in
//! time, so it is enough to hold one open buffer per processor and to take the earliest record of
//! all. Nothing of this is taken on trust:
//!
//! * A buffer is opened when the merge reaches the stamp of its first record. Where buffers of one
//!   processor overlap in time, several of them are open at once and the merge still gives exact
//!   order, at the price of memory ([`OrderReport::overlaps`]).
//! * [`OrderCheck::Full`] looks at every record beforehand. Buffers that are not in time order
//!   inside are sorted, stably, when they are opened ([`OrderReport::sorted_buffers`]), and opened
//!   in time for their earliest record.
//! * [`OrderCheck::Heads`] looks at the first record of each buffer only. A record that then turns
//!   out to be earlier than its predecessor is given where it stands, and counted
//!   ([`OrderReport::late`]): a caller that needs exact order starts again with the full check.
//!
//! With the full check this is a stable sort of the whole trace by stamp; equal stamps come in the order
//! of processors, and on one processor in that of sequence numbers and of places in the buffer. The
//! file's header buffer counts as a processor before all others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::constants::BUFFER_HEADER_SIZE;
use crate::error::{Error, ErrorKind, Result};

use super::damage::{Damage, Log, Mode};
use super::index::{BufferEntry, Layout};
use super::limits::Limits;
use super::loaded::Loaded;
use super::record::Record;
use super::source::Source;
use super::tally::Tally;
use super::trace::Options;
use super::walk::Found;

/// How sure the time order has to be before the first record is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrderCheck {
    /// Look at every record beforehand: the order is exact on any input. Costs a walk, and for a
    /// compressed trace a second decompression.
    #[default]
    Full,
    /// Look at the first record of each buffer: exact wherever buffers are in order inside, as all
    /// real ones seen are. What comes too late otherwise is counted.
    Heads,
}

/// What the reader had to do for time order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderReport {
    /// Buffers whose records had to be sorted.
    pub sorted_buffers: u64,
    /// Times that a processor had a further buffer open at once, since they overlap in time.
    pub overlaps: u64,
    /// Records given after a later one; always 0 with [`OrderCheck::Full`].
    pub late: u64,
    /// Most bytes of buffers held at once.
    pub held: u64,
}

impl OrderReport {
    /// Whether the streams were in time order, so that merging them was all there was to do.
    #[must_use]
    pub fn was_in_order(&self) -> bool {
        *self == OrderReport { held: self.held, ..OrderReport::default() }
    }
}

/// Place of a run in the order of equal stamps: stream, then buffer within it.
type Rank = (u32, u32);

/// A buffer that is being merged.
#[derive(Debug)]
struct Run<B> {
    loaded: Loaded<B>,
    rank: Rank,
    /// The next record.
    next: Option<(Found, i64)>,
    /// Records in time order, last first, when the buffer was not in order by itself.
    sorted: Option<Vec<(Found, i64)>>,
    held: u64,
    /// Most bytes that the memory of this run has taken.
    kept: u64,
    /// The faults of this buffer.
    log: Log,
}

/// What waits in the heap: a run that is open, or the next buffer of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Waiting {
    /// Index of an open run.
    Open(usize),
    /// Index of the entry.
    Buffer(usize),
}

/// Reads a trace in time order.
///
/// Holds one buffer per processor, and more where the trace makes it necessary. The order is that of
/// a stable sort of the whole trace by stamp: equal stamps come in the order of processors (the
/// file's header buffer before all), and on one processor in that of sequence numbers and of places
/// in the buffer. How sure that is says [`OrderCheck`].
#[derive(Debug)]
pub struct Ordered<S: Source> {
    source: S,
    layout: Layout,
    limits: Limits,
    mode: Mode,
    tally: Tally,
    records: u64,
    /// What reading ended with, for good.
    failed: Option<Error>,
    /// All buffers, in the order of streams and then of time.
    entries: Vec<BufferEntry>,
    /// Ranks of the entries.
    ranks: Vec<Rank>,
    heap: BinaryHeap<Reverse<(i64, Rank, Waiting)>>,
    runs: Vec<Run<S::Block>>,
    /// Runs whose memory can be used again.
    free: Vec<usize>,
    /// The run that gives the next record, and up to which key it may go on doing so.
    current: Option<usize>,
    bound: (i64, Rank),
    last: i64,
    held: u64,
    /// Open runs by stream.
    open: Vec<u32>,
    report: OrderReport,
}

impl<S: Source> Ordered<S> {
    pub(crate) fn new(
        source: S,
        mut entries: Vec<BufferEntry>,
        layout: Layout,
        options: &Options,
        damage: Vec<Damage>,
    ) -> Self {
        // Time within a stream comes first, so that a wrapped or shuffled file is put in order by
        // what its records say.
        entries.sort_by_key(|e| {
            (!e.is_header(), e.processor, e.first_stamp, e.sequence_number, e.offset)
        });
        let (ranks, streams) = ranks(&entries);
        let mut ordered = Ordered {
            source,
            layout,
            limits: options.limits,
            mode: options.mode,
            tally: Tally::new(damage),
            records: 0,
            failed: None,
            entries,
            ranks,
            heap: BinaryHeap::new(),
            runs: Vec::new(),
            free: Vec::new(),
            current: None,
            bound: (i64::MAX, (u32::MAX, u32::MAX)),
            last: i64::MIN,
            held: 0,
            open: vec![0; streams],
            report: OrderReport::default(),
        };
        let mut last = None;
        for index in 0..ordered.ranks.len() {
            let stream = ordered.ranks.get(index).map(|rank| rank.0);
            if stream != last {
                ordered.wait_for(index);
            }
            last = stream;
        }
        ordered
    }

    /// Puts a buffer in line, at the stamp of its first record.
    fn wait_for(&mut self, index: usize) {
        if let (Some(entry), Some(&rank)) = (self.entries.get(index), self.ranks.get(index)) {
            self.heap.push(Reverse((entry.first_stamp, rank, Waiting::Buffer(index))));
        }
    }

    /// The next record in time, or `None` at the end of the trace.
    ///
    /// # Errors
    /// In [`super::Mode::Strict`] the first fault met; in [`super::Mode::Salvage`] only what the
    /// medium or a limit reports.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        // The run that gave the last record goes on until another one is due.
        let (index, found, stamp) = match self.step() {
            Some(step) => step,
            None => match self.switch() {
                Ok(Some(step)) => step,
                Ok(None) => return Ok(None),
                Err(error) => return Err(self.fail(error)),
            },
        };
        if stamp < self.last {
            self.report.late += 1;
        } else {
            self.last = stamp;
        }
        self.records += 1;
        // The run is there: `step` and `switch` have just used it.
        Ok(self.runs.get(index).map(|run| run.loaded.record(found, stamp)))
    }

    /// The stamp of the record that [`Ordered::next_record`] is going to give, or `None` at the end
    /// of the trace: for merging several traces.
    ///
    /// # Errors
    /// As [`Ordered::next_record`].
    #[inline]
    pub fn next_stamp(&mut self) -> Result<Option<i64>> {
        if let Some(stamp) = self.due() {
            return Ok(Some(stamp));
        }
        match self.settle() {
            Ok(true) => Ok(self.due()),
            Ok(false) => Ok(None),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// The end of the trace, or of what could be read.
    #[cold]
    #[inline(never)]
    fn end(&mut self) -> Result<bool> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => {
                self.tally.finish();
                Ok(false)
            }
        }
    }

    /// Keeps what reading ended with.
    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.failed = Some(error.clone());
        error
    }

    /// Takes the next record of the current run, if it is due before all others.
    #[inline(always)]
    fn step(&mut self) -> Option<(usize, Found, i64)> {
        let index = self.current?;
        let run = self.runs.get_mut(index)?;
        match run.next {
            Some((found, stamp)) if (stamp, run.rank) <= self.bound => {
                run.next = match &mut run.sorted {
                    None => run.loaded.next(&mut run.log),
                    Some(sorted) => sorted.pop(),
                };
                Some((index, found, stamp))
            }
            _ => None,
        }
    }

    /// The stamp of the next record, if it is one of the current run.
    #[inline]
    fn due(&self) -> Option<i64> {
        let run = self.runs.get(self.current?)?;
        let (_, stamp) = run.next?;
        ((stamp, run.rank) <= self.bound).then_some(stamp)
    }

    /// Turns to the run that is due next, opening buffers as their time comes, and takes its record.
    fn switch(&mut self) -> Result<Option<(usize, Found, i64)>> {
        Ok(if self.settle()? { self.step() } else { None })
    }

    /// Turns to the run that is due next; `false` at the end.
    fn settle(&mut self) -> Result<bool> {
        loop {
            if let Some(index) = self.current.take() {
                self.put_back(index);
            }
            if self.failed.is_some() {
                return self.end();
            }
            let Some(Reverse((_, _, waiting))) = self.heap.pop() else {
                return self.end();
            };
            match waiting {
                Waiting::Buffer(entry) => {
                    let run = self.open(entry)?;
                    self.wait_for_next(entry);
                    self.put_back(run);
                }
                Waiting::Open(index) => {
                    self.current = Some(index);
                    self.bound = match self.heap.peek() {
                        Some(Reverse((stamp, rank, _))) => (*stamp, *rank),
                        None => (i64::MAX, (u32::MAX, u32::MAX)),
                    };
                    if self.due().is_some() {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// The buffer behind `entry` in its stream comes into line.
    fn wait_for_next(&mut self, entry: usize) {
        let stream = |index: usize| self.ranks.get(index).map(|rank| rank.0);
        if stream(entry + 1).is_some() && stream(entry + 1) == stream(entry) {
            self.wait_for(entry + 1);
        }
    }

    /// An open run waits for its next record, or is closed when it has none.
    fn put_back(&mut self, index: usize) {
        let Some(run) = self.runs.get_mut(index) else { return };
        match run.next {
            Some((_, stamp)) => self.heap.push(Reverse((stamp, run.rank, Waiting::Open(index)))),
            None => self.close(index),
        }
    }

    /// Closes a run that has given all its records.
    #[cold]
    #[inline(never)]
    fn close(&mut self, index: usize) {
        let Some(run) = self.runs.get_mut(index) else { return };
        self.failed = run.log.check().err();
        self.held = self.held.saturating_sub(run.held);
        let damage = core::mem::take(&mut run.log.damage);
        self.tally.close(&run.loaded.entry, run.loaded.passed(), damage);
        if let Some(open) = self.open.get_mut(run.rank.0 as usize) {
            *open = open.saturating_sub(1);
        }
        self.free.push(index);
    }

    /// Reads a buffer and readies its first record.
    fn open(&mut self, index: usize) -> Result<usize> {
        let (Some(&entry), Some(&rank)) = (self.entries.get(index), self.ranks.get(index)) else {
            return Ok(usize::MAX);
        };
        let held = u64::from(entry.stored) + if entry.compressed { entry.fill.into() } else { 0 };
        self.held += held;
        self.report.held = self.report.held.max(self.held);
        if self.held > self.limits.held {
            let (need, limit) = (self.held, self.limits.held);
            let kind = ErrorKind::Limit { what: "the buffers held for time order", need, limit };
            return Err(Error::new(entry.offset, kind));
        }
        if let Some(open) = self.open.get_mut(rank.0 as usize) {
            self.report.overlaps += u64::from(*open > 0);
            *open += 1;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.runs.push(Run {
                loaded: Loaded::default(),
                rank,
                next: None,
                sorted: None,
                held: 0,
                kept: 0,
                log: Log::new(self.mode),
            });
            self.runs.len() - 1
        });
        let Some(run) = self.runs.get_mut(slot) else { return Ok(slot) };
        (run.rank, run.held, run.sorted) = (rank, held, None);
        // Memory is used again, but a small buffer must not keep that of a large one.
        if run.kept > held.saturating_mul(4).saturating_add(0x1000) {
            (run.loaded, run.kept) = (Loaded::default(), 0);
        }
        run.kept = run.kept.max(held);
        let (offset, len) = (entry.offset, entry.stored as usize);
        self.source
            .read(offset, len, &mut run.loaded.raw)
            .map_err(|e| Error::new(offset, e.into()))?;
        run.loaded.set(entry, &self.layout, &mut run.log)?;
        if entry.unordered {
            self.report.sorted_buffers += 1;
            let mut records = Vec::new();
            while let Some(next) = run.loaded.next(&mut run.log) {
                records.push(next);
            }
            run.log.check()?;
            records.sort_by_key(|&(_, stamp)| stamp);
            records.reverse();
            run.sorted = Some(records);
        }
        run.next = match &mut run.sorted {
            None => run.loaded.next(&mut run.log),
            Some(sorted) => sorted.pop(),
        };
        Ok(slot)
    }

    /// What the order took so far; complete at the end of the trace.
    #[must_use]
    pub fn report(&self) -> OrderReport {
        self.report
    }

    /// What could not be read, among buffers and among records: at the end of the trace the same
    /// map, in file order, that [`super::FileOrder::damage`] gives. It includes
    /// [`super::Trace::damage`]. Until then the counts of records are not known, and faults in
    /// buffers that are not read to their ends yet are missing. Empty in [`Mode::Strict`].
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        self.tally.map()
    }

    /// Records read so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Calls `f` for every record that is left.
    ///
    /// # Errors
    /// As [`Ordered::next_record`], and what `f` returns.
    pub fn for_each<E: From<Error>>(
        &mut self,
        mut f: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(record) = self.next_record()? {
            f(record)?;
        }
        Ok(())
    }
}

/// Place of each buffer in the order of equal stamps: its stream, and its place there by sequence
/// number; and how many streams there are.
fn ranks(entries: &[BufferEntry]) -> (Vec<Rank>, usize) {
    let mut order: Vec<_> = (0..entries.len()).zip(entries).collect();
    order.sort_by_key(|(_, e)| (!e.is_header(), e.processor, e.sequence_number, e.offset));
    let mut ranks = vec![(0, 0); entries.len()];
    let (mut stream, mut place) = (0u32, 0u32);
    let mut last = None;
    for (index, e) in order {
        let key = (!e.is_header(), e.processor);
        match last {
            Some(last) if last == key => place = place.saturating_add(1),
            Some(_) => (stream, place) = (stream.saturating_add(1), 0),
            None => {}
        }
        last = Some(key);
        if let Some(rank) = ranks.get_mut(index) {
            *rank = (stream, place);
        }
    }
    (ranks, stream as usize + 1)
}

/// Sets the first stamp of those buffers that are `asked` for to the earliest of all their records,
/// and finds those that are not in order inside.
pub(crate) fn measure<S: Source>(
    source: &mut S,
    entries: &mut [BufferEntry],
    layout: &Layout,
    mode: Mode,
    asked: impl Fn(&BufferEntry) -> bool,
) -> Result<()> {
    let mut loaded = Loaded::<S::Block>::default();
    for entry in entries.iter_mut().filter(|entry| asked(entry)) {
        let mut least = None;
        if entry.fill as usize > BUFFER_HEADER_SIZE {
            // The faults met here are met again when the records are read.
            let mut log = Log::new(mode);
            let (offset, len) = (entry.offset, entry.stored as usize);
            source.read(offset, len, &mut loaded.raw).map_err(|e| Error::new(offset, e.into()))?;
            loaded.set(*entry, layout, &mut log)?;
            let mut last = i64::MIN;
            let mut unordered = false;
            while let Some((_, stamp)) = loaded.next(&mut log) {
                least = Some(least.map_or(stamp, |least: i64| least.min(stamp)));
                unordered |= stamp < last;
                last = stamp;
            }
            log.check()?;
            entry.unordered = unordered;
        }
        entry.first_stamp = least.unwrap_or(layout.start);
    }
    Ok(())
}
