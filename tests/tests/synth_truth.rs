//! The truth that the simulation tells, held against what decoders find in its files: our own, field
//! by field, and dissect.etl, by counting.

use std::collections::BTreeMap;
use std::path::PathBuf;

use etl_format::constants::LogFileMode;
use etl_format::read::{Options, Record, Trace};
use etl_schema::encode::OwnedValue;
use etl_schema::store::{SchemaStore, StoreLimits};
use etl_synth::model::{Action, Fault, ProviderKind, Scenario, SessionPlan};
use etl_synth::scenario::{Settings, parse_with};
use etl_synth::truth::{Gathered, KnownEvent};
use etl_synth::{Form, Memory, SECOND};
use etl_tests::{foreign, root};

/// Every script of the corpus, by name.
fn scripts() -> Vec<(String, Scenario)> {
    let corpus = root().join("corpus");
    let include =
        |file: &str| std::fs::read_to_string(corpus.join(file)).map_err(|e| format!("{file}: {e}"));
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&corpus).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "kdl"));
    paths.sort();
    assert!(!paths.is_empty());
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let settings = Settings { set: &[], seed: None, include: &include };
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let scenario = parse_with(&name, &text, settings);
        (name.clone(), scenario.unwrap_or_else(|e| panic!("{name}: {:#?}", e.0)))
    };
    paths.iter().map(read).collect()
}

/// Values as they can be compared: a decoded number does not know whether it was a pointer.
#[derive(Debug, PartialEq)]
enum Plain {
    Number(i128),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Plain>),
    Other(String),
}

fn plain(value: &OwnedValue) -> Plain {
    match value {
        OwnedValue::Auto | OwnedValue::Null => Plain::Number(0),
        OwnedValue::Bool(v) => Plain::Number((*v).into()),
        OwnedValue::Int(v) => Plain::Number((*v).into()),
        OwnedValue::UInt(v) | OwnedValue::Pointer(v) | OwnedValue::FileTime(v) => {
            Plain::Number((*v).into())
        }
        OwnedValue::Char(v) => Plain::Number((*v).into()),
        OwnedValue::Text(v) => Plain::Text(v.clone()),
        OwnedValue::Utf16(v) => Plain::Text(String::from_utf16_lossy(v)),
        OwnedValue::Ansi(v) | OwnedValue::Utf8(v) => {
            Plain::Text(String::from_utf8_lossy(v).into_owned())
        }
        OwnedValue::Binary(v) | OwnedValue::Sid(v) => Plain::Bytes(v.clone()),
        OwnedValue::Array(v) | OwnedValue::Struct(v) => Plain::List(v.iter().map(plain).collect()),
        other => Plain::Other(format!("{other:?}")),
    }
}

/// Whether a session's file holds all that the truth says was recorded.
fn is_whole(plan: &SessionPlan) -> bool {
    plan.file.is_some()
        && plan.maximum_size == 0
        && !plan.mode.has(LogFileMode::BUFFERING)
        && plan.faults.iter().all(|f| matches!(f, Fault::Skew(_)))
}

fn plans(scenario: &Scenario) -> Vec<&SessionPlan> {
    let mut steps: Vec<_> = scenario.steps.iter().collect();
    steps.sort_by_key(|s| s.at);
    let mut plans: Vec<&SessionPlan> = Vec::new();
    for step in steps {
        if let Action::Start(plan) = &step.action {
            plans.push(plan);
        }
    }
    plans
}

fn compare(name: &str, event: &KnownEvent, record: &Record<'_>, store: &SchemaStore) {
    let place = format!("{name}: {} at {}", event.name, event.at);
    assert_eq!(record.processor(), event.processor, "{place}");
    match event.form {
        Form::Event => {
            let d = record.descriptor().unwrap();
            let known = &event.descriptor;
            assert_eq!(
                (d.id, d.version, d.level),
                (known.id, known.version, known.level),
                "{place}"
            );
            assert_eq!((d.task, d.keyword), (known.task, known.keyword), "{place}");
            assert_eq!(record.provider(), Some(event.provider), "{place}");
        }
        Form::System(hook) | Form::PerfInfo(hook) => {
            assert_eq!(record.hook(), Some(hook), "{place}");
        }
        Form::Full => assert_eq!(record.provider(), Some(event.provider), "{place}"),
    }
    if !matches!(event.form, Form::PerfInfo(_)) {
        assert_eq!(record.process_id(), Some(event.pid), "{place}");
        assert_eq!(record.thread_id(), Some(event.tid), "{place}");
    }
    // The pieces of a manifest are put together, not decoded.
    if event.descriptor.id == 0xfffe {
        return;
    }
    let Some((schema, fields)) = store.fields(record) else {
        panic!("{place}: no schema");
    };
    let found: Vec<(String, Plain)> = fields
        .map(|(field, value)| (field.name.to_string(), plain(&OwnedValue::from(value))))
        .collect();
    let known: Vec<(String, Plain)> =
        event.fields.iter().map(|(n, v)| (n.clone(), plain(v))).collect();
    // What the truth leaves to the encoder (a zero, an empty SID) is not compared.
    for ((name, value), (found_name, found)) in known.iter().zip(&found) {
        assert_eq!(name, found_name, "{place} {}", schema.name);
        let auto = event.fields.iter().any(|(n, v)| n == name && *v == OwnedValue::Auto);
        if !auto {
            assert_eq!(value, found, "{place}: {name}");
        }
    }
    assert_eq!(known.len(), found.len(), "{place}");
}

