//! Writes the records of a trace into a new one, as a relogger does.
//!
//! ```
//! use etl_format::read::{Options, Order, Trace};
//! use etl_format::rewrite::{RelogPlan, Relogger};
//! use etl_format::FileHeader;
//! use etl_format::write::Session;
//!
//! let input = Session::in_memory(FileHeader::new())?.finish()?;
//! let mut trace = Trace::open(input.as_slice(), &Options::default())?;
//! let mut relog = Relogger::start(RelogPlan::copying(&mut trace)?, Vec::new(), None)?;
//! let mut records = trace.records(Order::Time)?;
//! while let Some(record) = records.next_record()? {
//!     relog.copy(&record)?;
//! }
//! let output = relog.finish(records.damage())?.output;
//! let copy = Trace::open(output.as_slice(), &Options::default())?;
//! assert_eq!(copy.header().dialect(), "relogged");
//! # Ok::<(), etl_format::Error>(())
//! ```

use crate::constants::{BUFFER_HEADER_SIZE, BufferFlags, LogFileMode, PROCESSOR_INDEX_MASK};
use crate::error::Result;
use crate::read;
use crate::{FileHeader, FileTime, Ticks};

use super::flagged::Flagged;
use super::losses::Missing;
use crate::write::BufferCompressor;
use crate::write::Output;
use crate::write::record::{Moved, Raw, Record};
use crate::write::{Finished, Session, SessionConfig, Style};

/// The largest size of a buffer that Windows allows.
const MAX_BUFFER: u32 = 16 << 20;

/// The size of buffers if the header states an impossible size.
const DEFAULT_BUFFER: u32 = 0x1_0000;

/// The start of the new file: the header event and the other records of buffer 0.
#[derive(Clone, Debug)]
pub struct RelogPlan {
    /// The header event of the new file: the header of the source, with the mode of a relogged file
    /// and no maximum size. It stays a selection ([`FileHeader::is_selection`]). Processors and
    /// buffer size are raised if the source's buffers exceed them.
    pub header: FileHeader,
    extras: Extras,
    /// Whether buffer 0 of the source contains its header event, and its records are the extras.
    from_header_buffer: bool,
    flagged: Flagged,
    /// Buffers that are missing from the source.
    missing: Missing,
}

impl RelogPlan {
    /// A plan for a trace whose records are copied unchanged.
    ///
    /// # Errors
    /// If buffer 0 cannot be read.
    pub fn copying<S: read::Source>(trace: &mut read::Trace<S>) -> Result<Self> {
        Self::changing(trace, |record, out| {
            out.extend_from_slice(record.bytes());
            true
        })
    }

