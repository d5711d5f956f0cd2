//! A summary of a whole trace: header, sizes, times, counts of events, gaps and problems.
//!
//! ```
//! use etl_format::read::{Options, Order, Trace};
//! use etl_schema::store::SchemaStore;
//! use etl_events::survey::Survey;
//!
//! fn survey(trace: &[u8]) -> etl_events::Result<Survey> {
//!     let mut trace = Trace::open(trace, &Options::salvage())?;
//!     Ok(Survey::of(&mut trace, SchemaStore::default(), |record| { /* show progress */ })?)
//! }
//! ```

mod counts;
mod gaps;
mod report;

use std::collections::BTreeMap;

use etl_format::read::{Damage, Note, Order, Record, Source, Trace};
use etl_format::{Clock, FileTime, Ticks};
use etl_schema::providers::{LOST_EVENT, lost};
use etl_schema::store::SchemaStore;
use serde::Serialize;

use crate::context::Context;
use crate::filter::Filter;
use crate::header_fields::hook_as_text;
use crate::problem::Problem;
use counts::Counts;
use gaps::gaps;
pub use report::Report;

/// The summary of a trace. `docs/json.md` describes its JSON form.
///
/// Values that only the header event states are `None` where that event is lost.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Survey {
    /// Whether there is a header event.
    pub header: bool,
    /// The program that wrote the file: `kernel`, `relogged`, each perhaps `, compressed`.
    pub dialect: Option<&'static str>,
    /// Name and version of Windows.
    pub os: Option<String>,
    /// Version of the log format.
    pub log_version: Option<String>,
    /// Name of the session.
    pub logger_name: Option<String>,
    /// Name of the file when it was recorded.
    pub log_file_name: Option<String>,
    /// The logging mode in words.
    pub mode: Option<String>,
    /// The logging mode.
    pub mode_bits: Option<u32>,
    /// Bytes of a pointer.
    pub pointer_size: Option<usize>,
    /// Processors of the machine.
    pub processors: Option<u32>,
    /// Kind of clock.
    pub clock: Option<String>,
    /// Ticks of the performance counter in a second.
    pub perf_freq: Option<i64>,
    /// Ticks of the clock of the timestamps in a second.
    pub ticks_per_second: Option<u64>,
    /// Start of the session, UTC.
    pub start_time: Option<String>,
    /// End of the session, UTC.
    pub end_time: Option<String>,
    /// Boot of the machine, UTC.
    pub boot_time: Option<String>,
    /// Time of the first record, UTC.
    pub first_event_time: Option<String>,
    /// Time of the last record, UTC.
    pub last_event_time: Option<String>,
    /// Seconds between the first and the last record.
    pub duration_seconds: Option<f64>,
    /// Minutes from local time to UTC.
    pub time_zone_bias_minutes: Option<i32>,
    /// Name of the time zone.
    pub time_zone: Option<String>,
    /// Bytes of a buffer in memory.
    pub buffer_size: u32,
    /// Buffers that were found.
    pub buffers: u64,
    /// Buffers that the header event states.
    pub buffers_stated: Option<u32>,
    /// Whether any buffer is compressed.
    pub compressed: bool,
    /// Format of the compression.
    pub compression: Option<String>,
    /// Bytes of records and buffer headers, decompressed.
    pub bytes_used: u64,
    /// Records that were read, of those that were selected.
    pub records: u64,
    /// Lost events, as the header event states.
    pub events_lost: Option<u32>,
    /// Lost buffers, as the header event states.
    pub buffers_lost: Option<u32>,
    /// Records that stand once more in another buffer ([`Record::is_stale`]); they are counted.
    pub stale_records: u64,
    /// Records by kind.
    pub kinds: BTreeMap<String, u64>,
    /// Providers, those with the most events first.
    pub providers: Vec<ProviderCount>,
    /// Counts of events, the most frequent first.
    pub events: Vec<EventCount>,
    /// Gaps in the sequence of buffers.
    pub gaps: Vec<Gap>,
    /// Notes and damage.
    pub problems: Vec<Problem>,
    /// What could not be read.
    #[serde(skip)]
    pub damage: Vec<Damage>,
    /// Remarks on the trace.
    #[serde(skip)]
    pub notes: Vec<Note>,
}

