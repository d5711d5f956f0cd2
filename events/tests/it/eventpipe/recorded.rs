//! Recorded streams: the trace has the events of the stream.

use std::io::Read;
use std::path::{Path, PathBuf};

use etl_format::ThreadId;
use etl_format::read::{EventHeader, ExtendedItem, Options as TraceOptions, Order, Record, Trace};
use etl_nettrace::{Event, Item, LossTracker, Options, Reader};
use etl_test_support::{foreign, needs, traces};
use flate2::read::GzDecoder;
use serde_json::Value;

use super::{Converted, converted, fields_text};

fn streams() -> Vec<PathBuf> {
    let mut streams = Vec::new();
    for entry in std::fs::read_dir(traces().join("nettrace")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with(".nettrace.gz") {
            streams.push(path);
        }
    }
    streams.sort();
    assert!(!streams.is_empty());
    streams
}

fn unpacked(path: &Path) -> Vec<u8> {
    let file = std::fs::File::open(path).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

pub fn stream(name: &str) -> Vec<u8> {
    unpacked(&traces().join("nettrace").join(name))
}

/// What a stream and its trace have in common.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Common {
    time: i64,
    process: u32,
    thread: u32,
    id: u16,
    version: u8,
    level: u8,
    keywords: u64,
    activity: [u8; 16],
    related_activity: [u8; 16],
    stack: Vec<u64>,
    /// `None` if its numbers are encoded again.
    payload: Option<Vec<u8>>,
}

fn is_universal(event: &Event<'_>) -> bool {
    event.provider().starts_with("Universal.")
}

impl Common {
    fn of_event(event: &Event<'_>, start: i64) -> Self {
        let payload = (!is_universal(event)).then(|| event.payload.to_vec());
        Common {
            time: event.timestamp.get().max(start),
            process: event.process_id.unwrap().try_into().unwrap(),
            thread: event.thread_id.try_into().unwrap(),
            id: event.id().try_into().unwrap(),
            version: event.version().try_into().unwrap(),
            level: event.level().try_into().unwrap(),
            keywords: event.keywords(),
            activity: event.activity_id.to_bytes(),
            related_activity: event.related_activity_id.to_bytes(),
            stack: event.stack.to_vec(),
            payload,
        }
    }

    fn of_record(record: &Record<'_>, header: &EventHeader, has_payload: bool) -> Self {
        let mut stack = Vec::new();
        let mut related_activity = [0; 16];
        for item in record.extended() {
            match item {
                ExtendedItem::Stack(found) => stack.extend(found.addresses()),
                ExtendedItem::RelatedActivity(guid) => related_activity = guid.to_bytes(),
                _ => {}
            }
        }
        Common {
            time: record.timestamp().get(),
            process: header.process_id.get(),
            thread: header.thread_id.get(),
            id: header.descriptor.id,
            version: header.descriptor.version,
            level: header.descriptor.level,
            keywords: header.descriptor.keyword,
            activity: header.activity.to_bytes(),
            related_activity,
            stack,
            payload: has_payload.then(|| record.payload().to_vec()),
        }
    }
}

/// The events of a stream in time order, and how many were lost.
struct StreamEvents {
    events: Vec<Common>,
    lost: u64,
    is_complete: bool,
    has_universal: bool,
}

fn events_of_stream(stream: &[u8]) -> StreamEvents {
    let options = Options {
        order: etl_nettrace::Order::Time,
        ..Options::default()
    };
    let mut reader = Reader::with_options(stream, &options).unwrap();
    let start = reader.header().start_ticks.get();
    let mut losses = LossTracker::new();
    let mut events = Vec::new();
    let mut has_universal = false;
    while let Some(item) = reader.next_item().unwrap() {
        losses.add(&item);
        if let Item::Event(event) = item {
            events.push(Common::of_event(&event, start));
            has_universal |= is_universal(&event);
        }
    }
    StreamEvents {
        events,
        lost: losses.lost(),
        is_complete: reader.is_complete(),
        has_universal,
    }
}

