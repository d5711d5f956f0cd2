//! Schemas that describe more than a payload contains, and manifests with false sizes.

use std::sync::Arc;

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::read::{Options, Order, Trace};
use etl_schema::Error;
use etl_schema::decode::{Decoder, Value};
use etl_schema::render::{self, Renderer};
use etl_schema::sources::eventsource::{Chunk, Reassembler};
use etl_schema::sources::manifest;
use etl_schema::sources::trace_event_info::{self, Maps};
use etl_schema::sources::{tmf, tracelogging};
use etl_schema::store::{SchemaStore, StoreLimits};
use etl_schema::{Count, EventSchema, Field, Identity, InType, Length, SchemaSource};

use crate::MIB;
use crate::common::File;
use crate::common::event::{Event, chain};
use crate::counting::peak;

fn schema(fields: Vec<Field>) -> Decoder {
    let identity = Identity::Modern { id: 1, version: 0 };
    let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::TraceLogging);
    schema.fields = fields;
    Decoder::new(Arc::new(schema))
}

fn json(decoder: &Decoder, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Renderer::new().json_fields(&mut out, &mut decoder.fields(payload, PointerSize::P8));
    out
}

/// Structs in structs, `depth` of them, each an array of `count`, with `inner` at the bottom.
fn nested(depth: usize, count: Count, inner: Vec<Field>) -> Field {
    let members = if depth == 0 {
        inner
    } else {
        vec![nested(depth - 1, count, inner)]
    };
    Field::structure("s", members).with_count(count)
}

#[test]
fn decoder_bounds_output_for_nested_empty_arrays() {
    let nothing = || vec![Field::new("n", InType::Null).with_count(Count::Const(u16::MAX))];
    for depth in [0, 1, 3, 11] {
        let decoder = schema(vec![nested(depth, Count::Const(u16::MAX), nothing())]);
        let out = json(&decoder, b"");
        assert!(out.len() < 128 << 10, "depth {depth}: {} bytes", out.len());
    }
    // The same with a length that the payload states.
    let len = Field::new("len", InType::UInt16);
    let empty = Field::new("b", InType::Binary)
        .with_length(Length::Field(etl_schema::FieldRef::Top(0)))
        .with_count(Count::Const(u16::MAX));
    let decoder = schema(vec![len, nested(5, Count::Const(u16::MAX), vec![empty])]);
    assert!(json(&decoder, &[0, 0]).len() < 128 << 10);
}

#[test]
fn decoder_bounds_output_for_counts_beyond_the_payload() {
    for count in [Count::Const(u16::MAX), Count::Prefixed, Count::Rest] {
        for ty in InType::ALL {
            let decoder = schema(vec![Field::new("f", *ty).with_count(count)]);
            for payload in [
                &b""[..],
                b"\xff",
                b"\xff\xff",
                b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            ] {
                let (out, most) = peak(|| json(&decoder, payload));
                assert!(
                    out.len() < 4096 && most < 64 << 10,
                    "{ty:?} {count:?}: {most}"
                );
                for (_, value) in decoder.fields(payload, PointerSize::P4) {
                    if let Value::Array(items) = value {
                        assert!(items.len() <= 16 + payload.len());
                    }
                }
            }
        }
    }
}

#[test]
fn render_bounds_output_for_long_names_in_arrays() {
    let name = "n".repeat(30_000);
    let decoder = schema(vec![nested(
        1,
        Count::Rest,
        vec![Field::new(name, InType::UInt8)],
    )]);
    let payload = vec![7; 0xff00];
    let (out, most) = peak(|| json(&decoder, &payload));
    assert!(out.len() < render::MAX_LEN + MIB, "{}", out.len());
    assert!(most < 4 * render::MAX_LEN);
    let mut text = Vec::new();
    Renderer::new().text_fields(&mut text, &mut decoder.fields(&payload, PointerSize::P8));
    assert!(text.len() < render::MAX_LEN + MIB);
}