/// How many events a provider has, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProviderCount {
    /// GUID of the provider, or of the kernel group.
    pub provider_guid: String,
    /// Name of the provider.
    pub provider: Option<String>,
    /// Number of different events.
    pub kinds: u64,
    /// Number of records.
    pub count: u64,
    /// Time of its first record, UTC.
    pub first_event_time: Option<String>,
    /// Time of its last record, UTC.
    pub last_event_time: Option<String>,
}

/// How often an event occurs. Values that its kind of record does not have are 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EventCount {
    /// GUID of the provider, or of the kernel group.
    pub provider_guid: String,
    /// Name of the provider.
    pub provider: Option<String>,
    /// Name of the event, as `etlkit dump` prints it.
    pub event: String,
    /// Group and type of a kernel event, in JSON hexadecimal.
    #[serde(serialize_with = "hook_as_text")]
    pub hook: Option<u16>,
    /// Id.
    pub id: u16,
    /// Version.
    pub version: u16,
    /// Opcode, or type.
    pub opcode: u8,
    /// Task.
    pub task: u16,
    /// Name of the task.
    pub task_name: Option<String>,
    /// Level.
    pub level: u8,
    /// Keywords.
    pub keyword: u64,
    /// Keywords in hexadecimal, for readers whose numbers have fewer than 64 bits.
    pub keyword_hex: String,
    /// Number of records.
    pub count: u64,
}

/// Records that state a loss, by what was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossRecords {
    /// Records that state lost events.
    pub events: u64,
    /// Records that state lost buffers.
    pub buffers: u64,
    /// Records that state lost files.
    pub files: u64,
}

/// Missing buffers, with the times in which each processor could have written them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Gap {
    /// The first missing sequence number.
    pub first: i64,
    /// Number of missing buffers.
    pub count: u64,
    /// Times by processor; in the whole trace 65,536 of them.
    pub spans: Vec<Span>,
    /// Processors beyond this limit, whose times are not stated.
    #[serde(skip_serializing_if = "is_none")]
    pub spans_left_out: usize,
}

/// Whether nothing was left out.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_none(left_out: &usize) -> bool {
    *left_out == 0
}

/// The time between a processor's buffers before and after a gap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Span {
    /// The processor.
    pub processor: u16,
    /// Last record before the gap, UTC.
    pub from: Option<String>,
    /// First record after the gap, UTC.
    pub to: Option<String>,
}

