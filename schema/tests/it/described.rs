//! Decodes events of real traces whose schema is in the trace.

use etl_format::compress::{Effort, compress};
use etl_format::constants::CompressionFormat;
use etl_format::read::{ExtendedItem, Header, Options, Order, Record, Trace};
use etl_format::write::Session;
use etl_format::write::record::{Event, Full};
use etl_format::{EventDescriptor, FileHeader, Guid};
use etl_schema::providers::PERFTRACK_METADATA;
use etl_schema::sources::provider_guid;
use etl_schema::sources::tracelogging::{self, ProviderTraits};
use etl_schema::store::{SchemaStore, SchemasAhead};
use etl_schema::{EventSchema, SchemaSource};
use etl_test_support::{needs, trace};

/// Calls `see` with each record of a trace and a store that learned from the records before.
fn walk(name: &str, mut see: impl FnMut(&SchemaStore, &Record<'_>)) {
    let bytes = std::fs::read(trace(name)).unwrap();
    let mut file = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
    let mut store = SchemaStore::default();
    let mut records = file.records(Order::File).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        store.learn(&record);
        see(&store, &record);
    }
}

/// Also builds the metadata of each event from its schema.
#[needs(traces)]
#[test]
fn decoder_reads_every_byte_of_tracelogging_events() {
    for (name, expected) in [
        ("etl-parser/AMSITrace.etl", 19),
        ("etl-parser/lxcore_kernel.etl", 2),
        ("perfview/primitive-types.etl", 5),
        ("s4/WindowsUpdate.20251008.140245.443.8.etl", 80),
        ("perfview/SelfDescribingSingleEvent.etl", 1),
    ] {
        let mut seen = 0;
        walk(name, |store, record| {
            let metadata = record.extended().find_map(|item| match item {
                ExtendedItem::EventSchema(data) => Some(data),
                _ => None,
            });
            // An event on the channel of TraceLogging must have metadata.
            if let Header::Event(header) = record.header() {
                let channel = header.descriptor.channel == 11;
                assert!(
                    !channel || metadata.is_some(),
                    "{name}: {:?}",
                    header.descriptor
                );
            }
            let Some(metadata) = metadata else { return };
            let mut fields = store.fields(record).unwrap();
            let schema = fields.schema();
            assert_eq!(schema.source, SchemaSource::TraceLogging, "{name}");
            fields.by_ref().for_each(drop);
            let note = fields.note();
            assert!(note.is_exact(), "{name}: {}: {note:?}", schema.name);
            let built = tracelogging::build(schema).unwrap();
            let again = tracelogging::parse(schema.provider, &built).unwrap();
            assert_eq!(again.fields, schema.fields, "{name}: {}", schema.name);
            // Other writers use up to two bytes for tags of zero.
            let tags = metadata
                .iter()
                .skip(2)
                .take_while(|b| **b & 0x80 != 0)
                .count();
            assert_eq!(built[3..], metadata[3 + tags..], "{name}: {schema:?}");
            seen += 1;
        });
        assert_eq!(seen, expected, "{name}: TraceLogging events");
    }
}

/// A schema counts by the rank of its source, and only if it takes the payload exactly where
/// another one does.
#[needs(traces)]
#[test]
fn sources_of_schemas_are_ranked() {
    let bytes = std::fs::read(trace("tx/Process.etl")).unwrap();
    let mut file = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
    let mut records = file.records(Order::File).unwrap();
    let record = loop {
        let record = records
            .next_record()
            .unwrap()
            .expect("an event of Kernel-Process");
        if record.is_event() {
            break record;
        }
    };
    let source = |store: &SchemaStore| store.decoder(&record).map(|d| d.schema().source);
    let tables = SchemaStore::default().without_windows_tables();
    assert_eq!(source(&tables), None);
    let windows = SchemaStore::default();
    assert_eq!(source(&windows), Some(SchemaSource::Windows));

    let described = windows.decoder(&record).unwrap().schema();
    let mut given = EventSchema::clone(described);
    given.source = SchemaSource::Manifest;
    let mut store = windows.clone();
    store.add_schemas([given.clone()]);
    assert_eq!(source(&store), Some(SchemaSource::Manifest));
    // One that leaves bytes over, where the tables do not.
    given.fields.pop();
    store.add_schemas([given.clone()]);
    assert_eq!(source(&store), Some(SchemaSource::Windows));
    let mut store = tables.clone();
    store.add_schemas([given]);
    assert_eq!(source(&store), Some(SchemaSource::Manifest));
}

