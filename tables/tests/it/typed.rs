//! Tables of the events of one kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Cursor;

use arrow_array::RecordBatchReader;
use arrow_schema::SchemaRef;
use etl_format::read::FileSource;
use etl_tables::{Options, Reader};
use etl_test_support::{needs, trace};
use serde_json::Value;

use crate::common::{REAL, all, counts, numbers, rows, texts, words};

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

/// The events that define schemas have the same schema for all providers.
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

/// The names of the typed tables of a trace.
fn tables_of(bytes: &[u8]) -> BTreeSet<String> {
    let events = all(bytes, "events");
    let names = words(&events, "provider")
        .into_iter()
        .zip(words(&events, "event"));
    let mut tables = BTreeSet::new();
    for (provider, event) in names {
        if let (Some(provider), Some(event)) = (provider, event) {
            tables.insert(format!("{provider}.{event}"));
        }
    }
    tables
}

fn schema_of(bytes: &[u8], table: &str) -> Option<SchemaRef> {
    let source = FileSource::new(Cursor::new(bytes.to_vec())).unwrap();
    let reader = Reader::open(source, table, Options::new("t")).ok()?;
    Some(reader.schema())
}

/// The types and names of columns do not depend on the versions that a trace happens to have: these
/// are of 32-bit and 64-bit machines from Windows Vista to 10.
#[needs(traces)]
#[test]
fn columns_of_described_events_are_the_same_in_all_traces() {
    let mut traces = Vec::new();
    for name in [
        "syzygy/test_data_32_v0.etl",
        "syzygy/image_data_32_v1.etl",
        "syzygy/process_data_64_v2.etl",
        "perfview/diaghub.kernel.1.etl",
    ] {
        let bytes = fs::read(trace(name)).unwrap();
        let tables = tables_of(&bytes);
        traces.push((name, bytes, tables));
    }
    let mut schemas: BTreeMap<String, SchemaRef> = BTreeMap::new();
    let mut compared = BTreeSet::new();
    for (name, bytes, tables) in &traces {
        for table in tables {
            let holders = traces.iter().filter(|(_, _, of)| of.contains(table));
            if holders.count() < 2 {
                continue;
            }
            let Some(schema) = schema_of(bytes, table) else {
                continue;
            };
            match schemas.get(table) {
                Some(other) => {
                    assert_eq!(*other, schema, "{name}: {table}");
                    compared.insert(table.clone());
                }
                None => {
                    schemas.insert(table.clone(), schema);
                }
            }
        }
    }
    for expected in ["Image.DCStart", "Image.Load", "Process.DCStart"] {
        assert!(compared.contains(expected), "{expected}: {compared:?}");
    }
}