impl Survey {
    /// Reads the whole trace once. `store` names the events; the trace adds to it.
    ///
    /// # Errors
    /// Errors of reading, with the options of the trace.
    pub fn of<S: Source>(
        trace: &mut Trace<S>,
        store: SchemaStore,
        on_record: impl FnMut(&Record<'_>),
    ) -> etl_format::Result<Survey> {
        Survey::of_selected(trace, store, &Filter::default(), None, on_record)
    }

    /// Reads the whole trace once and counts only the events that a filter admits. `context` knows
    /// which threads ran when samples were taken.
    ///
    /// # Errors
    /// As [`Survey::of`].
    pub fn of_selected<S: Source>(
        trace: &mut Trace<S>,
        store: SchemaStore,
        filter: &Filter,
        context: Option<&Context<'_>>,
        mut on_record: impl FnMut(&Record<'_>),
    ) -> etl_format::Result<Survey> {
        let (header, clock) = (trace.header().clone(), trace.clock());
        let notes = trace.notes().to_vec();
        let entries = trace.buffers().to_vec();
        let compression = entries
            .iter()
            .any(|b| b.compressed)
            .then(|| trace.compression());
        let threads = trace.options().threads;
        let stale = trace.stale_records().len() as u64;

        let mut counts = Counts::new(store);
        let mut look = |record: Record<'_>| {
            on_record(&record);
            counts.add(&record, filter, context);
            Ok::<_, etl_format::Error>(())
        };
        let mut records = trace.records(Order::File)?.with_threads(threads);
        records.for_each(&mut look)?;
        let damage = records.damage().to_vec();
        counts.end_buffer();

        let mut problems: Vec<Problem> = notes.iter().map(Problem::from).collect();
        problems.extend(damage.iter().map(Problem::from));
        problems.extend(counts.problems());
        let known = header.is_known();
        let utc = |timestamp: Ticks| clock.time(timestamp).to_string();
        let time = |time: FileTime| (time != FileTime::default()).then(|| time.to_string());
        let span = counts.span;
        Ok(Survey {
            header: known,
            dialect: known.then(|| header.dialect()),
            os: known.then(|| header.windows()),
            log_version: known.then(|| format!("{}.{}", header.log_major, header.log_minor)),
            logger_name: known.then(|| header.logger_name()),
            log_file_name: known.then(|| header.log_file_name()),
            mode: known.then(|| header.mode.to_string()),
            mode_bits: known.then_some(header.mode.0),
            pointer_size: known.then(|| header.pointer_size.bytes()),
            processors: known.then_some(header.processors),
            clock: known.then(|| header.clock_type.to_string()),
            perf_freq: known.then_some(header.perf_freq),
            ticks_per_second: known.then_some(clock.frequency),
            start_time: known.then(|| header.start_time.to_string()),
            end_time: time(header.end_time),
            boot_time: time(header.boot_time),
            first_event_time: span.filter(|_| known).map(|(first, _)| utc(first)),
            last_event_time: span.filter(|_| known).map(|(_, last)| utc(last)),
            duration_seconds: span.map(|(first, last)| seconds_between(&clock, first, last)),
            time_zone_bias_minutes: known.then_some(header.time_zone.bias),
            time_zone: known.then(|| header.time_zone.standard_name()),
            buffer_size: header.buffer_size,
            buffers: entries.len() as u64,
            buffers_stated: known.then_some(header.buffers_written),
            compressed: compression.is_some(),
            compression: compression.map(|c| c.to_string()),
            bytes_used: entries.iter().map(|b| u64::from(b.fill)).sum(),
            records: counts.kinds().map(|(_, count)| count).sum(),
            events_lost: known.then_some(header.events_lost),
            buffers_lost: known.then_some(header.buffers_lost),
            // Without a clock there are no times.
            gaps: gaps(
                &notes,
                if known { &entries } else { &[] },
                &counts.buffers,
                &utc,
            ),
            stale_records: stale,
            kinds: counts
                .kinds()
                .map(|(kind, count)| (kind.to_string(), count))
                .collect(),
            providers: counts.providers(known.then_some(&utc)),
            events: counts.events(),
            problems,
            damage,
            notes,
        })
    }
}

impl Survey {
    /// Counts the records that state a loss: the kernel writes one when it has to drop events,
    /// buffers or a file.
    ///
    /// ```
    /// use etl_events::survey::Survey;
    /// use etl_format::read::{Options, Trace};
    /// use etl_schema::store::SchemaStore;
    ///
    /// # let bytes = etl_events::testing::trace();
    /// let mut trace = Trace::open(bytes.as_slice(), &Options::salvage())?;
    /// let survey = Survey::of(&mut trace, SchemaStore::default(), |_| {})?;
    /// assert_eq!(survey.loss_records().events, 0);
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn loss_records(&self) -> LossRecords {
        let class = LOST_EVENT.to_string();
        let mut losses = LossRecords::default();
        for event in self
            .events
            .iter()
            .filter(|event| event.provider_guid == class)
        {
            match event.opcode {
                lost::EVENT => losses.events += event.count,
                lost::BUFFER => losses.buffers += event.count,
                lost::FILE => losses.files += event.count,
                _ => {}
            }
        }
        losses
    }
}

fn seconds_between(clock: &Clock, first: Ticks, last: Ticks) -> f64 {
    (clock
        .nanos_since_start(last)
        .saturating_sub(clock.nanos_since_start(first))) as f64
        / 1e9
}