#[needs(traces)]
#[test]
fn traces_have_the_events_of_their_streams() {
    for path in streams() {
        let name = path.display();
        let stream = unpacked(&path);
        let mut theirs = events_of_stream(&stream);
        let Converted { trace, report } = converted(&stream);
        assert_eq!(report.events, theirs.events.len() as u64, "{name}");
        assert_eq!(report.events_lost, theirs.lost, "{name}");
        assert_eq!((report.too_long, report.out_of_range), (0, 0), "{name}");
        assert_eq!(report.undescribed, 0, "{name}");
        assert_eq!(report.is_complete, theirs.is_complete, "{name}");

        let mut trace = Trace::open(trace.as_slice(), &TraceOptions::default()).unwrap();
        assert_eq!(trace.header().logger_name(), "EventPipe");
        assert_eq!(trace.header().is_closed(), theirs.is_complete, "{name}");
        if theirs.is_complete {
            assert_eq!(u64::from(trace.header().events_lost), theirs.lost, "{name}");
        }
        let mut events = Vec::new();
        let mut records = trace.records(Order::Time).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            if let Some(header) = record.event() {
                events.push(Common::of_record(&record, &header, !theirs.has_universal));
            }
        }
        if theirs.has_universal {
            // Records of several processors have no order if their times are equal.
            events.sort();
            theirs.events.sort();
        }
        assert!(events == theirs.events, "{name}");
    }
}

#[needs(traces)]
#[test]
fn the_same_stream_becomes_the_same_trace() {
    let stream = stream("8.0-eventsource.nettrace.gz");
    assert!(converted(&stream).trace == converted(&stream).trace);
}

#[needs(traces)]
#[test]
fn events_of_the_runtime_are_described_by_the_tables() {
    let Converted { trace, .. } = converted(&stream("10.0-1CCBD-5.nettrace.gz"));
    let mut trace = etl_events::from_bytes(trace).unwrap();
    let mut events = trace
        .events()
        .provider("Microsoft-Windows-DotNETRuntime")
        .event("GCStart*");
    let mut collections = Vec::new();
    while let Some(event) = events.next().unwrap() {
        assert_eq!(event.task_name(), Some("GarbageCollection"));
        assert_eq!(event.opcode(), Some(1));
        collections.push(event.get("Count").unwrap().to_string());
    }
    assert!(collections.len() > 3, "{collections:?}");
}

#[needs(traces)]
#[test]
fn events_of_event_sources_describe_themselves() {
    let Converted { trace, .. } = converted(&stream("8.0-eventsource.nettrace.gz"));
    let mut trace = etl_events::from_bytes(trace).unwrap();
    let mut events = trace.events();
    let mut described = 0;
    while let Some(event) = events.next().unwrap() {
        let provider = event.provider();
        if provider.starts_with("Microsoft-Windows-DotNETRuntime") || provider == "EventTrace" {
            continue;
        }
        described += 1;
        assert!(!event.name().is_empty());
        // Every field decodes, and no byte is left.
        let mut fields = event.fields().unwrap();
        while fields.next().is_some() {}
        assert!(fields.note().is_exact(), "{provider} {}", event.name());
    }
    assert!(described > 100, "{described}");
}

/// Whether two values are equal. A number with 4 bytes has more digits in the other reader.
fn equal(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => {
            ours == theirs || ours.as_f64().unwrap() as f32 == theirs.as_f64().unwrap() as f32
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| equal(a, b))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            let is_same = |name: &String, value| ours.get(name).is_some_and(|a| equal(a, value));
            ours.len() == theirs.len() && theirs.iter().all(|(name, value)| is_same(name, value))
        }
        _ => ours == theirs,
    }
}

