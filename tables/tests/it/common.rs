//! Helpers: tables of a trace as lists of values, and small traces made by the writer.

use std::collections::BTreeMap;
use std::io::Cursor;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::DataType;
use etl_format::constants::EventFlags;
use etl_format::read::FileSource;
use etl_format::write::Session;
use etl_format::write::record::Event;
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid};
use etl_tables::{Options, Reader};
use serde_json::{Map, Value};

/// A trace of all kinds: samples with stacks, .NET, collections, input and output.
pub const REAL: &str = "perfview/net.4.5.2.x64.etl";

/// 1970-01-01 as a FILETIME.
pub const UNIX: i64 = 116_444_736_000_000_000;

pub fn read(bytes: &[u8], table: &str, options: Options) -> Vec<RecordBatch> {
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

pub fn all(bytes: &[u8], table: &str) -> Vec<RecordBatch> {
    read(bytes, table, Options::new("t"))
}

pub fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// The values of a column of words.
pub fn words(batches: &[RecordBatch], column: &str) -> Vec<Option<String>> {
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

pub fn texts(batches: &[RecordBatch], column: &str) -> Vec<Option<String>> {
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

pub fn numbers(batches: &[RecordBatch], column: &str) -> Vec<Option<i64>> {
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

pub fn sum(batches: &[RecordBatch], column: &str) -> i64 {
    numbers(batches, column).iter().flatten().sum()
}

pub fn counts<T: Ord>(values: impl IntoIterator<Item = T>) -> BTreeMap<T, u64> {
    let mut counts = BTreeMap::new();
    values
        .into_iter()
        .for_each(|value| *counts.entry(value).or_default() += 1);
    counts
}

/// Rows as objects, without members that are null.
pub fn objects(batches: &[RecordBatch]) -> Vec<Map<String, Value>> {
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
pub fn rows_of(bytes: &[u8], table: &str) -> Vec<Value> {
    let mut rows = objects(&all(bytes, table));
    rows.iter_mut()
        .for_each(|row| assert_eq!(row.remove("trace"), Some("t".into())));
    rows.into_iter().map(Value::Object).collect()
}

pub fn iso(filetime: i64) -> String {
    etl_format::FileTime::new(filetime).to_string()
}

/// An event, the manifest of its `EventSource`, and the event again.
pub fn described_late() -> Vec<u8> {
    described(
        r#"<data name="N" inType="win:UInt32"/>"#,
        [&[5, 0, 0, 0], &[6, 0, 0, 0]],
    )
}

/// An event with these fields, the manifest of its `EventSource`, and another event.
pub fn described(fields: &str, [before, after]: [&[u8]; 2]) -> Vec<u8> {
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
pub fn undescribed() -> Vec<u8> {
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
