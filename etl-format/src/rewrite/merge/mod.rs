//! Merges traces into one, as `xperf -merge` does (`CreateMergedTraceFile`).
//! # The merged trace
//! * The header is that of the input that began first, as mergers write it: the session's name is
//!   `Relogger`, that of the file `[multiple files]` (with one input it stays), the mode is RELOG
//!   and SEQUENTIAL (and ADD_HEADER if an input is a selection), lost events and buffers are those
//!   of all inputs together, files of one session counted once, the end time is the latest of all
//!   inputs (records may be later, as in real merges).
//! * Buffers that are missing from an input or could not be read whole count as lost, too: the new
//!   buffers are numbered from 1 without gaps, as mergers do.
//! * Records go into buffers of their processor, in time order over all inputs. Records with the
//!   same timestamp on one processor come in the order of the inputs.
//! * So do buffers that are missing between files of one session, where all inputs fit into the
//!   memory.
//! * The flags of buffers with losses are on the buffers that hold the records of their time. If an
//!   input counts lost events and flags no buffer for them, no buffer of the merged trace is: they
//!   may be missing anywhere.
//! * Records without their own timestamp keep the time that they were read with. A WPP message may
//!   receive a timestamp for that.
//! * The inputs' header events are omitted. The other records of their buffers 0 (group masks,
//!   partition, build) become ordinary records of processor 0. The partition of the first input is
//!   also in the new buffer 0.
//! * All timestamps are of one clock. Inputs on that clock keep theirs exactly. Those of other
//!   inputs are converted with the start and the frequency of both clocks ([`Relation`]), in the
//!   records' headers and in known payloads (stacks, interrupts, hard faults, disk times).
//!
//! Traces that do not belong together are refused for a [`Reason`], which the caller may allow.
//!
//! Memory: one buffer per processor of each input (two with [`Merger::look_ahead`]), and one per
//! processor of the output.
//! [`Merger::max_memory`] bounds it for any number of inputs.
//!
//! ```
//! use etl_format::{FileHeader, FileTime};
//! use etl_format::constants::hook;
//! use etl_format::rewrite::merge::Merger;
//! use etl_format::write::record::PerfInfo;
//! use etl_format::write::Session;
//!
//! let mut traces = Vec::new();
//! let start = FileTime::new(132_000_000_000_000_000);
//! for timestamp in [3_000, 2_000] {
//!     let mut session = Session::in_memory(FileHeader::starting_at(start))?;
//!     session.write(0, &PerfInfo::new(hook::SAMPLE, timestamp))?;
//!     traces.push(session.finish()?);
//! }
//! let inputs = vec![traces[0].as_slice(), traces[1].as_slice()];
//! let merged = Merger::new().run(inputs, Vec::new())?;
//! assert_eq!(merged.report.records(), 2);
//! assert_eq!(merged.report.inputs.len(), 2);
//! assert!(!merged.output.is_empty());
//! # Ok::<(), etl_format::Error>(())
//! ```

mod clocks;
mod gaps;
mod inputs;
mod insertions;
mod passes;
mod plan;
mod refusal;
mod timestamps;

use crate::constants::{LogFileMode, hook};
use crate::error::{Error, ErrorKind, Result};
use crate::headers::file::SEVERAL_FILES;
use crate::read::{self, Damage, Note, Record as ReadRecord, Source};
use crate::{FileHeader, FileTime, Ticks};

use super::callback::Callback;
use crate::write::record::Raw;
use crate::write::{
    BufferCompressor, Finished, Output, Session, SessionConfig, SessionSummary, Style,
};

pub use crate::refusal::{Reason, Refusal};
pub use clocks::Relation;
pub use insertions::Insertions;
pub use refusal::Allow;

use clocks::Clocks;
use gaps::Gaps;
use inputs::{Input, Inputs};
use plan::Plan;

/// Buffers of a merged trace. Records take at most 64 KB, so twice that holds any.
const BUFFER: u32 = 0x1_0000;

/// Receives a record of an input, its timestamp in the merged trace, and the records to insert
/// before it.
type OnRecord<'f> = dyn FnMut(&ReadRecord<'_>, Ticks, &mut Insertions) -> Result<()> + 'f;

/// Merges traces.
#[derive(Debug)]
pub struct Merger<'f> {
    read: read::Options,
    allow: Allow,
    compressor: Option<BufferCompressor>,
    made_at: Option<FileTime>,
    max_memory: u64,
    on_record: Callback<OnRecord<'f>>,
}

/// Two gigabytes.
const MAX_MEMORY: u64 = 2 << 30;

impl Default for Merger<'_> {
    fn default() -> Self {
        Merger::new()
    }
}

