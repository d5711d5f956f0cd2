//! Streams that the tests make.

use etl_events::eventpipe::{ConvertError, ConvertOptions, convert};
use etl_format::Guid;
use etl_format::read::{Note, Options, Order, Trace};
use etl_nettrace::Mode;

use super::write::{
    self, BlockStream, EventRow, ObjectStream, START_TICKS, block_kind, field, metadata_blob,
    sample, sample_of_version_6, utf8, utf16,
};
use super::{Converted, converted, fields_text};

/// The lines of all events: name and fields.
fn lines(trace: Vec<u8>) -> Vec<String> {
    let mut trace = etl_events::from_bytes(trace).unwrap();
    let mut events = trace.events().provider("Contoso-Web");
    let mut lines = Vec::new();
    while let Some(event) = events.next().unwrap() {
        lines.push(format!("{} {}", event.name(), fields_text(&event)));
    }
    lines
}

fn event(sequence: u32, payload: &[u8]) -> EventRow {
    EventRow {
        metadata: 1,
        sequence,
        capture_thread: 31,
        processor: u32::MAX,
        thread: 31,
        time: START_TICKS + 1_000 * u64::from(sequence),
        payload: payload.to_vec(),
        ..EventRow::default()
    }
}

/// A stream of version 4 whose events have these fields: type and name.
fn stream_of(fields: &[(u32, &str)], events: &[EventRow]) -> ObjectStream {
    let mut blob = metadata_blob(1, "Contoso-Web", 7, "Served");
    blob.extend((fields.len() as u32).to_le_bytes());
    for (code, name) in fields {
        blob.extend(field(*code, name));
    }
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[blob]).events(events);
    stream
}

#[test]
fn an_event_keeps_its_parts() {
    let Converted { trace, report } = converted(&sample());
    assert_eq!((report.events, report.events_lost), (2, 3));
    assert_eq!(report.process_id, Some(4711));
    let mut trace = etl_events::from_bytes(trace).unwrap();
    let mut events = trace.events().provider("Contoso-Web");
    let event = events.next().unwrap().unwrap();
    assert_eq!(event.provider(), "Contoso-Web");
    let guid = etl_schema::sources::provider_guid("Contoso-Web");
    assert_eq!(event.provider_guid(), Some(guid));
    assert_eq!((event.id(), event.name()), (Some(7), "RequestStart"));
    assert_eq!((event.level(), event.opcode()), (Some(4), Some(1)));
    // Without the bits of the session.
    assert_eq!(event.keyword(), Some(1));
    assert_eq!(fields_text(&event), "Count=42 Path=/");
    assert_eq!(event.stack().collect::<Vec<_>>(), [0x7f01, 0x7f02]);
    assert_eq!(event.time().to_string(), "2026-11-28T09:26:22.2030000Z");
    let event = events.next().unwrap().unwrap();
    assert_eq!(event.activity(), Some(Guid::from_bytes([7; 16])));
}

#[test]
fn a_cut_stream_is_an_unclosed_trace_with_all_its_events() {
    let stream = sample();
    let cut = stream.len() - 1;
    let Converted { trace, report } = converted(&stream[..cut]);
    assert_eq!((report.events, report.cut_offset), (2, Some(cut as u64)));
    assert_eq!(lines(trace.clone()).len(), 2);
    let trace = Trace::open(trace.as_slice(), &Options::default()).unwrap();
    assert!(!trace.header().is_closed());
    // The end is missing, but nothing before it.
    assert_eq!(report.damage_before_cut().count(), 0);
    let is_loss = |note: &Note| matches!(note, Note::BufferLostBefore { .. });
    assert!(!trace.notes().iter().any(is_loss), "{:?}", trace.notes());
}

#[test]
fn a_stream_without_events_is_a_closed_trace() {
    let Converted { trace, report } = converted(&ObjectStream::new(8).finish());
    assert_eq!((report.events, report.is_complete), (0, true));
    let trace = Trace::open(trace.as_slice(), &Options::default()).unwrap();
    assert!(trace.header().is_closed());
}

#[test]
fn an_event_later_in_the_stream_keeps_its_earlier_time() {
    let mut stream = stream_of(&[], &[event(5, &[]), event(6, &[])]);
    stream.block("SPBlock", &write::sequence_point(START_TICKS + 9_000, &[]));
    // No writer puts an event after a sequence point that is later.
    stream.events(&[event(2, &[]), event(7, &[])]);
    let Converted { trace, report } = converted(&stream.finish());
    assert_eq!(report.events, 4);
    let mut trace = Trace::open(trace.as_slice(), &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut times = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if record.is_event() {
            times.push(record.timestamp().get() - START_TICKS as i64);
        }
    }
    assert_eq!(times, [2_000, 5_000, 6_000, 7_000]);
}

#[test]
fn labels_replace_what_metadata_state() {
    let Converted { trace, .. } = converted(&sample_of_version_6());
    let mut trace = etl_events::from_bytes(trace).unwrap();
    let mut events = trace.events().provider("Contoso-Web");
    let event = events.next().unwrap().unwrap();
    assert_eq!((event.level(), event.opcode()), (Some(3), Some(10)));
    assert_eq!(event.activity(), Some(Guid::from_bytes([9; 16])));
}

