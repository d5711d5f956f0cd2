//! Rows of `events` against `dump`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use etl_events::EventDecoder;
use etl_events::conditions::Conditions;
use etl_events::context::{Code, Context, machine};
use etl_events::rows::{Format, RowWriter};
use etl_events::schemas::SchemasOfTraces;
use etl_format::read::{Options as ReadOptions, Order, OrderCheck, Trace};
use etl_schema::store::SchemaStore;
use etl_tables::Options;
use etl_test_support::{needs, trace, traces};
use serde_json::{Map, Value, json};

use crate::common::{
    REAL, all, described, described_late, iso, numbers, objects, read, rows, texts, undescribed,
    words,
};

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

#[test]
fn events_before_their_schema_are_decoded() {
    let bytes = described_late();
    let stepped = Conditions::new(&["Stepped"], &[], &[]).unwrap();
    let rows = |table: &str| {
        read(
            &bytes,
            table,
            Options::new("t").events(stepped.clone()).without_names(),
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
        // Some files are not traces, or damaged for other tests.
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

/// The paths of small real traces.
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
        // The provider of `events` is the GUID if no name is known.
        if !line.contains_key("provider") && made.get("provider") == made.get("provider_guid") {
            made.remove("provider");
        }
        // The stack with the same id has the same addresses, with the part of the kernel first.
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

/// Columns, and their names in `dump`.
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
    ("channel_name", "channel_name"),
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
