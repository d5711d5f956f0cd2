//! Merges traces into one, as `xperf -merge` does (`CreateMergedTraceFile`).
//!
//! # The merged trace
//! * The header is the header of the input that began first, changed as mergers do. The session's
//!   name is `Relogger`, or `EventPipe` if all inputs are of EventPipe; the file's name is
//!   `[multiple files]`, or unchanged with one input. The mode is RELOG and SEQUENTIAL, and
//!   ADD_HEADER if an input is a selection. Lost events and buffers are the sums of all inputs, in
//!   which files of one session are counted once. The end time is the latest of all inputs; records
//!   may be later, as in real merges.
//! * Buffers that are missing from an input, or between files of one session, or that could not be
//!   read whole, are also counted as lost: the new buffers are numbered from 1 without gaps, as
//!   mergers do. Buffers between files are counted if all inputs fit into the memory.
//! * Records go into buffers of their processor, in time order over all inputs. Records with the
//!   same timestamp on one processor come in the order of the inputs.
//! * Loss flags are on the buffers with the records of the same time. If an input counts lost
//!   events and flags no buffer for them, no buffer of the merged trace is flagged with lost
//!   events: events may be missing anywhere.
//! * Records without their own timestamp keep the timestamp that readers return. For this a WPP
//!   message may receive a timestamp.
//! * The records of the inputs' buffers 0 (header event, group masks, partition, build) become
//!   ordinary records of processor 0. The partition of the first input is also in the new buffer 0.
//!   The header event says when the session of the input began and ended, so that a gap between
//!   two sessions remains visible. Mergers of Windows omit it ([`Merger::omit_headers`]). An input
//!   that is itself merged has the header events of its sessions, and its own is omitted, since it
//!   spans all of them.
//! * All timestamps are of one clock. Inputs with this clock keep their timestamps. Timestamps of
//!   other inputs are converted with the start and the frequency of both clocks ([`Relation`]), in
//!   the records' headers and in known payloads (stacks, interrupts, hard faults, disk times).
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
use plan::{Losses, Plan};

/// Bytes of the buffers of a merged trace. A record has at most 64 KB, so that it fits into a
/// buffer of twice the size.
const BUFFER: u32 = 0x1_0000;

/// The largest number of processors that a header may state.
const MAX_PROCESSORS: u32 = 2048;

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
    omits_headers: bool,
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
            omits_headers: false,
            on_record: Callback::default(),
        }
    }

    /// Sets how the inputs are read, except for their order. The merged trace is the same for any
    /// number of threads.
    #[must_use]
    pub fn options(mut self, options: read::Options) -> Self {
        self.read = read::Options {
            order_check: self.read.order_check,
            ..options
        };
        self
    }

    /// Reads the inputs once, looking ahead ([`read::OrderCheck::Lookahead`]), which takes a sixth
    /// less time. By default all records are scanned first, for exact order on any input.
    ///
    /// If looking ahead is not enough, the merge fails with [`ErrorKind::OutOfOrder`]; the caller
    /// then discards the output and merges without this. No known real trace needs this. Otherwise
    /// the merged trace is the same.
    #[must_use]
    pub fn look_ahead(mut self) -> Self {
        self.read.order_check = read::OrderCheck::Lookahead;
        self
    }

    /// Sets the reasons for which traces are not refused.
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

    /// Sets the time of the merge, which is in the buffer headers. The default is the end of the
    /// merged trace, so that the same inputs result in the same bytes.
    #[must_use]
    pub fn made_at(mut self, time: FileTime) -> Self {
        self.made_at = Some(time);
        self
    }

    /// Sets the largest number of bytes of the open buffers of all inputs together. More inputs are
    /// refused ([`ErrorKind::Memory`]), or merged in several passes ([`Merger::run_in_passes`]).
    #[must_use]
    pub fn max_memory(mut self, bytes: u64) -> Self {
        self.max_memory = bytes;
        self
    }

    /// Omits the header events of the inputs, as mergers of Windows do: then the merged trace does
    /// not say when its sessions began and ended.
    #[must_use]
    pub fn omit_headers(mut self) -> Self {
        self.omits_headers = true;
        self
    }

    /// Calls `f` for every record of the inputs, with its timestamp in the merged trace. `f` may
    /// insert records before it, which go into the buffer of the same processor and should have
    /// that timestamp. An error of `f` is treated as an error of the output.
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
    /// If an input cannot be read, if the inputs do not belong together, and errors of the output.
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
        let mut needed = 0u64;
        for input in &inputs {
            needed = needed.saturating_add(input.memory(self.read.order_check));
        }
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
        // Compression takes much more time than decompression, so it uses the other threads.
        let threads = if compressor.is_some() {
            1
        } else {
            self.read.threads
        };
        let clocks = &plan.clocks;
        let losses = plan.losses(&inputs);
        let header = header(&inputs, clocks, &losses, compressor.is_some());
        let stated_end = header.end_time;
        let mut config = SessionConfig::new(header);
        config.logger_id = 0;
        config.style = Style::Relogger {
            now: self.made_at.unwrap_or(stated_end),
        };
        config.compressor = compressor;
        let events_lost = losses.iter().map(|losses| losses.events).collect();
        let mut inputs = Inputs::new(
            inputs,
            clocks.relations.clone(),
            clocks.first(),
            events_lost,
        );
        if self.omits_headers {
            inputs.omit_headers();
        }
        if let Some(partition) = inputs.partition()? {
            config.add_header_record(&Raw {
                bytes: &partition,
                timestamp: None,
            })?;
        }
        let gaps = Gaps::new(inputs.first_lost(), config.header.buffer_size);
        let mut session = Session::create(output, config)?;
        let latest = self.write_records(&mut inputs, threads, gaps, &mut session)?;
        inputs.ensure_in_order()?;
        for place in inputs.unread_losses() {
            place.carry(&mut session)?;
        }
        let missing_buffers = inputs.missing_buffers().saturating_add(plan.between);
        session.add_losses(0, missing_buffers);
        // Records of a merger's rundown are later than the end of the sessions and do not change
        // it. If an input was not closed, the last record is the end.
        let end = if plan.closed || latest == Ticks::MIN {
            stated_end
        } else {
            stated_end.max(clocks.clock.time(latest))
        };
        let finished = session.close((end > FileTime::default()).then_some(end))?;
        Ok(Finished {
            output: finished.output,
            report: MergeReport {
                summary: finished.report,
                inputs: inputs.report(),
            },
        })
    }

    /// Writes all records of the inputs. Returns the latest of their own timestamps.
    fn write_records<S: Source, O: Output>(
        &mut self,
        inputs: &mut Inputs<S>,
        threads: usize,
        mut gaps: Gaps,
        session: &mut Session<O>,
    ) -> Result<Ticks> {
        let mut latest = Ticks::MIN;
        let mut insertions = Insertions::default();
        inputs.for_each(threads, |input, record, moved, place| {
            let processor = record.processor();
            latest = latest.max(moved.raw.timestamp.unwrap_or(Ticks::MIN));
            if let Some(place) = place {
                gaps.pass(input, &place);
                place.carry(session)?;
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
                    if is_in_gap {
                        gaps.write(session, processor, &raw)?;
                    } else {
                        session.write(processor, &raw)?;
                    }
                }
            }
            if is_in_gap {
                gaps.write(session, processor, moved)
            } else {
                session.write(processor, moved)
            }
        })?;
        Ok(latest)
    }
}

