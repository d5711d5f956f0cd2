//! Time order: a merge over the buffers of all processors.
//!
//! # How
//! Each buffer is a run of records in time order, and the buffers of one processor follow each other
//! in time. So it is enough to hold two buffers per processor, the one that is being read and the
//! next, and to take the earliest record of all. Nothing of this is taken on trust:
//!
//! * A buffer is looked through when it is opened, once: the places of its records are kept while it
//!   is open. One that is not in time order inside is sorted, stably
//!   ([`OrderReport::sorted_buffers`]).
//! * Where buffers of one processor overlap in time, several of them are open at once and the merge
//!   still gives exact order ([`OrderReport::overlaps`]).
//! * A record that belongs before a whole buffer of its processor, and before what has been given
//!   already, is given where it stands and counted ([`OrderReport::late`]): a caller that needs
//!   exact order on any input asks for [`OrderCheck::Full`], which looks at every record beforehand
//!   and opens each buffer in time for its earliest one.
//!
//! Where memory counts most, [`OrderCheck::Heads`] does without the second buffer.
//!
//! With nothing late this is a stable sort of the whole trace by timestamp; equal timestamps come in the order
//! of processors, and on one processor in that of sequence numbers and of places in the buffer. The
//! file's header buffer counts as a processor before all others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::thread::Scope;

use crate::constants::BUFFER_HEADER_SIZE;
use crate::error::{Error, ErrorKind, Result};

use super::ahead::{Ahead, Helper, make_ready};
use super::damage::{Damage, Log, Mode};
use super::index::{BufferEntry, Layout};
use super::limits::Limits;
use super::loaded::{Loaded, Spot};
use super::record::Record;
use super::source::Source;
use super::tally::Tally;
use super::trace::Options;

/// How far the reader looks ahead for time order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrderCheck {
    /// Look at each buffer when it is opened, one buffer ahead of each processor: one pass, and exact
    /// unless a record is displaced by more than a whole buffer of its processor. That is counted
    /// ([`OrderReport::late`]).
    #[default]
    Ahead,
    /// Look at every record before giving the first: exact on any input, with one buffer per
    /// processor in memory. Costs a walk, and for a compressed trace a second decompression.
    Full,
    /// Look at the first record of each buffer only, and hold one buffer per processor: exact
    /// wherever buffers begin with their earliest record, as all real ones seen do.
    Heads,
}

/// What the reader had to do for time order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderReport {
    /// Buffers whose records had to be sorted.
    pub sorted_buffers: u64,
    /// Buffers that begin before an earlier one of the same processor ends.
    pub overlaps: u64,
    /// Records given after a later one; always 0 with [`OrderCheck::Full`].
    pub late: u64,
    /// Most bytes held at once: buffers, and 24 bytes for each of their records.
    pub held: u64,
}

impl OrderReport {
    /// Whether the streams were in time order, so that merging them was all there was to do.
    #[must_use]
    pub fn was_in_order(&self) -> bool {
        *self == OrderReport { held: self.held, ..OrderReport::default() }
    }
}

/// Place of a run in the order of equal timestamps: stream, then buffer within it.
type Rank = (u32, u32);

/// When something is due: timestamp, then rank.
type Due = (i64, Rank);

/// Nothing is due later.
const NEVER: Due = (i64::MAX, (u32::MAX, u32::MAX));

/// In place of an index: there is no current run.
const NO_RUN: usize = usize::MAX;

/// A buffer that is being merged.
#[derive(Debug)]
struct Run<B> {
    loaded: Loaded<B>,
    rank: Rank,
    /// Its records in time order.
    records: Vec<Spot>,
    /// Those of them that have been given.
    given: usize,
    held: u64,
    /// Most bytes that the memory of this run has taken.
    kept: u64,
    /// The faults of this buffer.
    log: Log,
}

impl<B> Run<B> {
    /// When the next record is due.
    fn due(&self) -> Option<Due> {
        self.records.get(self.given).map(|next| (next.timestamp, self.rank))
    }
}

/// What waits in the heap: the next buffer of a stream, or a run that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Waiting {
    /// Index of the entry. Comes first: a buffer is opened before the records it looks ahead of.
    Buffer(usize),
    /// Index of an open run.
    Open(usize),
}

