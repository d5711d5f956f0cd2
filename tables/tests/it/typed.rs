//! Tables of the events of one kind.

use std::fs;

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
