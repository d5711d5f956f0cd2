//! What happens to the buffers of a session: which events each contains, and whether it is in a
//! file at the end.
//!
//! An event in a buffer is not yet in a file. The tracker follows each buffer from its first event
//! to its location in a file, by the sequence number that the writer assigns when the buffer is
//! sealed. It keeps buffers that are on their way, and written buffers only where they can still
//! change.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use etl_format::write::Output;

use super::file_sequence::{FileSequence, WrittenBuffers};
use crate::truth::{BufferOutcome, BufferReport};

/// The current buffer of a processor: numbers of its first and last event, and their count.
#[derive(Clone, Copy, Debug, Default)]
struct CurrentBuffer {
    first_event: u64,
    last_event: u64,
    events: u64,
}

/// The buffers of a session.
#[derive(Debug, Default)]
pub(super) struct BufferTracker {
    written: WrittenBuffers,
    current: Vec<CurrentBuffer>,
    sequence: i64,
    sealed: VecDeque<BufferReport>,
    /// Buffers that the writer has taken and the output has not yet seen.
    in_flight: VecDeque<BufferReport>,
    /// Buffers in files, by file and offset, if they can still change.
    in_files: BTreeMap<(Arc<str>, u64), BufferReport>,
    can_change: bool,
    reports: Vec<BufferReport>,
}

impl BufferTracker {
    /// `can_change`: whether written buffers of the session can be overwritten or damaged.
    pub fn new(can_change: bool) -> Self {
        BufferTracker {
            sequence: 1,
            can_change,
            ..BufferTracker::default()
        }
    }

    /// Sets the sequence number of the next buffer.
    pub fn begin_at(&mut self, sequence: i64) {
        self.sequence = sequence;
    }

    /// Sequence number of the oldest sealed buffer, or of the next buffer.
    pub fn oldest(&self) -> i64 {
        self.sealed
            .front()
            .map_or(self.sequence, |report| report.sequence)
    }

    /// The oldest sealed buffer is gone without being written to a file.
    pub fn remove_oldest(&mut self, outcome: BufferOutcome) {
        if let Some(report) = self.sealed.pop_front() {
            self.reports.push(BufferReport { outcome, ..report });
        }
    }

    /// An output whose buffers this tracker sees.
    pub fn watch(&self, file: &str, medium: Box<dyn Output>) -> FileSequence {
        FileSequence::new(file, medium, &self.written)
    }

    /// Adds an event to the current buffer of a processor.
    pub fn add_event(&mut self, processor: u16, number: u64) {
        let index = usize::from(processor);
        if self.current.len() <= index {
            self.current.resize(index + 1, CurrentBuffer::default());
        }
        let Some(buffer) = self.current.get_mut(index) else {
            return;
        };
        if buffer.events == 0 {
            buffer.first_event = number;
        }
        buffer.last_event = number;
        buffer.events += 1;
    }

    /// Seals the current buffer of a processor.
    pub fn seal(&mut self, processor: u16) {
        if let Some(report) = self.close(processor, BufferOutcome::Written) {
            self.sealed.push_back(report);
        }
    }

    /// Seals the current buffers of all processors.
    pub fn seal_all(&mut self) {
        for index in 0..self.current.len() {
            self.seal(u16::try_from(index).unwrap_or(u16::MAX));
        }
    }

    /// The current buffer of a processor is lost.
    pub fn lose_buffer(&mut self, processor: u16) {
        let lost = self.close(processor, BufferOutcome::Lost);
        self.reports.extend(lost);
    }

    fn close(&mut self, processor: u16, outcome: BufferOutcome) -> Option<BufferReport> {
        let current = self
            .current
            .get_mut(usize::from(processor))
            .filter(|b| b.events > 0)?;
        let CurrentBuffer {
            first_event,
            last_event,
            events,
        } = core::mem::take(current);
        let sequence = self.sequence;
        self.sequence += 1;
        Some(BufferReport {
            sequence,
            processor,
            first_event,
            last_event,
            events,
            outcome,
            location: None,
        })
    }

    /// The oldest sealed buffer was passed to the file, which accepted it or is full.
    pub fn flushed(&mut self, accepted: bool) {
        if let Some(mut report) = self.sealed.pop_front() {
            if accepted {
                self.in_flight.push_back(report);
            } else {
                report.outcome = BufferOutcome::FileFull;
                self.reports.push(report);
            }
        }
        self.note_written();
    }

    /// Reports the buffers that outputs have written.
    pub fn note_written(&mut self) {
        let written = core::mem::take(&mut *self.written.borrow_mut());
        for (sequence, range) in written {
            let Some(at) = self.in_flight.iter().position(|r| r.sequence == sequence) else {
                continue;
            };
            let Some(mut report) = self.in_flight.remove(at) else {
                continue;
            };
            let key = (Arc::clone(&range.file), range.start);
            report.location = Some(range);
            self.reports.push(report.clone());
            if self.can_change
                && let Some(mut old) = self.in_files.insert(key, report)
            {
                old.outcome = BufferOutcome::Overwritten;
                self.reports.push(old);
            }
        }
    }

    /// The session has ended: buffers that are not in a file are never written.
    pub fn end(&mut self) {
        self.note_written();
        for index in 0..self.current.len() {
            let processor = u16::try_from(index).unwrap_or(u16::MAX);
            let current = self.close(processor, BufferOutcome::Unwritten);
            self.reports.extend(current);
        }
        let outcome = BufferOutcome::Unwritten;
        let left = self.in_flight.drain(..).chain(self.sealed.drain(..));
        self.reports
            .extend(left.map(|report| BufferReport { outcome, ..report }));
    }

    /// Bytes of a file were changed, or removed from its end.
    pub fn damaged(&mut self, name: &str, bytes: &Range<u64>, removed: bool) {
        for report in self.in_files.values_mut() {
            let Some(range) = report.location.as_ref().filter(|r| *r.file == *name) else {
                continue;
            };
            let overlaps = range.start < bytes.end && bytes.start < range.end;
            let cut_off = removed && bytes.start <= range.start;
            let outcome = if cut_off {
                BufferOutcome::CutOff
            } else {
                BufferOutcome::Damaged
            };
            if overlaps && report.outcome < outcome {
                report.outcome = outcome;
                self.reports.push(report.clone());
            }
        }
    }

    /// The bytes of the buffer of a file that was written last.
    pub fn last_in(&self, name: &str) -> Option<Range<u64>> {
        let reports = self
            .in_files
            .values()
            .filter(|report| report.file() == Some(name));
        let last = reports.max_by_key(|report| report.sequence)?;
        last.location.as_ref().map(|range| range.start..range.end)
    }

    /// A file was created again. Returns whether it had buffers.
    pub fn replaced(&mut self, name: &str) -> bool {
        let outcome = BufferOutcome::Overwritten;
        let before = self.reports.len();
        let gone = self
            .in_files
            .extract_if(.., |key, _| key.0.eq_ignore_ascii_case(name));
        self.reports
            .extend(gone.map(|(_, report)| BufferReport { outcome, ..report }));
        self.reports.len() > before
    }

    /// Takes the reports since the last call.
    pub fn take_reports(&mut self) -> Vec<BufferReport> {
        core::mem::take(&mut self.reports)
    }
}
