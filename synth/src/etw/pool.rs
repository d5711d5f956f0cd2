//! The buffers of a session in memory or in real time: they wait for a flush or for a consumer.

use std::collections::VecDeque;

use etl_format::write::record::{Raw, Record};
use etl_format::write::{Session as Writer, SessionConfig};

use super::BUFFER_HEADER;
use super::buffer_tracker::BufferTracker;
use super::file_sequence::FileSequence;
use crate::truth::BufferOutcome;

/// A buffer with its records.
#[derive(Debug, Default)]
pub(super) struct MemoryBuffer {
    processor: u16,
    bytes: Vec<u8>,
    /// End and timestamp of each record.
    marks: Vec<(usize, Option<i64>)>,
}

impl MemoryBuffer {
    /// Puts its records into a trace, as a buffer of their own.
    pub fn put(&self, writer: &mut Writer<FileSequence>, timestamp: i64) -> etl_format::Result<()> {
        let mut from = 0;
        for &(end, timestamp) in &self.marks {
            let bytes = self.bytes.get(from..end).unwrap_or_default();
            writer.write(self.processor, &Raw { bytes, timestamp })?;
            from = end.next_multiple_of(8);
        }
        writer.seal(self.processor)?;
        writer.flush(timestamp)
    }
}

/// Who reads a session in real time.
pub(super) struct Consumer {
    /// Bytes that it takes in a second.
    pub speed: u64,
    /// What it keeps of what it was given.
    pub copy: Option<Writer<FileSequence>>,
}

/// Buffers in memory.
pub(super) struct BufferPool {
    lanes: Vec<MemoryBuffer>,
    sealed: VecDeque<MemoryBuffer>,
    size: usize,
    pub most: usize,
    one: bool,
    /// The newest take the place of the oldest when there are no more.
    pub wraps: bool,
    pub consumer: Option<Consumer>,
    pub delivered: u64,
    /// Of those that were delivered, the ones that the consumer kept.
    pub kept: u64,
    /// What becomes of its buffers.
    pub tracker: BufferTracker,
}

impl BufferPool {
    pub fn new(config: &SessionConfig, most: u32, one: bool, wraps: bool, remembers: bool) -> Self {
        let mut lanes = Vec::new();
        lanes.resize_with(config.header.processors as usize, MemoryBuffer::default);
        BufferPool {
            lanes,
            sealed: VecDeque::new(),
            size: config.header.buffer_size as usize,
            most: most as usize,
            one,
            wraps,
            consumer: None,
            delivered: 0,
            kept: 0,
            tracker: BufferTracker::new(remembers),
        }
    }

    fn index(&self, processor: u16) -> usize {
        if self.one { 0 } else { usize::from(processor) }
    }

    /// Bytes free in the current buffer of a processor.
    pub fn free_bytes(&self, processor: u16) -> usize {
        let used = self.lanes.get(self.index(processor)).map_or(0, |l| l.bytes.len());
        self.size.saturating_sub(BUFFER_HEADER + used)
    }

    pub fn in_use(&self) -> usize {
        self.sealed.len() + self.lanes.iter().filter(|lane| !lane.marks.is_empty()).count()
    }

    /// Whether a new buffer can be had.
    pub fn has_free(&self) -> bool {
        self.in_use() < self.most || self.wraps && !self.sealed.is_empty()
    }

    pub fn has_sealed(&self) -> bool {
        !self.sealed.is_empty()
    }

    /// Puts a record into a buffer; says whether one was sealed before.
    pub fn write(
        &mut self,
        processor: u16,
        number: u64,
        record: &impl Record,
        len: usize,
    ) -> etl_format::Result<bool> {
        let index = self.index(processor);
        let full = len > self.free_bytes(processor);
        if full {
            self.seal(index);
        }
        let fresh = self.lanes.get(index).is_some_and(|lane| lane.marks.is_empty());
        if fresh && self.in_use() >= self.most {
            self.overwrite();
        }
        let Some(lane) = self.lanes.get_mut(index) else { return Ok(full) };
        lane.processor = processor;
        record.encode(&mut lane.bytes)?;
        lane.marks.push((lane.bytes.len(), record.timestamp()));
        let aligned = lane.bytes.len().next_multiple_of(8);
        lane.bytes.resize(aligned, 0);
        self.tracker.add_event(u16::try_from(index).unwrap_or(u16::MAX), number);
        Ok(full)
    }

    /// The oldest buffer makes room.
    fn overwrite(&mut self) {
        if self.sealed.pop_front().is_some() {
            self.tracker.remove_oldest(BufferOutcome::Discarded);
        }
    }

    fn seal(&mut self, index: usize) {
        if let Some(lane) = self.lanes.get_mut(index).filter(|lane| !lane.marks.is_empty()) {
            self.sealed.push_back(std::mem::take(lane));
            self.tracker.seal(u16::try_from(index).unwrap_or(u16::MAX));
        }
    }

    pub fn seal_all(&mut self) {
        (0..self.lanes.len()).for_each(|index| self.seal(index));
    }

    /// Writes everything into a trace, oldest first: how many events that were.
    pub fn write_all(
        &mut self,
        into: &mut Writer<FileSequence>,
        timestamp: i64,
    ) -> etl_format::Result<u64> {
        self.seal_all();
        let mut events = 0;
        while let Some(held) = self.sealed.pop_front() {
            events += held.marks.len() as u64;
            held.put(into, timestamp)?;
            self.tracker.flushed(true);
        }
        Ok(events)
    }

    /// The consumer gets the oldest buffer.
    pub fn deliver(&mut self, timestamp: i64) -> etl_format::Result<()> {
        let Some(consumer) = &mut self.consumer else { return Ok(()) };
        let Some(held) = self.sealed.pop_front() else { return Ok(()) };
        match &mut consumer.copy {
            Some(copy) => {
                held.put(copy, timestamp)?;
                self.tracker.flushed(true);
                self.kept += held.marks.len() as u64;
            }
            None => self.tracker.remove_oldest(BufferOutcome::Delivered),
        }
        self.delivered += held.marks.len() as u64;
        Ok(())
    }

    /// The session is over: what the consumer has not got it gets now, or nobody does.
    pub fn end(&mut self, timestamp: i64, filetime: i64) -> etl_format::Result<()> {
        self.seal_all();
        while self.consumer.is_some() && self.has_sealed() {
            self.deliver(timestamp)?;
        }
        self.leave(filetime)?;
        self.sealed.clear();
        self.tracker.end();
        Ok(())
    }

    /// The consumer leaves.
    pub fn leave(&mut self, filetime: i64) -> etl_format::Result<()> {
        if let Some(copy) = self.consumer.take().and_then(|consumer| consumer.copy) {
            copy.close(Some(filetime))?;
            self.tracker.note_written();
        }
        Ok(())
    }
}
