//! Fields by path, serialized, and deserialized into types.

use crate::decode::{Decoder, Fields, Value};
use crate::encode::{OwnedValue, PayloadBuilder};
use crate::model::{
    Count, EventSchema, Field, Identity, InType, Length, MapEntry, MapKind, OutType, SchemaSource,
    ValueMap,
};
use crate::render::Renderer;
use etl_format::Guid;
use etl_format::constants::PointerSize;
use serde::Deserialize;
use std::sync::Arc;

const ID: Guid = Guid::new(0x1234_5678, 1, 2, [3; 8]);

fn schema() -> EventSchema {
    let identity = Identity::Modern { id: 1, version: 0 };
    let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::Manifest);
    let forced = MapEntry {
        value: 2,
        name: "Forced".into(),
    };
    let reasons = ValueMap::new("Reason", MapKind::Values, vec![forced]);
    let heap = vec![
        Field::new("Size", InType::UInt32),
        Field::new("Kinds", InType::UInt8).with_count(Count::Const(2)),
    ];
    schema.fields = vec![
        Field::new("Count", InType::UInt16),
        Field::new("Delta", InType::Int32),
        Field::new("Reason", InType::UInt8).with_map(Arc::new(reasons)),
        Field::new("On", InType::Boolean),
        Field::new("Share", InType::Double),
        Field::new("Id", InType::Guid),
        Field::new("Name", InType::Utf16),
        Field::new("Tag", InType::Ansi),
        Field::new("a.b", InType::UInt8),
        Field::new("Address", InType::Pointer),
        Field::new("Time", InType::FileTime),
        Field::new("Started", InType::UInt64).with_out(OutType::DateTime),
        Field::new("Data", InType::Binary).with_length(Length::U16),
        Field::structure("Heaps", heap).with_count(Count::Const(2)),
    ];
    schema
}

fn heap(size: u32) -> OwnedValue {
    let kinds = OwnedValue::Array(vec![1u32.into(), 2u32.into()]);
    OwnedValue::Struct(vec![size.into(), kinds])
}

fn payload(schema: &EventSchema) -> Vec<u8> {
    PayloadBuilder::new(schema)
        .set("Count", 7u32)
        .set("Delta", -5)
        .set("Reason", 2u32)
        .set("On", true)
        .set("Share", 0.5)
        .set("Id", ID)
        .set("Name", vec![0x61u16, 0xd800])
        .set("Tag", "tag")
        .set("a.b", 9u32)
        .set("Address", 0x7ff0u64)
        .set("Time", 132_404_548_306_935_923u64)
        .set("Started", 132_404_548_306_935_923u64)
        .set("Data", vec![1u8, 0xff])
        .set("Heaps", OwnedValue::Array(vec![heap(16), heap(32)]))
        .encode(PointerSize::P8)
        .unwrap()
}

fn with_fields(test: impl FnOnce(Fields<'_>)) {
    let schema = schema();
    let bytes = payload(&schema);
    let decoder = Decoder::new(Arc::new(schema));
    test(decoder.fields(&bytes, PointerSize::P8));
}

#[test]
fn get_finds_fields_members_and_elements() {
    with_fields(|mut fields| {
        // What was read before does not matter.
        fields.next();
        let number = |path: &str| fields.get(path).and_then(|value| value.as_u64());
        assert_eq!(number("Count"), Some(7));
        assert_eq!(number("a.b"), Some(9));
        assert_eq!(number("Heaps[1].Size"), Some(32));
        assert_eq!(number("Heaps[0].Kinds[1]"), Some(2));
        assert!(matches!(fields.get("Heaps[0]"), Some(Value::Struct(_))));
        for path in [
            "count",
            "",
            "Heaps[2]",
            "Heaps[x].Size",
            "Heaps[0",
            "Heaps.Size",
            "Count[0]",
            "Coun",
        ] {
            assert!(fields.get(path).is_none(), "{path}");
        }
    });
}

#[test]
fn get_reads_the_members_of_a_structure_again() {
    with_fields(|fields| {
        let Some(Value::Struct(heap)) = fields.get("Heaps[1]") else {
            panic!("a structure")
        };
        let mut members = heap.fields();
        members.next();
        assert_eq!(members.get("Size").and_then(|size| size.as_u64()), Some(32));
    });
}

#[test]
fn serialize_writes_what_the_renderer_writes_but_names() {
    with_fields(|fields| {
        let mut json = Vec::new();
        Renderer::new()
            .lossy()
            .json_fields(&mut json, &mut fields.clone());
        let mut rendered: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let name = rendered.as_object_mut().unwrap().remove("Reason_name");
        assert_eq!(name, Some("Forced".into()));
        assert_eq!(serde_json::to_value(&fields).unwrap(), rendered);
    });
}

#[derive(Deserialize, Debug, PartialEq)]
enum Reason {
    Forced,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(rename_all = "PascalCase")]
struct Heap {
    size: u32,
    kinds: [u8; 2],
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(rename_all = "PascalCase")]
struct Event<'a> {
    count: u16,
    delta: i64,
    reason: Reason,
    on: bool,
    share: f32,
    id: String,
    name: String,
    #[serde(borrow)]
    tag: &'a str,
    address: u64,
    time: String,
    started: u64,
    data: &'a [u8],
    heaps: Vec<Heap>,
    absent: Option<u8>,
}

#[test]
fn deserialize_fills_a_structure() {
    with_fields(|fields| {
        let event: Event<'_> = fields.deserialize().unwrap();
        let expected = Event {
            count: 7,
            delta: -5,
            reason: Reason::Forced,
            on: true,
            share: 0.5,
            id: ID.to_string(),
            name: "a\u{fffd}".to_owned(),
            tag: "tag",
            address: 0x7ff0,
            time: "2020-07-29T00:07:10.6935923Z".to_owned(),
            started: 132_404_548_306_935_923,
            data: &[1, 0xff],
            heaps: vec![
                Heap {
                    size: 16,
                    kinds: [1, 2],
                },
                Heap {
                    size: 32,
                    kinds: [1, 2],
                },
            ],
            absent: None,
        };
        assert_eq!(event, expected);
    });
}

#[test]
fn deserialize_names_the_field_that_does_not_fit() {
    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "PascalCase")]
    struct NarrowHeap {
        #[allow(dead_code)]
        size: bool,
    }
    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "PascalCase")]
    struct Narrow {
        #[allow(dead_code)]
        heaps: Vec<NarrowHeap>,
    }
    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "PascalCase")]
    struct Other {
        #[allow(dead_code)]
        absent: u8,
    }
    with_fields(|fields| {
        let error = fields.deserialize::<Narrow>().unwrap_err();
        assert_eq!(error.path(), "Heaps[0].Size");
        assert!(
            error
                .to_string()
                .starts_with("field Heaps[0].Size: invalid type"),
            "{error}"
        );
        let error = fields.deserialize::<Other>().unwrap_err();
        assert_eq!(error.to_string(), "missing field `Absent`");
    });
}

#[test]
fn display_is_the_text_form() {
    with_fields(|fields| {
        let text = fields.to_string();
        assert!(
            text.starts_with("Count=7 Delta=-5 Reason=2(Forced) On=true Share=0.5"),
            "{text}"
        );
        assert_eq!(fields.get("Heaps[0].Kinds").unwrap().to_string(), "[1,2]");
        assert_eq!(
            fields.get("Heaps[0]").unwrap().to_string(),
            "{ Size=16 Kinds=[1,2] }"
        );
    });
}