/// Reads a trace in time order, or, from [`super::Trace::in_file_order`], as it stands.
///
/// Holds two buffers per processor, and more where the trace makes it necessary. The order is that of
/// a stable sort of the whole trace by timestamp: equal timestamps come in the order of processors (the
/// file's header buffer before all), and on one processor in that of sequence numbers and of places
/// in the buffer. How sure that is says [`OrderCheck`].
#[derive(Debug)]
pub struct Ordered<S: Source> {
    source: S,
    layout: Layout,
    limits: Limits,
    mode: Mode,
    order: OrderCheck,
    /// Buffer by buffer, as they stand in the file, and not by time.
    as_it_stands: bool,
    tally: Tally,
    records: u64,
    /// What reading ended with, for good.
    failed: Option<Error>,
    /// All buffers, in the order of streams and then of time.
    entries: Vec<BufferEntry>,
    /// Ranks of the entries.
    ranks: Vec<Rank>,
    heap: BinaryHeap<Reverse<(Due, Waiting)>>,
    runs: Vec<Run<S::Block>>,
    /// Runs whose memory can be used again.
    free: Vec<usize>,
    /// The run that gives the next record, and until when it may go on doing so.
    current: usize,
    bound: Due,
    last: i64,
    held: u64,
    /// Latest timestamp of each stream's buffers opened so far.
    ends: Vec<i64>,
    report: OrderReport,
    /// Buffers that other threads make ready.
    ahead: Option<Ahead<S::Block>>,
}

/// Threads beyond these would only wait for the one that merges.
const MAX_THREADS: usize = 63;

/// Ends the other threads whichever way the work with the reader ends.
struct Alone<'a, S: Source>(&'a mut Ordered<S>);

