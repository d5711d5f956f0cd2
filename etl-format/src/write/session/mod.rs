//! Writes a session as the kernel does: one buffer per processor, sealed when full, flushed in
//! order.

mod config;
mod file;
mod lane;
mod moved;

pub use config::{SessionConfig, Style};

use core::fmt;
use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use crate::constants::{BUFFER_HEADER_SIZE, BufferFlags, LogFileMode};
use crate::error::Result;
use crate::pool::Take;
use crate::{FileTime, Ticks};

use super::output::{Finished, Output, TraceFile};
use super::packing::Packing;
use super::put::{align, unwritable};
use super::record::Record;
use lane::{Group, Held, Lane, PackedBuffer, Sealed};

/// Replaces the finished file of a NEWFILE session by the next file. The number of the first new
/// file is 1.
pub type NextFile<O> = Box<dyn FnMut(&mut O, u32) -> Result<()>>;

/// What a session wrote and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// Records in buffers that were written to all files, also buffers that were overwritten later.
    pub events_written: u64,
    /// Lost events as the header counts them: the count in the initial header, and the events of
    /// [`Session::lose_events`] and [`Session::add_losses`].
    pub events_lost: u64,
    /// Lost buffers as the header counts them: the count in the initial header, and the buffers of
    /// [`Session::lose_buffer`], of [`Session::add_losses`], and for which the file was full.
    pub buffers_lost: u64,
    /// Records in buffers that this session lost.
    pub events_in_lost_buffers: u64,
    /// Buffers written to all files, each file's buffer 0 included.
    pub buffers_written: u64,
    /// Files written.
    pub files: u32,
    /// Records of unknown kinds without their own timestamp for which a reader returns another
    /// timestamp than before, because no record of their processor had the same timestamp.
    pub timestamps_lost: u64,
}

/// Writes a trace as a session does.
///
/// Records go into the current buffer of their processor. A buffer that is full is sealed, receives
/// its sequence number, and is written. When the flush timer expires, all buffers are sealed and
/// written. The mode in the header determines the layout of the file:
///
/// * CIRCULAR: at the maximum size, writing continues after the first `start_buffers` buffers.
/// * NEWFILE: at the maximum size, the next file begins with a header buffer of its own; sequence
///   numbers continue.
/// * Otherwise buffers are lost, and counted, when a file has its maximum size.
/// * PREALLOCATE: the file has its maximum size from the start, with zeros at its end, which
///   Windows
///   removes when the session is stopped.
/// * NO_PER_PROCESSOR_BUFFERING: one buffer for all processors.
///
/// The file is valid at any time: if writing ends early, it lacks the last buffers and the final
/// counts in its header, which [`Session::close`] writes. Memory: one buffer per processor, the
/// buffers that are sealed and not flushed, the last finished buffer, because the last buffer of a
/// file is marked, and the buffers that other threads compress
/// ([`super::BufferCompressor::with_threads`]).
///
/// The records of a processor must be written in time order; they are not sorted.
///
/// ```
/// use etl_format::constants::hook;
/// use etl_format::write::record::PerfInfo;
/// use etl_format::FileHeader;
/// use etl_format::write::Session;
///
/// let mut session = Session::in_memory(FileHeader { processors: 2, ..FileHeader::new() })?;
/// session.write(0, &PerfInfo::new(hook::SAMPLE, 2_000).payload(&[0; 16]))?;
/// session.lose_events(1, 3)?;
/// let finished = session.close(None)?;
/// assert_eq!((finished.report.events_written, finished.report.events_lost), (1, 3));
/// assert_eq!(finished.output.len(), 2 * 0x1_0000, "two buffers of 64 KiB");
/// # Ok::<(), etl_format::Error>(())
/// ```
pub struct Session<O: Output> {
    config: SessionConfig,
    output: O,
    next_file: Option<NextFile<O>>,
    packing: Option<Packing<PackedBuffer>>,
    lanes: Vec<Lane>,
    sealed: VecDeque<Sealed>,
    spare: Vec<Vec<u8>>,
    held: Option<Held>,
    /// Offset at which the next buffer is written.
    position: u64,
    /// Number of buffers written to the current file, buffer 0 and overwritten buffers included.
    buffers: u32,
    sequence: i64,
    last_flush: i64,
    /// Latest record timestamp or flush time.
    latest: i64,
    next_timer: Option<i64>,
    summary: SessionSummary,
}

