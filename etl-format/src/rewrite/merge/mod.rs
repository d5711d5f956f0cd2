//! Several traces made one, as `xperf -merge` does: `CreateMergedTraceFile`.
//!
//! # What comes out
//! * The header is that of the input that began first, as mergers write it: the session's name is
//!   `Relogger`, that of the file `[multiple files]` (with one input it stays), the mode is RELOG and
//!   SEQUENTIAL, lost events and buffers are those of all inputs together, the end is the latest that
//!   any states (records may come behind it, as in real merges).
//! * Records go into buffers of their processor, in time order over all inputs. Records with the same
//!   timestamp on one processor come in the order of the inputs.
//! * A buffer into which records of a buffer with losses go first is flagged as that one was.
//! * Records without a timestamp of their own keep the time that they were read with, if need be by a
//!   timestamp that they are given.
//! * The inputs' header events are gone. What else stood in their buffers 0 (group masks, partition,
//!   build) comes into buffers of processor 0 as ordinary records; the partition of the first input
//!   stands in the new buffer 0 as well.
//! * Timestamps are those of one clock. Inputs on that clock keep theirs, to the tick; those of others
//!   are converted by what the headers say of start and frequency ([`Relation`]), in the records'
//!   headers and in payloads that are known to hold timestamps (stacks, interrupts, hard faults, disk times).
//!
//! Traces that do not belong together are refused for a [`Reason`], which the caller may allow.
//!
//! Memory is bounded by the buffers that are open: one per processor of each input, and one per
//! processor of the output; [`MergeOptions::memory`] bounds it whatever the number of inputs.
//!
//! ```
//! use std::io::Cursor;
//! use etl_format::write::File;
//! use etl_format::rewrite::merge::{MergeOptions, merge};
//!
//! # fn main() -> Result<(), etl_format::rewrite::merge::MergeError> {
//! # let (kernel, clr): (&[u8], &[u8]) = (&[], &[]);
//! # if kernel.is_empty() { return Ok(()); }
//! let out = File::new(Cursor::new(Vec::new()));
//! let (file, report) = merge(vec![kernel, clr], out, &MergeOptions::default())?;
//! println!("{} records in {} bytes", report.records(), file.into_inner().into_inner().len());
//! # Ok(())
//! # }
//! ```

mod added;
mod clocks;
mod inputs;
mod refusal;
mod timestamps;

use crate::compress::Effort;
use crate::constants::{CompressionFormat, LogFileMode, hook};
use crate::error::Error;
use crate::read::{self, Damage, Note, Record as ReadRecord, Source};

use crate::write::BufferCompressor;
use crate::write::LogFileHeader;
use crate::write::Output;
use crate::write::record::Raw;
use crate::write::{Session, SessionConfig, SessionSummary, Style};

pub use added::Added;
pub use clocks::Relation;
pub use refusal::{Allow, Reason, Refusal};

use clocks::Clocks;
use inputs::{Input, Inputs};

/// Buffers of a merged trace. Records take at most 64 KB, so twice that holds any.
const BUFFER: u32 = 0x1_0000;

/// How traces are to be merged.
#[derive(Clone, Debug)]
pub struct MergeOptions {
    /// How the inputs are read: in [`read::Mode::Strict`] a damaged one is an error. By default every
    /// record is looked at beforehand, so that time order is exact. Its `threads` decompress during the
    /// merge as well, or compress, if the merged trace is to be; it is the same for any number.
    pub read: read::Options,
    /// Reasons to refuse that do not count.
    pub allow: Allow,
    /// Compress the buffers, in a format with an effort.
    pub compression: Option<(CompressionFormat, Effort)>,
    /// When the merge is made, in FILETIME units: what the buffers bear. By default the end of the
    /// merged trace, so that the same inputs give the same bytes.
    pub now: Option<i64>,
    /// Most bytes that the open buffers of all inputs may take together. More inputs than that are
    /// refused ([`MergeError::Memory`]): merged in groups, and the groups merged, they give the same
    /// records.
    pub memory: u64,
}

