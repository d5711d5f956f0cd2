//! A summary of a whole trace: header, sizes, times, counts of events, gaps and problems.
//!
//! ```
//! use etl_format::read::{Options, Order, Trace};
//! use etl_schema::store::SchemaStore;
//! use etl_tools::survey::Survey;
//!
//! fn survey(trace: &[u8]) -> etl_tools::Result<Survey> {
//!     let mut trace = Trace::open(trace, &Options::salvage())?;
//!     Survey::of(&mut trace, SchemaStore::default(), |record| { /* show progress */ })
//! }
//! ```

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use etl_format::clock::iso_utc;
use etl_format::constants::{ExtendedType, RecordKind};
use etl_format::read::{BufferEntry, Damage, Header, Identity, Note, Order, Record, Source, Trace};
use etl_format::{Clock, Guid};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, providers};
use serde::Serialize;

use crate::Result;
use crate::context::Context;
use crate::filter::Filter;
use crate::header_fields::HeaderFields;
use crate::problem::Problem;

/// Identities that are counted one by one; a hostile file could hold any number.
const MAX_IDENTITIES: usize = 1 << 16;

/// The summary of a trace. `docs/json-info.md` describes its JSON form.
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
    /// Group and type of a kernel event.
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

/// Missing buffers, with the times in which each processor could have written them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Gap {
    /// The first missing sequence number.
    pub first: i64,
    /// Number of missing buffers.
    pub count: u64,
    /// Times by processor.
    pub spans: Vec<Span>,
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
    ) -> Result<Survey> {
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
    ) -> Result<Survey> {
        let (header, clock) = (trace.header().clone(), trace.clock());
        let notes = trace.notes().to_vec();
        let entries = trace.buffers().to_vec();
        let compression = entries.iter().any(|b| b.compressed).then(|| trace.compression());
        let threads = trace.options().threads;
        let stale = trace.stale_records().len() as u64;

        let mut counts = Counts { store, ..Counts::default() };
        let mut look = |record: Record<'_>| {
            on_record(&record);
            counts.add(&record, filter, context);
            Ok::<_, etl_format::Error>(())
        };
        let mut records = trace.records(Order::File)?.with_threads(threads);
        records.for_each(&mut look)?;
        let damage = records.damage().to_vec();

        let mut problems: Vec<Problem> = notes.iter().map(Problem::from).collect();
        problems.extend(damage.iter().map(Problem::from));
        problems.extend(counts.problems());
        let known = header.is_known();
        let utc = |timestamp: i64| iso_utc(clock.filetime(timestamp));
        let time = |filetime: i64| (filetime != 0).then(|| iso_utc(filetime));
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
            start_time: known.then(|| iso_utc(header.start_time)),
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
            records: counts.kinds.values().sum(),
            events_lost: known.then_some(header.events_lost),
            buffers_lost: known.then_some(header.buffers_lost),
            // Without a clock there are no times.
            gaps: gaps(&notes, if known { &entries } else { &[] }, &counts.buffers, &utc),
            stale_records: stale,
            kinds: counts.kinds.iter().map(|(kind, n)| (kind.to_string(), *n)).collect(),
            providers: counts.providers(known.then_some(&utc)),
            events: counts.events(),
            problems,
            damage,
            notes,
        })
    }
}

/// First and last timestamp of some records.
type TimeSpan = Option<(i64, i64)>;

/// What is counted while a trace is read.
#[derive(Default)]
struct Counts {
    kinds: BTreeMap<RecordKind, u64>,
    events: HashMap<Identity, Kind>,
    /// How many lists of events there are, at most [`MAX_IDENTITIES`].
    listed: usize,
    store: SchemaStore,
    /// By the file offset of a buffer.
    buffers: HashMap<u64, TimeSpan>,
    span: TimeSpan,
    /// Records of identities beyond [`MAX_IDENTITIES`].
    uncounted: u64,
    /// Records whose extended items do not fit, and the buffer of the first one.
    broken_items: u64,
    first_broken: u64,
}