impl<O: Output> fmt::Debug for Session<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("position", &self.position)
            .field("buffers", &self.buffers)
            .field("sequence", &self.sequence)
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}

/// The state of an existing file that a session of mode APPEND continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Length of the file: where the next buffer goes.
    pub at: u64,
    /// Buffers in the file, buffer 0 included.
    pub buffers: u32,
    /// Sequence number of the next buffer.
    pub next_sequence: i64,
    /// Flush timestamp of the last buffer.
    pub last_flush: Ticks,
}

impl Session<Vec<u8>> {
    /// Begins a trace in memory, which [`Session::finish`] returns.
    ///
    /// # Errors
    /// As [`Session::create`].
    pub fn in_memory(config: impl Into<SessionConfig>) -> Result<Self> {
        Session::create(Vec::new(), config)
    }
}

impl Session<TraceFile<File>> {
    /// Begins a trace in a new file, or overwrites an existing file.
    ///
    /// ```
    /// use etl_format::read::{Options, Trace};
    /// use etl_format::FileHeader;
    /// use etl_format::write::Session;
    ///
    /// let path = std::env::temp_dir().join(format!("etl-format-{}.etl", std::process::id()));
    /// Session::create_file(&path, FileHeader::new())?.finish()?;
    /// let trace = Trace::open_path(&path, &Options::default())?;
    /// assert!(trace.header().is_closed());
    /// # drop(trace);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), etl_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::create`], and if the file cannot be created.
    pub fn create_file(path: impl AsRef<Path>, config: impl Into<SessionConfig>) -> Result<Self> {
        Session::create(TraceFile::new(File::create(path)?), config)
    }
}

impl<O: Output> Session<O> {
    /// Begins a trace: writes buffer 0 with the header as it is in `config`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unwritable`] if the settings cannot be combined (for example a circular
    /// file without a maximum size) or the buffer size is not a multiple of 1 KB, and errors of the
    /// output.
    pub fn create(output: O, config: impl Into<SessionConfig>) -> Result<Self> {
        Self::start(output, config.into(), None)
    }

    /// Continues an existing file: buffers are appended, and closing the session writes the header
    /// again from `config`.
    ///
    /// # Errors
    /// As [`Session::create`]; also if the output is not seekable.
    pub fn append(output: O, config: SessionConfig, resume: Resume) -> Result<Self> {
        if !output.is_seekable() {
            return Err(unwritable(
                "appending rewrites the header, which a pipe cannot",
            ));
        }
        Self::start(output, config, Some(resume))
    }

    fn start(output: O, mut config: SessionConfig, resume: Option<Resume>) -> Result<Self> {
        config.check()?;
        if config.header.mode.has(LogFileMode::CIRCULAR) && !output.is_seekable() {
            return Err(unwritable("a circular file goes back, which a pipe cannot"));
        }
        let timestamp = config.header.timestamp.get();
        let next_timer = match i64::try_from(config.flush_ticks) {
            Ok(0) | Err(_) => None,
            Ok(ticks) => Some(timestamp.saturating_add(ticks)),
        };
        let mut session = Session {
            output,
            next_file: None,
            packing: config.compressor.take().map(Packing::new),
            lanes: Vec::new(),
            sealed: VecDeque::new(),
            spare: Vec::new(),
            held: None,
            position: 0,
            buffers: 0,
            sequence: 1,
            last_flush: timestamp,
            latest: timestamp,
            next_timer,
            summary: SessionSummary {
                files: 1,
                ..SessionSummary::default()
            },
            config,
        };
        // The counts continue the counts of the file that is appended to, or of a relogger's
        // source.
        let header = &session.config.header;
        session.summary.events_lost = header.events_lost.into();
        session.summary.buffers_lost = header.buffers_lost.into();
        let processors = header.processors as usize;
        session.lanes.resize_with(processors, Lane::default);
        match resume {
            Some(resume) => {
                session.position = resume.at;
                session.buffers = resume.buffers;
                session.sequence = resume.next_sequence;
                session.last_flush = resume.last_flush.get();
            }
            None => session.begin_file()?,
        }
        Ok(session)
    }

