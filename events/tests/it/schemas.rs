//! Schemas that are in the trace after the events that need them.

use crate::common::{Made, PROVIDER, open, trace};
use etl_events::EventDecoder;
use etl_events::schemas;
use etl_format::read::Order;
use etl_schema::store::SchemaStore;

/// The event by which an `EventSource` logs its manifest, with the names of its events.
fn manifest(timestamp: i64, names: &[(u16, &str)]) -> Made {
    let events: String = (names.iter())
        .map(|(id, name)| format!(r#"<event value="{id}" symbol="{name}"/>"#))
        .collect();
    let text = format!(
        r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
        <instrumentation><events><provider name="Late" guid="{{{PROVIDER}}}" symbol="L">
        <events>{events}</events></provider></events></instrumentation></instrumentationManifest>"#
    );
    let payload = [&[1, 1, 0, 0x5b, 1, 0, 0, 0], text.as_bytes()].concat();
    Made::new(timestamp, 0xfffe, &payload)
}

#[test]
fn event_has_the_last_schema_before_it_or_the_first_after_it() {
    let file = trace(&[
        Made::new(2_000, 7, b""),
        Made::new(2_001, 8, b""),
        manifest(2_002, &[(7, "First")]),
        Made::new(2_003, 7, b""),
        manifest(2_004, &[(7, "Second"), (8, "Other")]),
        Made::new(2_005, 7, b""),
        // The first manifest again, as when its process is asked for it once more.
        manifest(2_006, &[(7, "First")]),
        Made::new(2_007, 7, b""),
    ]);
    let mut trace = open(&file);
    let known = SchemaStore::default();
    let store = schemas::read(&mut trace.records(Order::Time).unwrap(), known).unwrap();
    let mut decoder = EventDecoder::new(trace.clock(), store);
    let mut records = trace.records(Order::Time).unwrap();
    let mut names = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        let event = decoder.event(&record);
        if record.is_event() && event.id().is_some_and(|id| id < 9) {
            names.push(event.name().to_owned());
        }
    }
    assert_eq!(names, ["First", "Other", "First", "Second", "First"]);
}
