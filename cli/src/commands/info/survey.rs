//! What `etlkit info` finds out. The JSON form is a contract; docs/json-info.md describes it.

use std::collections::{BTreeMap, HashMap};

use etl_format::clock::iso_utc;
use etl_format::constants::PointerSize;
use etl_format::read::{BufferEntry, FileHeader, Identity, Note, Options, Record, Source, Trace};
use etl_format::{Clock, Error};
use etl_schema::store::SchemaStore;
use serde::Serialize;

use crate::problem::Problem;
use crate::progress::Progress;
use etl_schema::providers;

/// Raised when a field changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// Identities that are counted one by one; a hostile file could hold any number.
const MOST_IDENTITIES: usize = 1 << 16;

/// Everything that is told of a trace.
#[derive(Debug, Serialize)]
pub(super) struct Survey {
    schema_version: u32,
    pub file: String,
    pub bytes: u64,
    /// Whether there was a header event. Where it is lost, nobody told what is `None` here.
    pub header: bool,
    pub dialect: Option<&'static str>,
    pub os: Option<String>,
    pub log_version: Option<String>,
    pub logger_name: Option<String>,
    pub log_file_name: Option<String>,
    pub mode: Option<String>,
    pub mode_bits: Option<u32>,
    pub pointer_size: Option<usize>,
    pub processors: Option<u32>,
    pub clock: Option<String>,
    pub perf_freq: Option<i64>,
    pub start_time: Option<String>,
    pub end_time: Option<String>,
    pub boot_time: Option<String>,
    pub first_event_time: Option<String>,
    pub last_event_time: Option<String>,
    pub duration_seconds: Option<f64>,
    pub time_zone_bias_minutes: Option<i32>,
    pub time_zone: Option<String>,
    pub buffer_size: u32,
    pub buffers: u64,
    pub buffers_stated: Option<u32>,
    pub compressed: bool,
    pub compression: Option<String>,
    /// Bytes of records and buffer headers, decompressed.
    pub bytes_used: u64,
    pub records: u64,
    pub events_lost: Option<u32>,
    pub buffers_lost: Option<u32>,
    pub kinds: BTreeMap<String, u64>,
    pub events: Vec<EventCount>,
    pub gaps: Vec<Gap>,
    pub problems: Vec<Problem>,
    #[serde(skip)]
    pub damaged: bool,
}

/// How often an event occurs.
#[derive(Debug, Serialize)]
pub(super) struct EventCount {
    pub provider: String,
    pub name: Option<String>,
    /// The event's name in the tables.
    pub event: Option<String>,
    pub hook: Option<u16>,
    pub id: u16,
    pub version: u16,
    pub opcode: u8,
    pub task: u16,
    pub task_name: Option<String>,
    pub level: u8,
    pub keyword: u64,
    /// The keyword once more, for readers whose numbers are not 64 bits wide.
    pub keyword_hex: String,
    pub count: u64,
}

/// Missing buffers, and the times in which each processor's could have been.
#[derive(Debug, Serialize)]
pub(super) struct Gap {
    pub first: i64,
    pub count: u64,
    pub spans: Vec<Span>,
}

/// The time between the buffers of a processor before and behind a gap.
#[derive(Debug, Serialize)]
pub(super) struct Span {
    pub processor: u16,
    pub from: Option<String>,
    pub to: Option<String>,
}

/// First and last timestamp of a buffer.
type Timestamps = Option<(i64, i64)>;