    /// A plan for a trace whose records are changed: `encode` receives every record of the header's
    /// buffer except the header event, appends the new record, and returns whether to keep it.
    ///
    /// # Errors
    /// If buffer 0 cannot be read.
    pub fn changing<S: read::Source>(
        trace: &mut read::Trace<S>,
        encode: impl FnMut(&read::Record<'_>, &mut Vec<u8>) -> bool,
    ) -> Result<Self> {
        let header = relogged_header(trace.header(), trace.buffers());
        let from_header_buffer = match trace.buffers().first() {
            Some(first) => first.offset == 0 && first.is_header(),
            None => false,
        };
        let flagged = Flagged::of(trace.buffers());
        let missing = Missing::from(trace);
        let extras = if from_header_buffer {
            Extras::read(trace, encode)?
        } else {
            Extras::default()
        };
        Ok(RelogPlan {
            header,
            extras,
            from_header_buffer,
            flagged,
            missing,
        })
    }

    /// Number of records in buffer 0 of the new file after the header event.
    pub(super) fn header_records(&self) -> u64 {
        self.extras.records.len() as u64
    }

    /// Leaves out all buffers but these, without counting the others as lost.
    pub(super) fn keep(&mut self, buffers: &[read::BufferEntry]) {
        self.flagged = Flagged::of(buffers);
    }

    /// Whether the records of buffer 0 were in time order except the header event, which is always
    /// the first record.
    pub(super) fn is_header_late(&self) -> bool {
        match self.extras.records.first() {
            Some(first) => self.extras.were_in_order && first.timestamp < self.header.timestamp,
            None => false,
        }
    }
}

/// The header of a relogged trace, from the header and the buffers of the source.
fn relogged_header(source: &FileHeader, buffers: &[read::BufferEntry]) -> FileHeader {
    let mut header = source.clone();
    // Limits of the source's file do not apply to the new file.
    let mut kept_mode = LogFileMode::NO_PER_PROCESSOR_BUFFERING;
    if header.is_selection() {
        kept_mode = kept_mode | LogFileMode::ADD_HEADER;
    }
    header.mode = LogFileMode::RELOG | LogFileMode(header.mode.0 & kept_mode.0);
    header.maximum_file_size = 0;
    header.start_buffers = header.start_buffers.max(1);
    // A size beyond the limit of Windows is damage, and would be written as filler.
    if header.buffer_size > MAX_BUFFER {
        header.buffer_size = DEFAULT_BUFFER;
    }
    for buffer in buffers {
        let processors = u32::from(buffer.processor).saturating_add(1);
        header.processors = header.processors.max(processors);
        header.buffer_size = header.buffer_size.max(buffer.fill);
    }
    header.processors = header
        .processors
        .clamp(1, u32::from(PROCESSOR_INDEX_MASK) + 1);
    header.buffer_size = header
        .buffer_size
        .clamp(1024, 1 << 30)
        .next_multiple_of(1024);
    header
}

/// The records after the header event in buffer 0.
#[derive(Clone, Debug)]
struct Extras {
    /// In time order.
    records: Vec<Extra>,
    /// Whether they were in time order in the source.
    were_in_order: bool,
}

#[derive(Clone, Debug)]
struct Extra {
    bytes: Vec<u8>,
    own_timestamp: Option<Ticks>,
    /// The timestamp that it was read with.
    timestamp: Ticks,
}

impl Default for Extras {
    fn default() -> Self {
        Extras {
            records: Vec::new(),
            were_in_order: true,
        }
    }
}

impl Extras {
    fn read<S: read::Source>(
        trace: &mut read::Trace<S>,
        mut encode: impl FnMut(&read::Record<'_>, &mut Vec<u8>) -> bool,
    ) -> Result<Self> {
        let mut extras = Extras::default();
        let mut last = Ticks::MIN;
        let mut source = trace.records_of(|buffer| buffer.offset == 0);
        while let Some(record) = source.next_record()? {
            if record.location().buffer_offset != 0 {
                break;
            }
            // The header event itself is written from its fields.
            if record.location().in_buffer as usize == BUFFER_HEADER_SIZE {
                continue;
            }
            let timestamp = record.timestamp();
            extras.were_in_order &= timestamp >= last;
            last = timestamp;
            let mut bytes = Vec::new();
            if encode(&record, &mut bytes) {
                extras.records.push(Extra {
                    bytes,
                    own_timestamp: own_timestamp(&record),
                    timestamp,
                });
            }
        }
        extras.records.sort_by_key(|extra| extra.timestamp);
        Ok(extras)
    }
}

fn own_timestamp(record: &read::Record<'_>) -> Option<Ticks> {
    record.has_own_timestamp().then(|| record.timestamp())
}

/// Writes the records of a trace into a new trace, on the same processors. The caller passes them
/// in time order per processor.
///
/// The buffers of the new file have the full size, and their headers have the end time of the
/// source, so that the same input results in the same bytes. The new header counts the losses of
/// the source's header, and counts buffers as lost that are missing from the source or could not be
/// read whole. If a buffer of the source is flagged with losses, a flagged buffer begins with the
/// next record of its processor, and later buffers with records of the same source buffer are
/// flagged as well. Records without their own timestamp keep the timestamp that readers return. For
/// this a WPP message may receive a timestamp.
#[derive(Debug)]
pub struct Relogger<O: Output> {
    session: Session<O>,
    skip_first_buffer: bool,
    end_time: Option<FileTime>,
    flagged: Flagged,
    missing: Missing,
}

impl<O: Output> Relogger<O> {
    /// Begins the new file.
    ///
    /// # Errors
    /// As [`Session::create`].
    pub fn start(plan: RelogPlan, output: O, compressor: Option<BufferCompressor>) -> Result<Self> {
        let RelogPlan {
            mut header,
            extras,
            from_header_buffer,
            flagged,
            missing,
            ..
        } = plan;
        let end_time = Some(header.end_time).filter(|time| *time != FileTime::default());
        let now = end_time.unwrap_or(header.start_time);
        if compressor.is_some() {
            header.mode = header.mode | LogFileMode::COMPRESSED;
        }
        header.set_log_version();
        let mut config = SessionConfig::new(header);
        config.style = Style::Relogger { now };
        config.logger_id = 0;
        config.compressor = compressor;
        for extra in &extras.records {
            config.add_header_record(&Raw {
                bytes: &extra.bytes,
                timestamp: extra.own_timestamp,
            })?;
        }
        let session = Session::create(output, config)?;
        Ok(Relogger {
            session,
            skip_first_buffer: from_header_buffer,
            end_time,
            flagged,
            missing,
        })
    }

