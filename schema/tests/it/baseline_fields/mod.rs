//! Compares decoded fields with those that PerfView's TraceEvent library prints.
//!
//! A baseline has the first events of each kind with their fields. The test finds each line in the
//! trace by time, processor and length of the payload, and compares each field with the decoded
//! one:
//! [`undone`] reverses the formatting, [`derived`] computes what TraceEvent computes from other
//! fields, and [`listed`] has the names and values that differ, with a reason. A reason that is not
//! needed fails the test.

mod derived;
mod listed;
mod undone;

use etl_format::{ProcessId, ThreadId};
use std::collections::{BTreeMap, BTreeSet};

use etl_format::read::{Options, Order, Record, Trace};
use etl_schema::Field;
use etl_schema::decode::{Fields, Value};
use etl_schema::store::SchemaStore;
use etl_test_support::{needs, trace};

/// Traces with a baseline, and the minimum number of compared fields.
const TRACES: [(&str, usize); 4] = [
    ("perfview/net.4.5.2.x64", 2_400),
    ("perfview/gcevents", 280),
    ("perfview/gcrundownevents", 150),
    ("perfview/primitive-types", 80),
];

/// A line of a baseline.
struct Line {
    /// Provider, task and opcode as TraceEvent names them.
    kind: String,
    /// Microseconds since the start of the trace, rounded.
    time: i64,
    process: i64,
    thread: i64,
    processor: u16,
    length: usize,
    fields: Vec<(String, String)>,
}

impl Line {
    /// `EVENT 29.956: Windows Kernel/PerfInfo/Sample PID=3988; TID=3780; PName=...; ProceNum=3;
    /// DataLen=16; Count=1; `
    fn parse(line: &str) -> Option<Self> {
        let (time, rest) = line.strip_prefix("EVENT ")?.split_once(": ")?;
        let (kind, rest) = rest.split_once(" PID=")?;
        let mut fields: Vec<(String, String)> = Vec::new();
        for part in format!("PID={rest}")
            .trim_end_matches(['\r', ' '])
            .trim_end_matches(';')
            .split("; ")
        {
            let named = part.split_once('=').filter(|(name, _)| {
                name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.is_empty()
            });
            match (named, fields.last_mut()) {
                (Some((name, text)), _) => fields.push((name.to_owned(), text.to_owned())),
                // A semicolon in the value.
                (None, Some((_, text))) => *text += &format!("; {part}"),
                (None, None) => return None,
            }
        }
        let header: Vec<_> = fields.drain(..5).collect();
        let number = |at: usize| header[at].1.parse::<i64>().ok();
        Some(Line {
            kind: kind.to_owned(),
            time: time.replace([',', '.'], "").parse().ok()?,
            process: number(0)?,
            thread: number(1)?,
            processor: number(3)? as u16,
            length: number(4)? as usize,
            fields,
        })
    }
}

/// A record with its decoded fields.
struct Event<'a> {
    record: &'a Record<'a>,
    /// Name of the provider, where it is known.
    provider: Option<&'a str>,
    /// Ticks of the clock in a second.
    frequency: i64,
    fields: Vec<(&'a Field, Value<'a>)>,
}

impl<'a> Event<'a> {
    /// The field that TraceEvent calls `name`, in any case, or its listed name.
    fn field(&self, kind: &str, name: &str) -> Option<(&'a Field, Value<'a>)> {
        let ours = listed::ours(kind, name).unwrap_or(name);
        self.fields
            .iter()
            .copied()
            .find(|(field, _)| field.name.eq_ignore_ascii_case(ours))
    }

    fn number(&self, name: &str) -> Option<u64> {
        let (_, value) = self.fields.iter().find(|(field, _)| field.name == name)?;
        value.bits(8)
    }
}

/// The result of comparing a line with a record.
#[derive(Default)]
struct Comparison {
    compared: usize,
    different: Vec<String>,
    listed: Vec<usize>,
}

