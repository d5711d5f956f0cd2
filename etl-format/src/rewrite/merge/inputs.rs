//! Reads all inputs of a merge together in time order.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};

use super::super::flagged::{Flagged, Place};
use super::super::losses::Missing;
use crate::error::{Error, ErrorKind, Result};
use crate::read::{Note, Options, Order, OrderCheck, Part, Record, Records, Source, Trace};
use crate::write::record::{Moved, Raw};
use crate::{FileHeader, Ticks};

use super::timestamps::{convert, is_header_event, is_plain};
use super::{MergedInput, Relation, is_partition};

/// A trace to be merged.
#[derive(Debug)]
pub(super) struct Input<S: Source> {
    pub header: FileHeader,
    trace: Trace<S>,
}

impl<S: Source> Input<S> {
    /// What it is of a session with several files.
    pub fn part(&self) -> Option<Part> {
        self.trace.part()
    }

    /// Opens all inputs.
    pub fn open_all(sources: Vec<S>, options: &Options) -> Result<Vec<Self>> {
        let open = |(input, source)| match Trace::open(source, options) {
            Ok(trace) => Ok(Input {
                header: trace.header().clone(),
                trace,
            }),
            Err(error) => Err(error.in_input(input)),
        };
        let inputs = sources
            .into_iter()
            .enumerate()
            .map(open)
            .collect::<Result<Vec<_>>>()?;
        if inputs.is_empty() {
            Err(Error::new(0, ErrorKind::NoInput))
        } else {
            Ok(inputs)
        }
    }

    /// How many processors the merged trace needs for this one.
    pub fn processors(&self) -> u32 {
        let used = self
            .trace
            .buffers()
            .iter()
            .map(|b| u32::from(b.processor) + 1)
            .max();
        self.header.processors.max(used.unwrap_or(1))
    }

    /// The largest number of bytes that its open buffers take: one per processor, two where the
    /// reader looks ahead, and as much again for the positions of their records.
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
}

struct Reader<S: Source> {
    records: Records<S>,
    relation: Relation,
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
        }
    }

    /// The partition in buffer 0 of the input that began first, for that of the merged trace.
    pub fn partition(&mut self) -> Result<Option<Vec<u8>>> {
        let input = self.first;
        match (self.waiting.get_mut(input), self.relations.get(input)) {
            (Some(Some(i)), Some(relation)) => {
                i.partition(relation).map_err(|error| error.in_input(input))
            }
            _ => Ok(None),
        }
    }

    /// Calls `f` for all records in time order, with the index of their input. The first record of
    /// a buffer comes with the place of a loss that the buffer is. Records on another clock are
    /// converted. Up to `threads - 1` other threads decompress what is compressed.
    pub fn for_each(
        &mut self,
        threads: usize,
        f: impl FnMut(usize, &Record<'_>, &Moved<'_>, Option<Place>) -> Result<()>,
    ) -> Result<()> {
        self.open()?;
        let packed: Vec<_> = self
            .readers
            .iter()
            .map(|r| r.records.gains_by_threads())
            .collect();
        let packed_inputs = packed.iter().filter(|packed| **packed).count();
        let others = threads.saturating_sub(1);
        if packed_inputs == 0 || others == 0 {
            return self.merge(f);
        }
        std::thread::scope(|scope| {
            let readers = self
                .readers
                .iter_mut()
                .zip(packed)
                .filter(|(_, packed)| *packed);
            for (nth, (reader, _)) in readers.enumerate() {
                // The first ones get what cannot be divided.
                let share = others / packed_inputs + usize::from(nth < others % packed_inputs);
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
                // A record that an earlier merge copied to its buffer 0 comes once more.
                let first = record.location().buffer_offset == 0;
                if !(first && (is_header_event(&record) || record.is_stale())) {
                    reader.count += 1;
                    let (bytes, timestamp) = if is_plain(&reader.relation) {
                        (record.bytes(), record.timestamp())
                    } else {
                        let timestamp = convert(&record, &reader.relation, &mut converted);
                        (converted.as_slice(), timestamp)
                    };
                    let own = record.has_own_timestamp().then_some(timestamp);
                    let moved = Moved {
                        raw: Raw {
                            bytes,
                            timestamp: own,
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
            let Some(Input { trace, .. }) = waiting.take() else {
                continue;
            };
            let notes = trace.notes().to_vec();
            let flagged = Flagged::of(trace.buffers());
            let missing = Missing::from(&trace);
            let records = trace
                .into_records(Order::Time)
                .map_err(|error| error.in_input(input))?;
            let relation = *relation;
            let reader = Reader {
                records,
                relation,
                count: 0,
                notes,
                flagged,
                missing,
            };
            self.readers.push(reader);
        }
        // The flags of some inputs would say that the others lost nothing elsewhere.
        let mut lossy = self.readers.iter().zip(&self.events_lost);
        if lossy.any(|(reader, lost)| *lost > 0 && !reader.flagged.has_lost_events()) {
            self.readers
                .iter_mut()
                .for_each(|reader| reader.flagged.forget_lost_events());
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
            Ok(timestamp) => Ok(timestamp.map(|s| reader.relation.timestamp(s))),
            Err(error) => Err(error.in_input(input)),
        }
    }

    /// Fails if an input's records came in another order than that of time.
    pub fn ensure_in_order(&self) -> Result<()> {
        match self
            .readers
            .iter()
            .position(|reader| reader.records.report().late > 0)
        {
            Some(input) => Err(Error::new(0, ErrorKind::OutOfOrder).in_input(input)),
            None => Ok(()),
        }
    }

    /// The inputs and processors that lost a buffer before their first one.
    pub fn first_lost(&self) -> Vec<(usize, u16)> {
        let waiting = self.waiting.iter().enumerate();
        let flagged = waiting
            .filter_map(|(input, i)| Some((input, Flagged::of(i.as_ref()?.trace.buffers()))));
        flagged
            .flat_map(|(input, f)| f.first_lost().map(move |p| (input, p)).collect::<Vec<_>>())
            .collect()
    }

    /// The places of losses at buffers that had no record.
    pub fn unread_losses(&mut self) -> impl Iterator<Item = Place> {
        self.readers
            .iter_mut()
            .flat_map(|reader| reader.flagged.take_rest())
    }

    /// Buffers that are missing from the inputs, as far as they have been read.
    pub fn missing_buffers(&self) -> u64 {
        let missing = self
            .readers
            .iter()
            .map(|r| r.missing.buffers(r.records.damage()));
        missing.fold(0, u64::saturating_add)
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
