//! Compares a trace with the event log that Windows made of it: every number, name and value.

use etl_format::read::Header;
use etl_schema::decode::Value;
use etl_schema::render;
use etl_test_support::{foreign, needs, trace};
use serde_json::json;

/// Whether a value is what the event log has as text. Numbers are decimal or hexadecimal there,
/// bytes are hexadecimal.
fn equal(value: Value<'_>, theirs: &str) -> bool {
    let number = || match theirs.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => theirs.parse().ok(),
    };
    match value {
        Value::Binary(bytes) => {
            let mut digits = Vec::new();
            render::hex_bytes(&mut digits, bytes);
            String::from_utf8(digits)
                .unwrap()
                .eq_ignore_ascii_case(theirs)
        }
        Value::UInt(n) | Value::Pointer(n) => number() == Some(n),
        Value::Int(n) => theirs.parse() == Ok(n),
        Value::Bool(b) => theirs == if b { "true" } else { "false" },
        Value::Guid(guid) => theirs
            .trim_matches(['{', '}'])
            .eq_ignore_ascii_case(&guid.to_string()),
        Value::Utf16(text) => text.to_string() == theirs,
        Value::Ansi(text) => text == theirs.as_bytes(),
        _ => false,
    }
}

#[needs(traces, python)]
#[test]
fn http_service_has_the_events_of_its_event_log() {
    let logs = foreign("evtx_events.py", &[trace("tx/HTTP_Server.evtx")]);
    let theirs = logs[0].as_array().unwrap();
    let mut trace = etl_events::open(trace("tx/HTTP_Server.etl")).unwrap();
    let mut reader = trace.events().without_names();
    let (mut events, mut fields_seen, mut not_rendered) = (0, 0, 0);
    while let Some(event) = reader.next().unwrap() {
        let record = event.record();
        let Header::Event(header) = record.header() else {
            continue;
        };
        let their = &theirs[events];
        let d = header.descriptor;
        let numbers = json!([d.id, d.version, d.level, d.task, d.opcode, d.keyword]);
        assert_eq!(numbers, their["numbers"], "event {events}");
        let ids = json!([record.process_id(), record.thread_id(), record.processor()]);
        assert_eq!(ids, their["ids"], "event {events}");
        // The reader of the log cuts times to microseconds.
        let time = event.time().to_string();
        let their_time = their["time"].as_str().unwrap().trim_end_matches('Z');
        assert!(
            time.starts_with(their_time),
            "event {events}: {time}, not {their_time}"
        );
        let activity = if header.activity.is_zero() {
            String::new()
        } else {
            header.activity.to_string()
        };
        let their_activity = their["activity"].as_str().unwrap();
        assert!(
            activity == their_activity
                || activity.is_empty() && their_activity.trim_matches(['0', '-']).is_empty(),
            "event {events}: {activity}, not {their_activity}"
        );

        let mut fields = event.fields().unwrap();
        let schema = fields.schema();
        assert!(!schema.name.is_empty());
        events += 1;
        if let Some(payload) = their["payload"].as_str() {
            // Windows did not render these: their last text has no NUL, but ends with the payload.
            let mut digits = Vec::new();
            render::hex_bytes(&mut digits, record.payload());
            assert!(
                digits.eq_ignore_ascii_case(payload.as_bytes()),
                "event {events}"
            );
            not_rendered += 1;
            continue;
        }
        let data = their["data"].as_array().unwrap();
        for (at, (field, value)) in fields.by_ref().enumerate() {
            let (name, text) = (data[at][0].as_str().unwrap(), data[at][1].as_str().unwrap());
            assert_eq!(field.name, name, "event {events}, {}", schema.name);
            assert!(
                equal(value, text),
                "event {events}, {}: {name} is {value:?}, not {text}",
                schema.name
            );
            fields_seen += 1;
        }
        assert!(fields.note().is_exact());
        assert_eq!(
            data.len(),
            schema.fields.len(),
            "event {events}, {}",
            schema.name
        );
    }
    assert_eq!(events, theirs.len());
    assert_eq!(not_rendered, 291);
    assert!(
        events == 2_041 && fields_seen > 4_000,
        "{events} events, {fields_seen} fields"
    );
}