    /// How many of `threads` threads should read the source ([`read::Records::with_threads`]): all
    /// of them, or only the caller's thread if the new file is compressed, because compression
    /// takes most of the time.
    #[must_use]
    pub fn reading_threads(&self, threads: usize) -> usize {
        if self.session.is_compressed() {
            1
        } else {
            threads
        }
    }

    /// Whether [`Relogger::start`] has written this record: it is in the header's buffer of the
    /// source.
    #[must_use]
    pub fn is_written(&self, record: &read::Record<'_>) -> bool {
        self.skip_first_buffer && record.location().buffer_offset == 0
    }

    /// Writes a record unchanged, unless buffer 0 has it already.
    ///
    /// # Errors
    /// As [`Session::write`].
    pub fn copy(&mut self, record: &read::Record<'_>) -> Result<()> {
        self.replace(record, record.bytes())
    }

    /// Writes `bytes` instead of a record, unless buffer 0 has it already. The bytes are a complete
    /// record with the same timestamp.
    ///
    /// # Errors
    /// As [`Session::write`].
    pub fn replace(&mut self, record: &read::Record<'_>, bytes: &[u8]) -> Result<()> {
        if self.is_written(record) {
            return Ok(());
        }
        if let Some(place) = self.flagged.take(record.location().buffer_offset) {
            place.carry(&mut self.session)?;
        }
        let moved = Moved {
            raw: Raw {
                bytes,
                timestamp: own_timestamp(record),
            },
            timestamp: record.timestamp(),
        };
        self.session.write(record.processor(), &moved)
    }

    /// Omits a record, but keeps the loss flags of its buffer.
    ///
    /// # Errors
    /// As [`Session::carry_losses`].
    pub fn skip(&mut self, record: &read::Record<'_>) -> Result<()> {
        let Some(place) = self.flagged.take(record.location().buffer_offset) else {
            return Ok(());
        };
        place.carry(&mut self.session)?;
        if place.has_lost_events() {
            // Events may have been lost before the next record that is kept.
            self.session
                .flag(place.processor, BufferFlags::EVENTS_LOST)?;
        }
        Ok(())
    }

    /// Counts a record that cannot be written as lost.
    ///
    /// # Errors
    /// As [`Session::lose_events`].
    pub fn lose(&mut self, record: &read::Record<'_>) -> Result<()> {
        self.session.lose_events(record.processor(), 1)
    }

    /// Writes an additional record.
    ///
    /// # Errors
    /// As [`Session::write`].
    pub fn insert(&mut self, processor: u16, record: &impl Record) -> Result<()> {
        self.session.write(processor, record)
    }

    /// Ends the file. Copies the end time of the source; if the source was not closed, the end is
    /// the time of the latest record. `damage` are the ranges of the source that could not be read.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn finish(mut self, damage: &[read::Damage]) -> Result<Finished<O>> {
        for place in self.flagged.take_rest() {
            place.carry(&mut self.session)?;
        }
        self.session.add_losses(0, self.missing.buffers(damage));
        self.session.close(self.end_time)
    }
}
