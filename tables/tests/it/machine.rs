//! Tables about the machine against the analyses.

use std::collections::BTreeMap;
use std::fs;

use etl_analysis::behavior::collections::Collections;
use etl_analysis::behavior::compilations::Compilations;
use etl_analysis::behavior::exceptions::Exceptions;
use etl_analysis::behavior::io::Io;
use etl_analysis::behavior::network::Network;
use etl_analysis::machine::images::ImageId;
use etl_analysis::profile::{FrameTotal, ProfileOptions, SampleCollector};
use etl_analysis::{Analysis, Machine, ProcessIndex, Recording};
use etl_events::filter::Filter;
use etl_events::survey::Survey;
use etl_format::read::{Options as ReadOptions, Order, Trace};
use etl_format::{Ticks, TimeRange};
use etl_schema::store::SchemaStore;
use etl_tables::Options;
use etl_test_support::{needs, trace};
use serde_json::{Value, json};

use crate::common::{REAL, UNIX, all, counts, numbers, read, rows, rows_of, sum, words};

/// An object without members that are null or an empty text.
fn object(members: Value) -> Value {
    let Value::Object(mut members) = members else {
        panic!("an object")
    };
    members.retain(|_, value| !value.is_null() && value.as_str() != Some(""));
    Value::Object(members)
}