/// Two gigabytes.
const MEMORY: u64 = 2 << 30;

impl Default for MergeOptions {
    fn default() -> Self {
        let read = read::Options { order: read::OrderCheck::Full, ..read::Options::default() };
        MergeOptions { read, allow: Allow::default(), compression: None, now: None, memory: MEMORY }
    }
}

/// What a merge came to.
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

/// What became of an input.
#[derive(Clone, Debug)]
pub struct MergedInput {
    /// Its records, the header event left out.
    pub records: u64,
    /// How its timestamps became those of the merged trace.
    pub relation: Relation,
    /// What could not be read; empty in [`read::Mode::Strict`].
    pub damage: Vec<Damage>,
    /// What its buffers and its header tell.
    pub notes: Vec<Note>,
}

/// Why traces could not be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There was nothing to merge.
    #[error("no trace was given")]
    NoInput,
    /// An input could not be read.
    #[error("input {}: {error}", input + 1)]
    Input {
        /// Index of the input.
        input: usize,
        /// The fault.
        error: Error,
    },
    /// Reading all inputs at once would take more memory than is allowed.
    #[error(
        "reading {inputs} traces at once takes {needed} bytes of memory, and {most} are allowed"
    )]
    Memory {
        /// Inputs.
        inputs: usize,
        /// What their open buffers take.
        needed: u64,
        /// [`MergeOptions::memory`].
        most: u64,
    },
    /// The traces do not belong together.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The merged trace could not be written.
    #[error(transparent)]
    Output(Error),
}

/// Merges traces.
///
/// # Errors
/// When an input cannot be read, when the inputs do not belong together, and whatever the output
/// reports.
pub fn merge<S: Source, O: Output>(
    inputs: Vec<S>,
    output: O,
    options: &MergeOptions,
) -> Result<(O, MergeReport), MergeError> {
    merge_with(inputs, output, options, |_| {})
}