#[test]
fn every_recorded_event_comes_back_field_by_field() {
    let mut compared = 0;
    for (name, scenario) in scripts() {
        let (mut files, mut truth) = (Memory::default(), Gathered::default());
        etl_synth::simulate(&scenario, &mut files, &mut truth)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let files = files.into_files();
        for report in &truth.sessions {
            let plan = plans(&scenario)[report.index];
            assert_eq!(plan.name, report.name, "{name}");
            if !is_whole(plan) || report.stopped.is_none() {
                continue;
            }
            let file = plan.file.as_ref().unwrap();
            let bytes = &files.iter().find(|(n, _)| n == file).unwrap().1;
            let one = plan.mode.has(LogFileMode::NO_PER_PROCESSOR_BUFFERING);
            let mut known: BTreeMap<u16, Vec<&KnownEvent>> = BTreeMap::new();
            for event in truth.recorded(report.index) {
                known.entry(if one { 0 } else { event.processor }).or_default().push(event);
            }
            let mut store = SchemaStore::new(StoreLimits::default());
            // What is in no trace: the schemas of manifests and of classic events.
            let elsewhere = [ProviderKind::Manifest, ProviderKind::Classic];
            let known_elsewhere = scenario.providers.iter().filter(|p| elsewhere.contains(&p.kind));
            store.give(known_elsewhere.flat_map(|p| p.events.clone()));
            let mut trace = Trace::open(&bytes[..], &Options::default()).unwrap();
            let mut places: BTreeMap<u16, usize> = BTreeMap::new();
            let mut records = trace.ordered().unwrap();
            while let Some(record) = records.next_record().unwrap() {
                store.learn(&record);
                // The header's group is the session's own.
                if record.hook().is_some_and(|h| h >> 8 == 0) {
                    continue;
                }
                let place = places.entry(record.processor()).or_default();
                let of_processor = known.get(&record.processor());
                let event = of_processor.and_then(|k| k.get(*place));
                let event =
                    event.unwrap_or_else(|| panic!("{name}: more than the truth: {record:?}"));
                *place += 1;
                if !one {
                    compare(&name, event, &record, &store);
                }
                compared += 1;
            }
            let found: usize = places.values().sum();
            let recorded: usize = known.values().map(Vec::len).sum();
            assert_eq!(found, recorded, "{name}: {file}");
            assert_eq!(records.report().late, 0, "{name}: {file}");
            assert_eq!(trace.header().events_lost as u64, report.lost, "{name}: {file}");
        }
    }
    eprintln!("{compared} events compared");
    assert!(compared > 1000);
}

#[test]
fn dissect_counts_what_the_truth_says() {
    let directory = tempfile::tempdir().unwrap();
    let (mut paths, mut counts) = (Vec::new(), Vec::new());
    for (name, scenario) in scripts() {
        let (mut files, mut truth) = (Memory::default(), Gathered::default());
        etl_synth::simulate(&scenario, &mut files, &mut truth).unwrap();
        let files = files.into_files();
        for report in &truth.sessions {
            let plan = plans(&scenario)[report.index];
            if !is_whole(plan) || report.stopped.is_none() {
                continue;
            }
            let file = plan.file.as_ref().unwrap();
            let bytes = &files.iter().find(|(n, _)| n == file).unwrap().1;
            let path = directory.path().join(format!("{name}.{file}"));
            std::fs::write(&path, bytes).unwrap();
            paths.push(path);
            // The header event, and the partition's since Windows 10 1709.
            let own = if scenario.machine.os.2 >= 17_763 { 2 } else { 1 };
            counts.push(report.recorded + own);
        }
    }
    let Some(found) = foreign("dissect_counts.py", &paths) else { return };
    for ((path, count), found) in paths.iter().zip(&counts).zip(&found) {
        let records = found["records"].as_u64().or_else(|| found["total"].as_u64());
        assert_eq!(records, Some(*count), "{}: {found}", path.display());
    }
    assert_eq!(found.len(), paths.len());
}

#[test]
fn what_is_lost_is_told_and_counted() {
    // Two buffers for a lot of events, and a disk that is slower than they come.
    let text = r#"
        machine processors=1 disk-bytes-per-second=100000
        process "a.exe" {
            clr "core" { assembly "A" { module "C:\\A.dll" { methods 2000 ready=0 } } }
            at "1.5s" { jit 2000 }
        }
        at "1s" { session "s" file="s.etl" buffer-kb=4 buffers=2 { enable "runtime" keywords=0x10 level=5 } }
        at "5s" { stop "s" }
    "#;
    let scenario = etl_synth::scenario::parse("lost", text).unwrap();
    let (mut files, mut truth) = (Memory::default(), Gathered::default());
    etl_synth::simulate(&scenario, &mut files, &mut truth).unwrap();
    let report = &truth.sessions[0];
    assert!(report.lost > 100, "{report:?}");
    assert!(report.recorded > 50, "{report:?}");
    let bytes = &files.into_files()[0].1;
    let trace = Trace::open(&bytes[..], &Options::default()).unwrap();
    assert_eq!(u64::from(trace.header().events_lost), report.lost);
    let seen = trace.header().start_time;
    assert_eq!(seen, scenario.machine.start + i64::try_from(SECOND / 100).unwrap());
}