    /// Sets how mode NEWFILE creates further files. Without this, buffers are lost when the first
    /// file is full.
    pub fn set_next_file(&mut self, next_file: NextFile<O>) {
        self.next_file = Some(next_file);
    }

    /// Writes a record on a processor. The record's timestamp advances the flush timer.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unwritable`] if the record cannot be encoded or is larger than a buffer,
    /// or the header counts fewer processors; then nothing was written. Errors of the output.
    pub fn write(&mut self, processor: u16, record: &impl Record) -> Result<()> {
        let timestamp = record.timestamp().map(Ticks::get);
        if let Some(timestamp) = timestamp {
            self.tick(timestamp)?;
        }
        let index = self.lane_index(processor)?;
        let Some(timestamp) = timestamp else {
            return match record.effective_timestamp() {
                Some(timestamp) => self.write_moved(index, record, timestamp.get()),
                None => self.put(index, record),
            };
        };
        let has_waiting = match self.lanes.get(index) {
            Some(lane) => !lane.waiting.is_empty(),
            None => false,
        };
        if !has_waiting {
            return self.put(index, record);
        }
        self.release(index, timestamp)?;
        self.put(index, record)?;
        self.join(index, timestamp)
    }

    /// Appends a record to the buffer of a processor, or begins the next buffer with it.
    fn put(&mut self, index: usize, record: &impl Record) -> Result<()> {
        let timestamp = record.timestamp().map(Ticks::get);
        let size = self.config.header.buffer_size as usize;
        self.cut(index)?;
        let lane = self.lanes.get_mut(index).ok_or_else(no_lane)?;
        if lane.bytes.is_empty() {
            lane.bytes = self.spare.pop().unwrap_or_default();
            lane.bytes.clear();
            lane.bytes.resize(BUFFER_HEADER_SIZE, 0);
        }
        let before = lane.bytes.len();
        record.encode(&mut lane.bytes)?;
        align(&mut lane.bytes);
        let len = lane.bytes.len() - before;
        if before + len > size {
            if len > size - BUFFER_HEADER_SIZE {
                lane.bytes.truncate(before);
                return Err(unwritable(
                    "the record is larger than a buffer of the session",
                ));
            }
            // The record that did not fit begins the next buffer.
            let mut next = self.spare.pop().unwrap_or_default();
            next.clear();
            next.resize(BUFFER_HEADER_SIZE, 0);
            next.extend_from_slice(lane.bytes.get(before..).unwrap_or_default());
            lane.bytes.truncate(before);
            self.seal_lane(index, before + len, Some(next));
            if !self.config.hold_sealed {
                self.flush(timestamp.unwrap_or(self.latest))?;
            }
        }
        let lane = self.lanes.get_mut(index).ok_or_else(no_lane)?;
        lane.events += 1;
        match (timestamp, &mut lane.group) {
            (Some(timestamp), group) => {
                *group = Some(Group {
                    offset: lane.bytes.len().saturating_sub(len),
                    timestamp,
                    events: 1,
                });
            }
            (None, Some(group)) => group.events += 1,
            (None, None) => {}
        }
        lane.latest = lane.latest.max(timestamp);
        self.latest = self.latest.max(timestamp.unwrap_or(i64::MIN));
        Ok(())
    }

