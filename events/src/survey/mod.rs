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
use etl_format::{Clock, FileHeader, FileTime, Ticks};
use etl_schema::providers::{LOST_EVENT, lost};
use etl_schema::store::SchemaStore;
use serde::Serialize;

use crate::context::Context;
use crate::filter::Filter;
use crate::header_fields::hook_as_text;
use crate::problem::Problem;
use crate::time_zone::{self, LocalTime};
use counts::Counts;
use gaps::gaps;
pub use report::Report;

/// The summary of a trace. `docs/json.md` describes its JSON form.
///
/// Values that only the header event contains are `None` if that event is lost.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Survey {
    /// Whether there is a header event.
    pub header: bool,
    /// The program that wrote the file: `kernel`, `private session`, `relogged`, each perhaps `,
    /// compressed`.
    pub dialect: Option<&'static str>,
    /// The process of a private session, which wrote the file itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_process: Option<u32>,
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
    /// Minutes to add to local standard time for UTC.
    pub time_zone_bias_minutes: Option<i32>,
    /// Name of the time zone: of its standard time.
    pub time_zone: Option<String>,
    /// Name of the local time at the start of the session: of standard time, or of daylight saving
    /// time if that was in force.
    pub local_time: Option<String>,
    /// Minutes by which the local time is ahead of UTC at the start of the session. UTC is local
    /// time minus these minutes.
    pub utc_offset_minutes: Option<i32>,
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
    /// Selected records that were read.
    pub records: u64,
    /// Lost events, as the header event states.
    pub events_lost: Option<u32>,
    /// Lost buffers, as the header event states.
    pub buffers_lost: Option<u32>,
    /// Records of which another buffer has a copy ([`Record::is_stale`]); they are counted.
    pub stale_records: u64,
    /// Records by kind.
    pub kinds: BTreeMap<String, u64>,
    /// Providers, the one with the most events first.
    pub providers: Vec<ProviderCount>,
    /// Counts of events, the most frequent first.
    pub events: Vec<EventCount>,
    /// Gaps in the sequence of buffers.
    pub gaps: Vec<Gap>,
    /// Notes and damage.
    pub problems: Vec<Problem>,
    /// Damaged regions, which were skipped.
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
    /// Id of a manifest event, or number of a WPP message.
    pub id: u16,
    /// Version of the payload.
    pub version: u16,
    /// Opcode, or type of a kernel or classic event.
    pub opcode: u8,
    /// Task: the part of the provider that writes the event.
    pub task: u16,
    /// Name of the task.
    pub task_name: Option<String>,
    /// Level: 1 is critical, 5 is verbose.
    pub level: u8,
    /// Keywords, one per bit.
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
    /// The number of processors whose times are left out because of this limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub spans_left_out: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
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
    /// Reads the whole trace once. `store` names the events; it learns the schemas of the trace.
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
        let mut survey = Survey::of_header(trace.header(), trace.clock());
        survey.add_buffers(trace);

        let mut counts = Counts::new(store);
        let threads = trace.options().threads;
        let mut records = trace.records(Order::File)?.with_threads(threads);
        records.for_each(&mut |record: Record<'_>| {
            on_record(&record);
            counts.add(&record, filter, context);
            Ok::<_, etl_format::Error>(())
        })?;
        let damage = records.damage().to_vec();
        drop(records);
        counts.end_buffer();

        survey.add_counts(&counts, trace.clock());
        survey.gaps = survey.find_gaps(trace, &counts);
        survey.notes = trace.notes().to_vec();
        survey.damage = damage;
        survey.problems = survey.notes.iter().map(Problem::from).collect();
        let damage = survey.damage.iter().map(Problem::from);
        survey.problems.extend(damage);
        survey.problems.extend(counts.problems());
        Ok(survey)
    }

    /// The values in the header of a file.
    fn of_header(header: &FileHeader, clock: Clock) -> Self {
        let mut survey = Survey {
            end_time: time_text(header.end_time),
            boot_time: time_text(header.boot_time),
            buffer_size: header.buffer_size,
            ..Survey::default()
        };
        if header.is_known() {
            let local_time = LocalTime::at(&header.time_zone, header.start_time);
            survey = Survey {
                header: true,
                dialect: Some(header.dialect()),
                private_process: header.is_private().then_some(header.process_id),
                os: Some(header.windows()),
                log_version: Some(format!("{}.{}", header.log_major, header.log_minor)),
                logger_name: Some(header.logger_name()),
                log_file_name: Some(header.log_file_name()),
                mode: Some(header.mode.to_string()),
                mode_bits: Some(header.mode.0),
                pointer_size: Some(header.pointer_size.bytes()),
                processors: Some(header.processors),
                clock: Some(header.clock_type.to_string()),
                perf_freq: Some(header.perf_freq),
                ticks_per_second: Some(clock.frequency),
                start_time: Some(header.start_time.to_string()),
                time_zone_bias_minutes: Some(header.time_zone.bias),
                time_zone: Some(time_zone::name(&header.time_zone.standard_name())),
                local_time: Some(local_time.name),
                utc_offset_minutes: Some(local_time.offset_minutes),
                buffers_stated: Some(header.buffers_written),
                events_lost: Some(header.events_lost),
                buffers_lost: Some(header.buffers_lost),
                ..survey
            };
        }
        survey
    }

    fn add_buffers<S: Source>(&mut self, trace: &Trace<S>) {
        let buffers = trace.buffers();
        self.buffers = buffers.len() as u64;
        self.bytes_used = buffers.iter().map(|buffer| u64::from(buffer.fill)).sum();
        self.compressed = buffers.iter().any(|buffer| buffer.compressed);
        if self.compressed {
            self.compression = Some(trace.compression().to_string());
        }
        self.stale_records = trace.stale_records().len() as u64;
    }

    fn add_counts(&mut self, counts: &Counts, clock: Clock) {
        for (kind, count) in counts.kinds() {
            self.records += count;
            self.kinds.insert(kind.to_string(), count);
        }
        self.events = counts.events();
        if let Some(span) = counts.span {
            self.duration_seconds = Some(seconds_between(&clock, span.first, span.last));
        }
        // Without a header event there is no clock, so there are no times.
        if !self.header {
            self.providers = counts.providers(None);
            return;
        }
        self.providers = counts.providers(Some(&clock));
        if let Some(span) = counts.span {
            self.first_event_time = Some(clock.time(span.first).to_string());
            self.last_event_time = Some(clock.time(span.last).to_string());
        }
    }

    /// The gaps in the sequence of buffers. Without a header event there are no times, so the gaps
    /// have no spans.
    fn find_gaps<S: Source>(&self, trace: &Trace<S>, counts: &Counts) -> Vec<Gap> {
        let clock = trace.clock();
        let buffers = if self.header { trace.buffers() } else { &[] };
        gaps(trace.notes(), buffers, &counts.buffers, &|ticks| {
            clock.time(ticks).to_string()
        })
    }
}

/// A time as text; `None` for 0, which means that the time is not recorded.
fn time_text(time: FileTime) -> Option<String> {
    if time == FileTime::default() {
        return None;
    }
    Some(time.to_string())
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
        for event in &self.events {
            if event.provider_guid != class {
                continue;
            }
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
    let first = clock.nanos_since_start(first);
    let last = clock.nanos_since_start(last);
    last.saturating_sub(first) as f64 / 1e9
}