#[test]
fn render_bounds_output_for_repeated_inserts() {
    let mut described = EventSchema::new(
        Guid::ZERO,
        Identity::Modern { id: 1, version: 0 },
        SchemaSource::Manifest,
    );
    described.fields = vec![Field::new("all", InType::Ansi).with_length(Length::Rest)];
    let decoder = Decoder::new(Arc::new(described));
    let payload = vec![b'x'; 60_000];
    let fields = decoder.fields(&payload, PointerSize::P8);
    let mut out = Vec::new();
    Renderer::new().message(&mut out, &"%1".repeat(100_000), &fields);
    assert!(out.len() < MIB, "{}", out.len());
    assert!(out.ends_with("\u{2026}".as_bytes()));
}

/// TraceLogging metadata of `fields` fields with empty names, two bytes each.
fn metadata(fields: usize, marker: u8) -> Vec<u8> {
    let mut out = vec![0, 0, 0, marker, 0];
    for _ in 0..fields {
        out.extend([0, 4]);
    }
    let len = (out.len() as u16).to_le_bytes();
    out[..2].copy_from_slice(&len);
    out
}

#[test]
fn store_bounds_number_of_learned_fields() {
    let mut file = File::new(0x1_0000);
    for marker in 1..=40 {
        let data = metadata(20_000, marker);
        let record = Event {
            items: chain(&[(0x0b, &data)]),
            timestamp: 1000,
            ..Event::default()
        };
        file = file.buffer(0, &[record.bytes()]);
    }
    let bytes = file.bytes();
    // A field may be stated in two bytes, and takes hundreds once it is known.
    let limits = StoreLimits {
        fields: 1 << 16,
        ..StoreLimits::default()
    };
    let (known, most) = peak(|| {
        let mut store = SchemaStore::new().with_limits(limits);
        let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let mut records = trace.records(Order::Time).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            store.learn(&record);
        }
        store.learned().count()
    });
    assert!((1..=3).contains(&known), "{known}");
    assert!(most < (1 << 16) * 1024, "{most}");
}

#[test]
fn metadata_bounds_nesting() {
    let mut deep = vec![0, 0, 0, b'e', 0];
    for _ in 0..5000 {
        deep.extend([b's', 0, 0x98, 1]);
    }
    let len = (deep.len() as u16).to_le_bytes();
    deep[..2].copy_from_slice(&len);
    assert_eq!(tracelogging::parse(Guid::ZERO, &deep), Err(Error::TooDeep));
}

#[test]
fn reassembler_bounds_memory_for_many_chunks() {
    let text = vec![b'x'; 60_000];
    let limit = 4 * MIB;
    let (_, most) = peak(|| {
        let mut reassembler = Reassembler::new(limit);
        for number in 0..4000u16 {
            // One manifest that never ends, and one per provider and process that is never whole.
            let chunk = Chunk {
                major_version: 1,
                minor_version: 0,
                total: 4096,
                number,
                text: &text,
            };
            assert_eq!(reassembler.add(Guid::ZERO, 1, chunk), None);
            let other = Guid::new(u32::from(number), 0, 0, [1; 8]);
            let chunk = Chunk {
                major_version: 1,
                minor_version: 0,
                total: 2,
                number: 0,
                text: b"",
            };
            assert_eq!(reassembler.add(other, number.into(), chunk), None);
        }
    });
    assert!(most < 3 * limit, "{most}");
}

/// Whole manifests of no text, of as many providers as there are events.
#[test]
fn reassembler_bounds_memory_for_empty_manifests() {
    let limit = MIB;
    let (_, most) = peak(|| {
        let mut reassembler = Reassembler::new(limit);
        for provider in 0..200_000u32 {
            let chunk = Chunk {
                major_version: 1,
                minor_version: 0,
                total: 1,
                number: 0,
                text: b"",
            };
            let _ = reassembler.add(Guid::new(provider, 0, 0, [0; 8]), 1, chunk);
        }
    });
    assert!(most < 4 * limit, "{most}");
}

