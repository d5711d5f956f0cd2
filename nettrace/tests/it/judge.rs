//! Recorded streams, read by this crate and by an independent reader.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use etl_nettrace::{Item, LossTracker, Options, Reader};
use etl_test_support::{foreign, needs, traces};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::text;

/// Units of a `FILETIME` in a millisecond, and the milliseconds from 1601 to 1970.
const UNITS_PER_MILLISECOND: i64 = 10_000;
const UNIX_EPOCH_MS: i64 = 11_644_473_600_000;

pub fn streams() -> Vec<PathBuf> {
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

pub fn unpacked(path: &Path) -> Vec<u8> {
    let file = std::fs::File::open(path).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// What the independent reader says about streams.
fn judged(paths: &[PathBuf]) -> Vec<Value> {
    let judge = traces().join("../judges/nettrace.py");
    foreign("nettrace_events.py", &[&[judge], paths].concat())
}

/// What this crate says about a stream, in the same form.
fn described(stream: &[u8]) -> Value {
    let mut reader = Reader::new(stream).unwrap();
    let header = reader.header().clone();
    let mut losses = LossTracker::new();
    let mut metadata = Vec::new();
    let mut events = Vec::new();
    let mut points = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        losses.add(&item);
        match item {
            Item::Event(event) => events.push(text::event(&event)),
            Item::Metadata(added) => metadata.push(text::metadata(added)),
            Item::SequencePoint(point) => {
                let threads = point.threads.iter();
                let threads: Vec<String> = threads
                    .map(|thread| {
                        format!("({}, {})", thread.capture_thread, thread.sequence_number)
                    })
                    .collect();
                let threads = threads.join(", ");
                points.push(format!(
                    "{:#x} {} [{threads}]",
                    point.offset, point.timestamp
                ));
            }
            _ => {}
        }
    }
    let optional = |value: Option<u64>| value.map_or("None".to_owned(), |v| v.to_string());
    let start = header
        .start_time
        .map(|time| time.get() / UNITS_PER_MILLISECOND - UNIX_EPOCH_MS);
    let mut losses_by_time = LossTracker::new();
    let order = time_order(stream, &events, &mut losses_by_time);
    assert_eq!(losses_by_time.lost(), losses.lost());
    json!({
        "header": format!(
            "version {} pointers {} pid {} processors {} ticks {} frequency {}",
            header.version.major,
            header.pointer_size,
            optional(header.process_id),
            optional(header.processor_count.map(u64::from)),
            header.start_ticks,
            header.frequency
        ),
        "start_ms": start,
        "metadata": metadata,
        "events": events,
        "time_order": order,
        "points": points,
        "lost": losses.lost(),
        "complete": reader.is_complete(),
    })
}

/// The numbers of the events in time order, and their losses.
fn time_order(stream: &[u8], events: &[String], losses: &mut LossTracker) -> Vec<usize> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        let offset = event.split(' ').next().unwrap();
        assert_eq!(
            numbers.insert(offset, number),
            None,
            "two events at {offset}"
        );
    }
    let mut order = Vec::new();
    let mut reader = Reader::with_options(stream, &text::by_time()).unwrap();
    while let Some(item) = reader.next_item().unwrap() {
        losses.add(&item);
        let Item::Event(event) = item else { continue };
        let line = text::event(&event);
        let number = numbers[line.split(' ').next().unwrap()];
        assert_eq!(line, events[number], "in time order");
        order.push(number);
    }
    assert_eq!(reader.late_events(), 0);
    order
}

#[needs(traces, python)]
#[test]
fn recorded_streams_equal_those_of_an_independent_reader() {
    let streams = streams();
    let judged = judged(&streams);
    assert_eq!(judged.len(), streams.len());
    for (path, judged) in streams.iter().zip(&judged) {
        let name = path.file_name().unwrap().to_string_lossy();
        let described = described(&unpacked(path));
        for (key, expected) in judged.as_object().unwrap() {
            let found = &described[key];
            if let (Some(expected), Some(found)) = (expected.as_array(), found.as_array()) {
                for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
                    assert_eq!(found, expected, "{name}: {key} {number}");
                }
                assert_eq!(found.len(), expected.len(), "{name}: {key}");
            } else {
                assert_eq!(found, expected, "{name}: {key}");
            }
        }
    }
}

#[needs(traces)]
#[test]
fn recorded_streams_have_the_events_of_their_manifest() {
    let manifest = std::fs::read(traces().join("nettrace/manifest.json")).unwrap();
    let manifest: Vec<Value> = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest.len(), streams().len());
    for stream in manifest {
        let name = stream["file"].as_str().unwrap();
        let bytes = unpacked(&traces().join("nettrace").join(name));
        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        while let Some(event) = reader.next_event().unwrap() {
            let kind = format!("{}/{}v{}", event.provider(), event.id(), event.version());
            *counts.entry(kind).or_default() += 1;
        }
        let expected = stream["counts"].as_object().unwrap();
        let expected: BTreeMap<String, u64> = expected
            .iter()
            .map(|(kind, count)| (kind.clone(), count.as_u64().unwrap()))
            .collect();
        assert_eq!(counts, expected, "{name}");
        assert_eq!(reader.is_complete(), stream["complete"], "{name}");
        // The only fault is the missing end of a killed process.
        let faults = reader.damage_count();
        assert_eq!(faults, u64::from(!reader.is_complete()), "{name}");
        assert_eq!(
            reader.cut_offset().is_none(),
            reader.is_complete(),
            "{name}"
        );
    }
}

#[needs(trace = "nettrace/8.0-60-5.nettrace.gz")]
#[test]
fn process_info_names_the_process() {
    let bytes = unpacked(&traces().join("nettrace/8.0-60-5.nettrace.gz"));
    let mut reader = Reader::with_options(bytes.as_slice(), &Options::default()).unwrap();
    let mut found = None;
    while let Some(event) = reader.next_event().unwrap() {
        found = found.or(etl_nettrace::ProcessInfo::decode(&event));
    }
    let info = found.unwrap();
    assert!(info.command_line.ends_with("Work.dll"), "{info:?}");
    assert_eq!(info.operating_system.as_deref(), Some("Linux"));
    assert_eq!(info.architecture.as_deref(), Some("x64"));
}