impl<S: Source> Drop for Alone<'_, S> {
    fn drop(&mut self) {
        self.0.end_threads();
    }
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
            (!e.is_header(), e.processor, e.first_timestamp, e.sequence_number, e.offset)
        });
        let ranks = ranks(&entries);
        Self::begin(source, entries, ranks, layout, options, damage, false)
    }

    /// A reader for which all buffers are those of one processor, one behind the other.
    pub(crate) fn as_it_stands(
        source: S,
        mut entries: Vec<BufferEntry>,
        layout: Layout,
        options: &Options,
        damage: Vec<Damage>,
    ) -> Self {
        entries.sort_by_key(|e| e.offset);
        let ranks = (vec![(0, 0); entries.len()], 1);
        Self::begin(source, entries, ranks, layout, options, damage, true)
    }

    fn begin(
        source: S,
        entries: Vec<BufferEntry>,
        (ranks, streams): (Vec<Rank>, usize),
        layout: Layout,
        options: &Options,
        damage: Vec<Damage>,
        as_it_stands: bool,
    ) -> Self {
        let mut ordered = Ordered {
            source,
            layout,
            limits: options.limits,
            mode: options.mode,
            order: options.order,
            as_it_stands,
            tally: Tally::new(damage),
            records: 0,
            failed: None,
            entries,
            ranks,
            heap: BinaryHeap::new(),
            runs: Vec::new(),
            free: Vec::new(),
            current: NO_RUN,
            bound: NEVER,
            last: i64::MIN,
            held: 0,
            ends: vec![i64::MIN; streams],
            report: OrderReport::default(),
            ahead: None,
        };
        let mut last = None;
        for index in 0..ordered.ranks.len() {
            let stream = ordered.ranks.get(index).map(|rank| rank.0);
            if stream != last {
                ordered.wait_for(index, i64::MIN);
            }
            last = stream;
        }
        ordered
    }

    /// Puts a buffer in line: at the timestamp of its earliest record where that is known for sure, else
    /// at `ahead`.
    fn wait_for(&mut self, index: usize, ahead: i64) {
        if let (Some(entry), Some(&rank)) = (self.entries.get(index), self.ranks.get(index)) {
            let due = match self.order {
                // Not before the last record of the one that is being read.
                _ if self.as_it_stands => NEVER,
                OrderCheck::Full | OrderCheck::Heads => (entry.first_timestamp, rank),
                // Before the record that is due then.
                OrderCheck::Ahead => (ahead, (0, 0)),
            };
            self.heap.push(Reverse((due, Waiting::Buffer(index))));
        }
    }

    /// Calls `work` with this reader, while up to `threads - 1` other threads decompress buffers and
    /// find their records ahead of it; with one thread, or few compressed buffers, `work` is alone.
    /// Buffers that are not compressed take longer to hand over than to read.
    ///
    /// Records, damage and report are the same for any number of threads. Up to 16 buffers for each
    /// further thread are held besides those that the report counts.
    pub fn with_threads<T>(&mut self, threads: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let others = threads.saturating_sub(1);
        if others == 0 || !self.gains_by_threads() {
            return work(self);
        }
        std::thread::scope(|scope| {
            self.start(scope, others);
            let alone = Alone(self);
            work(&mut *alone.0)
        })
    }

    /// As [`Ordered::with_threads`], with a further hand for `work`: a thread that takes what it gets from this
    /// reader can call [`Helper::help`] while it would wait for more, and so share in the finding of records, in
    /// buffers that are not compressed as well.
    ///
    /// Records, damage and report are the same however much it helps. Up to 16 buffers more are held.
    pub fn with_helper<T>(
        &mut self,
        threads: usize,
        work: impl FnOnce(&mut Self, Helper<S::Block>) -> T,
    ) -> T {
        if self.entries.len() < Self::WORTH_IT {
            return work(self, Helper::idle());
        }
        let others = if self.gains_by_threads() { threads.saturating_sub(1) } else { 0 };
        std::thread::scope(|scope| {
            self.start(scope, others);
            let helper = self.ahead.as_mut().map_or_else(Helper::idle, |ahead| ahead.helper(true));
            let alone = Alone(self);
            work(&mut *alone.0, helper)
        })
    }

    /// Whether there is so much to decompress that it is worth it to start a thread.
    pub(crate) fn gains_by_threads(&self) -> bool {
        self.entries.iter().filter(|entry| entry.compressed).count() >= Self::WORTH_IT
    }

    /// Starts other threads. They end at [`Ordered::end_threads`], which has to come before the end
    /// of the scope.
    pub(crate) fn start<'scope>(&mut self, scope: &'scope Scope<'scope, '_>, others: usize)
    where
        S::Block: 'scope,
    {
        let (order, others) = (self.likely_order(), others.min(MAX_THREADS));
        self.ahead =
            Some(Ahead::start(scope, others, order, &self.layout, self.mode, !self.as_it_stands));
    }

    /// Goes on alone.
    pub(crate) fn end_threads(&mut self) {
        self.ahead = None;
    }

    /// Buffers for which it is worth it to start a thread.
    const WORTH_IT: usize = 16;

    /// The order in which buffers are likely to be opened: where each is opened ahead of its own
    /// records, at the time of those before it.
    fn likely_order(&self) -> Vec<usize> {
        let stream = |index: usize| self.ranks.get(index).map(|rank| rank.0);
        let due = |index: usize| {
            let before = index.checked_sub(1).filter(|&before| stream(before) == stream(index));
            let at = match self.order {
                // They are sorted by place, and stay so.
                _ if self.as_it_stands => None,
                OrderCheck::Full | OrderCheck::Heads => Some(index),
                OrderCheck::Ahead => before,
            };
            at.and_then(|at| self.entries.get(at)).map_or(i64::MIN, |entry| entry.first_timestamp)
        };
        let mut order: Vec<_> = (0..self.entries.len()).collect();
        order.sort_by_key(|&index| due(index));
        order
    }

    /// The next record in time, or `None` at the end of the trace.
    ///
    /// # Errors
    /// In [`super::Mode::Strict`] the first fault met; in [`super::Mode::Salvage`] only what the
    /// medium or a limit reports.
    #[inline(always)]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        // The run that gave the last record goes on until another one is due.
        if let Err(error) = self.ready() {
            return Err(self.fail(error));
        }
        let Some(run) = self.runs.get_mut(self.current) else { return Ok(None) };
        let Some(&spot) = run.records.get(run.given) else { return Ok(None) };
        run.given += 1;
        if spot.timestamp < self.last {
            self.report.late += 1;
        } else {
            self.last = spot.timestamp;
        }
        self.records += 1;
        Ok(Some(run.loaded.record_at(spot)))
    }

    /// The timestamp of the record that [`Ordered::next_record`] is going to give, or `None` at the end
    /// of the trace: for merging several traces.
    ///
    /// # Errors
    /// As [`Ordered::next_record`].
    #[inline]
    pub fn next_timestamp(&mut self) -> Result<Option<i64>> {
        if let Err(error) = self.ready() {
            return Err(self.fail(error));
        }
        Ok(self.runs.get(self.current).and_then(Run::due).map(|(timestamp, _)| timestamp))
    }

    /// Sees to it that the next record of the current run is the one due next; at the end there is
    /// no current run.
    #[inline(always)]
    fn ready(&mut self) -> Result<()> {
        match self.runs.get(self.current).and_then(Run::due) {
            Some(due) if due <= self.bound => Ok(()),
            due => self.switch(due),
        }
    }

    /// The end of the trace, or of what could be read.
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

    /// Keeps what reading ended with.
    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.failed = Some(error.clone());
        error
    }

    /// Turns to the run that is due next, opening buffers as their time comes. `due` is when the
    /// current run's next record is.
    fn switch(&mut self, due: Option<Due>) -> Result<()> {
        let left = core::mem::replace(&mut self.current, NO_RUN);
        match due {
            // One step for both: what was due next goes, and the run that is left comes.
            Some(due) => {
                let waiting = match self.heap.peek_mut() {
                    Some(mut next) => {
                        let Reverse((_, waiting)) = *next;
                        *next = Reverse((due, Waiting::Open(left)));
                        waiting
                    }
                    None => Waiting::Open(left),
                };
                if self.turn_to(waiting)? {
                    return Ok(());
                }
            }
            None => self.close(left),
        }
        loop {
            if self.failed.is_some() {
                return self.end();
            }
            let Some(Reverse((_, waiting))) = self.heap.pop() else {
                return self.end();
            };
            if self.turn_to(waiting)? {
                return Ok(());
            }
        }
    }

    /// Makes an open run the current one, or opens a buffer and puts it in line. Returns whether
    /// there is a current run now.
    #[inline(always)]
    fn turn_to(&mut self, waiting: Waiting) -> Result<bool> {
        match waiting {
            Waiting::Open(index) => {
                self.current = index;
                self.bound = self.heap.peek().map_or(NEVER, |Reverse((due, _))| *due);
                Ok(true)
            }
            Waiting::Buffer(entry) => {
                let index = self.open(entry)?;
                let due = self.runs.get(index).and_then(Run::due);
                // The one behind it comes into line.
                let stream = |index: usize| self.ranks.get(index).map(|rank| rank.0);
                if stream(entry + 1).is_some() && stream(entry + 1) == stream(entry) {
                    self.wait_for(entry + 1, due.map_or(i64::MIN, |due| due.0));
                }
                match due {
                    Some(due) => self.heap.push(Reverse((due, Waiting::Open(index)))),
                    None => self.close(index),
                }
                Ok(false)
            }
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
        self.free.push(index);
    }

    /// Reads a buffer and readies its first record.
    fn open(&mut self, index: usize) -> Result<usize> {
        let (Some(&entry), Some(&rank)) = (self.entries.get(index), self.ranks.get(index)) else {
            return Ok(usize::MAX);
        };
        let held = u64::from(entry.stored) + if entry.compressed { entry.fill.into() } else { 0 };
        self.hold(held, entry.offset)?;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.runs.push(Run {
                loaded: Loaded::default(),
                rank,
                records: Vec::new(),
                given: 0,
                held: 0,
                kept: 0,
                log: Log::new(self.mode),
            });
            self.runs.len() - 1
        });
        let Some(run) = self.runs.get_mut(slot) else { return Ok(slot) };
        (run.rank, run.held, run.given) = (rank, held, 0);
        // Memory is used again, but a small buffer must not keep that of a large one.
        if run.kept > held.saturating_mul(4).saturating_add(0x1000) {
            (run.loaded, run.records, run.kept) = (Loaded::default(), Vec::new(), 0);
        }
        run.kept = run.kept.max(held);
        let (offset, len) = (entry.offset, entry.stored as usize);
        let (ahead, source) = (self.ahead.as_mut(), &mut self.source);
        let piece = ahead.and_then(|ahead| ahead.take(index, &self.entries, source));
        let sorted = match (piece, &mut self.ahead) {
            (Some(piece), Some(ahead)) => {
                let loaded = core::mem::replace(&mut run.loaded, piece.loaded);
                ahead.give_back((loaded, core::mem::replace(&mut run.records, piece.records)));
                run.log = piece.log;
                piece.sorted?
            }
            _ => {
                let read = self.source.read(offset, len, &mut run.loaded.raw);
                read.map_err(|e| Error::new(offset, e.into()))?;
                let Run { loaded, records, log, .. } = run;
                make_ready(entry, &self.layout, loaded, records, log, !self.as_it_stands)?
            }
        };
        self.report.sorted_buffers += u64::from(sorted);
        if let (Some(first), Some(last), Some(end)) =
            (run.records.first(), run.records.last(), self.ends.get_mut(rank.0 as usize))
        {
            self.report.overlaps += u64::from(first.timestamp < *end);
            *end = last.timestamp.max(*end);
        }
        let spots = run.records.len() as u64 * Spot::COST;
        run.held += spots;
        self.hold(spots, offset)?;
        Ok(slot)
    }

    /// Counts `bytes` more that are held for the buffer at `offset`, within the limit.
    fn hold(&mut self, bytes: u64, offset: u64) -> Result<()> {
        self.held += bytes;
        self.report.held = self.report.held.max(self.held);
        if self.held > self.limits.held {
            let (need, limit) = (self.held, self.limits.held);
            let kind = ErrorKind::Limit { what: "the buffers held for time order", need, limit };
            return Err(Error::new(offset, kind));
        }
        Ok(())
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

/// Place of each buffer in the order of equal timestamps: its stream, and its place there by sequence
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

/// Sets the first timestamp of those buffers that are `asked` for to the earliest of all their records,
/// and finds those that are not in order inside. Up to `threads - 1` other threads decompress.
pub(crate) fn measure<S: Source>(
    source: &mut S,
    entries: &mut [BufferEntry],
    layout: &Layout,
    mode: Mode,
    threads: usize,
    asked: impl Fn(&BufferEntry) -> bool,
) -> Result<()> {
    let others = threads.saturating_sub(1).min(MAX_THREADS);
    let packed = entries.iter().filter(|entry| entry.compressed && asked(entry)).count();
    if others == 0 || packed < Ordered::<S>::WORTH_IT {
        return measure_alone(source, entries, layout, mode, asked);
    }
    // What is empty is not read.
    let ahead = |e: &BufferEntry| asked(e) && e.fill as usize > BUFFER_HEADER_SIZE;
    let order = (0..entries.len()).filter(|&at| entries.get(at).is_some_and(ahead)).collect();
    std::thread::scope(|scope| {
        let mut ahead = Ahead::<S::Block>::start(scope, others, order, layout, mode, false);
        for index in 0..entries.len() {
            if !entries.get(index).is_some_and(&asked) {
                continue;
            }
            match ahead.take(index, entries, source) {
                Some(mut piece) => {
                    let unordered = piece.sorted?;
                    piece.log.check()?;
                    if let Some(entry) = entries.get_mut(index) {
                        entry.unordered = unordered;
                        let least = piece.records.iter().map(|spot| spot.timestamp).min();
                        entry.first_timestamp = least.unwrap_or(layout.start);
                    }
                    ahead.give_back((piece.loaded, piece.records));
                }
                None => {
                    let one = entries.get_mut(index..=index).unwrap_or_default();
                    measure_alone(source, one, layout, mode, |_| true)?;
                }
            }
        }
        Ok(())
    })
}

fn measure_alone<S: Source>(
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
            while let Some((_, timestamp)) = loaded.next(&mut log) {
                least = Some(least.map_or(timestamp, |least: i64| least.min(timestamp)));
                unordered |= timestamp < last;
                last = timestamp;
            }
            log.check()?;
            entry.unordered = unordered;
        }
        entry.first_timestamp = least.unwrap_or(layout.start);
    }
    Ok(())
}