impl<'f> Merger<'f> {
    /// A merger that reads strictly, refuses traces that do not belong together, and does not
    /// compress.
    #[must_use]
    pub fn new() -> Self {
        // Exact time order on any input.
        let order_check = read::OrderCheck::Scan;
        Merger {
            read: read::Options {
                order_check,
                ..read::Options::default()
            },
            allow: Allow::default(),
            compressor: None,
            made_at: None,
            max_memory: MAX_MEMORY,
            on_record: Callback::default(),
        }
    }

    /// How the inputs are read, except for their order. The merged trace is the same for any number
    /// of threads.
    #[must_use]
    pub fn options(mut self, options: read::Options) -> Self {
        self.read = read::Options {
            order_check: self.read.order_check,
            ..options
        };
        self
    }

    /// Reads the inputs once, looking ahead ([`read::OrderCheck::Lookahead`]). By default all their
    /// records are scanned first, for exact order on any input. Takes a sixth less time.
    ///
    /// The merge fails with [`ErrorKind::OutOfOrder`] where that does not suffice, which no known
    /// real trace needs; the caller then discards the output and merges without this. Otherwise the
    /// merged trace is the same.
    #[must_use]
    pub fn look_ahead(mut self) -> Self {
        self.read.order_check = read::OrderCheck::Lookahead;
        self
    }

    /// Reasons for which traces are not refused.
    #[must_use]
    pub fn allow(mut self, allow: Allow) -> Self {
        self.allow = allow;
        self
    }

    /// Compresses the buffers of the merged trace, or not.
    #[must_use]
    pub fn compress(mut self, compressor: impl Into<Option<BufferCompressor>>) -> Self {
        self.compressor = compressor.into();
        self
    }

    /// The time of the merge, for the buffer headers. The default is the end of the merged trace,
    /// so that the same inputs result in the same bytes.
    #[must_use]
    pub fn made_at(mut self, time: FileTime) -> Self {
        self.made_at = Some(time);
        self
    }

    /// The largest number of bytes that the open buffers of all inputs may take together. More
    /// inputs are refused ([`ErrorKind::Memory`]), or merged in several passes
    /// ([`Merger::run_in_passes`]).
    #[must_use]
    pub fn max_memory(mut self, bytes: u64) -> Self {
        self.max_memory = bytes;
        self
    }

    /// Calls `f` for every record of the inputs, with its timestamp in the merged trace. `f` may
    /// insert records before it, which go into the buffer of the same processor and should have
    /// that timestamp. An error of `f` is one of the output.
    #[must_use]
    pub fn on_record(
        mut self,
        f: impl FnMut(&ReadRecord<'_>, Ticks, &mut Insertions) -> Result<()> + 'f,
    ) -> Self {
        self.on_record = Callback(Some(Box::new(f)));
        self
    }

    /// Merges the inputs into one trace.
    ///
    /// # Errors
    /// When an input cannot be read, when the inputs do not belong together, and errors of the
    /// output.
    pub fn run<S: Source, O: Output>(
        mut self,
        inputs: Vec<S>,
        output: O,
    ) -> Result<Finished<O, MergeReport>> {
        let inputs = self.open(inputs)?;
        let plan = Plan::new(&inputs, self.allow)?;
        self.write(inputs, &plan, output)
    }

    /// Opens the inputs, if they fit into the memory together.
    fn open<S: Source>(&self, inputs: Vec<S>) -> Result<Vec<Input<S>>> {
        let inputs = Input::open_all(inputs, &self.read)?;
        let memory = |input: &Input<S>| input.memory(self.read.order_check);
        let needed = inputs.iter().map(memory).fold(0, u64::saturating_add);
        if needed > self.max_memory {
            let kind = ErrorKind::Memory {
                inputs: inputs.len(),
                needed,
                max: self.max_memory,
            };
            return Err(Error::new(0, kind));
        }
        Ok(inputs)
    }

    fn write<S: Source, O: Output>(
        &mut self,
        inputs: Vec<Input<S>>,
        plan: &Plan,
        output: O,
    ) -> Result<Finished<O, MergeReport>> {
        let compressor = self.compressor.take();
        let Plan {
            clocks,
            closed,
            between,
            ..
        } = plan;
        let lost = plan.lost(&inputs);
        let (header, end) = header(&inputs, clocks, &lost, compressor.is_some());
        let mut config = SessionConfig::new(header);
        config.logger_id = 0;
        config.style = Style::Relogger {
            now: self.made_at.unwrap_or(end),
        };
        let events_lost = lost.iter().map(|[events, _]| *events).collect();
        let mut all = Inputs::new(
            inputs,
            clocks.relations.clone(),
            clocks.first(),
            events_lost,
        );
        if let Some(partition) = all.partition()? {
            config.add_header_record(&Raw {
                bytes: &partition,
                timestamp: None,
            })?;
        }
        // Compression takes much more time than decompression, so it uses the other threads.
        let threads = if compressor.is_some() {
            1
        } else {
            self.read.threads
        };
        config.compressor = compressor;
        let mut gaps = Gaps::new(all.first_lost(), config.header.buffer_size);
        let mut session = Session::create(output, config)?;
        let mut latest = Ticks::MIN;
        let mut insertions = Insertions::default();
        all.for_each(threads, |input, record, moved, place| {
            let processor = record.processor();
            latest = latest.max(moved.raw.timestamp.unwrap_or(Ticks::MIN));
            if let Some(place) = place {
                gaps.pass(input, &place);
                place.carry(&mut session)?;
            }
            let is_in_gap = gaps.contain(input, processor);
            if let Some(on_record) = &mut self.on_record.0 {
                insertions.clear();
                on_record(record, moved.timestamp, &mut insertions)?;
                for bytes in insertions.records() {
                    let raw = Raw {
                        bytes,
                        timestamp: Some(moved.timestamp),
                    };
                    match is_in_gap {
                        true => gaps.write(&mut session, processor, &raw)?,
                        false => session.write(processor, &raw)?,
                    }
                }
            }
            match is_in_gap {
                true => gaps.write(&mut session, processor, moved),
                false => session.write(processor, moved),
            }
        })?;
        // Records of a merger's rundown are later than the end of the sessions and do not change
        // it. If an input was not closed, the last record is the end.
        let end = if *closed || latest == Ticks::MIN {
            end
        } else {
            end.max(clocks.clock.time(latest))
        };
        let end = Some(end).filter(|end| *end > FileTime::default());
        all.ensure_in_order()?;
        for place in all.unread_losses() {
            place.carry(&mut session)?;
        }
        session.add_losses(0, all.missing_buffers().saturating_add(*between));
        let finished = session.close(end)?;
        let report = MergeReport {
            summary: finished.report,
            inputs: all.report(),
        };
        Ok(Finished {
            output: finished.output,
            report,
        })
    }
}

/// The result of a merge.
#[derive(Clone, Debug, Default)]
pub struct MergeReport {
    /// What was written.
    pub summary: SessionSummary,
    /// The inputs, in their order.
    pub inputs: Vec<MergedInput>,
}

impl MergeReport {
    /// Records of all inputs, their header events left out.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.inputs.iter().map(|i| i.records).sum()
    }
}