fn compare(line: &Line, event: &Event<'_>) -> Comparison {
    let mut result = Comparison::default();
    // TraceEvent has its own names for classic events.
    let classic = [
        "Windows Kernel/",
        "KernelTraceControl/",
        "MSNT_SystemTrace/",
    ];
    if let Some(provider) = event.provider
        && !classic.iter().any(|start| line.kind.starts_with(start))
        && !line.kind.starts_with(&format!("{provider}/"))
    {
        result.different.push(format!("the provider is {provider}"));
    }
    if event.record.is_event() {
        let ids = [
            event.record.process_id().map(ProcessId::get),
            event.record.thread_id().map(ThreadId::get),
        ];
        let theirs = [line.process, line.thread].map(|id| u32::try_from(id).ok());
        if ids != theirs {
            result
                .different
                .push(format!("process and thread {ids:?}, not {theirs:?}"));
        }
    }
    for (name, text) in &line.fields {
        let found = event.field(&line.kind, name);
        let equal = found.is_some_and(|(field, value)| undone::equal(text, field, value))
            || found
                .and_then(|(_, value)| value.bits(8))
                .is_some_and(|n| listed::names(name, text, n))
            || derived::equal(name, text, event);
        if equal {
            result.compared += 1;
        } else if let Some(at) = listed::reason(&line.kind, name, text) {
            result.listed.push(at);
        } else {
            let value = found.map(|(field, value)| {
                let mut out = Vec::new();
                etl_schema::render::Renderer::new().text_value(&mut out, field, value);
                String::from_utf8_lossy(&out).into_owned()
            });
            result
                .different
                .push(format!("{name}={text}, decoded as {value:?}"));
        }
    }
    result
}

fn decoded(fields: Option<Fields<'_>>) -> Vec<(&Field, Value<'_>)> {
    fields.map(Iterator::collect).unwrap_or_default()
}

#[needs(traces)]
#[test]
fn decoded_fields_match_the_baselines() {
    let mut unused: BTreeSet<usize> = (0..listed::REASONS.len()).collect();
    let mut faults = Vec::new();
    for (name, least) in TRACES {
        let path = trace(&format!("{name}.etl"));
        let baseline = std::fs::read_to_string(path.with_extension("baseline.txt")).unwrap();
        let baseline = baseline.trim_start_matches('\u{feff}');
        let lines: Vec<Line> = baseline.lines().filter_map(Line::parse).collect();
        assert_eq!(
            lines.len(),
            baseline.lines().filter(|l| l.starts_with("EVENT ")).count()
        );
        let mut by_time: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (at, line) in lines.iter().enumerate() {
            by_time.entry(line.time).or_default().push(at);
        }

        let bytes = std::fs::read(&path).unwrap();
        let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let clock = trace.clock();
        let frequency = trace.header().perf_freq;
        let mut store = SchemaStore::default();
        // The best comparison of each line, and the events that it may be.
        let mut best: Vec<Option<Comparison>> = lines.iter().map(|_| None).collect();
        let mut events: Vec<BTreeSet<String>> = vec![BTreeSet::new(); lines.len()];
        let mut records = trace.records(Order::Time).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            store.learn(&record);
            let since = clock.time(record.timestamp()).get() - clock.start_time.get();
            for &at in by_time
                .range((since - 10) / 10..=(since + 10) / 10)
                .flat_map(|(_, at)| at)
            {
                let line = &lines[at];
                if (line.processor, line.length) != (record.processor(), record.payload().len()) {
                    continue;
                }
                let fields = decoded(store.fields(&record));
                let provider = record.provider().and_then(|p| store.provider_name(p));
                let found = compare(
                    line,
                    &Event {
                        record: &record,
                        provider,
                        frequency,
                        fields,
                    },
                );
                if found.different.is_empty() {
                    let id = record.identity();
                    let event = format!("{:?} {:?} {}", record.provider(), id.id, id.opcode);
                    events[at].insert(event);
                }
                let fewer = |b: &Comparison| found.different.len() < b.different.len();
                if best[at].as_ref().is_none_or(fewer) {
                    best[at] = Some(found);
                }
            }
        }

        let mut compared = 0;
        let mut kinds: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for ((line, found), events) in lines.iter().zip(best).zip(events) {
            let place = format!("{name} at {} us: {}", line.time, line.kind);
            let Some(found) = found else {
                faults.push(format!("{place}: no such record"));
                continue;
            };
            compared += found.compared;
            unused.retain(|at| !found.listed.contains(at));
            faults.extend(found.different.iter().map(|d| format!("{place}: {d}")));
            // Other records of the kind decide between records of the same time and length.
            let kind = kinds.entry(&line.kind).or_insert_with(|| events.clone());
            kind.retain(|event| events.contains(event));
        }
        let mut taken = BTreeMap::new();
        for (kind, events) in kinds {
            if events.len() != 1 {
                faults.push(format!(
                    "{name}: {kind} is {events:?}, not one kind of event"
                ));
            }
            for event in events {
                if let Some(other) = taken.insert(event, kind) {
                    faults.push(format!(
                        "{name}: {kind} and {other} are the same kind of event"
                    ));
                }
            }
        }
        eprintln!("{name}: {} lines, {compared} fields equal", lines.len());
        assert!(
            compared >= least,
            "{name}: only {compared} fields were compared"
        );
    }
    faults.extend(
        unused
            .iter()
            .map(|&at| format!("not needed: {:?}", listed::REASONS[at])),
    );
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}
