use super::*;
use crate::decode::Decoder;
use crate::testing::choices::agree;
use crate::testing::strategies::{payloads_of, pointer_sizes, schemas, schemas_with_values};
use crate::{Identity, SchemaSource};
use etl_format::Guid;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

fn event(fields: Vec<Field>) -> EventSchema {
    let id = Identity::Modern { id: 1, version: 0 };
    EventSchema {
        fields,
        ..EventSchema::new(Guid::ZERO, id, SchemaSource::Table)
    }
}

/// Encodes, decodes, compares, and encodes what came back.
fn round_trip(schema: EventSchema, given: &[OwnedValue], pointers: PointerSize) {
    let bytes = encode(&schema, given, pointers).unwrap();
    let decoder = Decoder::new(schema.into());
    let mut fields = decoder.fields(&bytes, pointers);
    let back = OwnedValue::collect(fields.clone());
    assert!(
        agree(given, &back),
        "{:?}\n{given:?}\n{back:?}\n{bytes:x?}",
        decoder.schema()
    );
    fields.by_ref().for_each(drop);
    assert!(
        fields.note().is_exact(),
        "{:?}\n{given:?}\n{:?}",
        decoder.schema(),
        fields.note()
    );
    assert_eq!(decoder.check(&bytes, pointers), fields.note());
    assert_eq!(encode(decoder.schema(), &back, pointers).unwrap(), bytes);
    for (index, value) in back.iter().enumerate() {
        let name = &*decoder.schema().fields[index].name;
        let direct = decoder.get(name, &bytes, pointers).map(OwnedValue::from);
        assert_eq!(direct.as_ref(), Some(value), "{name} alone");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn decode_undoes_encode_for_any_schema(
        (pointers, (schema, given)) in pointer_sizes().prop_flat_map(|pointers| {
            (Just(pointers), schemas_with_values(pointers))
        }),
    ) {
        round_trip(schema, &given, pointers);
    }

    #[test]
    fn fields_of_any_bytes_stay_within_them(
        schema in schemas(),
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        pointers in pointer_sizes(),
    ) {
        let decoder = Decoder::new(schema.into());
        let mut fields = decoder.fields(&payload, pointers);
        let values = OwnedValue::collect(fields.clone());
        fields.by_ref().for_each(drop);
        let note = fields.note();
        prop_assert_eq!(values.len() + note.missing, decoder.schema().fields.len());
        prop_assert!(note.trailing.len() <= payload.len());
        prop_assert_eq!(decoder.check(&payload, pointers), note);
    }

    #[test]
    fn fields_of_a_cut_payload_are_a_prefix_of_the_values(
        (schema, given) in schemas_with_values(PointerSize::P8),
        cut in 0usize..200,
    ) {
        let bytes = encode(&schema, &given, PointerSize::P8).unwrap();
        let decoder = Decoder::new(schema.into());
        let whole = OwnedValue::collect(decoder.fields(&bytes, PointerSize::P8));
        let part = OwnedValue::collect(
            decoder.fields(&bytes[..cut.min(bytes.len())], PointerSize::P8));
        prop_assert!(part.len() <= whole.len());
        // The one where the payload ends may be cut; after it only values of no bytes can follow.
        let mut differ = part.iter().zip(&whole).filter(|(a, b)| a != b).skip(1);
        prop_assert!(differ.all(|(cut, _)| takes_no_bytes(cut)), "{part:?}\n{whole:?}");
    }
}

/// Whether a value may follow the end of the payload.
fn takes_no_bytes(value: &OwnedValue) -> bool {
    match value {
        OwnedValue::Null => true,
        OwnedValue::Utf16(units) => units.is_empty(),
        OwnedValue::Ansi(bytes) | OwnedValue::Utf8(bytes) | OwnedValue::Binary(bytes) => {
            bytes.is_empty()
        }
        OwnedValue::Array(items) | OwnedValue::Struct(items) => items.iter().all(takes_no_bytes),
        _ => false,
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn decode_undoes_encode_for_every_event_of_the_tables() {
    use crate::tables::Registry;
    let mut runner = TestRunner::deterministic();
    for registry in [Registry::builtin(), Registry::classic()] {
        for event in registry.providers().flat_map(|p| &p.events) {
            for pointers in [PointerSize::P4, PointerSize::P8] {
                let payloads = payloads_of(event.schema.clone().into(), pointers);
                for _ in 0..8 {
                    let (given, _) = payloads.new_tree(&mut runner).unwrap().current();
                    round_trip(event.schema.clone(), &given, pointers);
                }
            }
        }
    }
}

#[test]
fn encode_fills_and_checks_counting_fields() {
    let schema = event(vec![
        Field::new("Count", InType::UInt16),
        Field::new("Items", InType::UInt32).with_count(Count::Field(FieldRef::Here(0))),
    ]);
    let items = OwnedValue::Array(vec![5u32.into(), 6u32.into()]);
    let builder = PayloadBuilder::new(&schema).set("Items", items);
    let bytes = builder.encode(PointerSize::P8).unwrap();
    assert_eq!(bytes, [2, 0, 5, 0, 0, 0, 6, 0, 0, 0]);
    let error = builder
        .set("Count", 3u16)
        .encode(PointerSize::P8)
        .unwrap_err();
    assert_eq!(
        error.problem,
        EncodeProblem::Miscounted {
            counted: 2,
            value: 3
        }
    );
    assert_eq!(
        error.to_string(),
        "field Count: it counts 2 of another field, but its value is 3"
    );
}

#[test]
fn encode_refuses_what_a_field_cannot_hold() {
    let schema = event(vec![
        Field::new("Name", InType::Utf16),
        Field::new("Small", InType::Int8),
    ]);
    let problem =
        |builder: PayloadBuilder<'_>| builder.encode(PointerSize::P8).unwrap_err().problem;
    let new = || PayloadBuilder::new(&schema);
    assert_eq!(
        problem(new().set("Name", "a\0b")),
        EncodeProblem::EmbeddedNul
    );
    assert_eq!(problem(new().set("Small", 128)), EncodeProblem::OutOfRange);
    assert_eq!(
        problem(new().set("Small", "x")),
        EncodeProblem::WrongType { expected: "Int8" }
    );
    assert_eq!(problem(new().set("Smal", 1)), EncodeProblem::NoSuchField);
    assert!(new().set("Small", -128).encode(PointerSize::P8).is_ok());
}

#[test]
fn encode_pads_fixed_text_and_refuses_longer_text() {
    let field = Field::new("Name", InType::Utf16).with_length(Length::Fixed(4));
    let schema = event(vec![field]);
    let bytes = PayloadBuilder::new(&schema)
        .set("Name", "ab")
        .encode(PointerSize::P4)
        .unwrap();
    assert_eq!(bytes, b"a\0b\0\0\0\0\0");
    let problem = PayloadBuilder::new(&schema)
        .set("Name", "abcde")
        .encode(PointerSize::P4);
    assert_eq!(
        problem.unwrap_err().problem,
        EncodeProblem::TooLong { have: 5, max: 4 }
    );
}