#[test]
fn addresses_of_four_bytes_are_a_narrow_stack() {
    let mut stream = ObjectStream::new(4);
    stream.metadata(&[metadata_blob(1, "Contoso-Web", 7, "Served")]);
    stream.block(
        "StackBlock",
        &write::stack_block(1, 4, &[&[0x1234, 0x5678]]),
    );
    stream.events(&[EventRow {
        stack: 1,
        ..event(1, &[])
    }]);
    let Converted { trace, .. } = converted(&stream.finish());
    let mut trace = etl_events::from_bytes(trace).unwrap();
    let mut events = trace.events().provider("Contoso-Web");
    let event = events.next().unwrap().unwrap();
    assert_eq!(event.stack().collect::<Vec<_>>(), [0x1234, 0x5678]);
}

#[test]
fn fields_are_described_up_to_one_of_unknown_size() {
    let payload = [&7u32.to_le_bytes()[..], &[9; 16], &1u32.to_le_bytes()].concat();
    let fields = [(10, "Count"), (16, "When"), (10, "Size")];
    let stream = stream_of(&fields, &[event(1, &payload)]).finish();
    let Converted { trace, report } = converted(&stream);
    assert_eq!((report.events, report.undescribed), (1, 1));
    let lines = lines(trace);
    assert!(lines[0].starts_with("Served Count=7"), "{lines:?}");
}

#[test]
fn an_event_that_does_not_fit_into_a_record_is_lost() {
    let text = utf16(&"a".repeat(40_000));
    let rows = [
        event(1, &utf16("a")),
        event(2, &text),
        event(3, &utf16("b")),
    ];
    let Converted { trace, report } = converted(&stream_of(&[(18, "Text")], &rows).finish());
    assert_eq!(
        (report.events, report.too_long, report.events_lost),
        (2, 1, 1)
    );
    assert_eq!(lines(trace), ["Served Text=a", "Served Text=b"]);
}

#[test]
fn a_damaged_block_is_a_lost_buffer() {
    let mut stream = stream_of(&[(10, "Count")], &[event(1, &1u32.to_le_bytes())]);
    stream.block("EventBlock", &[20, 0, 1, 0, 9]);
    stream.events(&[event(2, &2u32.to_le_bytes())]);
    let stream = stream.finish();
    let Converted { trace, report } = converted(&stream);
    assert_eq!((report.events, report.damage.len()), (2, 1));
    let trace = Trace::open(trace.as_slice(), &Options::default()).unwrap();
    assert_eq!(trace.header().buffers_lost, 1);
    let is_loss = |note: &Note| matches!(note, Note::BufferLostBefore { .. });
    assert!(trace.notes().iter().any(is_loss), "{:?}", trace.notes());

    let mut options = ConvertOptions::default();
    options.mode = Mode::Strict;
    let error = convert(stream.as_slice(), Vec::new(), &options).unwrap_err();
    let ConvertError::Read(error) = error else {
        panic!("{error}")
    };
    assert_eq!(error.offset, report.damage[0].error.offset);
}

#[test]
fn types_of_version_6_are_encoded_again() {
    // A row of metadata: id, provider, event id, name, fields, options.
    let mut row = vec![1];
    row.extend(utf8("Contoso-Web"));
    row.push(7);
    row.extend(utf8("Served"));
    let fields: [(&str, &[u8]); 6] = [
        ("Delta", &[20]),
        ("Size", &[21]),
        ("Pair", &[22, 6, 2, 0]),
        ("Path", &[19, 23]),
        ("Agent", &[24, 23]),
        ("IsHit", &[26]),
    ];
    row.extend((fields.len() as u16).to_le_bytes());
    for (name, code) in fields {
        let content = [&utf8(name), code].concat();
        row.extend((content.len() as u16).to_le_bytes());
        row.extend(content);
    }
    row.extend(0u16.to_le_bytes());
    let mut thread = vec![31];
    thread.extend([2, 77, 3, 78]);
    let mut stream = BlockStream::new(8);
    stream.rows(block_kind::METADATA, &0u16.to_le_bytes(), &[row]);
    stream.rows(block_kind::THREADS, &[], &[thread]);
    let payload = b"\x03\x80\x01\x05\x06\x03\0abc\x01\0\x02\0\x01xy";
    stream.events(&[EventRow {
        processor: 1,
        ..event(1, payload)
    }]);
    let Converted { trace, report } = converted(&stream.finish());
    assert_eq!((report.events, report.undescribed), (1, 0));
    let mut trace = etl_events::from_bytes(trace).unwrap();
    let mut events = trace.events().provider("Contoso-Web");
    let event = events.next().unwrap().unwrap();
    let text = fields_text(&event);
    assert_eq!(
        text,
        "Delta=-2 Size=128 Pair=[5,6] Path=abc Agent=xy IsHit=true"
    );
    assert_eq!(event.pid().unwrap().get(), 77);
    assert_eq!((event.tid().unwrap().get(), event.cpu()), (78, 1));
}
