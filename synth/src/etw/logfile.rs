//! The files of a session, and the buffers that are written to them.

use std::io::{self, Read};

use etl_format::constants::LogFileMode;
use etl_format::read::{Options, Trace};
use etl_format::write::record::Record;
use etl_format::write::{Resume, Session as Writer, SessionConfig, SessionSummary};
use etl_format::{BufferHeader, FileHeader, FileTime, Ticks};

use super::buffer_tracker::BufferTracker;
use super::file_sequence::FileSequence;
use crate::file_system::FileSystem;
use crate::model::numbered_file;

pub(super) struct LogFile {
    writer: Writer<FileSequence>,
    disk: FileSequence,
    /// The name in the settings of the session.
    name: String,
    mode: LogFileMode,
    /// Lost buffers of the session whose file is continued.
    lost_before: u64,
    /// Names of the files so far, the current one last.
    pub files: Vec<String>,
    /// The outcomes of its buffers.
    pub tracker: BufferTracker,
}

impl LogFile {
    /// Creates the first file. `can_change`: whether written buffers can be overwritten or damaged.
    pub fn create(
        name: &str,
        config: SessionConfig,
        can_change: bool,
        store: &mut dyn FileSystem,
    ) -> etl_format::Result<Self> {
        let mode = config.header.mode;
        let news = mode.has(LogFileMode::NEWFILE);
        let first = if news {
            numbered_file(name, 1)
        } else {
            name.to_owned()
        };
        let old = if mode.has(LogFileMode::APPEND) {
            bytes_of(&first, store)
        } else {
            None
        };
        let mut tracker = BufferTracker::new(can_change);
        let (mut writer, disk) = match old {
            Some(old) => {
                let disk = tracker.watch(&first, store.reopen(&first)?);
                let (config, resume) = resuming(&old, config)?;
                tracker.begin_at(resume.next_sequence);
                (Writer::append(disk.clone(), config, resume)?, disk)
            }
            None => {
                let disk = tracker.watch(&first, store.create(&first)?);
                (Writer::create(disk.clone(), config)?, disk)
            }
        };
        if news {
            writer.set_next_file(Box::new(|disk: &mut FileSequence, _| {
                disk.next();
                Ok(())
            }));
        }
        let name = name.to_owned();
        let lost_before = writer.summary().buffers_lost;
        Ok(LogFile {
            writer,
            disk,
            name,
            mode,
            lost_before,
            files: vec![first],
            tracker,
        })
    }

    fn lane(&self, processor: u16) -> u16 {
        let one = self.mode.has(LogFileMode::NO_PER_PROCESSOR_BUFFERING);
        if one { 0 } else { processor }
    }

    /// Bytes free in the current buffer of a processor.
    pub fn free_bytes(&self, processor: u16) -> usize {
        self.writer.free_bytes(processor)
    }

    /// Buffers that contain records.
    pub fn in_use(&self) -> usize {
        self.writer.current_buffers() + self.writer.sealed_buffers()
    }

    pub fn has_sealed(&self) -> bool {
        self.writer.sealed_buffers() > 0
    }

    /// Writes the record of an event into a buffer. If the record does not fit, the current buffer
    /// is sealed first, or lost. Returns whether that happened.
    pub fn write(
        &mut self,
        processor: u16,
        number: u64,
        record: &impl Record,
        len: usize,
        lose: impl FnOnce() -> bool,
    ) -> etl_format::Result<bool> {
        let lane = self.lane(processor);
        let full = len > self.writer.free_bytes(processor);
        if full && lose() {
            self.writer.lose_buffer(processor)?;
            self.tracker.lose_buffer(lane);
        } else if full {
            self.tracker.seal(lane);
        }
        self.writer.write(processor, record)?;
        self.tracker.add_event(lane, number);
        Ok(full)
    }

    pub fn drop_event(&mut self, processor: u16) -> etl_format::Result<()> {
        self.writer.lose_events(processor, 1)
    }

    pub fn seal_all(&mut self) {
        self.writer.seal_all();
        self.tracker.seal_all();
    }

    /// Writes the oldest sealed buffer to the disk; `false` if there is none.
    pub fn flush_one(
        &mut self,
        timestamp: i64,
        store: &mut dyn FileSystem,
    ) -> etl_format::Result<bool> {
        let lost = self.writer.summary().buffers_lost;
        let any = self.writer.flush_one(timestamp)?;
        if any {
            self.create_pending(store)?;
            self.tracker
                .flushed(self.writer.summary().buffers_lost == lost);
        }
        Ok(any)
    }

