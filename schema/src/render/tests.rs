use super::*;
use crate::decode::{Decoder, SystemTime, Value};
use crate::encode::PayloadBuilder;
use crate::model::{
    Count, EventSchema, Field, Identity, InType, Length, MapEntry, MapKind, OutType, SchemaSource,
    ValueMap,
};
use crate::testing::strategies::schemas_with_values;
use etl_format::Guid;
use etl_format::constants::PointerSize;
use proptest::prelude::*;
use std::sync::Arc;

fn text(f: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    f(&mut out);
    String::from_utf8(out).unwrap()
}

proptest! {
    #[test]
    fn filetime_agrees_with_the_clock(ticks in 0..i64::MAX as u64) {
        let said = etl_format::FileTime::new(ticks as i64).to_string();
        prop_assert_eq!(text(|out| filetime(out, ticks)), said);
    }

    #[test]
    fn csv_fields_are_those_of_json_with_quotes_doubled(
        (schema, given) in schemas_with_values(PointerSize::P8),
    ) {
        let bytes = crate::encode::encode(&schema, &given, PointerSize::P8).unwrap();
        prop_assert!(are_equal_in_csv(schema, &bytes));
    }

    #[test]
    fn json_fields_is_valid_and_text_fields_safe_for_any_values(
        (schema, given) in schemas_with_values(PointerSize::P8),
    ) {
        let bytes = crate::encode::encode(&schema, &given, PointerSize::P8).unwrap();
        let decoder = Decoder::new(schema.into());
        let json = text(|out| Renderer::new().json_fields(out, &mut decoder.fields(&bytes, PointerSize::P8)));
        // Lone surrogates are kept, so that no string type of a parser may be asked.
        let parsed = serde_json::from_str::<serde::de::IgnoredAny>(&json);
        prop_assert!(parsed.is_ok(), "{}", json);
        prop_assert!(!json.contains(char::is_control));
        let line = text(|out| Renderer::new().text_fields(out, &mut decoder.fields(&bytes, PointerSize::P8)));
        prop_assert!(!line.contains(char::is_control));
    }
}

#[test]
fn filetime_and_system_time_print_iso_8601() {
    assert_eq!(text(|out| filetime(out, 0)), "1601-01-01T00:00:00.0000000Z");
    assert_eq!(
        text(|out| filetime(out, 132_404_548_306_935_923)),
        "2020-07-29T00:07:10.6935923Z"
    );
    let time = SystemTime([2021, 9, 4, 9, 14, 59, 35, 7]);
    assert_eq!(
        text(|out| system_time(out, time)),
        "2021-09-09T14:59:35.007"
    );
}

/// Compares the fields in CSV with the fields in JSON, whose quotes are doubled.
fn are_equal_in_csv(schema: EventSchema, bytes: &[u8]) -> bool {
    let decoder = Decoder::new(schema.into());
    let fields = || decoder.fields(bytes, PointerSize::P8);
    let csv = text(|out| Renderer::new().hex().csv_fields(out, &mut fields()));
    let json = text(|out| Renderer::new().hex().json_fields(out, &mut fields()));
    csv == json.replace('"', "\"\"")
}

#[test]
fn csv_fields_escape_names_and_values() {
    let mut schema = sample();
    let bytes = payload(&schema);
    assert!(are_equal_in_csv(schema.clone(), &bytes));
    for field in &mut schema.fields {
        field.name = format!("\\u\"\u{1b}{}", field.name).into();
    }
    assert!(are_equal_in_csv(schema, &bytes));
    let field = Field::new("Path", InType::Utf16);
    let id = Identity::Modern { id: 1, version: 0 };
    let mut schema = EventSchema::new(Guid::ZERO, id, SchemaSource::Manifest);
    schema.fields = vec![field];
    let path: Vec<u8> = "C:\\users\\\"u\u{1b}\0"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(are_equal_in_csv(schema, &path));
}