/// A manifest with these parts in its provider.
fn xml(inside: &str) -> String {
    format!(
        "<m><provider name=\"P\" guid=\"{{01020304-0506-0708-090a-0b0c0d0e0f10}}\">{inside}</provider></m>"
    )
}

/// Checks the memory that reading a manifest takes, and whether it is refused as too big.
#[track_caller]
fn refused(text: &str, big: bool, each: usize) {
    let (done, most) = peak(|| manifest::parse(text));
    let is_big = matches!(done, Err(Error::TooBig(_)));
    assert_eq!(is_big, big, "{:?}", done.err());
    assert!(
        most < 8 * MIB + each * text.len(),
        "{most} bytes for {}",
        text.len()
    );
    // A manifest in a trace is read as far as possible.
    let (_, most) = peak(|| manifest::parse_lenient(text));
    assert!(
        most < 160 * MIB + each * text.len(),
        "{most} bytes for {}",
        text.len()
    );
}

#[test]
fn manifest_bounds_total_fields() {
    let fields = "<data name=\"f\" inType=\"win:Int8\"/>".repeat(1000);
    let events: String = (0..2000)
        .map(|i| format!("<event value=\"{i}\" template=\"t\"/>"))
        .collect();
    let text = xml(&format!("<template tid=\"t\">{fields}</template>{events}"));
    let (done, most) = peak(|| manifest::parse(&text));
    assert!(matches!(done, Err(Error::TooBig(_))));
    assert!(most < 128 * MIB, "{most}");
    let fields = "<data name=\"f\" inType=\"win:Int8\"/>".repeat(5000);
    refused(
        &xml(&format!("<template tid=\"t\">{fields}</template>")),
        true,
        60,
    );
}

#[test]
fn manifest_bounds_total_text() {
    let long = "x".repeat(100_000);
    let events: String = (0..2000)
        .map(|i| format!("<event value=\"{i}\" message=\"$(string.s)\"/>"))
        .collect();
    let strings =
        format!("<resources culture=\"en\"><string id=\"s\" value=\"{long}\"/></resources>");
    refused(&xml(&format!("{events}{strings}")), true, 60);
    let name = xml(&events.replace("$(string.s)", "")).replace("\"P\"", &format!("\"{long}\""));
    refused(&name, true, 60);
    let entries: String = (0..2000)
        .map(|i| format!("<map value=\"{i}\" message=\"$(string.s)\"/>"))
        .collect();
    refused(
        &xml(&format!(
            "<valueMap name=\"m\">{entries}</valueMap>{strings}"
        )),
        true,
        60,
    );
}

#[test]
fn manifest_bounds_elements_attributes_and_namespaces() {
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    refused(&deep, true, 1);
    refused(&xml(&deep), true, 1);
    let attributes: String = (0..100_000).map(|i| format!(" a{i}=\"\"")).collect();
    refused(&xml(&format!("<event{attributes}/>")), true, 1);
    let names: String = (0..50_000)
        .map(|i| format!("<a xmlns:n{i}=\"{i}\"/>"))
        .collect();
    refused(&xml(&names), true, 1);
    // Tags in comments and CDATA are not counted.
    refused(
        &xml(&format!("<!-- {deep} --><![CDATA[{deep}]]>")),
        false,
        30,
    );
}

#[test]
fn manifest_refuses_entities() {
    let mut text = "<!DOCTYPE m [<!ENTITY a0 \"aaaaaaaaaa\">".to_owned();
    for i in 1..10 {
        text.push_str(&format!(
            "<!ENTITY a{i} \"{}\">",
            format!("&a{};", i - 1).repeat(10)
        ));
    }
    text.push_str("]><m>&a9;</m>");
    let (done, most) = peak(|| manifest::parse(&text));
    assert!(matches!(done, Err(Error::Xml(_))), "{done:?}");
    assert!(most < MIB, "{most}");
}