    /// Advances the time of the session. When the flush timer has expired, all buffers with records
    /// are sealed, and flushed unless sealed buffers are held.
    ///
    /// # Errors
    /// Errors of the output.
    #[inline]
    pub fn tick(&mut self, now: impl Into<Ticks>) -> Result<()> {
        let now = now.into().get();
        match self.next_timer {
            Some(due) if now >= due => self.expire(due, now),
            _ => Ok(()),
        }
    }

    /// Handles the flush timer, which has expired at `due`.
    #[cold]
    fn expire(&mut self, due: i64, now: i64) -> Result<()> {
        let flush_ticks = i64::try_from(self.config.flush_ticks).unwrap_or(i64::MAX);
        let flush_ticks = flush_ticks.max(1);
        let periods = (now.saturating_sub(due) / flush_ticks).saturating_add(1);
        self.next_timer = Some(due.saturating_add(flush_ticks.saturating_mul(periods)));
        self.seal_all();
        if self.config.hold_sealed {
            Ok(())
        } else {
            self.flush(now)
        }
    }

    /// Seals the buffer of a processor, if it has records. The next [`Session::flush`] writes it.
    ///
    /// # Errors
    /// If the header counts fewer processors.
    pub fn seal(&mut self, processor: u16) -> Result<()> {
        let index = self.lane_index(processor)?;
        self.seal_early(index);
        Ok(())
    }

    /// Seals the buffers of all processors.
    pub fn seal_all(&mut self) {
        for index in 0..self.lanes.len() {
            self.seal_early(index);
        }
    }

    /// Number of the sealed buffers that are not flushed yet.
    #[must_use]
    pub fn sealed_buffers(&self) -> usize {
        self.sealed.len()
    }

    /// Number of the processors whose current buffer has records.
    #[must_use]
    pub fn current_buffers(&self) -> usize {
        self.lanes.iter().filter(|lane| !lane.is_empty()).count()
    }

    /// Free bytes in the current buffer of a processor, or in an empty buffer if none is in use.
    #[must_use]
    pub fn free_bytes(&self, processor: u16) -> usize {
        let mut used = BUFFER_HEADER_SIZE;
        if let Ok(index) = self.lane_index(processor)
            && let Some(lane) = self.lanes.get(index)
        {
            used = used.max(lane.bytes.len());
        }
        (self.config.header.buffer_size as usize).saturating_sub(used)
    }

    /// The number of the buffer that is sealed next.
    pub(crate) fn sequence(&self) -> i64 {
        self.sequence
    }

