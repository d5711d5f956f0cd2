//! One event as a row of each form.

use crate::common::{Made, PROVIDER, header, open, trace};
use etl_events::conditions::Conditions;
use etl_events::filter::Filter;
use etl_events::rows::{Columns, Format, RowWriter};
use etl_events::{EventDecoder, Selection};
use etl_format::constants::{EventFlags, ExtendedType};
use etl_format::read::Order;
use etl_format::write::record::{Event, Extended, Full, Instance};
use etl_format::write::{Session, SessionConfig};
use etl_format::{EventDescriptor, Guid};
use etl_schema::store::SchemaStore;
use etl_schema::{Count, EventSchema, Field, Identity, InType, SchemaSource};

/// GCStart_V1 of the CLR.
fn file() -> Vec<u8> {
    let words: Vec<u8> = [7u32, 1, 0, 0]
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    let mut event = Made::new(2_000, 1, &[words, vec![9, 0]].concat());
    event.provider = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse().unwrap();
    event.version = 1;
    trace(&[event])
}

fn written(writer: impl FnOnce(RowWriter) -> RowWriter, format: Format) -> String {
    let file = file();
    let mut trace = open(&file);
    let mut decoder = EventDecoder::new(trace.clock(), SchemaStore::default());
    let mut rows = writer(RowWriter::new(format));
    let mut out = Vec::new();
    rows.begin(&mut out);
    let filter = Filter::of_providers(["Microsoft-Windows-DotNETRuntime"]);
    let selection = Selection::default().filter(filter);
    let mut records = trace.records(Order::Time).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        if let Some(event) = decoder.select(&record, &selection) {
            rows.write(&mut out, &event);
        }
    }
    rows.end(&mut out);
    String::from_utf8(out).unwrap()
}

/// Twelve texts, then a text with a quote and a byte that is not UTF-8, and again `Text`.
fn texts() -> (Vec<u8>, SchemaStore) {
    let id = Identity::Modern { id: 5, version: 0 };
    let mut schema = EventSchema::new(PROVIDER, id, SchemaSource::Manifest);
    schema.name = "Texts".into();
    schema.fields = vec![
        Field::new("Items", InType::Ansi).with_count(Count::Const(12)),
        Field::new("Text", InType::Ansi),
        Field::new("Text", InType::Ansi),
    ];
    let mut payload: Vec<u8> = (0..12)
        .flat_map(|at| format!("item{at:02}\0").into_bytes())
        .collect();
    payload.extend(b"say \"hi\" caf\xe9\0other\0");
    let mut store = SchemaStore::default();
    store.add_schemas([schema]);
    (trace(&[Made::new(2_000, 5, &payload)]), store)
}

#[test]
fn text_is_found_in_any_value_as_it_is() {
    let (file, store) = texts();
    let finds = |text: &str| {
        let mut trace = open(&file);
        let conditions = Conditions::new::<&str>(&[], &[], &[text]).unwrap();
        let filter = Filter::of_providers([&*PROVIDER.to_string()]);
        let selection = Selection::default().filter(filter).conditions(conditions);
        let mut decoder = EventDecoder::new(trace.clock(), store.clone());
        let mut records = trace.records(Order::Time).unwrap();
        let mut found = false;
        while let Some(record) = records.next_record().unwrap() {
            found |= decoder.select(&record, &selection).is_some();
        }
        found
    };
    for text in ["item00", "ITEM11", "say \"hi", "café", "other"] {
        assert!(finds(text), "{text}");
    }
    for text in ["item12", "Items", "item00item01", "caf\\xe9"] {
        assert!(!finds(text), "{text}");
    }
}

#[test]
fn time_is_compared_as_a_time_and_as_seconds() {
    // 2 ms after the start of the trace at 2022-06-18T04:26:40Z.
    let file = trace(&[Made::new(1_000 + 20_000, 5, &[])]);
    let holds = |condition: &str| {
        let mut trace = open(&file);
        let conditions = Conditions::new(&[], &[condition], &[]).unwrap();
        let selection = Selection::default().conditions(conditions);
        let mut decoder = EventDecoder::new(trace.clock(), SchemaStore::default());
        let mut records = trace.records(Order::Time).unwrap();
        let mut held = false;
        while let Some(record) = records.next_record().unwrap() {
            held |= record.is_event() && decoder.select(&record, &selection).is_some();
        }
        held
    };
    for condition in [
        "time >= 2022-06-18T04:26:40Z",
        "time = 2022-06-18T04:26:40.002Z",
        "time < 2022-06-18T05:26:41+01:00",
        "time > 0.001",
        "time = 0.002",
        "time < 10",
        "time ~ 2022-06-18*",
        "time ~ 0.002*",
    ] {
        assert!(holds(condition), "{condition}");
    }
    for condition in [
        "time > 2022-06-18T04:26:41Z",
        "time < 0.002",
        "time > 10.0.0.1",
    ] {
        assert!(!holds(condition), "{condition}");
    }
}

#[test]
fn csv_has_a_column_for_each_field_of_one_name() {
    let (file, store) = texts();
    let mut trace = open(&file);
    let mut decoder = EventDecoder::new(trace.clock(), store);
    let mut rows = RowWriter::new(Format::Csv);
    let filter = Filter::of_providers([&*PROVIDER.to_string()]);
    let selection = Selection::default().filter(filter);
    let mut out = Vec::new();
    for is_header in [true, false] {
        let mut records = trace.records(Order::Time).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            let Some(event) = decoder.select(&record, &selection) else {
                continue;
            };
            if is_header {
                rows.learn_columns(&event);
            } else {
                rows.write(&mut out, &event);
            }
        }
        if is_header {
            rows.begin(&mut out);
        }
    }
    let out = String::from_utf8(out).unwrap();
    let (header, row) = out.split_once('\n').unwrap();
    assert!(header.contains(",Items,Text,Text#2,message"), "{header}");
    assert!(
        row.contains("item11]\",\"say \"\"hi\"\" café\",other,"),
        "{row}"
    );
}

