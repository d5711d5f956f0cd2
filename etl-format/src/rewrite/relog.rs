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

/// Windows' own limit to the size of a buffer.
const MAX_BUFFER: u32 = 16 << 20;

/// The start of the new file: the header event and the other records of buffer 0.
#[derive(Clone, Debug)]
pub struct RelogPlan {
    /// The header event of the new file: that of the source, with the mode of a relogged file and
    /// no maximum size. It stays a selection ([`FileHeader::is_selection`]). Processors and buffer
    /// size are raised if the source's buffers exceed them.
    pub header: FileHeader,
    /// Complete records after the header event, in time order.
    extras: Vec<Extra>,
    /// Whether they were not in time order in the source.
    unordered: bool,
    /// Whether buffer 0 of the source holds its header event, so that its records are in here.
    from_header_buffer: bool,
    flagged: Flagged,
    /// Buffers that are missing from the source.
    missing: Missing,
}

impl RelogPlan {
    /// Plans for a trace whose records are copied as they are.
    ///
    /// # Errors
    /// When buffer 0 cannot be read.
    pub fn copying<S: read::Source>(trace: &mut read::Trace<S>) -> Result<Self> {
        Self::changing(trace, |record, out| {
            out.extend_from_slice(record.bytes());
            true
        })
    }

    /// Plans for a trace whose records are changed on the way: `encode` receives every other record
    /// of the header's buffer, appends the new record, and returns whether to keep it.
    ///
    /// # Errors
    /// When buffer 0 cannot be read.
    pub fn changing<S: read::Source>(
        trace: &mut read::Trace<S>,
        mut encode: impl FnMut(&read::Record<'_>, &mut Vec<u8>) -> bool,
    ) -> Result<Self> {
        let mut header = trace.header().clone();
        // Limits of the source's file do not apply to the new one.
        let mut kept = LogFileMode::NO_PER_PROCESSOR_BUFFERING;
        if header.is_selection() {
            kept = kept | LogFileMode::ADD_HEADER;
        }
        header.mode = LogFileMode::RELOG | LogFileMode(header.mode.0 & kept.0);
        header.maximum_file_size = 0;
        header.start_buffers = header.start_buffers.max(1);
        let buffers = trace.buffers();
        let most = buffers
            .iter()
            .map(|b| u32::from(b.processor))
            .max()
            .unwrap_or(0);
        header.processors = header
            .processors
            .max(most.saturating_add(1))
            .min(u32::from(PROCESSOR_INDEX_MASK) + 1);
        let largest = buffers.iter().map(|b| b.fill).max().unwrap_or(0);
        // A size beyond the limit of Windows is damage, and would be written as filler.
        let stated = Some(header.buffer_size)
            .filter(|size| *size <= MAX_BUFFER)
            .unwrap_or(0x1_0000);
        header.buffer_size = stated
            .max(largest)
            .clamp(1024, 1 << 30)
            .next_multiple_of(1024);
        let from_header_buffer = buffers
            .first()
            .is_some_and(|b| b.offset == 0 && b.is_header());
        let flagged = Flagged::of(buffers);
        let missing = Missing::from(trace);
        let (mut extras, mut unordered) = (Vec::new(), false);
        if from_header_buffer {
            let mut records = trace.records_of(|buffer| buffer.offset == 0);
            let mut last = i64::MIN;
            while let Some(record) = records.next_record()? {
                if record.location().buffer_offset != 0 {
                    break;
                }
                // The header event itself is written from its fields.
                if record.location().in_buffer as usize == BUFFER_HEADER_SIZE {
                    continue;
                }
                let timestamp = record.timestamp().get();
                unordered |= timestamp < last;
                last = timestamp;
                let mut bytes = Vec::new();
                if encode(&record, &mut bytes) {
                    extras.push(Extra {
                        bytes,
                        own: own_timestamp(&record),
                        timestamp: last,
                    });
                }
            }
        }
        extras.sort_by_key(|extra| extra.timestamp);
        Ok(RelogPlan {
            header,
            extras,
            unordered,
            from_header_buffer,
            flagged,
            missing,
        })
    }
}

impl RelogPlan {
    /// Records that buffer 0 of the new file has after the header event.
    pub(super) fn header_records(&self) -> u64 {
        self.extras.len() as u64
    }

    /// Leaves out all but these buffers without losing anything.
    pub(super) fn keep(&mut self, buffers: &[read::BufferEntry]) {
        self.flagged = Flagged::of(buffers);
    }

    /// Whether the records of buffer 0 are in time order but for the header event, which is always
    /// the first one.
    pub(super) fn is_header_late(&self) -> bool {
        let first = self
            .extras
            .first()
            .map_or(i64::MAX, |extra| extra.timestamp);
        !self.unordered && first < self.header.timestamp.get()
    }
}

/// A record after the header event in buffer 0.
#[derive(Clone, Debug)]
struct Extra {
    bytes: Vec<u8>,
    /// Its own timestamp.
    own: Option<i64>,
    /// The timestamp that it was read with.
    timestamp: i64,
}

fn own_timestamp(record: &read::Record<'_>) -> Option<i64> {
    record.has_own_timestamp().then(|| record.timestamp().get())
}

/// Writes the records of a trace into a new one, on the same processors. The caller passes them in
/// time order per processor.
///
/// The new file is that of a relogger: its buffers have the full size, and their headers have the
/// end time of the source, so that the same input results in the same bytes. The new header counts
/// the losses that the source's header counts, and as lost buffers those that are missing from the
/// source or could not be read whole. If a buffer of the source is flagged with losses, a flagged
/// buffer begins with the next record of its processor, and so are those after it that hold other
/// records of that buffer. Records without their own timestamp keep the time that they were read
/// with. A WPP message may receive a timestamp for that.
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
        for Extra { bytes, own, .. } in &extras {
            config.add_header_record(&Raw {
                bytes,
                timestamp: own.map(Ticks::new),
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
    /// of them, or only the caller's own if the new file is compressed, because compression takes
    /// most of the time.
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

    /// Writes `bytes` in place of a record, unless buffer 0 has it already. The bytes are a
    /// complete record with the same timestamp.
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
        let raw = Raw {
            bytes,
            timestamp: own_timestamp(record).map(Ticks::new),
        };
        self.session.write(
            record.processor(),
            &Moved {
                raw,
                timestamp: record.timestamp(),
            },
        )
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
            // They may have been lost before the next record that is kept.
            self.session
                .flag(place.processor, BufferFlags::EVENTS_LOST)?;
        }
        Ok(())
    }

    /// Counts a record as lost that cannot be written.
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

    /// Ends the file. Its end time is that of the source, or that of the latest record if the
    /// source was not closed. `damage` is what of the source could not be read.
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