    fn create_pending(&mut self, store: &mut dyn FileSystem) -> io::Result<()> {
        let LogFile {
            disk,
            files,
            name,
            mode,
            ..
        } = self;
        disk.create_pending(|end| {
            if mode.has(LogFileMode::PREALLOCATE)
                && let Some(full) = files.last()
            {
                store.truncate(full, end)?;
            }
            let number = u32::try_from(files.len())
                .unwrap_or(u32::MAX)
                .saturating_add(1);
            let file = numbered_file(name, number);
            let medium = store.create(&file)?;
            files.push(file.clone());
            Ok((file.into(), medium))
        })
    }

    /// Writes all buffers.
    pub fn flush(&mut self, timestamp: i64, store: &mut dyn FileSystem) -> etl_format::Result<()> {
        self.seal_all();
        while self.flush_one(timestamp, store)? {}
        Ok(())
    }

    /// Closes the file at a timestamp and a time. With `None` it is left as a loss of power leaves
    /// it. Returns the counts of the writer, the files, and the outcomes of their buffers.
    pub fn close(
        mut self,
        end: Option<(i64, i64)>,
        store: &mut dyn FileSystem,
    ) -> etl_format::Result<(SessionSummary, Vec<String>, BufferTracker)> {
        let closed = match end {
            Some((timestamp, filetime)) => {
                self.flush(timestamp, store)?;
                let closed = self.writer.close(Some(FileTime::new(filetime)))?;
                // The space that was reserved and not needed.
                if self.mode.has(LogFileMode::PREALLOCATE)
                    && let Some(file) = self.files.last()
                {
                    store.truncate(file, self.disk.end())?;
                }
                closed
            }
            None => self.writer.abandon()?,
        };
        let mut summary = closed.report;
        summary.buffers_lost = summary.buffers_lost.saturating_sub(self.lost_before);
        self.tracker.end();
        Ok((summary, self.files, self.tracker))
    }
}

/// The bytes of a file, if it exists.
pub(super) fn bytes_of(name: &str, store: &mut dyn FileSystem) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    store.open(name).ok()?.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The header of an existing file, and where a session continues in it.
fn resuming(old: &[u8], mut config: SessionConfig) -> etl_format::Result<(SessionConfig, Resume)> {
    let trace = Trace::open(old, &Options::default())?;
    let new = std::mem::replace(&mut config.header, trace.header().clone());
    // Timestamps start with the old file; the mode comes from the new session.
    config.header.mode = new.mode;
    config.header.maximum_file_size = new.maximum_file_size;
    let buffers = trace.buffers();
    let last = buffers.iter().max_by_key(|b| b.offset);
    // A preallocated file that was not closed has unused space after its buffers.
    let end = buffers
        .iter()
        .map(|b| b.offset.saturating_add(b.stored.into()))
        .max();
    let resume = Resume {
        at: end.unwrap_or(old.len() as u64),
        buffers: u32::try_from(buffers.len()).unwrap_or(u32::MAX),
        // Each session numbers its own buffers.
        next_sequence: 1,
        last_flush: last.map_or(new.timestamp, |b| flush_time(old, b.offset)),
    };
    Ok((config, resume))
}

/// The time in the header of a buffer, at which it was flushed; 0 if it has no header.
fn flush_time(file: &[u8], offset: u64) -> Ticks {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let bytes = file.get(start..).unwrap_or_default();
    BufferHeader::parse(bytes, offset).map_or(Ticks::default(), |header| header.timestamp)
}

/// Why a session cannot continue in a file, if so: the file must be sequential, with the buffer
/// size, the clock and the processors of the session.
pub(super) fn mismatch(old: &[u8], header: &FileHeader) -> Option<String> {
    let trace = match Trace::open(old, &Options::default()) {
        Ok(trace) => trace,
        Err(error) => return Some(error.to_string()),
    };
    let existing = trace.header();
    if existing.mode.has(LogFileMode::CIRCULAR) {
        return Some("it is circular, not sequential".to_owned());
    }
    let pairs = [
        (
            "its buffers have",
            u64::from(existing.buffer_size),
            u64::from(header.buffer_size),
            "bytes",
        ),
        (
            "its clock is",
            existing.clock_type.0.into(),
            header.clock_type.0.into(),
            "by type",
        ),
        (
            "it is of",
            existing.processors.into(),
            header.processors.into(),
            "processors",
        ),
    ];
    let other = pairs.into_iter().find(|(_, a, b, _)| a != b);
    other.map(|(what, existing, wanted, unit)| format!("{what} {existing} and not {wanted} {unit}"))
}