#[test]
fn text_shows_header_and_fields() {
    let text = written(|rows| rows, Format::Text);
    assert!(
        text.contains("  cpu 0  pid 100 tid 101  EVENT64 Microsoft-Windows-DotNETRuntime id 1 v1")
    );
    assert!(text.contains(" Count=7 Depth=1 "), "{text}");
}

#[test]
fn json_has_one_object_per_event() {
    let text = written(|rows| rows, Format::JsonLines);
    let guid = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
    let named = "\"provider\":\"Microsoft-Windows-DotNETRuntime\"";
    assert!(
        text.starts_with("{\"time\":\"") && text.ends_with(",\"payload_size\":18}\n"),
        "{text}"
    );
    assert!(text.contains(",\"timestamp\":2000,\"cpu\":0,\"kind\":\"EVENT64\",\"pid\":100,"));
    assert!(
        text.contains(&format!(",\"provider_guid\":\"{guid}\",{named},\"id\":1,")),
        "{text}"
    );
    assert!(
        text.contains("\"fields\":{\"Count\":7,\"Depth\":1,"),
        "{text}"
    );
}

/// An INSTANCE record, and an event with two stacks, the key of its process, and an instance.
fn with_items() -> Vec<u8> {
    let full = Full::new(PROVIDER, 1, 2_000)
        .version(3)
        .level(2)
        .process(100, 101);
    let ids = (77, 78, Guid::new(9, 1, 2, [3; 8]));
    let instance = Instance::new(full, ids.0).parent(ids.2, ids.1);
    let info = [
        &11u32.to_le_bytes()[..],
        &12u32.to_le_bytes(),
        &ids.2.to_bytes(),
    ]
    .concat();
    let extended = [
        Extended::Stack64 {
            match_id: 0,
            addresses: &[1, 2],
        },
        Extended::Other(ExtendedType::INSTANCE_INFO, &info),
        Extended::Other(ExtendedType::PROCESS_START_KEY, &[5, 0, 0, 0, 0, 0, 1, 0]),
        Extended::Stack64 {
            match_id: 7,
            addresses: &[3],
        },
    ];
    let event = Event::new(
        PROVIDER,
        EventDescriptor {
            id: 5,
            ..EventDescriptor::default()
        },
        2_001,
    )
    .flags(EventFlags(0x40))
    .process(100, 101)
    .extended(&extended);
    let config = SessionConfig::new(header());
    let mut session = Session::in_memory(config).unwrap();
    session.write(0, &instance).unwrap();
    session.write(0, &event).unwrap();
    session.close(Some(header().end_time)).unwrap().output
}

#[test]
fn json_has_one_stack_and_all_ids_of_items_and_instances() {
    let file = with_items();
    let mut trace = open(&file);
    let mut lines = Vec::new();
    for format in [Format::JsonLines, Format::Text] {
        let mut decoder = EventDecoder::new(trace.clock(), SchemaStore::default());
        let mut rows = RowWriter::new(format);
        let mut records = trace.records(Order::Time).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            let mut out = Vec::new();
            if !record.is_kernel() {
                rows.write(&mut out, &decoder.event(&record));
                lines.push(String::from_utf8(out).unwrap());
            }
        }
    }
    let parent = "\"parent_class\":\"00000009-0001-0002-0303-030303030303\"";
    let instance = format!(",\"instance_id\":77,\"parent_instance_id\":78,{parent},\"event\"");
    assert!(lines[0].contains(&instance), "{}", lines[0]);
    let items = format!(
        ",\"instance_id\":11,\"parent_instance_id\":12,{parent},\
         \"process_start_key\":\"0x1000000000005\",\"stack_match_id\":\"0x7\",\
         \"stack\":[\"0x1\",\"0x2\",\"0x3\"],\"event\""
    );
    assert!(lines[1].contains(&items), "{}", lines[1]);
    assert!(
        lines[2].contains(" level 2 instance 77 parent 78 "),
        "{}",
        lines[2]
    );
}

#[test]
fn csv_has_the_selected_columns() {
    let names = ["timestamp", "provider", "Count", "fields.Depth", "nothing"].map(str::to_owned);
    let columns = Columns::new(&names).unwrap();
    let text = written(|rows| rows.columns(columns), Format::Csv);
    let row = "2000,Microsoft-Windows-DotNETRuntime,7,1,\n";
    assert_eq!(
        text,
        format!("timestamp,provider,Count,fields.Depth,nothing\n{row}")
    );
    assert!(Columns::new(&[" ".to_owned()]).is_err());
}

#[test]
fn xml_is_a_document_of_events() {
    let text = written(|rows| rows, Format::Xml);
    assert!(
        text.contains("<EventID>1</EventID><Version>1</Version>"),
        "{text}"
    );
    assert!(text.contains("<Data Name=\"Count\">7</Data>"), "{text}");
    assert!(text.trim_end().ends_with("</Events>"));
}

#[test]
fn payload_bytes_replace_fields_in_text() {
    let text = written(|rows| rows.payload_bytes(), Format::Text);
    assert!(
        text.contains("  07000000010000000000000000000000"),
        "{text}"
    );
    assert!(!text.contains("Count=7"), "{text}");
}
