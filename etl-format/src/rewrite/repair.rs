//! A sound trace from a damaged or unclosed one.
//!
//! What can be read is written anew, record by record in time order, as a relogger does; the header
//! says what is true of the new file. What could not be read is told, not made up.

use crate::compress::Effort;
use crate::constants::{ClockType, CompressionFormat, LogFileMode};
use crate::error::Result;
use crate::read::{
    Damage, Limits, Mode, Note, Options, OrderCheck, OrderReport, Record, Source, Trace,
};

use super::relog::{RelogPlan, Relogger};
use crate::write::BufferCompressor;
use crate::write::Output;
use crate::write::SessionSummary;

pub use crate::clock::ASSUMED_FREQUENCY;

/// What repairing a trace came to.
#[derive(Clone, Debug)]
pub struct RepairReport {
    /// What was written.
    pub summary: SessionSummary,
    /// What could not be read, in file order.
    pub damage: Vec<Damage>,
    /// What else was found.
    pub notes: Vec<Note>,
    /// Whether the session had been closed: end time and counts were in the header.
    pub closed: bool,
    /// Whether there was a header event. Without one the new header is made up: timestamps count from
    /// the first record, and [`ASSUMED_FREQUENCY`] is its clock's.
    pub header: bool,
    /// What time order took.
    pub order: OrderReport,
    /// Records too long for a buffer, left out.
    pub too_long: u64,
}

impl RepairReport {
    /// Whether nothing was wrong with the trace.
    #[must_use]
    pub fn was_intact(&self) -> bool {
        self.damage.is_empty()
            && self.closed
            && self.header
            && self.too_long == 0
            && self.order.late == 0
            && self.order.sorted_buffers == 0
            && !self.notes.iter().any(is_fault)
    }
}

/// Whether a note tells of something that the new file does not have any more.
fn is_fault(note: &Note) -> bool {
    matches!(
        note,
        Note::Unclosed
            | Note::BufferCount { .. }
            | Note::UnusedTail { .. }
            | Note::FillDiffers { .. }
            | Note::SequenceTwice { .. }
            | Note::CompressionUnnamed { .. }
    )
}

/// How a trace is to be repaired.
#[derive(Clone, Debug, Default)]
pub struct RepairOptions {
    /// What may be held in memory, and other bounds.
    pub limits: Limits,
    /// Compress the new trace so. By default it is compressed as the damaged one was, or not.
    pub compression: Option<(CompressionFormat, Effort)>,
    /// Threads that decompress and compress buffers, the caller's own among them; 0 is 1. What is
    /// written is the same for any number.
    pub threads: usize,
}

/// Reads what can be read and writes it as a sound trace; compressed, if it was. `watch` sees every
/// record.
///
/// # Errors
/// As [`repair_with`].
pub fn repair<S: Source, O: Output>(
    input: S,
    output: O,
    limits: Limits,
    watch: impl FnMut(&Record<'_>),
) -> Result<(O, RepairReport)> {
    repair_with(input, output, &RepairOptions { limits, ..RepairOptions::default() }, watch)
}

/// Reads what can be read and writes it as a sound trace. `watch` sees every record.
///
/// # Errors
/// When nothing in the input looks like a trace, or one is of Windows XP or 2003; whatever the input
/// or the output reports.
pub fn repair_with<S: Source, O: Output>(
    input: S,
    output: O,
    how: &RepairOptions,
    mut watch: impl FnMut(&Record<'_>),
) -> Result<(O, RepairReport)> {
    let limits = how.limits;
    let threads = how.threads;
    let options = Options { mode: Mode::Salvage, order: OrderCheck::Full, limits, threads };
    let mut trace = Trace::open(input, &options)?;
    let found = trace.header().clone();
    let header = found.is_known();
    let closed = header && found.is_closed();
    let mut plan = RelogPlan::copying(&mut trace)?;
    if !closed || found.end_time <= found.start_time {
        // Told by the latest record instead.
        plan.header.end_time = 0;
    }
    if !header {
        plan.header.timestamp = trace.clock().start_timestamp;
        (plan.header.clock_type, plan.header.perf_freq) = (ClockType::QPC, ASSUMED_FREQUENCY);
        plan.header.log_minor = 5;
        plan.header.stated_pointer_size = plan.header.pointer_size.bytes() as u32;
        plan.header.timer_resolution = 156_250;
    }
    let was = found.mode.has(LogFileMode::COMPRESSED);
    let as_was = was.then(|| (trace.compression(), Effort::default()));
    let compressor: Option<BufferCompressor> = match how.compression.or(as_was) {
        Some((format, effort)) => {
            Some(BufferCompressor::new(format, effort)?.with_threads(threads))
        }
        None => None,
    };
    let mut notes = trace.notes().to_vec();
    let mut relog = Relogger::start(plan, output, compressor)?;
    let mut records = trace.ordered()?;
    let mut too_long = 0;
    records.with_threads(relog.reading_threads(threads), |records| {
        records.for_each(|record| {
            watch(&record);
            // The header event of what was appended, or of a buffer 0 that lost its place.
            if record.hook() == Some(crate::constants::hook::HEADER) {
                return Ok(());
            }
            match relog.copy(&record) {
                Err(e) if !e.is_io() => too_long += 1,
                done => done?,
            }
            Ok::<_, crate::Error>(())
        })
    })?;
    let (damage, order) = (records.damage().to_vec(), records.report());
    notes.sort_by_key(Note::offset);
    let (output, summary) = relog.finish()?;
    Ok((output, RepairReport { summary, damage, notes, closed, header, order, too_long }))
}
