//! Reads all inputs of a merge together in time order.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};

use super::super::flagged::{Flagged, Place};
use super::super::losses::Missing;
use crate::constants::LogFileMode;
use crate::error::{Error, ErrorKind, Result};
use crate::read::{Note, Options, Order, OrderCheck, Part, Record, Records, Source, Trace};
use crate::write::record::{Moved, Raw};
use crate::{FileHeader, Ticks};

use super::gaps::Gap;
use super::timestamps::{convert, is_header_event};
use super::{MergedInput, Relation, is_partition};

/// A trace to be merged.
#[derive(Debug)]
pub(super) struct Input<S: Source> {
    pub header: FileHeader,
    trace: Trace<S>,
}

impl<S: Source> Input<S> {
    /// The place of the file in a session with several files.
    pub fn part(&self) -> Option<Part> {
        self.trace.part()
    }

    /// Opens all inputs.
    pub fn open_all(sources: Vec<S>, options: &Options) -> Result<Vec<Self>> {
        let mut inputs = Vec::new();
        for (input, source) in sources.into_iter().enumerate() {
            let trace = Trace::open(source, options).map_err(|error| error.in_input(input))?;
            inputs.push(Input {
                header: trace.header().clone(),
                trace,
            });
        }
        if inputs.is_empty() {
            return Err(Error::new(0, ErrorKind::NoInput));
        }
        Ok(inputs)
    }

    /// How many processors the merged trace needs for this input.
    pub fn processors(&self) -> u32 {
        let buffers = self.trace.buffers().iter();
        let used = buffers.map(|b| u32::from(b.processor) + 1).max();
        self.header.processors.max(used.unwrap_or(1))
    }

    /// The largest number of bytes of its open buffers: one per processor, two if the reader looks
    /// ahead, and as much again for the positions of their records.
    pub fn memory(&self, check: OrderCheck) -> u64 {
        let open = if check == OrderCheck::Lookahead { 2 } else { 1 };
        let mut largest = BTreeMap::new();
        for buffer in self.trace.buffers() {
            let bytes: &mut u64 = largest.entry(buffer.processor).or_default();
            *bytes = (*bytes).max(buffer.fill.into());
        }
        largest
            .into_values()
            .fold(0, |sum, bytes| sum.saturating_add(2 * open * bytes))
    }

    /// The partition record in buffer 0, if there is one, on the merged clock.
    fn partition(&mut self, relation: &Relation) -> Result<Option<Vec<u8>>> {
        let mut records = self.trace.records_of(|buffer| buffer.offset == 0);
        // Only a few records follow the header event.
        for _ in 0..BUFFER_0_RECORDS {
            match records.next_record()? {
                Some(record) if record.location().buffer_offset == 0 => {
                    if is_partition(&record) {
                        let mut bytes = Vec::new();
                        convert(&record, relation, &mut bytes);
                        return Ok(Some(bytes));
                    }
                }
                _ => break,
            }
        }
        Ok(None)
    }
}

/// Records of a buffer 0 that are searched for the partition.
const BUFFER_0_RECORDS: usize = 64;

/// All inputs, being read.
pub(super) struct Inputs<S: Source> {
    waiting: Vec<Option<Input<S>>>,
    readers: Vec<Reader<S>>,
    relations: Vec<Relation>,
    /// The input that began first.
    first: usize,
    /// Lost events that the inputs count.
    events_lost: Vec<u32>,
    omits_headers: bool,
}

struct Reader<S: Source> {
    records: Records<S>,
    relation: Relation,
    /// Whether its header event is copied: it says when the session ran. The header of a merged
    /// trace spans all of its sessions.
    keeps_header: bool,
    /// Records without the header event.
    count: u64,
    notes: Vec<Note>,
    flagged: Flagged,
    /// Buffers that are missing.
    missing: Missing,
}

/// Stops the other threads at the end of the merge, also after an error or panic.
struct StopThreadsGuard<'a, S: Source>(&'a mut Inputs<S>);