/// Providers without an explicit GUID have the hash of their name.
#[needs(traces)]
#[test]
fn provider_guid_matches_events_of_real_traces() {
    let (mut same, mut all) = (0, 0);
    for name in [
        "etl-parser/AMSITrace.etl",
        "etl-parser/lxcore_kernel.etl",
        "perfview/primitive-types.etl",
        "s4/WindowsUpdate.20251008.140245.443.8.etl",
        "perfview/SelfDescribingSingleEvent.etl",
    ] {
        walk(name, |_, record| {
            for item in record.extended() {
                if let ExtendedItem::ProviderTraits(data) = item {
                    let traits = ProviderTraits::parse(data).unwrap();
                    all += 1;
                    same += u32::from(record.provider() == Some(provider_guid(&traits.name)));
                    assert_eq!(traits.build(), data, "{name}");
                }
            }
        });
    }
    assert!(same > 0, "none of {all}");
}

/// A manifest of a provider that no table has.
const MANIFEST: &str = r#"<instrumentationManifest><instrumentation><events>
<provider name="Made-Up" guid="{11111111-2222-3333-4444-555555555555}" symbol="P"
 resourceFileName="a" messageFileName="a"><tasks><task name="Work" value="3"/></tasks>
<templates><template tid="t"><data name="Count" inType="win:UInt32"/></template></templates>
<events><event value="7" version="1" task="Work" template="t"/></events>
</provider></events></instrumentation></instrumentationManifest>"#;

/// A merge adds manifests in events of PerfTrack: a size, then chunks of LZNT1. They come last.
#[test]
fn manifests_of_perftrack_describe_events_before_them() {
    let mut packed = Vec::new();
    let format = CompressionFormat::LZNT1;
    compress(format, MANIFEST.as_bytes(), Effort::Default, &mut packed).unwrap();
    let payload = [&(MANIFEST.len() as u32).to_le_bytes()[..], &packed].concat();
    let provider = Guid::parse("11111111-2222-3333-4444-555555555555").unwrap();
    let descriptor = EventDescriptor {
        id: 7,
        version: 1,
        ..EventDescriptor::default()
    };
    let mut session = Session::in_memory(FileHeader::new()).unwrap();
    let count = 42u32.to_le_bytes();
    let event = Event::new(provider, descriptor, 1_000).payload(&count);
    session.write(0, &event).unwrap();
    let manifest = Full::new(PERFTRACK_METADATA, 34, 2_000).payload(&payload);
    session.write(0, &manifest).unwrap();
    let bytes = session.finish().unwrap();

    let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
    let mut ahead = SchemasAhead::new(SchemaStore::default());
    let mut records = trace.records(Order::File).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        ahead.learn(&record);
    }
    drop(records);
    let mut store = ahead.into_store();
    let mut texts = Vec::new();
    let mut records = trace.records(Order::File).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        store.learn(&record);
        if record.provider() != Some(provider) {
            continue;
        }
        let fields = store.fields(&record).unwrap();
        let schema = fields.schema();
        assert_eq!(schema.source, SchemaSource::TraceManifest);
        assert_eq!(schema.provider_name, "Made-Up");
        texts.push(format!("{} {fields}", schema.name));
    }
    assert_eq!(texts, ["Work Count=42"]);
}