#[needs(traces, python)]
#[test]
fn fields_have_the_values_that_an_independent_reader_decodes() {
    let judge = traces().join("../judges/nettrace.py");
    let path = traces().join("nettrace/8.0-eventsource.nettrace.gz");
    let theirs = foreign("nettrace_fields.py", &[judge, path.clone()]);
    let theirs = theirs[0].as_array().unwrap();
    let Converted { trace, .. } = converted(&unpacked(&path));
    let mut trace = etl_events::from_bytes(trace).unwrap();
    let mut reader = trace.events();
    let header = reader.next().unwrap().unwrap();
    assert_eq!(header.provider(), "EventTrace");
    let mut events = 0;
    let mut compared = 0;
    while let Some(event) = reader.next().unwrap() {
        let their = &theirs[events];
        events += 1;
        if their.is_null() {
            continue;
        }
        compared += 1;
        assert_eq!(event.name(), their["name"].as_str().unwrap());
        let ours: Value = event.deserialize().unwrap();
        let fields = &their["fields"];
        assert!(equal(&ours, fields), "{}: {ours} {fields}", event.name());
    }
    assert_eq!(events, theirs.len());
    assert_eq!(compared, 187);
}

#[needs(traces)]
#[test]
fn the_session_and_its_samples_have_names() {
    let Converted { trace, .. } = converted(&stream("8.0-sampled.nettrace.gz"));
    let mut trace = etl_events::from_bytes(trace).unwrap();
    let mut samples = 0;
    let mut command_line = None;
    let mut events = trace.events();
    while let Some(event) = events.next().unwrap() {
        if !event.provider().starts_with("Microsoft-DotNETCore-") {
            continue;
        }
        match event.name() {
            "ThreadSample" => {
                samples += 1;
                assert!(event.stack().next().is_some());
            }
            "ProcessInfo" => command_line = Some(event.get("CommandLine").unwrap().to_string()),
            other => panic!("{other}"),
        }
    }
    assert_eq!(samples, 2520);
    assert!(command_line.unwrap().contains("Work.dll"));
}

#[needs(traces)]
#[test]
fn processes_of_version_6_have_their_names() {
    let Converted { trace, report } = converted(&stream("v6-one_collect.nettrace.gz"));
    assert_eq!(report.version, 6);
    let mut trace = etl_events::from_bytes(trace).unwrap();
    let mut lines = Vec::new();
    let mut events = trace.events().provider("Universal.System");
    while let Some(event) = events.next().unwrap() {
        let pid = event.pid().unwrap();
        assert_eq!(event.tid(), Some(ThreadId::new(0)));
        lines.push(format!("{pid} {} {}", event.name(), fields_text(&event)));
    }
    lines.sort();
    let expected = [
        "1000 ProcessCreate NamespaceId=0 Name=alpha NamespaceName=Unknown",
        "1000 ProcessExit ",
        "1000 ProcessMapping Id=0 StartAddress=4194304 EndAddress=4259839 FileOffset=0 \
         FileName=/usr/bin/alpha MetadataId=1",
        "1000 ProcessMappingMetadata Id=1 SymbolMetadata= VersionMetadata=",
        "2000 ProcessCreate NamespaceId=0 Name=beta NamespaceName=Unknown",
        "2000 ProcessMapping Id=1 StartAddress=5242880 EndAddress=5373951 FileOffset=4096 \
         FileName=/usr/bin/beta MetadataId=2",
        "2000 ProcessMappingMetadata Id=2 SymbolMetadata= VersionMetadata=",
    ];
    assert_eq!(lines, expected);
}

#[needs(traces)]
#[test]
fn losses_are_flagged_near_their_place() {
    let Converted { trace, report } = converted(&stream("3.1-dropped.nettrace.gz"));
    assert_eq!(report.events_lost, 786);
    let trace = Trace::open(trace.as_slice(), &TraceOptions::default()).unwrap();
    let buffers = trace.buffers();
    let flag = etl_format::constants::BufferFlags::EVENTS_LOST;
    let flagged = buffers
        .iter()
        .filter(|buffer| buffer.flags.has(flag))
        .count();
    assert!(
        flagged > 0 && flagged < buffers.len(),
        "{flagged} of {}",
        buffers.len()
    );
}