/// Merges traces and lets `watch` see every record, as it stands in its input: for showing progress.
///
/// # Errors
/// As [`merge`].
pub fn merge_with<S: Source, O: Output>(
    inputs: Vec<S>,
    output: O,
    options: &MergeOptions,
    mut watch: impl FnMut(&ReadRecord<'_>),
) -> Result<(O, MergeReport), MergeError> {
    merge_adding(inputs, output, options, |record, _, _| {
        watch(record);
        Ok(())
    })
}

/// Merges traces and lets `ahead` see every record, as it stands in its input, with its timestamp in the
/// merged trace, and put others in front of it: what a merger knows of the things that records tell
/// of. They go into the buffer of the same processor, and should have that timestamp.
///
/// # Errors
/// As [`merge`]; what `ahead` gives back is an error of the output.
pub fn merge_adding<S: Source, O: Output>(
    inputs: Vec<S>,
    output: O,
    options: &MergeOptions,
    mut ahead: impl FnMut(&ReadRecord<'_>, i64, &mut Added) -> Result<(), Error>,
) -> Result<(O, MergeReport), MergeError> {
    let inputs = Input::open_all(inputs, &options.read)?;
    let needed = inputs.iter().map(Input::memory).fold(0, u64::saturating_add);
    if needed > options.memory {
        let (inputs, most) = (inputs.len(), options.memory);
        return Err(MergeError::Memory { inputs, needed, most });
    }
    let headers: Vec<_> = inputs.iter().map(|i| &i.header).collect();
    let clocks = Clocks::relate(&headers, options.allow)?;
    let closed = headers.iter().all(|h| h.is_closed());
    let (header, end) = header(&inputs, &clocks, options);
    let mut config = SessionConfig::new(header);
    config.logger_id = 0;
    config.style = Style::Relogger { now: options.now.unwrap_or(end) };
    let mut all = Inputs::new(inputs, clocks.relations, clocks.first);
    if let Some(partition) = all.partition()? {
        config
            .add_header_record(&Raw { bytes: &partition, timestamp: None })
            .map_err(MergeError::Output)?;
    }
    let mut session = match options.compression {
        None => Session::create(output, config),
        Some((format, effort)) => BufferCompressor::new(format, effort).and_then(|compressor| {
            let compressor = compressor.with_threads(options.read.threads);
            Session::create_compressed(output, config, compressor)
        }),
    }
    .map_err(MergeError::Output)?;
    let mut latest = i64::MIN;
    let mut added = Added::default();
    // Compressing is dearer than decompressing by far, and has the other threads for itself.
    let reading = if session.is_compressed() { 1 } else { options.read.threads };
    all.drain(reading, |record, moved, losses| {
        latest = latest.max(moved.raw.timestamp.unwrap_or(i64::MIN));
        if let Some(flags) = losses {
            session.carry_losses(record.processor(), flags)?;
        }
        added.clear();
        ahead(record, moved.moment, &mut added)?;
        for bytes in added.records() {
            session.write(record.processor(), &Raw { bytes, timestamp: Some(moved.moment) })?;
        }
        session.write(record.processor(), moved)
    })?;
    // The rundown of a merger comes behind the end that the sessions state, and stays there. Where
    // one was not closed, its last record tells.
    let end =
        if closed || latest == i64::MIN { end } else { end.max(clocks.clock.filetime(latest)) };
    let end = Some(end).filter(|end| *end > 0);
    let (output, summary) = session.close(end).map_err(MergeError::Output)?;
    Ok((output, MergeReport { summary, inputs: all.report() }))
}

/// The header of the merged trace, and the latest end that any input states.
fn header<S: Source>(
    inputs: &[Input<S>],
    clocks: &Clocks,
    options: &MergeOptions,
) -> (LogFileHeader, i64) {
    let headers = || inputs.iter().map(|i| &i.header);
    let mut header =
        headers().nth(clocks.first).map_or_else(LogFileHeader::new, LogFileHeader::from);
    let clock = &clocks.clock;
    (header.timestamp, header.start_time) = (clock.start_timestamp, clock.start_time);
    (header.clock_type, header.perf_freq) = (clock.kind, clocks.perf_freq);
    header.cpu_mhz = clocks.cpu_mhz;
    header.end_time = headers().map(|h| h.end_time).max().unwrap_or(0);
    header.mode = LogFileMode::RELOG | LogFileMode::SEQUENTIAL;
    if options.compression.is_some() {
        header.mode = header.mode | LogFileMode::COMPRESSED;
    }
    let large = headers().any(|h| h.buffer_size > BUFFER);
    header.buffer_size = if large { 2 * BUFFER } else { BUFFER };
    header.set_log_version();
    let processors = inputs.iter().map(Input::processors).max().unwrap_or(1);
    header.processors = processors.clamp(1, 2048);
    // Limits and preserved buffers were those of a session that is over.
    (header.maximum_file_size, header.start_buffers, header.buffers_written) = (0, 1, 1);
    (header.logger_name_word, header.log_file_name_word) = (0, 0);
    let sum =
        |count: fn(&read::FileHeader) -> u32| headers().map(count).fold(0, u32::saturating_add);
    header.events_lost = sum(|h| h.events_lost);
    header.buffers_lost = sum(|h| h.buffers_lost);
    header.logger_name = "Relogger".encode_utf16().collect();
    if inputs.len() > 1 {
        header.log_file_name = "[multiple files]".encode_utf16().collect();
    }
    let end = header.end_time;
    (header, end)
}

/// Whether a record of a buffer 0 is one that mergers put into the new buffer 0.
fn is_partition(record: &ReadRecord<'_>) -> bool {
    record.hook() == Some(hook::PARTITION_INFO)
}