impl Survey {
    /// Reads the whole trace once.
    pub fn new<S: Source>(
        source: &mut S,
        file: &str,
        options: &Options,
    ) -> etl_format::Result<Self> {
        let size = source.size();
        let mut trace = Trace::open(source, options)?;
        let (header, clock) = (trace.header().clone(), trace.clock());
        let notes = trace.notes().to_vec();
        let entries = trace.buffers().to_vec();
        let compression = entries.iter().any(|b| b.compressed).then(|| trace.compression());

        let mut kinds = BTreeMap::new();
        // What the trace itself would teach is left to a dump: names here are those of the tables.
        let tables = SchemaStore::default();
        let mut events: HashMap<Identity, (u64, Told)> = HashMap::new();
        let mut timestamps: HashMap<u64, Timestamps> = HashMap::new();
        let mut span: Timestamps = None;
        let mut uncounted = 0u64;
        let mut broken_chains = 0u64;
        let mut first_chain = 0;
        let used = entries.iter().map(|b| u64::from(b.fill)).sum();
        let mut progress = Progress::new(used, false);
        let mut look = |record: Record<'_>| {
            progress.pass(record.bytes().len());
            *kinds.entry(record.kind()).or_insert(0u64) += 1;
            let identity = record.identity();
            let known = events.len();
            match events.entry(identity) {
                std::collections::hash_map::Entry::Occupied(mut e) => e.get_mut().0 += 1,
                std::collections::hash_map::Entry::Vacant(e) if known < MOST_IDENTITIES => {
                    e.insert((1, Told::by(&record, &tables)));
                }
                std::collections::hash_map::Entry::Vacant(_) => uncounted += 1,
            }
            let mut items = record.extended();
            while items.next_raw().is_some() {}
            if items.is_broken() {
                if broken_chains == 0 {
                    first_chain = record.location().buffer_offset;
                }
                broken_chains += 1;
            }
            let timestamp = record.timestamp();
            let of_buffer = timestamps.entry(record.location().buffer_offset).or_insert(None);
            for span in [&mut span, of_buffer] {
                *span = Some(match *span {
                    Some((first, last)) => (first.min(timestamp), last.max(timestamp)),
                    None => (timestamp, timestamp),
                });
            }
            Ok::<_, Error>(())
        };
        let (damage, total) = if options.threads > 1 && compression.is_some() {
            let mut records = trace.in_file_order();
            records.with_threads(options.threads, |records| records.for_each(&mut look))?;
            (records.damage().to_vec(), records.records())
        } else {
            let mut records = trace.file_order()?;
            records.for_each(&mut look)?;
            (records.damage().to_vec(), records.records())
        };

        let mut problems: Vec<_> = notes.iter().map(Problem::note).collect();
        let damaged = !damage.is_empty();
        problems.extend(damage.iter().map(Problem::damage));
        if broken_chains > 0 {
            problems.push(Problem {
                code: "extended-items-broken".to_owned(),
                offset: first_chain,
                message: format!("{broken_chains} records hold extended items that do not fit"),
                damage: None,
            });
        }
        if uncounted > 0 {
            problems.push(Problem {
                code: "identities-uncounted".to_owned(),
                offset: 0,
                message: format!("{uncounted} records of further identities are not listed"),
                damage: None,
            });
        }
        let (count, told) = (entries.len() as u64, header.is_known());
        let utc = |timestamp: i64| iso_utc(clock.filetime(timestamp));
        let time = |filetime: i64| (filetime != 0).then(|| iso_utc(filetime));
        Ok(Survey {
            schema_version: SCHEMA_VERSION,
            file: file.to_owned(),
            bytes: size.unwrap_or(0),
            header: told,
            dialect: told.then(|| header.dialect().name()),
            os: told.then(|| os(&header)),
            log_version: told.then(|| format!("{}.{}", header.log_major, header.log_minor)),
            logger_name: told.then(|| header.logger_name()),
            log_file_name: told.then(|| header.log_file_name()),
            mode: told.then(|| header.mode.to_string()),
            mode_bits: told.then_some(header.mode.0),
            pointer_size: told.then_some(match header.pointer_size {
                PointerSize::P4 => 4,
                PointerSize::P8 => 8,
            }),
            processors: told.then_some(header.processors),
            clock: told.then(|| header.clock_type.to_string()),
            perf_freq: told.then_some(header.perf_freq),
            start_time: told.then(|| iso_utc(header.start_time)),
            end_time: time(header.end_time),
            boot_time: time(header.boot_time),
            first_event_time: span.filter(|_| told).map(|(first, _)| utc(first)),
            last_event_time: span.filter(|_| told).map(|(_, last)| utc(last)),
            duration_seconds: span.map(|(first, last)| seconds_between(&clock, first, last)),
            time_zone_bias_minutes: told.then_some(header.time_zone.bias),
            time_zone: told.then(|| header.time_zone.standard_name()),
            buffer_size: header.buffer_size,
            buffers: count,
            buffers_stated: told.then_some(header.buffers_written),
            compressed: compression.is_some(),
            compression: compression.map(|c| c.to_string()),
            bytes_used: used,
            records: total,
            events_lost: told.then_some(header.events_lost),
            buffers_lost: told.then_some(header.buffers_lost),
            kinds: kinds.into_iter().map(|(kind, n)| (kind.to_string(), n)).collect(),
            events: event_counts(events),
            gaps: gaps(&notes, &entries, &timestamps, &utc, told),
            problems,
            damaged,
        })
    }
}

