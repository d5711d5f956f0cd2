//! Writes a valid trace from a damaged or unclosed one.
//!
//! All readable records are written again in time order, as a relogger does. The new header
//! describes the new file, and counts what is missing as lost. Unreadable ranges are reported.

use crate::FileTime;
use crate::compress::Effort;
use crate::constants::{ClockType, LogFileMode, PointerSize};
use crate::error::Result;
use crate::read::{
    Damage, Mode, Note, Options, Order, OrderCheck, OrderReport, Record, Source, Trace, Weight,
};

use super::callback::Callback;
use super::relog::{RelogPlan, Relogger};
use crate::write::{BufferCompressor, Finished, Output, SessionSummary};

pub use crate::clock::ASSUMED_FREQUENCY;

/// The result of a repair.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RepairReport {
    /// What was written.
    pub summary: SessionSummary,
    /// What could not be read, in file order.
    pub damage: Vec<Damage>,
    /// Remarks on the trace.
    pub notes: Vec<Note>,
    /// The mode of the trace, which the weight of the remarks depends on.
    pub mode: LogFileMode,
    /// Whether the session had been closed: end time and counts were in the header.
    pub closed: bool,
    /// Whether there was a header event. Without one the new header has assumed values: timestamps
    /// count from the first record, with [`ASSUMED_FREQUENCY`].
    pub header: bool,
    /// Statistics of the time order.
    pub order: OrderReport,
    /// Records too long for a buffer, left out.
    pub oversized_records: u64,
    /// Records of the new file without its header event.
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
        // Fewer buffers weigh by the mode of the file.
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
    /// A repairer that works on one thread and compresses what was compressed.
    #[must_use]
    pub fn new() -> Self {
        Repairer::default()
    }

    /// How the trace is read: limits and threads. Faults never end the repair, and the order is
    /// exact. The threads also compress, unless a compressor is given; the bytes written are the
    /// same for any number.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.read = options;
        self
    }

    /// Compresses the new trace. By default it is compressed as the damaged one was, or not.
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

    /// Reads what can be read and writes it as a valid trace.
    ///
    /// # Errors
    /// When the input has no part of a trace, or is a trace of Windows XP or 2003; errors of the
    /// input and the output.
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
        let threads = options.threads;
        let mut trace = Trace::open(input, &options)?;
        let found = trace.header().clone();
        let header = found.is_known();
        let closed = header && found.is_closed();
        let mut plan = RelogPlan::copying(&mut trace)?;
        let notes = trace.leave_copies()?;
        plan.keep(trace.buffers());
        if !closed || found.end_time <= found.start_time {
            // The latest record is the end.
            plan.header.end_time = FileTime::default();
        }
        if !header {
            plan.header.timestamp = trace.clock().start_timestamp;
            (plan.header.clock_type, plan.header.perf_freq) = (ClockType::QPC, ASSUMED_FREQUENCY);
            plan.header.log_minor = 5;
            plan.header.pointer_size = pointer_size(&mut trace)?;
            plan.header.timer_resolution = 156_250;
        }
        plan.header.stated_pointer_size = plan.header.pointer_size.bytes() as u32;
        let late_header = u64::from(plan.is_header_late());
        let header_records = plan.header_records();
        let compressor = match compressor {
            None if found.mode.has(LogFileMode::COMPRESSED) => {
                let same = BufferCompressor::new(trace.compression(), Effort::default())?;
                Some(same.with_threads(threads))
            }
            given => given,
        };
        let mut relog = Relogger::start(plan, output, compressor)?;
        let threads = relog.reading_threads(threads);
        let mut records = trace.records(Order::Time)?.with_threads(threads);
        let mut oversized_records = 0;
        records.for_each(|record| {
            if let Some(on_record) = &mut on_record.0 {
                on_record(&record);
            }
            // A header event of an appended trace, or of a buffer 0 that is not at the start.
            if record.hook() == Some(crate::constants::hook::HEADER) {
                return Ok(());
            }
            match relog.copy(&record) {
                Err(e) if !e.is_io() => {
                    oversized_records += 1;
                    relog.lose(&record)?;
                }
                done => done?,
            }
            Ok::<_, crate::Error>(())
        })?;
        let (damage, mut order) = (records.damage().to_vec(), records.report());
        order.sorted_buffers = order.sorted_buffers.saturating_sub(late_header);
        let Finished {
            output,
            report: summary,
        } = relog.finish(&damage)?;
        let report = RepairReport {
            mode: found.mode,
            summary,
            damage,
            notes,
            closed,
            header,
            order,
            oversized_records,
            records: summary.events_written + header_records,
        };
        Ok(Finished { output, report })
    }
}

/// The width of pointers of a trace without header event: that of its first record that has one.
fn pointer_size<S: Source>(trace: &mut Trace<S>) -> Result<PointerSize> {
    let mut records = trace.records_of(|_| true);
    while let Some(record) = records.next_record()? {
        if let Some(size) = record.pointer_size() {
            return Ok(size);
        }
    }
    Ok(PointerSize::default())
}