/// The result of an input.
#[derive(Clone, Debug)]
pub struct MergedInput {
    /// Its records, the header event left out.
    pub records: u64,
    /// How its timestamps became those of the merged trace.
    pub relation: Relation,
    /// What could not be read; empty in [`read::Mode::Strict`].
    pub damage: Vec<Damage>,
    /// Remarks on its buffers and its header.
    pub notes: Vec<Note>,
    /// Its header event.
    pub header: FileHeader,
}

/// The header of the merged trace, and the latest end that any input states.
fn header<S: Source>(
    inputs: &[Input<S>],
    clocks: &Clocks,
    lost: &[[u32; 2]],
    compressed: bool,
) -> (FileHeader, FileTime) {
    let headers = || inputs.iter().map(|i| &i.header);
    let mut header = headers()
        .nth(clocks.first())
        .map_or_else(FileHeader::new, FileHeader::clone);
    let clock = &clocks.clock;
    header.timestamp = clock.start_timestamp;
    header.start_time = clock.start_time;
    (header.clock_type, header.perf_freq) = (clock.kind, clocks.perf_freq);
    header.cpu_mhz = clocks.cpu_mhz;
    header.end_time = headers().map(|h| h.end_time).max().unwrap_or_default();
    header.mode = LogFileMode::RELOG | LogFileMode::SEQUENTIAL;
    if headers().any(|h| h.is_selection()) {
        header.mode = header.mode | LogFileMode::ADD_HEADER;
    }
    if compressed {
        header.mode = header.mode | LogFileMode::COMPRESSED;
    }
    let large = headers().any(|h| h.buffer_size > BUFFER);
    header.buffer_size = if large { 2 * BUFFER } else { BUFFER };
    header.set_log_version();
    let processors = inputs.iter().map(Input::processors).max().unwrap_or(1);
    header.processors = processors.clamp(1, 2048);
    // The source's limits do not apply to the merged trace.
    (
        header.maximum_file_size,
        header.start_buffers,
        header.buffers_written,
    ) = (0, 1, 1);
    (header.logger_name_word, header.log_file_name_word) = (0, 0);
    (header.events_lost, header.buffers_lost) = (0, 0);
    for [events, buffers] in lost {
        header.events_lost = header.events_lost.saturating_add(*events);
        header.buffers_lost = header.buffers_lost.saturating_add(*buffers);
    }
    header.logger_name = "Relogger".encode_utf16().collect();
    if inputs.len() > 1 {
        header.log_file_name = SEVERAL_FILES.encode_utf16().collect();
    }
    let end = header.end_time;
    (header, end)
}

/// Whether a record is the one that mergers copy into the new buffer 0.
fn is_partition(record: &ReadRecord<'_>) -> bool {
    record.hook() == Some(hook::PARTITION_INFO)
}