fn seconds_between(clock: &Clock, first: i64, last: i64) -> f64 {
    (clock.nanos_since_start(last).saturating_sub(clock.nanos_since_start(first))) as f64 / 1e9
}

fn os(header: &FileHeader) -> String {
    let name = match (header.os_major, header.os_minor, header.build) {
        (6, 0, _) => "Vista or Server 2008",
        (6, 1, _) => "7 or Server 2008 R2",
        (6, 2, _) => "8 or Server 2012",
        (6, 3, _) => "8.1 or Server 2012 R2",
        (10, _, build) if build >= 22_000 => "11 or Server",
        (10, _, _) => "10 or Server",
        _ => "of an unknown version",
    };
    format!("Windows {name}, {}.{}.{}", header.os_major, header.os_minor, header.build)
}

/// The names that go with an identity.
#[derive(Debug, Default)]
struct Told {
    provider: Option<String>,
    event: Option<String>,
    task: Option<String>,
}

impl Told {
    fn by(record: &Record<'_>, tables: &SchemaStore) -> Self {
        let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        let schema = tables.fields(record).map(|(schema, _)| schema);
        Told {
            provider: providers::name_in_traits(record).map(str::to_owned),
            event: schema.and_then(|s| named(&s.name)),
            task: schema.and_then(|s| named(&s.task.name)),
        }
    }
}

/// The most frequent first; equals by identity, so that the order is the same every time.
fn event_counts(events: HashMap<Identity, (u64, Told)>) -> Vec<EventCount> {
    let mut counts: Vec<_> = events.into_iter().collect();
    counts.sort_by(|(a, (n, _)), (b, (m, _))| m.cmp(n).then_with(|| a.cmp(b)));
    counts
        .into_iter()
        .map(|(i, (count, told))| EventCount {
            provider: i.provider.to_string(),
            name: providers::name(i.provider).map(str::to_owned).or(told.provider),
            event: told.event,
            hook: i.hook,
            id: i.id,
            version: i.version,
            opcode: i.opcode,
            task: i.task,
            task_name: told.task,
            level: i.level,
            keyword: i.keyword,
            keyword_hex: format!("{:#x}", i.keyword),
            count,
        })
        .collect()
}

/// Where the missing buffers of each gap could have been in time.
fn gaps(
    notes: &[Note],
    entries: &[BufferEntry],
    timestamps: &HashMap<u64, Timestamps>,
    utc: &dyn Fn(i64) -> String,
    told: bool,
) -> Vec<Gap> {
    let mut streams: BTreeMap<u16, Vec<&BufferEntry>> = BTreeMap::new();
    // Without a clock there are no times to give.
    for entry in entries.iter().filter(|e| told && !e.is_header() && !e.rebuilt) {
        streams.entry(entry.processor).or_default().push(entry);
    }
    for stream in streams.values_mut() {
        stream.sort_by_key(|e| e.sequence_number);
    }
    let timestamps_of = |e: &&&BufferEntry| timestamps.get(&e.offset).copied().flatten();
    let mut gaps = Vec::new();
    for note in notes {
        let Note::SequenceGap { first, count, .. } = *note else { continue };
        let spans = streams
            .iter()
            .map(|(&processor, stream)| {
                let before = stream.iter().rev().find(|e| e.sequence_number < first);
                let behind = stream.iter().find(|e| e.sequence_number > first);
                Span {
                    processor,
                    from: before.as_ref().and_then(timestamps_of).map(|(_, last)| utc(last)),
                    to: behind.as_ref().and_then(timestamps_of).map(|(first, _)| utc(first)),
                }
            })
            .collect();
        gaps.push(Gap { first, count, spans });
    }
    gaps
}