impl Counts {
    fn add(&mut self, record: &Record<'_>, filter: &Filter, context: Option<&Context<'_>>) {
        let of_buffer = self.buffers.entry(record.location().buffer_offset).or_insert(None);
        extend(of_buffer, record.timestamp());
        self.store.learn(record);
        if !filter.admits_with(record, context, |_| None) {
            return;
        }
        extend(&mut self.span, record.timestamp());
        *self.kinds.entry(record.kind()).or_insert(0) += 1;
        match self.events.entry(record.identity()) {
            Entry::Occupied(mut e) => {
                self.uncounted += e.get_mut().add(record, &self.store, &mut self.listed);
            }
            Entry::Vacant(e) if self.listed < MAX_IDENTITIES => {
                self.listed += 1;
                let kind = e.insert(Kind::new(record, &self.store));
                self.uncounted += kind.add(record, &self.store, &mut self.listed);
            }
            Entry::Vacant(_) => self.uncounted += 1,
        }
        let mut items = record.extended();
        while items.next_raw().is_some() {}
        if items.is_broken() {
            if self.broken_items == 0 {
                self.first_broken = record.location().buffer_offset;
            }
            self.broken_items += 1;
        }
    }

    fn problems(&self) -> impl Iterator<Item = Problem> {
        let (broken, uncounted) = (self.broken_items, self.uncounted);
        let items = format!("{broken} records hold extended items that do not fit");
        let identities = format!("{uncounted} records of further identities are not listed");
        [
            (broken, Problem::new("extended-items-broken", self.first_broken, items)),
            (uncounted, Problem::new("identities-uncounted", 0, identities)),
        ]
        .into_iter()
        .filter_map(|(count, problem)| (count > 0).then_some(problem))
    }
}

fn extend(span: &mut TimeSpan, timestamp: i64) {
    *span = Some(match *span {
        Some((first, last)) => (first.min(timestamp), last.max(timestamp)),
        None => (timestamp, timestamp),
    });
}

fn seconds_between(clock: &Clock, first: i64, last: i64) -> f64 {
    (clock.nanos_since_start(last).saturating_sub(clock.nanos_since_start(first))) as f64 / 1e9
}

/// Records with the same identity.
#[derive(Debug)]
struct Kind {
    provider: Option<String>,
    /// By what the store knows an event that does not describe itself.
    schema: Option<(Guid, etl_schema::Identity)>,
    names: Names,
    count: u64,
    span: TimeSpan,
    /// Counts of events that describe themselves, by name: they share an identity.
    by_name: HashMap<String, u64>,
}

/// What an event and its task are called.
#[derive(Clone, Debug, Default)]
struct Names {
    event: String,
    task: String,
}

impl Names {
    fn of(schema: &EventSchema) -> Self {
        Names { event: schema.name.to_string(), task: schema.task.name.to_string() }
    }
}

impl Kind {
    fn new(record: &Record<'_>, store: &SchemaStore) -> Self {
        let names = match store.decoder(record) {
            Some(decoder) => Names::of(decoder.schema()),
            None => {
                let mut event = String::new();
                HeaderFields::of(record).write_number_name(&mut event, record);
                Names { event, ..Names::default() }
            }
        };
        Kind {
            provider: providers::name_in_traits(record).map(str::to_owned),
            schema: schema_identity(record),
            names,
            count: 0,
            span: None,
            by_name: HashMap::new(),
        }
    }

    /// Counts a record; returns 1 if its name is one too many.
    fn add(&mut self, record: &Record<'_>, store: &SchemaStore, listed: &mut usize) -> u64 {
        self.count += 1;
        extend(&mut self.span, record.timestamp());
        if !has_own_schema(record) {
            return 0;
        }
        let Some(decoder) = store.decoder(record) else { return 0 };
        let name = &*decoder.schema().name;
        if let Some(count) = self.by_name.get_mut(name) {
            *count += 1;
        } else if *listed < MAX_IDENTITIES {
            *listed += 1;
            self.by_name.insert(name.to_owned(), 1);
        } else {
            return 1;
        }
        0
    }
}

/// Whether an event carries its own schema (TraceLogging).
fn has_own_schema(record: &Record<'_>) -> bool {
    let mut items = record.extended();
    core::iter::from_fn(|| items.next_raw()).any(|(kind, _)| kind == ExtendedType::EVENT_SCHEMA_TL)
}

/// The identity by which a schema of the trace or of a file describes an event.
fn schema_identity(record: &Record<'_>) -> Option<(Guid, etl_schema::Identity)> {
    use etl_schema::Identity as Of;
    let identity = record.identity();
    let of = match record.header() {
        Header::Event(h) => Of::Modern { id: h.descriptor.id, version: h.descriptor.version },
        Header::Message(h) => Of::Message { number: h.number },
        _ => Of::Classic { opcode: identity.opcode, version: identity.version },
    };
    Some((record.provider()?, of))
}