impl<S: Source> Drop for StopThreadsGuard<'_, S> {
    fn drop(&mut self) {
        self.0
            .readers
            .iter_mut()
            .for_each(|reader| reader.records.stop_threads());
    }
}

impl<S: Source> Inputs<S> {
    pub fn new(
        inputs: Vec<Input<S>>,
        relations: Vec<Relation>,
        first: usize,
        events_lost: Vec<u32>,
    ) -> Self {
        let waiting = inputs.into_iter().map(Some).collect();
        Inputs {
            waiting,
            readers: Vec::new(),
            relations,
            first,
            events_lost,
            omits_headers: false,
        }
    }

    /// Leaves out the header events of all inputs.
    pub fn omit_headers(&mut self) {
        self.omits_headers = true;
    }

    /// The partition in buffer 0 of the input that began first, for buffer 0 of the merged trace.
    pub fn partition(&mut self) -> Result<Option<Vec<u8>>> {
        let index = self.first;
        if let Some(Some(input)) = self.waiting.get_mut(index)
            && let Some(relation) = self.relations.get(index)
        {
            input
                .partition(relation)
                .map_err(|error| error.in_input(index))
        } else {
            Ok(None)
        }
    }

    /// Calls `f` for all records in time order, with the index of their input. With the first
    /// record of a buffer, `f` receives the losses that begin or end there. Timestamps of another
    /// clock are converted. Up to `threads - 1` other threads decompress.
    pub fn for_each(
        &mut self,
        threads: usize,
        f: impl FnMut(usize, &Record<'_>, &Moved<'_>, Option<Place>) -> Result<()>,
    ) -> Result<()> {
        self.open()?;
        let compressed_inputs = self
            .readers
            .iter()
            .filter(|reader| reader.records.is_worth_threads())
            .count();
        let others = threads.saturating_sub(1);
        if compressed_inputs == 0 || others == 0 {
            return self.merge(f);
        }
        std::thread::scope(|scope| {
            let readers = self.readers.iter_mut();
            let compressed = readers.filter(|reader| reader.records.is_worth_threads());
            for (number, reader) in compressed.enumerate() {
                // The first inputs get the threads that cannot be divided equally.
                let has_extra = number < others % compressed_inputs;
                let share = others / compressed_inputs + usize::from(has_extra);
                if share > 0 {
                    reader.records.start_threads(scope, share);
                }
            }
            let guard = StopThreadsGuard(self);
            guard.0.merge(f)
        })
    }

    fn merge(
        &mut self,
        mut f: impl FnMut(usize, &Record<'_>, &Moved<'_>, Option<Place>) -> Result<()>,
    ) -> Result<()> {
        let mut heap = BinaryHeap::with_capacity(self.readers.len());
        for input in 0..self.readers.len() {
            if let Some(timestamp) = self.due(input)? {
                heap.push(Reverse((timestamp, input)));
            }
        }
        let mut converted = Vec::new();
        let mut current = heap.pop();
        while let Some(Reverse((_, input))) = current {
            let bound = heap
                .peek()
                .map_or((Ticks::MAX, usize::MAX), |Reverse(next)| *next);
            // The current input continues until another one is due.
            let due = loop {
                let Some(reader) = self.readers.get_mut(input) else {
                    break None;
                };
                let Some(record) = reader
                    .records
                    .next_record()
                    .map_err(|error| error.in_input(input))?
                else {
                    break None;
                };
                let is_in_buffer_0 = record.location().buffer_offset == 0;
                let is_header = is_in_buffer_0 && is_header_event(&record);
                // Another buffer also contains a stale record.
                let is_stale = is_in_buffer_0 && record.is_stale();
                if !is_stale && (!is_header || reader.keeps_header) {
                    reader.count += u64::from(!is_header);
                    let mut bytes = record.bytes();
                    let mut timestamp = record.timestamp();
                    if matches!(reader.relation, Relation::Converted { .. }) {
                        timestamp = convert(&record, &reader.relation, &mut converted);
                        bytes = converted.as_slice();
                    }
                    let own_timestamp = record.has_own_timestamp().then_some(timestamp);
                    let moved = Moved {
                        raw: Raw {
                            bytes,
                            timestamp: own_timestamp,
                        },
                        timestamp,
                    };
                    let place = reader.flagged.take(record.location().buffer_offset);
                    f(input, &record, &moved, place)?;
                }
                let due = self.due(input)?;
                if due.is_none_or(|timestamp| (timestamp, input) > bound) {
                    break due;
                }
            };
            current = match (due, heap.peek_mut()) {
                // One step for both: the input that is due leaves the heap, the current one joins.
                (Some(timestamp), Some(mut next)) => {
                    Some(std::mem::replace(&mut *next, Reverse((timestamp, input))))
                }
                (Some(timestamp), None) => Some(Reverse((timestamp, input))),
                (None, Some(next)) => Some(PeekMut::pop(next)),
                (None, None) => None,
            };
        }
        Ok(())
    }

