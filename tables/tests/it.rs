//! Tables against what other code says of the same traces, and the page that documents them.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::DataType;
use etl_analysis::behavior::collections::Collections;
use etl_analysis::behavior::compilations::Compilations;
use etl_analysis::behavior::exceptions::Exceptions;
use etl_analysis::behavior::io::Io;
use etl_analysis::behavior::network::Network;
use etl_analysis::machine::images::ImageId;
use etl_analysis::profile::{FrameTotal, ProfileOptions, SampleCollector};
use etl_analysis::{Analysis, Machine, ProcessIndex, Recording};
use etl_events::EventDecoder;
use etl_events::conditions::Conditions;
use etl_events::context::{Code, Context, machine};
use etl_events::filter::Filter;
use etl_events::rows::{Format, RowWriter};
use etl_events::schemas::SchemasOfTraces;
use etl_events::survey::Survey;
use etl_format::constants::EventFlags;
use etl_format::read::{FileSource, Options as ReadOptions, Order, OrderCheck, Source, Trace};
use etl_format::write::Session;
use etl_format::write::record::Event;
use etl_format::{Clock, EventDescriptor, FileHeader, FileTime, Guid, Ticks, TimeRange};
use etl_schema::store::SchemaStore;
use etl_tables::dataset::{self, Added, Dataset};
use etl_tables::tables::{self, Table};
use etl_tables::{Column, Options, Reader, SCHEMA_VERSION};
use etl_test_support::{needs, trace, traces};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value, json};

/// A trace of all kinds: samples with stacks, .NET, collections, input and output.
const REAL: &str = "perfview/net.4.5.2.x64.etl";

fn read(bytes: &[u8], table: &str, options: Options) -> Vec<RecordBatch> {
    let source = FileSource::new(Cursor::new(bytes.to_vec())).unwrap();
    let reader = Reader::open(source, table, options).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert!(
        batches.iter().all(|batch| batch.schema() == schema),
        "{table}"
    );
    batches
}

