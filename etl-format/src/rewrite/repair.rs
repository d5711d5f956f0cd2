//! Writes a valid trace from a damaged or unclosed one.
//!
//! All readable records are written again in time order, as a relogger does. The new header
//! describes the new file, and counts what is missing as lost. Unreadable ranges are reported.

use crate::compress::Effort;
use crate::constants::{ClockType, LogFileMode, PointerSize, hook};
use crate::error::Result;
use crate::read::{
    Damage, Mode, Note, Options, Order, OrderCheck, OrderReport, Record, Source, Trace, Weight,
};
use crate::{FileHeader, FileTime};

use super::callback::Callback;
use super::relog::{RelogPlan, Relogger};
use crate::write::{BufferCompressor, Finished, Output, SessionSummary};

pub use crate::clock::ASSUMED_FREQUENCY;

/// The result of a repair.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RepairReport {
    /// What was written and lost.
    pub summary: SessionSummary,
    /// The ranges that could not be read, in the order of the file.
    pub damage: Vec<Damage>,
    /// Remarks on the trace.
    pub notes: Vec<Note>,
    /// The mode of the trace, on which the weight of the remarks depends.
    pub mode: LogFileMode,
    /// Whether the session had been closed: end time and counts were in the header.
    pub closed: bool,
    /// Whether there was a header event. Otherwise the new header has assumed values: the first
    /// record is at FILETIME 0, and the frequency is [`ASSUMED_FREQUENCY`].
    pub header: bool,
    /// Whether and how far records were out of time order.
    pub order: OrderReport,
    /// Number of the records that were left out because they are too long for a buffer.
    pub oversized_records: u64,
    /// Number of the records of the new file, without its header event.
    pub records: u64,
}

impl RepairReport {
    /// Whether nothing was wrong with the trace.
    #[must_use]
    pub fn was_intact(&self) -> bool {
        self.damage.is_empty()
            && self.closed
            && self.header
            && self.oversized_records == 0
            && self.order.late == 0
            && self.order.sorted_buffers == 0
            && !self
                .notes
                .iter()
                .any(|n| is_fault(n) || n.weight(self.mode) == Weight::Loss)
    }
}

/// Whether a note is about a fault that the repair fixes.
fn is_fault(note: &Note) -> bool {
    match *note {
        // The mode of the file determines how serious it is that buffers are missing.
        Note::BufferCount { stated, found } => found > stated.into(),
        Note::Unclosed
        | Note::UnusedTail { .. }
        | Note::BufferTwice { .. }
        | Note::PointerSize { .. }
        | Note::CompressionUnnamed { .. } => true,
        _ => false,
    }
}

/// Repairs traces.
///
/// ```
/// use etl_format::constants::hook;
/// use etl_format::read::{Options, Trace};
/// use etl_format::rewrite::repair::Repairer;
/// use etl_format::write::record::PerfInfo;
/// use etl_format::FileHeader;
/// use etl_format::write::Session;
///
/// let mut session = Session::in_memory(FileHeader::new())?;
/// session.write(0, &PerfInfo::new(hook::SAMPLE, 2_000))?;
/// let bytes = session.finish()?;
/// let damaged = &bytes[..bytes.len() - 100];
/// let repaired = Repairer::new().run(damaged, Vec::new())?;
/// assert!(!repaired.report.was_intact() && repaired.report.records == 1);
/// assert!(Trace::open(repaired.output.as_slice(), &Options::default()).is_ok());
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Repairer<'f> {
    read: Options,
    compressor: Option<BufferCompressor>,
    on_record: Callback<dyn FnMut(&Record<'_>) + 'f>,
}

impl<'f> Repairer<'f> {
    /// A repairer that works on one thread and compresses traces that were compressed.
    #[must_use]
    pub fn new() -> Self {
        Repairer::default()
    }

