//! The buffers of a session in memory or in real time, which wait for a flush or for a consumer.

use std::collections::VecDeque;

use etl_format::constants::BUFFER_HEADER_SIZE;
use etl_format::write::record::{Raw, Record};
use etl_format::write::{Session as Writer, SessionConfig, SessionSummary};
use etl_format::{FileTime, Ticks};

use super::buffer_tracker::BufferTracker;
use super::file_sequence::FileSequence;
use crate::truth::BufferOutcome;

/// A buffer with its records.
#[derive(Debug, Default)]
pub(super) struct MemoryBuffer {
    processor: u16,
    bytes: Vec<u8>,
    /// End and timestamp of each record.
    marks: Vec<(usize, Option<Ticks>)>,
    /// Whether events of the processor were lost before it was sealed.
    lossy: bool,
}

impl MemoryBuffer {
    /// Writes its records to a trace as one buffer.
    pub fn put(&self, writer: &mut Writer<FileSequence>, timestamp: i64) -> etl_format::Result<()> {
        if self.lossy {
            // The flag of the buffer; the header counts the events.
            writer.lose_events(self.processor, 0)?;
        }
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

/// Buffers in a file of buffers from memory: its header takes one.
pub(super) fn in_copy(summary: &SessionSummary) -> u64 {
    summary.buffers_written.saturating_add(1)
}

/// The consumer of a real-time session.
pub(super) struct Consumer {
    /// Bytes that it reads per second.
    pub speed: u64,
    /// The file in which it keeps what it read, and its name.
    pub copy: Option<(Writer<FileSequence>, String)>,
    /// Events that the session has lost since it reads.
    pub lost: u64,
}

/// Buffers in memory.
#[derive(Default)]
pub(super) struct BufferPool {
    lanes: Vec<MemoryBuffer>,
    sealed: VecDeque<MemoryBuffer>,
    size: usize,
    pub most: usize,
    one: bool,
    /// Whether a new buffer replaces the oldest one when all are used.
    pub wraps: bool,
    pub consumer: Option<Consumer>,
    pub delivered: u64,
    /// Delivered events that the consumer kept.
    pub kept: u64,
    /// Files of consumers that are closed.
    pub copied_files: u32,
    /// Buffers in these files.
    pub copied_buffers: u64,
    /// The outcomes of its buffers.
    pub tracker: BufferTracker,
}

impl BufferPool {
    pub fn new(
        config: &SessionConfig,
        most: u32,
        one: bool,
        wraps: bool,
        can_change: bool,
    ) -> Self {
        let mut lanes = Vec::new();
        lanes.resize_with(config.header.processors as usize, MemoryBuffer::default);
        BufferPool {
            lanes,
            size: config.header.buffer_size as usize,
            most: most as usize,
            one,
            wraps,
            tracker: BufferTracker::new(can_change),
            ..BufferPool::default()
        }
    }

    fn index(&self, processor: u16) -> usize {
        if self.one { 0 } else { usize::from(processor) }
    }

    /// Bytes free in the current buffer of a processor.
    pub fn free_bytes(&self, processor: u16) -> usize {
        let used = self
            .lanes
            .get(self.index(processor))
            .map_or(0, |l| l.bytes.len());
        self.size.saturating_sub(BUFFER_HEADER_SIZE + used)
    }

    pub fn in_use(&self) -> usize {
        self.sealed.len()
            + self
                .lanes
                .iter()
                .filter(|lane| !lane.marks.is_empty())
                .count()
    }

    /// Whether a new buffer can replace an old one.
    pub fn can_replace(&self) -> bool {
        self.wraps && !self.sealed.is_empty()
    }

    pub fn has_sealed(&self) -> bool {
        !self.sealed.is_empty()
    }

    /// Writes a record into a buffer. Returns whether the current buffer was sealed first.
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
        let fresh = self
            .lanes
            .get(index)
            .is_some_and(|lane| lane.marks.is_empty());
        if fresh && self.in_use() >= self.most {
            self.overwrite()?;
        }
        let Some(lane) = self.lanes.get_mut(index) else {
            return Ok(full);
        };
        lane.processor = processor;
        record.encode(&mut lane.bytes)?;
        lane.marks.push((lane.bytes.len(), record.timestamp()));
        let aligned = lane.bytes.len().next_multiple_of(8);
        lane.bytes.resize(aligned, 0);
        self.tracker
            .add_event(u16::try_from(index).unwrap_or(u16::MAX), number);
        Ok(full)
    }

    /// Discards the oldest buffer. A consumer learns that it lost one.
    fn overwrite(&mut self) -> etl_format::Result<()> {
        let Some(oldest) = self.sealed.pop_front() else {
            return Ok(());
        };
        self.tracker.remove_oldest(BufferOutcome::Discarded);
        let copy = self
            .consumer
            .as_mut()
            .and_then(|consumer| consumer.copy.as_mut());
        copy.map_or(Ok(()), |(copy, _)| {
            copy.lose_buffer(oldest.processor).map(drop)
        })
    }

    /// An event of a processor was lost.
    pub fn lose_event(&mut self, processor: u16) {
        let index = self.index(processor);
        if let Some(lane) = self.lanes.get_mut(index) {
            lane.lossy = true;
        }
        if let Some(consumer) = &mut self.consumer {
            consumer.lost += 1;
        }
    }

    fn seal(&mut self, index: usize) {
        if let Some(lane) = self
            .lanes
            .get_mut(index)
            .filter(|lane| !lane.marks.is_empty())
        {
            self.sealed.push_back(std::mem::take(lane));
            self.tracker.seal(u16::try_from(index).unwrap_or(u16::MAX));
        }
    }

    pub fn seal_all(&mut self) {
        (0..self.lanes.len()).for_each(|index| self.seal(index));
    }

    /// Writes all buffers to a trace, oldest first. Returns the number of events.
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

    /// Delivers the oldest buffer to the consumer.
    pub fn deliver(&mut self, timestamp: i64) -> etl_format::Result<()> {
        let Some(consumer) = &mut self.consumer else {
            return Ok(());
        };
        let Some(held) = self.sealed.pop_front() else {
            return Ok(());
        };
        match &mut consumer.copy {
            Some((copy, _)) => {
                held.put(copy, timestamp)?;
                self.tracker.flushed(true);
                self.kept += held.marks.len() as u64;
            }
            None => self.tracker.remove_oldest(BufferOutcome::Delivered),
        }
        self.delivered += held.marks.len() as u64;
        Ok(())
    }

    /// Ends the session: the consumer, if there is one, receives the remaining buffers.
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

    /// The consumer stops reading.
    pub fn leave(&mut self, filetime: i64) -> etl_format::Result<()> {
        let Some(Consumer { copy, lost, .. }) = self.consumer.take() else {
            return Ok(());
        };
        if let Some((mut copy, _)) = copy {
            copy.lose_events(0, lost)?;
            let summary = copy.close(Some(FileTime::new(filetime)))?.report;
            let files = &mut self.copied_files;
            let buffers = &mut self.copied_buffers;
            *files = files.saturating_add(1);
            *buffers = buffers.saturating_add(in_copy(&summary));
            self.tracker.note_written();
        }
        Ok(())
    }
}