/// Compares the tables about the machine with the machine of the analysis.
fn check_machine(bytes: &[u8]) {
    let mut recording = Recording::open([(bytes, "t")]).unwrap();
    let machine = Analysis::new()
        .with_names()
        .run(&mut recording, &mut ())
        .unwrap();
    let micros = |time: Option<i64>| {
        time.map(|time| (machine.clock().time(Ticks::new(time)).get() - UNIX).div_euclid(10))
    };
    let of = |index: ProcessIndex| machine.process(index).unwrap();
    let file = |path: &str| path.rsplit('\\').next().unwrap().to_owned();
    let processes = machine.processes().iter().map(|process| {
        object(json!({
            "pid": process.pid(), "process": process.name(),
            "parent_pid": process.parent_pid(), "started": micros(process.started().map(Ticks::get)),
            "ended": micros(process.ended().map(Ticks::get)),
            "exit_status": process.exit_status(),
            "session_id": process.session_id(), "user": process.user(),
            "command_line": process.command_line(),
        }))
    });
    let mut found = rows_of(bytes, "processes");
    let mut threads = 0;
    for row in found.iter_mut().filter_map(Value::as_object_mut) {
        threads += row.remove("threads").unwrap().as_u64().unwrap();
        assert!(row.remove("depth").is_some());
    }
    let of_processes = machine
        .threads()
        .iter()
        .filter(|t| machine.process_of(t).is_some());
    assert_eq!(threads, of_processes.count() as u64);
    assert_eq!(found, processes.collect::<Vec<_>>());
    let threads = machine.threads().iter().map(|thread| {
        let start = Some(thread.start_address as i64).filter(|&address| address != 0);
        object(json!({
            "tid": thread.tid, "pid": thread.pid, "thread": &*thread.name,
            "started": micros(thread.started.map(Ticks::get)), "ended": micros(thread.ended.map(Ticks::get)),
            "start_address": start,
        }))
    });
    assert_eq!(rows_of(bytes, "threads"), threads.collect::<Vec<_>>());
    let images = machine.image_lives().map(|image| {
        let pdb = match image.id {
            Some(ImageId::Pdb(pdb)) => Some(pdb),
            _ => None,
        };
        let path = machine.user_path(image.path);
        object(json!({
            "pid": of(image.process).pid(), "process": of(image.process).name(),
            "path": path, "image": file(&path), "address": image.start as i64,
            "size_bytes": image.end - image.start, "loaded": micros(image.loaded.map(Ticks::get)),
            "unloaded": micros(image.unloaded.map(Ticks::get)),
            "pdb_guid": pdb.map(|pdb| pdb.signature.to_string()), "pdb_age": pdb.map(|pdb| pdb.age),
        }))
    });
    assert_eq!(rows_of(bytes, "images"), images.collect::<Vec<_>>());
    let losses = machine.losses().iter().map(|loss| {
        object(json!({
            "kind": serde_json::to_value(loss.what).unwrap(), "from": micros(loss.from.map(Ticks::get)),
            "to": micros(loss.to.map(Ticks::get)), "cpu": loss.processor,
        }))
    });
    assert_eq!(rows_of(bytes, "losses"), losses.collect::<Vec<_>>());
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn tables_about_the_machine_have_the_values_of_the_analysis() {
    check_machine(&fs::read(trace(REAL)).unwrap());
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn tables_agree_with_info_and_analyses() {
    let bytes = fs::read(trace(REAL)).unwrap();
    // `info`
    let mut trace = Trace::open(bytes.as_slice(), &ReadOptions::salvage()).unwrap();
    let survey = Survey::of(&mut trace, SchemaStore::default(), |_| {}).unwrap();
    let events = all(&bytes, "events");
    let json = serde_json::to_value(&survey).unwrap();
    let mut expected = BTreeMap::<String, u64>::new();
    for event in json["events"].as_array().unwrap() {
        let name = event["event"].as_str().unwrap().to_owned();
        *expected.entry(name).or_default() += event["count"].as_u64().unwrap();
    }
    let found = counts(words(&events, "event").into_iter().flatten());
    assert_eq!(found, expected, "events by name");
    assert_eq!(
        sum(&all(&bytes, "traces"), "events") as usize,
        rows(&events)
    );

    // `analyze`
    let mut recording = Recording::open([(bytes.as_slice(), "t")]).unwrap();
    let clr = (Compilations::new(), Exceptions::new());
    let system = (
        (SampleCollector::new(), Collections::new()),
        (Io::new(), Network::new()),
    );
    let mut observer = (clr, system);
    let machine = Analysis::new()
        .with_names()
        .run(&mut recording, &mut observer)
        .unwrap();
    let ((compilations, exceptions), ((samples, collections), (io, network))) = observer;
    let count = |table: &str| rows(&all(&bytes, table));
    assert_eq!(count("processes"), machine.processes().len());
    assert_eq!(count("threads"), machine.threads().len());
    assert_eq!(count("images"), machine.image_lives().count());
    assert_eq!(count("losses"), machine.losses().len());
    let methods: usize = machine
        .processes()
        .iter()
        .map(|p| p.code().alive().count() + p.code().past().len())
        .sum();
    assert_eq!(count("methods"), methods);
    check_samples(&bytes, &machine, &samples);
    let gcs = all(&bytes, "gcs");
    assert_eq!(rows(&gcs), collections.list().len());
    assert!(rows(&gcs) > 100);
    let generations: i64 = collections
        .list()
        .iter()
        .map(|gc| i64::from(gc.generation))
        .sum();
    assert_eq!(sum(&gcs, "generation"), generations);
    let pauses: i64 = collections
        .list()
        .iter()
        .map(|gc| i64::from(gc.pauses))
        .sum();
    assert_eq!(sum(&gcs, "pauses"), pauses);
    // The .NET Framework has no heap of pinned objects.
    assert!(
        numbers(&gcs, "large_object_bytes")
            .iter()
            .any(Option::is_some)
    );
    assert!(
        numbers(&gcs, "pinned_object_bytes")
            .iter()
            .all(Option::is_none)
    );
    let operations = all(&bytes, "io");
    let total: u64 = io.totals().map(|file| file.total.count).sum();
    assert_eq!(sum(&operations, "count"), total as i64);
    let total: u64 = io.totals().map(|file| file.total.bytes).sum();
    assert_eq!(sum(&operations, "bytes"), total as i64);
    let on_disks = io
        .totals()
        .filter(|file| file.operation.name().starts_with("disk"));
    let total: u64 = on_disks.map(|file| file.total.count).sum();
    let operations = all(&bytes, "disk_operations");
    assert_eq!(rows(&operations) as u64, total);
    let reads = words(&operations, "operation")
        .into_iter()
        .zip(numbers(&operations, "bytes"));
    let reads = reads.filter(|(operation, _)| operation.as_deref() == Some("disk read"));
    let read: i64 = reads.filter_map(|(_, bytes)| bytes).sum();
    let expected = io
        .totals()
        .filter(|file| file.operation.name() == "disk read");
    assert_eq!(
        read as u64,
        expected.map(|file| file.total.bytes).sum::<u64>()
    );
    assert_eq!(count("compilations"), compilations.list().len());
    let thrown: u64 = exceptions.list().map(|thrown| thrown.count).sum();
    assert_eq!(sum(&all(&bytes, "exceptions"), "count") as u64, thrown);
    assert_eq!(count("connections"), network.connections().len());
    assert_eq!(count("sessions"), machine.files()[0].sessions.len());
    let report = etl_verify::Verifier::new()
        .verify(bytes.as_slice(), "t")
        .unwrap();
    assert_eq!(count("findings"), report.findings.len());
}

/// Samples by their stacks, as profiles have them.
fn check_samples(bytes: &[u8], machine: &Machine, samples: &SampleCollector) {
    let profile = samples.profile(machine, &ProfileOptions::new().with_idle());
    let table = all(bytes, "samples");
    assert_eq!(rows(&table) as u64, profile.total().samples);
    let stacks = all(bytes, "stacks");
    let with_stack = numbers(&table, "stack_id").iter().flatten().count();
    assert_eq!(with_stack as u64, profile.with_stack());
    // Every stack that a row names is there once, with all its frames.
    let ids = counts(numbers(&stacks, "stack_id").into_iter().flatten());
    assert!(ids.values().all(|&count| count == 1));
    assert!(
        numbers(&table, "stack_id")
            .iter()
            .flatten()
            .all(|id| ids.contains_key(id))
    );
    let frames = all(bytes, "frames");
    assert_eq!(rows(&frames) as i64, sum(&stacks, "depth"));
    // Own samples of methods, but for stacks whose code changed in between.
    let mut expected = BTreeMap::<String, u64>::new();
    for FrameTotal { frame, total, .. } in profile.by_frame() {
        if total.exclusive.samples > 0 {
            *expected.entry(profile.label(frame)).or_default() += total.exclusive.samples;
        }
    }
    let (modules, methods) = (words(&table, "module"), words(&table, "method"));
    let label = |(module, method): (Option<String>, Option<String>)| match (module, method) {
        (None, None) => "?".to_owned(),
        (module, method) => format!(
            "{}!{}",
            module.unwrap_or_else(|| "?".to_owned()),
            method.unwrap_or_else(|| "?".to_owned())
        ),
    };
    let found = counts(modules.into_iter().zip(methods).map(label));
    assert_eq!(found, expected, "own samples by method");
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn sums_of_operations_are_those_of_the_selected_time() {
    let bytes = fs::read(trace(REAL)).unwrap();
    let mut trace = Trace::open(bytes.as_slice(), &ReadOptions::salvage()).unwrap();
    let mut records = trace.records(Order::Time).unwrap().without_stale_records();
    let mut times = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        times.push(record.timestamp());
    }
    let middle = times[times.len() / 2];
    let part = |from: Option<i64>, to: Option<i64>| {
        let time = TimeRange::new(from.map(Ticks::new), to.map(Ticks::new));
        let filter = Filter {
            time,
            ..Filter::default()
        };
        sum(
            &read(&bytes, "io", Options::new("t").filter(filter)),
            "count",
        )
    };
    let (before, after, whole) = (
        part(None, Some(middle.get())),
        part(Some(middle.get()), None),
        part(None, None),
    );
    assert!(before > 0 && after > 0, "{before} {after}");
    assert_eq!(before + after, whole);
}