    /// Sets limits and threads for reading. Faults never end the repair, and the order is exact.
    /// The threads also compress, unless a compressor is set; the bytes written are the same for
    /// any number.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.read = options;
        self
    }

    /// Compresses the new trace. By default it is compressed if the damaged trace is, in the same
    /// format.
    #[must_use]
    pub fn compress(mut self, compressor: impl Into<Option<BufferCompressor>>) -> Self {
        self.compressor = compressor.into();
        self
    }

    /// Calls `f` for every record that is read.
    #[must_use]
    pub fn on_record(mut self, f: impl FnMut(&Record<'_>) + 'f) -> Self {
        self.on_record = Callback(Some(Box::new(f)));
        self
    }

    /// Writes all readable records of a trace as a valid trace.
    ///
    /// # Errors
    /// If the input does not contain a part of a trace, or is a trace of Windows XP or 2003; errors
    /// of the input and the output.
    pub fn run<S: Source, O: Output>(
        self,
        input: S,
        output: O,
    ) -> Result<Finished<O, RepairReport>> {
        let Repairer {
            read,
            compressor,
            mut on_record,
        } = self;
        let options = Options {
            mode: Mode::Salvage,
            order_check: OrderCheck::Scan,
            ..read
        };
        let mut trace = Trace::open(input, &options)?;
        let mode = trace.header().mode;
        let has_header = trace.header().is_known();
        let is_closed = has_header && trace.header().is_closed();
        let mut plan = RelogPlan::copying(&mut trace)?;
        let notes = trace.remove_copies()?;
        plan.keep(trace.buffers());
        complete_header(&mut plan.header, &mut trace)?;
        let is_header_late = plan.is_header_late();
        let header_records = plan.header_records();
        let compressor = match compressor {
            None if mode.has(LogFileMode::COMPRESSED) => {
                let compressor = BufferCompressor::new(trace.compression(), Effort::default())?;
                Some(compressor.with_threads(options.threads))
            }
            compressor => compressor,
        };
        let mut relogger = Relogger::start(plan, output, compressor)?;
        let threads = relogger.reading_threads(options.threads);
        let mut records = trace.records(Order::Time)?.with_threads(threads);
        let mut oversized_records = 0;
        records.for_each(|record| {
            if let Some(on_record) = &mut on_record.0 {
                on_record(&record);
            }
            // A header event of an appended trace, or of a buffer 0 that is not at the start.
            if record.hook() == Some(hook::HEADER) {
                return Ok(());
            }
            match relogger.copy(&record) {
                Err(error) if !error.is_io() => {
                    oversized_records += 1;
                    relogger.lose(&record)
                }
                copied => copied,
            }
        })?;
        let damage = records.damage().to_vec();
        let mut order = records.report();
        if is_header_late {
            order.sorted_buffers = order.sorted_buffers.saturating_sub(1);
        }
        let finished = relogger.finish(&damage)?;
        let report = RepairReport {
            summary: finished.report,
            damage,
            notes,
            mode,
            closed: is_closed,
            header: has_header,
            order,
            oversized_records,
            records: finished.report.events_written + header_records,
        };
        Ok(Finished {
            output: finished.output,
            report,
        })
    }
}

/// Corrects the header for the new trace: the end time if the session was not closed, and all
/// fields that are assumed if the header event is lost.
fn complete_header<S: Source>(header: &mut FileHeader, trace: &mut Trace<S>) -> Result<()> {
    let damaged = trace.header();
    let has_header = damaged.is_known();
    let has_end = damaged.is_closed() && damaged.end_time > damaged.start_time;
    if !has_header || !has_end {
        // The latest record is the end.
        header.end_time = FileTime::default();
    }
    if !has_header {
        header.timestamp = trace.clock().start_timestamp;
        header.clock_type = ClockType::QPC;
        header.perf_freq = ASSUMED_FREQUENCY;
        header.log_minor = 5;
        header.pointer_size = pointer_size(trace)?;
        header.timer_resolution = 156_250;
    }
    header.stated_pointer_size = header.pointer_size.bytes() as u32;
    Ok(())
}

/// The width of pointers of a trace without header event, from the first record that states it.
fn pointer_size<S: Source>(trace: &mut Trace<S>) -> Result<PointerSize> {
    let mut records = trace.records_of(|_| true);
    while let Some(record) = records.next_record()? {
        if let Some(size) = record.pointer_size() {
            return Ok(size);
        }
    }
    Ok(PointerSize::default())
}