    /// Writes all sealed buffers at a time of the session clock.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn flush(&mut self, now: impl Into<Ticks>) -> Result<()> {
        let now = now.into();
        while self.flush_one(now)? {}
        Ok(())
    }

    /// Writes the buffer that was sealed first; `false` if no buffer is sealed.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn flush_one(&mut self, now: impl Into<Ticks>) -> Result<bool> {
        let Some(sealed) = self.sealed.pop_front() else {
            return Ok(false);
        };
        self.emit(sealed, now.into().get())?;
        Ok(true)
    }

    /// Counts records of a processor as lost: the header counts them, and the processor's next
    /// buffer is flagged.
    ///
    /// # Errors
    /// If the header counts fewer processors.
    pub fn lose_events(&mut self, processor: u16, events: u64) -> Result<()> {
        let index = self.lane_index(processor)?;
        self.mark(index, BufferFlags::EVENTS_LOST);
        self.summary.events_lost = self.summary.events_lost.saturating_add(events);
        Ok(())
    }

    /// Loses the current buffer of a processor with all its records: its sequence number stays
    /// unused, the header counts it, and the processor's next buffer is flagged. Returns the number
    /// of its records.
    ///
    /// # Errors
    /// If the header counts fewer processors.
    pub fn lose_buffer(&mut self, processor: u16) -> Result<u64> {
        let index = self.lane_index(processor)?;
        let lane = self.lanes.get_mut(index).ok_or_else(no_lane)?;
        lane.bytes.clear();
        lane.latest = None;
        lane.group = None;
        let events = core::mem::take(&mut lane.events);
        self.mark(index, BufferFlags::BUFFER_LOST);
        self.sequence = self.sequence.saturating_add(1);
        self.summary.buffers_lost += 1;
        self.summary.events_in_lost_buffers += events;
        Ok(events)
    }

    /// Begins a buffer with the processor's next record, and copies the loss flags of the buffer
    /// from which the record comes. The header counts these losses already. If events were lost,
    /// all buffers of the processor are flagged until [`Session::end_losses`].
    ///
    /// # Errors
    /// If the header counts fewer processors.
    pub fn carry_losses(&mut self, processor: u16, flags: BufferFlags) -> Result<()> {
        let index = self.lane_index(processor)?;
        let lane = self.lanes.get_mut(index).ok_or_else(no_lane)?;
        lane.is_cut = true;
        let losses = BufferFlags::EVENTS_LOST | BufferFlags::BUFFER_LOST;
        lane.carried = lane.carried | BufferFlags(flags.0 & losses.0);
        if flags.has(BufferFlags::EVENTS_LOST) {
            lane.lossy_sources = lane.lossy_sources.saturating_add(1);
        }
        Ok(())
    }

    /// Ends the losses of [`Session::carry_losses`]: the processor's next record is from another
    /// buffer.
    ///
    /// # Errors
    /// If the header counts fewer processors.
    pub fn end_losses(&mut self, processor: u16) -> Result<()> {
        let index = self.lane_index(processor)?;
        let lane = self.lanes.get_mut(index).ok_or_else(no_lane)?;
        lane.is_cut = true;
        lane.lossy_sources = lane.lossy_sources.saturating_sub(1);
        // If no record was written since, the next buffer must still be flagged.
        if lane.lossy_sources == 0 && !lane.is_empty() {
            lane.carried = lane.carried.without(BufferFlags::EVENTS_LOST);
        }
        Ok(())
    }

    /// Flags the current buffer of a processor with losses that the header counts already.
    ///
    /// # Errors
    /// If the header counts fewer processors.
    pub(crate) fn flag(&mut self, processor: u16, losses: BufferFlags) -> Result<()> {
        let index = self.lane_index(processor)?;
        self.mark(index, losses);
        Ok(())
    }

    /// Counts losses of the traces from which the records come, if their headers do not count them.
    pub fn add_losses(&mut self, events: u64, buffers: u64) {
        let summary = &mut self.summary;
        summary.events_lost = summary.events_lost.saturating_add(events);
        summary.buffers_lost = summary.buffers_lost.saturating_add(buffers);
    }

    /// What was written and lost so far. Buffers that other threads compress are counted when they
    /// are in the file.
    #[must_use]
    pub fn summary(&self) -> SessionSummary {
        self.summary
    }

    /// Whether buffers are compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.packing.is_some()
    }

    /// Ends the session at the time of its latest record or flush, and returns the output. See
    /// [`Session::close`] for another end time, or for what was written and lost.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn finish(self) -> Result<O> {
        Ok(self.close(None)?.output)
    }

    /// Ends the session: writes all buffers, marks the last buffer, and completes the header. The
    /// default of `end_time` is the time of the latest record or flush.
    ///
    /// In a pipe, the header cannot be changed.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn close(mut self, end_time: Option<FileTime>) -> Result<Finished<O>> {
        self.release_all()?;
        self.settle_losses();
        self.seal_all();
        self.flush(self.latest)?;
        self.place_packed(Take::All)?;
        self.end_file(end_time)?;
        Ok(Finished {
            output: self.output,
            report: self.summary,
        })
    }

    /// Ends the session as a crash does: flushed buffers are in the file, sealed and current
    /// buffers are not, the last buffer has no flush marker, and the header is not completed.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn abandon(mut self) -> Result<Finished<O>> {
        self.place_packed(Take::All)?;
        if let Some(held) = self.held.take() {
            self.output.write_at(held.offset, &held.bytes)?;
        }
        self.output.flush()?;
        Ok(Finished {
            output: self.output,
            report: self.summary,
        })
    }

    /// The index of a processor's lane.
    fn lane_index(&self, processor: u16) -> Result<usize> {
        let mode = self.config.header.mode;
        let index = if mode.has(LogFileMode::NO_PER_PROCESSOR_BUFFERING) {
            0
        } else {
            usize::from(processor)
        };
        if index < self.lanes.len() {
            Ok(index)
        } else {
            Err(no_lane())
        }
    }

    fn mark(&mut self, index: usize, flag: BufferFlags) {
        if let Some(lane) = self.lanes.get_mut(index) {
            lane.losses = lane.losses | flag;
        }
    }

    /// At the end of a session of a relogger, handles the loss flags for which no further record is
    /// written: the last buffer of the processor is flagged, or the header counts at least one
    /// loss.
    fn settle_losses(&mut self) {
        let mut without_buffer = BufferFlags(0);
        for lane in &mut self.lanes {
            let mut losses = core::mem::take(&mut lane.carried);
            if !lane.is_empty() && losses.has(BufferFlags::EVENTS_LOST) {
                lane.losses = lane.losses | BufferFlags::EVENTS_LOST;
                losses = losses.without(BufferFlags::EVENTS_LOST);
            }
            without_buffer = without_buffer | losses;
        }
        let summary = &mut self.summary;
        if without_buffer.has(BufferFlags::EVENTS_LOST) {
            summary.events_lost = summary.events_lost.max(1);
        }
        if without_buffer.has(BufferFlags::BUFFER_LOST) {
            summary.buffers_lost = summary.buffers_lost.max(1);
        }
    }

    /// Begins the next buffer of a processor if losses require it.
    #[inline]
    fn cut(&mut self, index: usize) -> Result<()> {
        if self.lanes.get(index).is_some_and(|lane| lane.is_cut) {
            self.seal_early(index);
            if let Some(lane) = self.lanes.get_mut(index) {
                lane.is_cut = false;
                lane.losses = lane.losses | core::mem::take(&mut lane.carried);
            }
            if !self.config.hold_sealed {
                self.flush(self.latest)?;
            }
        }
        Ok(())
    }

    /// Seals a buffer that is not full.
    fn seal_early(&mut self, index: usize) {
        let Some(lane) = self.lanes.get(index) else {
            return;
        };
        if !lane.is_empty() {
            let buffer_size = self.config.header.buffer_size as usize;
            let current_offset = lane.bytes.len().saturating_add(buffer_size);
            self.seal_lane(index, current_offset, None);
        }
    }

    /// Seals the buffer of a processor, which continues with the `next` buffer.
    fn seal_lane(&mut self, index: usize, current_offset: usize, next: Option<Vec<u8>>) {
        let Some(lane) = self.lanes.get_mut(index) else {
            return;
        };
        let bytes = core::mem::replace(&mut lane.bytes, next.unwrap_or_default());
        lane.group = None;
        let next_losses = if lane.lossy_sources > 0 {
            BufferFlags::EVENTS_LOST
        } else {
            BufferFlags(0)
        };
        self.sealed.push_back(Sealed {
            bytes,
            processor: u16::try_from(index).unwrap_or(u16::MAX),
            sequence: self.sequence,
            losses: core::mem::replace(&mut lane.losses, next_losses),
            current_offset: u32::try_from(current_offset).unwrap_or(u32::MAX),
            events: core::mem::take(&mut lane.events),
            latest: lane.latest.take(),
        });
        self.sequence = self.sequence.saturating_add(1);
    }
}

fn no_lane() -> crate::Error {
    unwritable("the header counts fewer processors")
}