fn sample() -> EventSchema {
    let id = Identity::Modern { id: 1, version: 0 };
    let mut schema = EventSchema::new(Guid::ZERO, id, SchemaSource::Manifest);
    let entry = |value, name: &'static str| MapEntry {
        value,
        name: name.into(),
    };
    let bits = ValueMap::new("B", MapKind::Bits, vec![entry(1, "one"), entry(2, "two")]);
    let names = ValueMap::new("V", MapKind::Values, vec![entry(0xff, "minus one")]);
    schema.fields = vec![
        Field::new("Name", InType::Utf16),
        Field::new("Flags", InType::UInt32).with_map(Arc::new(bits)),
        Field::new("Signed", InType::Int8).with_map(Arc::new(names)),
        Field::new("Status", InType::UInt32).with_out(OutType::NtStatus),
        Field::new("Result", InType::Int32).with_out(OutType::HResult),
        Field::new("Sid", InType::Sid),
        Field::new("Socket", InType::Binary).with_out(OutType::SocketAddress),
        Field::new("Host", InType::Utf16).with_length(Length::Fixed(4)),
        Field::new("List", InType::HexInt32).with_count(Count::Prefixed),
        Field::new("Text", InType::Ansi),
    ];
    schema
}

fn payload(schema: &EventSchema) -> Vec<u8> {
    use crate::encode::OwnedValue;
    PayloadBuilder::new(schema)
        .set("Name", vec![0x61u16, 0xd800, 0x22, 0x5c])
        .set("Flags", 11u32)
        .set("Signed", -1)
        .set("Status", 0xc000_0005u32)
        .set("Result", 0x8007_0005u32 as i32)
        .set(
            "Sid",
            OwnedValue::Sid(vec![1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0]),
        )
        .set(
            "Socket",
            vec![2u8, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        )
        .set("Host", "pc")
        .set("List", OwnedValue::Array(vec![10u32.into(), 11u32.into()]))
        .set("Text", vec![b'x', 0xe9, 0x1b])
        .encode(PointerSize::P8)
        .unwrap()
}

#[test]
fn text_value_prints_every_kind_of_value() {
    let schema = sample();
    let bytes = payload(&schema);
    let decoder = Decoder::new(Arc::new(schema));
    let fields = decoder.fields(&bytes, PointerSize::P8);
    assert_eq!(
        text(|out| Renderer::new().text_fields(out, &mut fields.clone())),
        " Name=\"a\\u{d800}\\\"\\\" Flags=0xb(one|two|0x8) Signed=-1(minus one) \
         Status=0xc0000005(STATUS_ACCESS_VIOLATION) Result=0x80070005(ERROR_ACCESS_DENIED) \
         Sid=S-1-5-32-544 Socket=127.0.0.1:8080 Host=\"pc\" List=[0xa,0xb] Text=\"xé\\u{1b}\""
    );
    assert_eq!(
        text(|out| Renderer::new().json_fields(out, &mut fields.clone())),
        "{\"Name\":\"a\\ud800\\\"\\\\\",\"Flags\":11,\"Flags_name\":\"one|two|0x8\",\
         \"Signed\":-1,\"Signed_name\":\"minus one\",\"Status\":3221225477,\
         \"Status_name\":\"STATUS_ACCESS_VIOLATION\",\
         \"Result\":-2147024891,\"Result_name\":\"ERROR_ACCESS_DENIED\",\
         \"Sid\":\"S-1-5-32-544\",\"Socket\":\"127.0.0.1:8080\",\
         \"Host\":\"pc\",\"List\":[10,11],\"Text\":\"x\u{e9}\\u001b\"}"
    );
}

#[test]
fn masks_and_ids_are_always_hexadecimal() {
    let id = Identity::Modern { id: 1, version: 0 };
    let mut schema = EventSchema::new(Guid::ZERO, id, SchemaSource::Manifest);
    schema.fields = vec![
        Field::new("OpenFlags", InType::UInt32),
        Field::new("keywords", InType::UInt64),
        Field::new("AffinityMask", InType::UInt16),
        Field::new("Flags", InType::UInt8).with_out(OutType::Hex),
        Field::new("ObjectId", InType::UInt64),
        Field::new("ProcessId", InType::UInt32),
        Field::new("Tasks", InType::UInt32),
    ];
    let payload = [
        &[9, 0, 0, 0][..],
        &[7, 0, 0, 0, 0, 0, 0, 0],
        &[3, 0],
        &[1],
        &[8; 8],
        &[4; 8],
    ];
    let payload = payload.concat();
    let decoder = Decoder::new(Arc::new(schema));
    let fields = decoder.fields(&payload, PointerSize::P8);
    assert_eq!(
        text(|out| Renderer::new().text_fields(out, &mut fields.clone())),
        " OpenFlags=0x9 keywords=0x7 AffinityMask=0x3 Flags=0x1 ObjectId=0x808080808080808 \
         ProcessId=67372036 Tasks=67372036"
    );
    let json = text(|out| Renderer::new().hex().json_fields(out, &mut fields.clone()));
    assert!(
        json.starts_with(r#"{"OpenFlags":"0x9","keywords":"0x7","AffinityMask":"0x3","#),
        "{json}"
    );
}

#[test]
fn plain_message_replaces_lone_surrogates() {
    let schema = sample();
    let bytes = payload(&schema);
    let decoder = Decoder::new(Arc::new(schema));
    let fields = decoder.fields(&bytes, PointerSize::P8);
    let mut out = Vec::new();
    Renderer::new().plain_message(&mut out, "<%1>", &fields);
    assert_eq!(String::from_utf8(out).unwrap(), "<a\u{fffd}\"\\>");
}

#[test]
fn message_replaces_inserts() {
    let schema = sample();
    let bytes = payload(&schema);
    let show = |format: &str, source| {
        let decoder = Decoder::new(Arc::new(EventSchema {
            source,
            ..schema.clone()
        }));
        let fields = decoder.fields(&bytes, PointerSize::P8);
        text(|out| Renderer::new().message(out, format, &fields))
    };
    let manifest = |format| show(format, SchemaSource::Manifest);
    assert_eq!(
        manifest("%8 has %2!04x! of %3!5d!|%2!-4u!| 100%%"),
        "pc has 000b of    -1|11  | 100%"
    );
    assert_eq!(
        manifest("%2, %2!s!; %3!x!"),
        "one|two|0x8, one|two|0x8; ffffffff"
    );
    // `%3` is -1: of 32 bits, unless the format asks for 64.
    assert_eq!(
        manifest("%3!I64x! %3!#llX! %3!I64u! %3!lx! %3!I64d! %2!08I64x!"),
        "ffffffffffffffff 0xFFFFFFFFFFFFFFFF 18446744073709551615 ffffffff -1 0000000b"
    );
    assert_eq!(manifest("a%nb%tc"), "a\nb\tc");
    assert_eq!(manifest("end%0 not shown"), "end");
    assert_eq!(manifest("%99 %q %"), "%99 %q %");
    // Inserts of manifests have two digits at most.
    assert_eq!(manifest("%100|%01"), "xé\\u{1b}0|");
    assert_eq!(show("%17!s!: %11!#x!", SchemaSource::Tmf), "pc: 0xb");
}

#[test]
fn messages_have_the_names_of_values_in_both_forms() {
    let schema = sample();
    let bytes = payload(&schema);
    for (source, format) in [
        (SchemaSource::Manifest, "%2 %3 %9"),
        (SchemaSource::Tmf, "%11 %12 %18"),
    ] {
        let decoder = Decoder::new(Arc::new(EventSchema {
            source,
            ..schema.clone()
        }));
        let fields = decoder.fields(&bytes, PointerSize::P8);
        for write in [Renderer::message, Renderer::plain_message] {
            let shown = text(|out| write(&Renderer::new(), out, format, &fields));
            assert_eq!(shown, "one|two|0x8 minus one [0xa,0xb]");
        }
    }
}

#[test]
fn whole_numbers_have_the_digits_of_rust() {
    let field = Field::new("Value", InType::Double);
    let json = |value| {
        let mut out = Vec::new();
        Renderer::new().json_value(&mut out, &field, value);
        String::from_utf8(out).unwrap()
    };
    for value in [
        0.0,
        -0.0,
        1.0,
        -7.0,
        0.5,
        -0.5,
        9_999_999.0,
        1e7,
        16_777_216.0,
        1e16,
        1e30,
    ] {
        assert_eq!(json(Value::Double(value)), format!("{value:?}"));
        assert_eq!(
            json(Value::Float(value as f32)).parse(),
            Ok(value as f32),
            "{value}"
        );
    }
}

/// A payload of one field as the JSON of rows.
fn in_rows(field: Field, payload: &[u8]) -> String {
    let id = Identity::Modern { id: 1, version: 0 };
    let mut schema = EventSchema::new(Guid::ZERO, id, SchemaSource::Manifest);
    schema.fields = vec![field];
    let decoder = Decoder::new(Arc::new(schema));
    text(|out| {
        Renderer::new()
            .hex()
            .json_fields(out, &mut decoder.fields(payload, PointerSize::P8))
    })
}

#[test]
fn numbers_have_the_width_and_the_meaning_of_their_fields() {
    let shown = |in_type, out, value| {
        let field = Field::new("F", in_type).with_out(out);
        (
            text(|out| Renderer::new().text_value(out, &field, value)),
            text(|out| Renderer::new().json_value(out, &field, value)),
        )
    };
    for (of, bytes) in [(InType::Int8, 1), (InType::Int16, 2), (InType::Int32, 4)] {
        let hexadecimal = format!("0x{}", "ff".repeat(bytes));
        assert_eq!(shown(of, OutType::Hex, Value::Int(-1)).0, hexadecimal);
        let field = Field::new("F", of).with_out(OutType::Hex);
        assert_eq!(
            in_rows(field, &vec![0xff; bytes]),
            format!("{{\"F\":\"{hexadecimal}\"}}")
        );
    }
    const TIME: u64 = 133_500_000_000_000_000;
    let printed = text(|out| filetime(out, TIME));
    let quoted = format!("\"{printed}\"");
    for out in [OutType::DateTime, OutType::DateTimeUtc] {
        let of = |in_type, value| shown(in_type, out, value);
        assert_eq!(
            of(InType::UInt64, Value::UInt(TIME)),
            (printed.clone(), quoted.clone())
        );
        assert_eq!(
            of(InType::Int64, Value::Int(TIME as i64)),
            (printed.clone(), quoted.clone())
        );
        assert_eq!(of(InType::UInt32, Value::UInt(7)).1, "7");
    }
    for (value, expected) in [
        (0.1, "0.1"),
        (-1e300, "-1e300"),
        (1e-7, "1e-7"),
        (f64::INFINITY, "inf"),
        (12.0, "12"),
    ] {
        let field = Field::new("F", InType::Double);
        assert_eq!(
            text(|out| Renderer::new().text_value(out, &field, Value::Double(value))),
            expected
        );
    }
}

#[test]
fn socket_address_has_the_scope_of_a_link_local_address() {
    let mut bytes = vec![23, 0, 1, 0xbb, 0, 0, 0, 0, 0xfe, 0x80];
    bytes.resize(23, 0);
    bytes.extend([1, 3, 0, 0, 0]);
    let of = |bytes: &[u8]| text(|out| assert!(socket_address(out, bytes)));
    assert_eq!(of(&bytes), "[fe80::1%3]:443");
    assert_eq!(of(&bytes[..24]), "[fe80::1]:443");
}