fn all(bytes: &[u8], table: &str) -> Vec<RecordBatch> {
    read(bytes, table, Options::new("t"))
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// The values of a column of words.
fn words(batches: &[RecordBatch], column: &str) -> Vec<Option<String>> {
    let mut all = Vec::new();
    for batch in batches {
        let words = batch
            .column_by_name(column)
            .unwrap()
            .as_dictionary::<Int32Type>();
        let texts = words.values().as_string::<i32>();
        all.extend((0..words.len()).map(|row| Some(texts.value(words.key(row)?).to_owned())));
    }
    all
}

fn texts(batches: &[RecordBatch], column: &str) -> Vec<Option<String>> {
    let of = |batch: &RecordBatch| {
        let texts = batch
            .column_by_name(column)
            .unwrap()
            .as_string::<i32>()
            .clone();
        texts
            .iter()
            .map(|text| text.map(str::to_owned))
            .collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

fn numbers(batches: &[RecordBatch], column: &str) -> Vec<Option<i64>> {
    let of = |batch: &RecordBatch| {
        let column = batch.column_by_name(column).unwrap();
        match column.as_primitive_opt::<Int64Type>() {
            Some(numbers) => numbers.iter().collect::<Vec<_>>(),
            None => column
                .as_primitive::<Int32Type>()
                .iter()
                .map(|n| n.map(i64::from))
                .collect(),
        }
    };
    batches.iter().flat_map(of).collect()
}

fn sum(batches: &[RecordBatch], column: &str) -> i64 {
    numbers(batches, column).iter().flatten().sum()
}

fn counts<T: Ord>(values: impl IntoIterator<Item = T>) -> BTreeMap<T, u64> {
    let mut counts = BTreeMap::new();
    values
        .into_iter()
        .for_each(|value| *counts.entry(value).or_default() += 1);
    counts
}

/// The rows of `dump --format jsonl`.
fn dumped(bytes: &[u8]) -> Vec<Value> {
    let options = ReadOptions {
        order_check: OrderCheck::Scan,
        ..ReadOptions::salvage()
    };
    let mut schemas = SchemasOfTraces::new(SchemaStore::default());
    let machine = machine(
        [(bytes, "t")],
        Default::default(),
        1,
        Code::Skip,
        &mut schemas,
    )
    .unwrap();
    let context = Context::new(&machine);
    let mut trace = Trace::open(bytes, &options).unwrap();
    let decoder = EventDecoder::new(trace.clock(), schemas.store(0));
    let mut decoder = decoder.context(Some(context));
    let mut writer = RowWriter::new(Format::JsonLines);
    let mut records = trace.records(Order::Time).unwrap().without_stale_records();
    let mut out = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        writer.write(&mut out, &decoder.event(&record));
    }
    let lines = out
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// An event, the manifest of its `EventSource`, and the event again.
fn described_late() -> Vec<u8> {
    described(
        r#"<data name="N" inType="win:UInt32"/>"#,
        [&[5, 0, 0, 0], &[6, 0, 0, 0]],
    )
}

/// An event with these fields, the manifest of its `EventSource`, and another event.
fn described(fields: &str, [before, after]: [&[u8]; 2]) -> Vec<u8> {
    let provider = Guid::new(7, 7, 7, [7; 8]);
    let text = format!(
        r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
        <instrumentation><events><provider name="Late" guid="{{{provider}}}" symbol="L">
        <events><event value="7" symbol="Stepped" template="T"/></events>
        <templates><template tid="T">{fields}</template></templates>
        </provider></events></instrumentation></instrumentationManifest>"#
    );
    let manifest = [&[1, 1, 0, 0x5b, 1, 0, 0, 0], text.as_bytes()].concat();
    let header = FileHeader {
        start_time: FileTime::new(133_000_000_000_000_000),
        ..FileHeader::new()
    };
    let mut session = Session::in_memory(header).unwrap();
    for (timestamp, id, payload) in [
        (2_000, 7, before),
        (2_001, 0xfffe, &manifest),
        (2_002, 7, after),
    ] {
        let event = Event::new(
            provider,
            EventDescriptor {
                id,
                ..EventDescriptor::default()
            },
            timestamp,
        )
        .flags(EventFlags(0x40))
        .process(4, 1)
        .payload(payload);
        session.write(0, &event).unwrap();
    }
    session.finish().unwrap()
}

/// An event that nothing describes, with a text as its payload.
fn undescribed() -> Vec<u8> {
    let header = FileHeader {
        start_time: FileTime::new(133_000_000_000_000_000),
        ..FileHeader::new()
    };
    let mut session = Session::in_memory(header).unwrap();
    let descriptor = EventDescriptor {
        id: 7,
        ..EventDescriptor::default()
    };
    let event = Event::new(Guid::new(8, 8, 8, [8; 8]), descriptor, 2_000);
    session
        .write(
            0,
            &event.flags(EventFlags(0x40)).payload(b"order 7 was placed"),
        )
        .unwrap();
    session.finish().unwrap()
}

#[test]
fn events_before_their_schema_are_decoded() {
    let bytes = described_late();
    let stepped = Conditions::new(&["Stepped"], &[], &[]).unwrap();
    let rows = |table: &str| {
        read(
            &bytes,
            table,
            Options::new("t").events(stepped.clone()).names(false),
        )
    };
    let fields = texts(&rows("events"), "fields");
    assert_eq!(
        fields.iter().flatten().collect::<Vec<_>>(),
        [r#"{"N":5}"#, r#"{"N":6}"#]
    );
    assert_eq!(numbers(&rows("Late.Stepped"), "N"), [Some(5), Some(6)]);
}

/// Readers of JSON in UTF-8 refuse the escape of an unpaired surrogate: DuckDB as well as
/// serde_json.
#[test]
fn fields_are_json_for_every_reader_and_status_codes_have_names() {
    let template = r#"
        <data name="Status" inType="win:HexInt32" outType="win:NTSTATUS"/>
        <struct name="S">
          <data name="Error" inType="win:UInt32" outType="win:Win32Error"/>
          <data name="Address" inType="win:Pointer"/>
        </struct>
        <data name="Text" inType="win:UnicodeString"/>"#;
    let text = [u16::from(b'a'), 0xd800, u16::from(b'b'), 0]
        .map(u16::to_le_bytes)
        .concat();
    let payload = [
        &0xc000_0005_u32.to_le_bytes()[..],
        &5_u32.to_le_bytes(),
        &[0x10; 8],
        &text,
    ]
    .concat();
    let bytes = described(template, [&payload, &payload]);
    let expected = json!({
        "Status": "0xc0000005",
        "Status_name": "STATUS_ACCESS_VIOLATION",
        "S": {
            "Error": "0x5",
            "Error_name": "ERROR_ACCESS_DENIED",
            "Address": "0x1010101010101010",
        },
        "Text": "a\u{fffd}b",
    });
    let parsed = |texts: Vec<Option<String>>| -> Vec<Value> {
        texts
            .iter()
            .flatten()
            .map(|text| serde_json::from_str(text).unwrap())
            .collect()
    };
    let fields = parsed(texts(&all(&bytes, "events"), "fields"));
    assert_eq!(
        fields.iter().filter(|fields| **fields == expected).count(),
        2,
        "{fields:?}"
    );
    let typed = all(&bytes, "Late.Stepped");
    let both = |name: &str| vec![expected[name].as_str().map(str::to_owned); 2];
    assert_eq!(numbers(&typed, "Status"), [Some(0xc000_0005); 2]);
    assert_eq!(words(&typed, "Status_name"), both("Status_name"));
    assert_eq!(texts(&typed, "Text"), both("Text"));
    assert_eq!(parsed(texts(&typed, "S")), vec![expected["S"].clone(); 2]);
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn events_have_the_values_that_dump_prints() {
    let bytes = fs::read(trace(REAL)).unwrap();
    let (batches, lines) = (all(&bytes, "events"), dumped(&bytes));
    assert_eq!(rows(&batches), lines.len());
    let text = |line: &Value, key: &str| line[key].as_str().map(str::to_owned);
    for (column, key) in [
        ("process", "process"),
        ("thread", "thread"),
        ("event", "event"),
    ] {
        let expected: Vec<_> = lines.iter().map(|line| text(line, key)).collect();
        assert!(words(&batches, column) == expected, "{column}");
    }
    for (column, key) in [
        ("cpu", "cpu"),
        ("pid", "pid"),
        ("tid", "tid"),
        ("id", "id"),
        ("version", "version"),
        ("level", "level"),
        ("opcode", "opcode"),
        ("task", "task"),
        ("payload_size", "payload_size"),
    ] {
        let expected: Vec<_> = lines.iter().map(|line| line[key].as_i64()).collect();
        assert!(expected.iter().any(Option::is_some), "{key}: dump has it");
        assert!(numbers(&batches, column) == expected, "{column}");
    }
    let expected: Vec<_> = lines
        .iter()
        .map(|line| line.get("fields").cloned())
        .collect();
    let fields = texts(&batches, "fields").into_iter();
    let fields: Vec<_> = fields
        .map(|text| text.map(|text| serde_json::from_str(&text).unwrap()))
        .collect();
    assert!(fields == expected, "fields");
    let times: Vec<_> = lines
        .iter()
        .map(|line| text(line, "time").unwrap())
        .collect();
    let exact: Vec<_> = numbers(&batches, "filetime")
        .into_iter()
        .map(|time| iso(time.unwrap()))
        .collect();
    assert!(exact == times, "filetime");
    let keyword = |line: &Value| {
        let text = line["keyword"].as_str()?.trim_start_matches("0x");
        u64::from_str_radix(text, 16).ok().map(|bits| bits as i64)
    };
    let expected: Vec<_> = lines.iter().map(keyword).collect();
    assert!(numbers(&batches, "keyword") == expected, "keyword");
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn rows_have_every_member_of_the_objects_that_dump_prints() {
    let mut seen = BTreeMap::new();
    for path in small_traces() {
        let bytes = fs::read(&path).unwrap();
        // Files that are no traces, or that other tests refuse.
        if Trace::open(bytes.as_slice(), &ReadOptions::salvage()).is_err() {
            continue;
        }
        compare(&bytes, &path.display().to_string(), &mut seen);
    }
    compare(&undescribed(), "a trace without schemas", &mut seen);
    for key in [
        "message",
        "payload_text",
        "opcode_name",
        "task_name",
        "related_activity",
    ] {
        assert!(seen.contains_key(key), "{key} is in no trace: {seen:?}");
    }
}

/// The small ones of the real traces.
fn small_traces() -> Vec<PathBuf> {
    let files = |folder: PathBuf| {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
    };
    let folders = files(traces()).filter(|path| path.is_dir());
    let is_small = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "etl")
            && fs::metadata(path).unwrap().len() < 1 << 20
    };
    let mut paths: Vec<_> = folders.flat_map(files).filter(is_small).collect();
    paths.sort();
    paths
}

/// Makes the objects of `dump --format jsonl` from rows of `events`, and compares.
fn compare(bytes: &[u8], name: &str, seen: &mut BTreeMap<String, u64>) {
    let lines = dumped(bytes);
    let rows = objects(&all(bytes, "events"));
    let stacks = objects(&all(bytes, "frames"));
    let mut frames = BTreeMap::<i64, Vec<String>>::new();
    for frame in &stacks {
        let address = frame["address"].as_i64().unwrap() as u64;
        frames
            .entry(frame["stack_id"].as_i64().unwrap())
            .or_default()
            .push(format!("{address:#x}"));
    }
    assert_eq!(rows.len(), lines.len(), "{name}");
    for (row, line) in rows.iter().zip(&lines) {
        let mut made = Map::new();
        for (column, key) in MEMBERS {
            if let Some(value) = row.get(*column) {
                made.insert((*key).to_owned(), value.clone());
            }
        }
        made.insert(
            "time".to_owned(),
            iso(row["filetime"].as_i64().unwrap()).into(),
        );
        let hexadecimal = |column: &str| row.get(column)?.as_i64();
        if let Some(bits) = hexadecimal("keyword") {
            made.insert("keyword".to_owned(), format!("{:#x}", bits as u64).into());
        }
        if let Some(hook) = hexadecimal("hook") {
            made.insert("hook".to_owned(), format!("{hook:#06x}").into());
        }
        if let Some(fields) = row.get("fields") {
            let fields = serde_json::from_str(fields.as_str().unwrap()).unwrap();
            made.insert("fields".to_owned(), fields);
        }
        if row.get("payload_short") == Some(&Value::Bool(true)) {
            made.insert("payload_short".to_owned(), true.into());
        }
        let mut line = line.as_object().unwrap().clone();
        line.keys()
            .for_each(|key| *seen.entry(key.clone()).or_default() += 1);
        // The provider of `events` is the GUID where no name is known.
        if !line.contains_key("provider") && made.get("provider") == made.get("provider_guid") {
            made.remove("provider");
        }
        // Addresses are those of the stack with the same id, whose kernel part comes first.
        if let Some(stack) = line.remove("stack") {
            line.remove("stack_name");
            if let Some(id) = row.get("stack_id") {
                assert_eq!(
                    sorted(&frames[&id.as_i64().unwrap()]),
                    sorted(&words_of(&stack))
                );
            }
        }
        for key in made.keys().chain(line.keys()) {
            assert_eq!(
                made.get(key),
                line.get(key),
                "{key} of {name} at {}",
                row["sequence"]
            );
        }
    }
}

fn words_of(list: &Value) -> Vec<String> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

fn sorted(list: &[String]) -> Vec<String> {
    let mut list = list.to_vec();
    list.sort();
    list
}

/// Columns, and what `dump` calls them.
const MEMBERS: &[(&str, &str)] = &[
    ("cpu", "cpu"),
    ("kind", "kind"),
    ("pid", "pid"),
    ("process", "process"),
    ("tid", "tid"),
    ("thread", "thread"),
    ("provider_guid", "provider_guid"),
    ("provider", "provider"),
    ("id", "id"),
    ("version", "version"),
    ("opcode", "opcode"),
    ("opcode_name", "opcode_name"),
    ("task", "task"),
    ("task_name", "task_name"),
    ("level", "level"),
    ("level_name", "level_name"),
    ("activity", "activity"),
    ("related_activity", "related_activity"),
    ("user", "user"),
    ("session_id", "session_id"),
    ("event", "event"),
    ("payload_left", "payload_left"),
    ("message", "message"),
    ("payload_size", "payload_size"),
    ("payload_text", "payload_text"),
    ("timestamp", "timestamp"),
];

/// Rows as objects; what is null is left out.
fn objects(batches: &[RecordBatch]) -> Vec<Map<String, Value>> {
    let mut all = Vec::new();
    for batch in batches {
        let mut rows = vec![Map::new(); batch.num_rows()];
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            for (at, row) in rows
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| column.is_valid(*at))
            {
                row.insert(field.name().clone(), value(column, at));
            }
        }
        all.extend(rows);
    }
    all
}

fn value(column: &dyn Array, at: usize) -> Value {
    match column.data_type() {
        DataType::Boolean => column.as_boolean().value(at).into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(at).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(at).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(at).into(),
        DataType::Timestamp(..) => column
            .as_primitive::<TimestampMicrosecondType>()
            .value(at)
            .into(),
        DataType::Utf8 => column.as_string::<i32>().value(at).into(),
        DataType::Dictionary(..) => {
            let words = column.as_dictionary::<Int32Type>();
            words
                .values()
                .as_string::<i32>()
                .value(words.key(at).unwrap())
                .into()
        }
        DataType::Binary => column.as_binary::<i32>().value(at).into(),
        other => panic!("{other}"),
    }
}

/// Rows without the name of the trace.
fn rows_of(bytes: &[u8], table: &str) -> Vec<Value> {
    let mut rows = objects(&all(bytes, table));
    rows.iter_mut()
        .for_each(|row| assert_eq!(row.remove("trace"), Some("t".into())));
    rows.into_iter().map(Value::Object).collect()
}

/// An object without what is null or an empty text.
fn object(members: Value) -> Value {
    let Value::Object(mut members) = members else {
        panic!("an object")
    };
    members.retain(|_, value| !value.is_null() && value.as_str() != Some(""));
    Value::Object(members)
}

/// The values of what the tables about the machine say, against the machine of the analysis.
fn check_machine(bytes: &[u8]) {
    let mut recording = Recording::open([(bytes, "t")]).unwrap();
    let machine = Analysis::new()
        .names(true)
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

/// 1970-01-01 as a FILETIME.
const UNIX: i64 = 116_444_736_000_000_000;

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn tables_about_the_machine_have_the_values_of_the_analysis() {
    check_machine(&fs::read(trace(REAL)).unwrap());
}

fn iso(filetime: i64) -> String {
    etl_format::FileTime::new(filetime).to_string()
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
        .names(true)
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
    let profile = samples.profile(machine, &ProfileOptions::new().idle(true));
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
fn projection_and_filter_select_what_all_rows_have() {
    let bytes = fs::read(trace(REAL)).unwrap();
    let whole = all(&bytes, "events");
    let names = words(&whole, "event");
    let sequences = numbers(&whole, "sequence");
    let options = || {
        Options::new("t")
            .columns(["event", "sequence"])
            .batch_rows(1000)
    };
    let some = read(&bytes, "events", options());
    assert!(
        some.iter()
            .all(|batch| batch.num_rows() <= 1000 && batch.num_columns() == 2)
    );
    assert_eq!(words(&some, "event"), names);
    let conditions = Conditions::new(&["GC*"], &[], &[]).unwrap();
    let gc = read(&bytes, "events", options().events(conditions));
    let expected: Vec<_> = sequences
        .iter()
        .zip(&names)
        .filter(|(_, name)| name.as_ref().is_some_and(|name| name.starts_with("GC")))
        .map(|(sequence, _)| *sequence)
        .collect();
    assert!(expected.len() > 100);
    assert_eq!(numbers(&gc, "sequence"), expected);
    let filter = Filter {
        ids: vec![1],
        ..Filter::default()
    };
    let by_id = read(&bytes, "events", options().filter(filter));
    let expected: Vec<_> = sequences
        .iter()
        .zip(numbers(&whole, "id"))
        .filter(|(_, id)| *id == Some(1))
        .map(|(sequence, _)| *sequence)
        .collect();
    assert_eq!(numbers(&by_id, "sequence"), expected);
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn events_of_a_kind_have_their_fields_as_columns() {
    let bytes = fs::read(trace(REAL)).unwrap();
    let table = "Microsoft-Windows-DotNETRuntime.GCStart_V1";
    let typed = all(&bytes, table);
    let events = all(&bytes, "events");
    let of: Vec<Value> = words(&events, "event")
        .iter()
        .zip(texts(&events, "fields"))
        .filter(|(name, _)| name.as_deref() == Some("GCStart_V1"))
        .map(|(_, fields)| serde_json::from_str(&fields.unwrap()).unwrap())
        .collect();
    assert!(of.len() > 100);
    for field in ["Count", "Depth", "Reason", "Type", "ClrInstanceID"] {
        let expected: Vec<_> = of.iter().map(|fields| fields[field].as_i64()).collect();
        assert_eq!(numbers(&typed, field), expected, "{field}");
    }
    let names: Vec<_> = of
        .iter()
        .map(|fields| fields["Reason_name"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(words(&typed, "Reason_name"), names);
}

/// All that describe themselves share the schema of the description.
#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn events_of_a_kind_are_those_of_their_provider() {
    let bytes = fs::read(trace(REAL)).unwrap();
    let events = all(&bytes, "events");
    let providers = words(&events, "provider")
        .into_iter()
        .zip(words(&events, "event"));
    let expected = counts(providers.filter(|(_, name)| name.as_deref() == Some("ManifestData")));
    assert!(expected.len() > 2, "{expected:?}");
    for ((provider, name), count) in expected {
        let provider = provider.unwrap();
        let typed = all(&bytes, &format!("{provider}.{}", name.unwrap()));
        assert_eq!(rows(&typed) as u64, count, "{provider}");
    }
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

/// A source that counts the bytes that are read.
struct Counting {
    source: FileSource<Cursor<Vec<u8>>>,
    read: Arc<AtomicU64>,
}

impl Source for Counting {
    type Block = <FileSource<Cursor<Vec<u8>>> as Source>::Block;

    fn read(&mut self, offset: u64, len: usize, block: &mut Self::Block) -> io::Result<()> {
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        self.source.read(offset, len, block)
    }

    fn size(&self) -> Option<u64> {
        self.source.size()
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn trace_is_not_read_on_once_the_reader_is_dropped() {
    let bytes = fs::read(trace(REAL)).unwrap();
    let size = bytes.len() as u64;
    let open = || {
        let read = Arc::new(AtomicU64::new(0));
        let source = FileSource::new(Cursor::new(bytes.clone())).unwrap();
        let source = Counting {
            source,
            read: Arc::clone(&read),
        };
        (
            Reader::open(source, "samples", Options::new("t")).unwrap(),
            read,
        )
    };
    let (reader, read) = open();
    assert!(reader.map(Result::unwrap).count() > 0);
    assert!(
        read.load(Ordering::Relaxed) >= 2 * size,
        "a table of facts needs two passes"
    );

    let (reader, read) = open();
    drop(reader);
    // The thread has the source, and with it the other count.
    while Arc::strong_count(&read) > 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let read = read.load(Ordering::Relaxed);
    assert!(read < size, "{read} bytes of {size} were read");
}

#[test]
fn tables_and_columns_that_are_not_there_are_named() {
    let clock = Clock::assumed(Ticks::new(0));
    assert_eq!(clock.start_time, Clock::assumed(Ticks::new(0)).start_time);
    let empty = FileSource::new(Cursor::new(Vec::new())).unwrap();
    assert!(Reader::open(empty, "events", Options::new("t")).is_err());
    assert!(Table::named("nothing").is_none());
}

/// A text in lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 {
            let fits = column + 1 + length <= 100;
            out.push(if fits { ' ' } else { '\n' });
            column = if fits { column + 1 } else { 0 };
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// The page on tables, from the tables.
fn page() -> String {
    let mut page = format!(
        "# Columns of all tables\n\n{}\n\n{INTRODUCTION}\n",
        wrapped(&format!(
            "The tables that `etlkit export parquet` and `etlkit export arrow` write, that `etlkit \
         analyze` prints as JSON and CSV, and that the crate `etl-tables` returns. This is version \
         {SCHEMA_VERSION} of the tables; files have it as the metadata `etlkit.schema`. It changes \
         when a column changes its meaning or its type, or is removed."
        ))
    );
    for table in tables::ALL {
        page += &section(table, &table.data_set_columns());
    }
    page += TYPED;
    page += REPORTS;
    for table in tables::REPORTS {
        page += "\n";
        page += section(table, &table.columns()).trim_end();
        page.push('\n');
    }
    page
}

/// The part of the page on a table.
fn section(table: &Table, columns: &[Column]) -> String {
    let text = format!("{}. {}", table.row, table.about);
    let mut section = format!("## {}\n\n{}\n\n", table.name, wrapped(&text));
    section += "| column | type | content |\n|---|---|---|\n";
    for column in columns.iter().filter(|column| column.name != "trace") {
        let mut kind = column
            .kind
            .sql()
            .replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ");
        if !column.unit.is_empty() {
            kind += &format!(", {}", column.unit);
        }
        if column.nullable {
            kind += ", null";
        }
        let request = if column.on_request {
            " (on request)"
        } else {
            ""
        };
        section += &format!(
            "| `{}`{request} | {kind} | {} |\n",
            column.name, column.meaning
        );
    }
    section.push('\n');
    section
}

const INTRODUCTION: &str = "\
[tables.md](tables.md) describes data sets and units, and has questions with answers in SQL. In a
data set, each table also has the column `trace` (VARCHAR), the name of the trace: its file name
without the folder.

TIMESTAMPTZ is TIMESTAMP WITH TIME ZONE, in UTC. Addresses and keywords are unsigned numbers; signed
columns contain the same bits. `null` means that the value can be null.
";

const TYPED: &str = "\
## typed/Provider.Event

One event of this kind, if `--typed` is given. The columns are the first columns of `events`, from
`trace` to `thread`, then `version`, `activity`, and a column for each field of the event with the
name of the field. A name that differs from another column only in capital letters gets an
underscore.

| field | type |
|---|---|
| integers of 8 and 16 bits, signed integers of 32 bits | INTEGER |
| other integers, pointers | BIGINT |
| BOOL | BOOLEAN |
| float, double | DOUBLE |
| FILETIME, SYSTEMTIME | TIMESTAMPTZ |
| bytes | BLOB |
| text, GUIDs, SIDs, network addresses | VARCHAR |
| arrays, structures | VARCHAR, as JSON |

If the values of a field have names, as status codes do, there is also a column `FIELD_name`. Arrays
and structures are as in `fields` of `events`. The versions of an event share a table; a field that
a version does not have is null. If a field has two types in two versions, the column has the wider
type: BOOLEAN, INTEGER, BIGINT; or DOUBLE for INTEGER and DOUBLE; otherwise VARCHAR.

Another build of Windows, or of a provider, may log other versions of an event, so the tables of two
traces may have different columns. Read them by name: `union_by_name = true` in DuckDB,
`missing_columns=\"insert\"` in Polars.
";

const REPORTS: &str = "
# Tables of reports

Tables that only `etlkit analyze` has, in the JSON of one kind of report: `gc.processes` is the
member `processes` of the report `gc`. The member `rows` of `cpu`, and of `waits` and `contention`
with options for stacks, is one of the tables `cpu.VIEW.rows`: `cpu` has the numbers of samples,
the others have the numbers of waits.
";

#[test]
fn page_lists_all_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/columns.md");
    let page = page();
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        page,
        "ETLKIT_WRITE_DOCS=1 writes it again"
    );
}

/// All tables with their columns.
fn declared() -> Vec<(&'static str, Vec<Column>)> {
    let of_data_sets = tables::ALL
        .iter()
        .map(|table| (table.name, table.data_set_columns()));
    let of_reports = tables::REPORTS
        .iter()
        .map(|table| (table.name, table.columns()));
    of_data_sets.chain(of_reports).collect()
}

#[test]
fn names_are_plain_and_come_once() {
    let all = declared();
    let tables = counts(all.iter().map(|(name, _)| *name));
    assert!(tables.values().all(|&count| count == 1), "{tables:?}");
    for (table, columns) in all {
        let names = counts(columns.iter().map(|column| column.name));
        assert!(names.values().all(|&count| count == 1), "{table}");
        let plain = |name: &str| {
            name.chars()
                .all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c))
        };
        assert!(names.keys().all(|name| plain(name)), "{table}");
        assert!(
            columns.iter().all(|column| !column.meaning.is_empty()),
            "{table}"
        );
    }
}

#[test]
fn a_name_has_one_type_and_one_unit_in_all_tables() {
    let mut known = BTreeMap::new();
    for (table, columns) in declared() {
        for column in columns {
            let new = (column.kind.sql(), column.unit, table);
            let (sql, unit, first) = *known.entry(column.name).or_insert(new);
            assert_eq!(
                (new.0, new.1),
                (sql, unit),
                "{} of {table} and {first}",
                column.name
            );
        }
    }
}

#[test]
fn names_of_numbers_end_with_their_units() {
    /// The words of `dump`.
    const DUMP: [&str; 2] = ["payload_size", "payload_left"];
    const ENDS: [(&str, &str); 6] = [
        ("µs", "_us"),
        ("bytes", "bytes"),
        ("%", "_percent"),
        ("1/s", "_per_second"),
        ("bytes/s", "_bytes_per_second"),
        ("Hz", "_hz"),
    ];
    for (table, columns) in declared() {
        for column in columns.iter().filter(|column| !DUMP.contains(&column.name)) {
            for (unit, end) in ENDS {
                let has_unit = column.unit == unit;
                // "bytes" of "bytes/s" is another unit.
                if has_unit || unit != "1/s" {
                    assert_eq!(
                        column.name.ends_with(end),
                        has_unit,
                        "{} of {table}",
                        column.name
                    );
                }
            }
        }
    }
}

#[test]
fn fields_of_arrow_have_the_unit_and_the_meaning() {
    let schema = tables::GCS.schema();
    let pause = schema.field_with_name("pause_us").unwrap();
    assert_eq!(pause.metadata()["unit"], "µs");
    assert!(pause.metadata()["meaning"].starts_with("For how long"));
    assert!(
        !schema
            .field_with_name("number")
            .unwrap()
            .metadata()
            .contains_key("unit")
    );
}

#[test]
fn columns_of_parquet_have_the_unit_and_the_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = described_late();
    let hash = dataset::hash(&mut bytes.as_slice()).unwrap();
    let dataset = Dataset::open(folder.path())
        .unwrap()
        .tables(&["gcs"])
        .unwrap();
    let added = dataset
        .add(
            bytes.as_slice(),
            "late.etl",
            &hash,
            Options::new("late.etl"),
        )
        .unwrap();
    let Added::Written { trace, .. } = added else {
        panic!("{added:?}")
    };
    let path = folder
        .path()
        .join(format!("gcs/trace={trace}/part-0.parquet"));
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    let heap = reader
        .schema()
        .field_with_name("heap_bytes")
        .unwrap()
        .clone();
    assert_eq!(heap.metadata()["unit"], "bytes");
    assert_eq!(
        heap.metadata()["meaning"],
        "Size of all generations when it ended"
    );
}