    /// Starts reading in time order; this may scan all records first.
    fn open(&mut self) -> Result<()> {
        for (input, (waiting, relation)) in self.waiting.iter_mut().zip(&self.relations).enumerate()
        {
            let Some(Input { trace, header }) = waiting.take() else {
                continue;
            };
            self.readers.push(Reader {
                relation: *relation,
                keeps_header: !self.omits_headers && !header.mode.has(LogFileMode::RELOG),
                count: 0,
                notes: trace.notes().to_vec(),
                flagged: Flagged::of(trace.buffers()),
                missing: Missing::from(&trace),
                records: trace
                    .into_records(Order::Time)
                    .map_err(|error| error.in_input(input))?,
            });
        }
        // If an input does not flag where it lost events, flags of other inputs would mean that no
        // events were lost at other times.
        let mut inputs = self.readers.iter().zip(&self.events_lost);
        if inputs.any(|(reader, lost)| *lost > 0 && !reader.flagged.has_lost_events()) {
            for reader in &mut self.readers {
                reader.flagged.forget_lost_events();
            }
        }
        Ok(())
    }

    /// The timestamp of the next record of an input, on the merged clock.
    #[inline]
    fn due(&mut self, input: usize) -> Result<Option<Ticks>> {
        let Some(reader) = self.readers.get_mut(input) else {
            return Ok(None);
        };
        match reader.records.next_timestamp() {
            Ok(timestamp) => Ok(timestamp.map(|ticks| reader.relation.timestamp(ticks))),
            Err(error) => Err(error.in_input(input)),
        }
    }

    /// Fails if the records of an input were not in time order.
    pub fn ensure_in_order(&self) -> Result<()> {
        let mut readers = self.readers.iter();
        match readers.position(|reader| reader.records.report().late > 0) {
            Some(input) => Err(Error::new(0, ErrorKind::OutOfOrder).in_input(input)),
            None => Ok(()),
        }
    }

    /// The buffers that were lost before the first buffer of a processor.
    pub fn first_lost(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        for (input, waiting) in self.waiting.iter().enumerate() {
            if let Some(Input { trace, .. }) = waiting {
                let flagged = Flagged::of(trace.buffers());
                let processors = flagged.first_lost();
                gaps.extend(processors.map(|processor| Gap { input, processor }));
            }
        }
        gaps
    }

    /// The places of losses at buffers that had no record.
    pub fn unread_losses(&mut self) -> impl Iterator<Item = Place> {
        self.readers
            .iter_mut()
            .flat_map(|reader| reader.flagged.take_rest())
    }

    /// Buffers that are missing from the part of the inputs that has been read.
    pub fn missing_buffers(&self) -> u64 {
        let mut missing = 0u64;
        for reader in &self.readers {
            let buffers = reader.missing.buffers(reader.records.damage());
            missing = missing.saturating_add(buffers);
        }
        missing
    }

    /// A report on each input.
    pub fn report(self) -> Vec<MergedInput> {
        self.readers
            .into_iter()
            .map(|r| MergedInput {
                records: r.count,
                relation: r.relation,
                damage: r.records.damage().to_vec(),
                header: r.records.header().clone(),
                notes: r.notes,
            })
            .collect()
    }
}