impl Counts {
    /// The name of a provider.
    fn provider_name(&self, identity: &Identity, kind: &Kind) -> Option<String> {
        let known = providers::name(identity.provider).map(str::to_owned);
        let learned = || self.store.provider_name(identity.provider).map(str::to_owned);
        known.or_else(|| kind.provider.clone()).or_else(learned)
    }

    /// The providers with the most events first.
    fn providers(&self, utc: Option<&dyn Fn(i64) -> String>) -> Vec<ProviderCount> {
        let mut spans: BTreeMap<Guid, (ProviderCount, TimeSpan)> = BTreeMap::new();
        for (identity, kind) in &self.events {
            let (provider, span) = spans.entry(identity.provider).or_insert_with(|| {
                let provider = ProviderCount {
                    provider_guid: identity.provider.to_string(),
                    provider: None,
                    kinds: 0,
                    count: 0,
                    first_event_time: None,
                    last_event_time: None,
                };
                (provider, None)
            });
            if provider.provider.is_none() {
                provider.provider = self.provider_name(identity, kind);
            }
            provider.count += kind.count;
            provider.kinds += kind.by_name.len().max(1) as u64;
            for timestamp in kind.span.iter().flat_map(|(first, last)| [*first, *last]) {
                extend(span, timestamp);
            }
        }
        let with_times = |(mut provider, span): (ProviderCount, TimeSpan)| {
            if let (Some(utc), Some((first, last))) = (utc, span) {
                provider.first_event_time = Some(utc(first));
                provider.last_event_time = Some(utc(last));
            }
            provider
        };
        let mut out: Vec<_> = spans.into_values().map(with_times).collect();
        // Equals stay in the order of their GUIDs.
        out.sort_by_key(|provider| core::cmp::Reverse(provider.count));
        out
    }

    /// The most frequent first; equals by identity, so that the order is the same every time.
    fn events(&self) -> Vec<EventCount> {
        let mut counts = Vec::new();
        for (identity, kind) in &self.events {
            // What describes an event may follow it in the trace.
            let learned = kind.schema.and_then(|(guid, of)| self.store.learned_schema(guid, of));
            let names = learned.map_or_else(|| kind.names.clone(), Names::of);
            let provider = self.provider_name(identity, kind);
            let mut left = kind.count;
            for (name, count) in &kind.by_name {
                left -= count;
                let names = Names { event: name.clone(), ..Names::default() };
                counts.push((identity, *count, names, provider.clone()));
            }
            if left > 0 {
                counts.push((identity, left, names, provider));
            }
        }
        counts.sort_by(|(a, n, names, _), (b, m, others, _)| {
            m.cmp(n).then_with(|| a.cmp(b)).then_with(|| names.event.cmp(&others.event))
        });
        counts
            .into_iter()
            .map(|(i, count, names, provider)| EventCount {
                provider_guid: i.provider.to_string(),
                provider,
                event: names.event,
                hook: i.hook,
                id: i.id,
                version: i.version,
                opcode: i.opcode,
                task: i.task,
                task_name: Some(names.task).filter(|name| !name.is_empty()),
                level: i.level,
                keyword: i.keyword,
                keyword_hex: format!("{:#x}", i.keyword),
                count,
            })
            .collect()
    }
}

/// The times in which the missing buffers of each gap could have been written.
fn gaps(
    notes: &[Note],
    entries: &[BufferEntry],
    buffers: &HashMap<u64, TimeSpan>,
    utc: &dyn Fn(i64) -> String,
) -> Vec<Gap> {
    let mut streams: BTreeMap<u16, Vec<&BufferEntry>> = BTreeMap::new();
    for entry in entries.iter().filter(|e| !e.is_header() && !e.rebuilt) {
        streams.entry(entry.processor).or_default().push(entry);
    }
    for stream in streams.values_mut() {
        stream.sort_by_key(|e| e.sequence_number);
    }
    let span_of = |e: &&&BufferEntry| buffers.get(&e.offset).copied().flatten();
    let mut gaps = Vec::new();
    for note in notes {
        let Note::SequenceGap { first, count, .. } = *note else { continue };
        let spans = streams
            .iter()
            .map(|(&processor, stream)| {
                let before = stream.iter().rev().find(|e| e.sequence_number < first);
                let after = stream.iter().find(|e| e.sequence_number > first);
                Span {
                    processor,
                    from: before.as_ref().and_then(span_of).map(|(_, last)| utc(last)),
                    to: after.as_ref().and_then(span_of).map(|(first, _)| utc(first)),
                }
            })
            .collect();
        gaps.push(Gap { first, count, spans });
    }
    gaps
}