/// Invalid events of a manifest in a trace are skipped.
#[test]
fn manifest_skips_invalid_events() {
    let text = xml(&"<event value=\"1\" level=\"none\"/>\n".repeat(60_000));
    let begin = std::time::Instant::now();
    assert_eq!(manifest::parse_lenient(&text).map(|s| s.len()), Ok(0));
    // Finding the line number of each took minutes.
    assert!(begin.elapsed() < std::time::Duration::from_secs(30));
    let error = manifest::parse(&text).unwrap_err();
    assert!(matches!(error, Error::Element { line: 1, .. }), "{error}");
}

/// All names of a description are the same long text.
#[test]
fn event_info_bounds_memory_for_shared_names() {
    let count = 1000usize;
    let names = 0x70 + count * 0x18;
    let mut blob = vec![0u8; names];
    blob[0x64..0x68].copy_from_slice(&(count as u32).to_le_bytes());
    blob[0x68..0x6c].copy_from_slice(&(count as u32).to_le_bytes());
    for field in 0..count {
        let at = 0x70 + field * 0x18;
        blob[at + 4..at + 8].copy_from_slice(&(names as u32).to_le_bytes());
        blob[at + 8] = 8;
        blob[at + 12..at + 16].copy_from_slice(&(names as u32).to_le_bytes());
        blob[at + 16] = 1;
    }
    blob.extend([b'x', 0].repeat(18_000));
    let (done, most) = peak(|| trace_event_info::parse(&blob, &Maps::default()));
    assert_eq!(done.unwrap().fields.len(), count);
    assert!(most < 4 * MIB, "{most}");
    // And all names of a map.
    let mut map = vec![0u8; 16];
    let entries = 2000u32;
    let text = 16 + entries * 8;
    map.extend([text, 0, entries, 0].iter().flat_map(|w| w.to_le_bytes()));
    map.extend(
        (0..entries)
            .flat_map(|i| [text, i])
            .flat_map(u32::to_le_bytes),
    );
    map.extend([b'x', 0].repeat(18_000));
    let (done, most) = peak(|| Maps::default().add(&map));
    assert!(done.is_some());
    assert!(most < 4 * MIB, "{most}");
}

#[test]
fn tmf_bounds_memory_for_repeated_words() {
    let function = "f".repeat(200_000);
    let text = format!(
        "01020304-0506-0708-090a-0b0c0d0e0f10 {function}\n#typev a 1 \"{}\" // FUNC={function}\n{{\n}}\n",
        "%!FUNC!".repeat(50_000)
    );
    let (done, most) = peak(|| tmf::parse(&text));
    assert_eq!(done.unwrap().schemas.len(), 1);
    assert!(most < 8 * MIB, "{most}");
}

#[test]
fn tmf_bounds_memory_for_many_messages() {
    const GUID: &str = "01020304-0506-0708-090a-0b0c0d0e0f10 d\n";
    let messages = "#typev a 1 \"\"\n".repeat(200_000);
    let arguments = format!(
        "#typev a 1 \"\"\n{{\n{}}}\n",
        "a, ItemLong -- 10\n".repeat(1_000)
    );
    let values = format!(
        "#typev a 1 \"\"\n{{\na, ItemListLong({}) -- 10\n}}\n",
        ",".repeat(60_000)
    );
    for text in [messages, arguments.repeat(400), values.repeat(30)] {
        let text = format!("{GUID}{text}");
        let (done, most) = peak(|| tmf::parse_within(&text, 16 << 20));
        let error = done.unwrap_err();
        assert!(matches!(error, Error::TmfTooBig { .. }), "{error}");
        assert!(most < 24 * MIB, "{most}");
    }
}