/// The result of a merge.
#[derive(Clone, Debug, Default)]
pub struct MergeReport {
    /// What was written and lost.
    pub summary: SessionSummary,
    /// The inputs, in their order.
    pub inputs: Vec<MergedInput>,
}

impl MergeReport {
    /// Records of all inputs, without their header events.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.inputs.iter().map(|i| i.records).sum()
    }
}

/// The result of an input.
#[derive(Clone, Debug)]
pub struct MergedInput {
    /// Number of its records, without the header event.
    pub records: u64,
    /// How its timestamps were converted.
    pub relation: Relation,
    /// The ranges that could not be read; empty in [`read::Mode::Strict`].
    pub damage: Vec<Damage>,
    /// Remarks on its buffers and its header.
    pub notes: Vec<Note>,
    /// Its header event.
    pub header: FileHeader,
}

/// The header of the merged trace. Its end time is the latest end that an input states.
fn header<S: Source>(
    inputs: &[Input<S>],
    clocks: &Clocks,
    losses: &[Losses],
    is_compressed: bool,
) -> FileHeader {
    let mut header = match inputs.get(clocks.first()) {
        Some(first) => first.header.clone(),
        None => FileHeader::new(),
    };
    header.timestamp = clocks.clock.start_timestamp;
    header.start_time = clocks.clock.start_time;
    header.clock_type = clocks.clock.kind;
    header.perf_freq = clocks.perf_freq;
    header.cpu_mhz = clocks.cpu_mhz;
    header.mode = LogFileMode::RELOG | LogFileMode::SEQUENTIAL;
    if is_compressed {
        header.mode = header.mode | LogFileMode::COMPRESSED;
    }
    header.buffer_size = BUFFER;
    header.processors = 1;
    for input in inputs {
        if input.header.is_selection() {
            header.mode = header.mode | LogFileMode::ADD_HEADER;
        }
        if input.header.buffer_size > BUFFER {
            header.buffer_size = 2 * BUFFER;
        }
        header.processors = header.processors.max(input.processors());
        header.end_time = header.end_time.max(input.header.end_time);
    }
    header.processors = header.processors.min(MAX_PROCESSORS);
    header.set_log_version();
    // The source's limits do not apply to the merged trace.
    header.maximum_file_size = 0;
    header.start_buffers = 1;
    header.buffers_written = 1;
    header.logger_name_word = 0;
    header.log_file_name_word = 0;
    header.events_lost = 0;
    header.buffers_lost = 0;
    for Losses { events, buffers } in losses {
        header.events_lost = header.events_lost.saturating_add(*events);
        header.buffers_lost = header.buffers_lost.saturating_add(*buffers);
    }
    // What wrote the traces decides how they are judged: EventPipe has no events of the kernel.
    let are_streams = inputs.iter().all(|input| input.header.is_event_pipe());
    if !are_streams || inputs.is_empty() {
        header.logger_name = "Relogger".encode_utf16().collect();
    }
    if inputs.len() > 1 {
        header.log_file_name = SEVERAL_FILES.encode_utf16().collect();
    }
    header
}

/// Whether mergers copy a record into the new buffer 0.
fn is_partition(record: &ReadRecord<'_>) -> bool {
    record.hook() == Some(hook::PARTITION_INFO)
}
