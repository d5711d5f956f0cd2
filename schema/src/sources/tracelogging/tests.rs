use super::*;
use crate::model::{FieldKind, OutType};
use crate::testing::choices::{Choices, schema};
use proptest::prelude::*;

/// Makes a schema sayable: what TraceLogging has no code for becomes what is nearest.
fn sayable(fields: Vec<Field>) -> Vec<Field> {
    fields
        .into_iter()
        .filter_map(|mut field| {
            if matches!(field.count, Count::Field(_) | Count::Rest) {
                field.count = Count::Prefixed;
            }
            match field.kind {
                FieldKind::Struct(members) => {
                    let members = sayable(members);
                    if members.is_empty() {
                        return None;
                    }
                    field.kind = FieldKind::Struct(members);
                }
                FieldKind::Value(InType::SizeT | InType::WbemSid) => return None,
                FieldKind::Value(ty) => {
                    if codes::in_code(ty, field.length).is_none() {
                        field.length = ty.default_length();
                    }
                }
            }
            Some(field)
        })
        .collect()
}

proptest! {
    #[test]
    fn parse_undoes_build(
        shape in proptest::collection::vec(any::<u8>(), 0..120), tags in any::<u32>()
    ) {
        let mut given = schema(&mut Choices::new(&shape));
        given.identity = Identity::SelfDescribing;
        given.source = SchemaSource::TraceLogging;
        given.name = "event".into();
        given.tags = tags & 0x0fff_ffff;
        given.fields = sayable(given.fields);
        if let Some(first) = given.fields.first_mut() {
            first.tags = tags & 0x0aff_0000;
        }
        let bytes = build(&given).unwrap();
        prop_assert_eq!(parse(Guid::ZERO, &bytes).unwrap(), given);
    }

    #[test]
    fn parse_accepts_or_refuses_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(Guid::ZERO, &bytes);
        if let Some(traits) = ProviderTraits::parse(&bytes) {
            let again = traits.build();
            prop_assert_eq!(ProviderTraits::parse(&again), Some(traits));
        }
    }
}

#[test]
fn parse_reads_every_part_of_the_format() {
    let mut data = vec![0, 0, 0x80, 0x01];
    data.extend(b"Ev\0s\0\x16n\0\x88\x84\x01a\0\x24\x02\0st\0\x58\x02x\0\x04y\0\x84\x03");
    // The struct's member count needs the byte after its type.
    let at = data.windows(2).position(|w| w == b"t\0").unwrap() + 2;
    data[at] = 0x58 | MORE;
    data[0] = data.len() as u8;
    let schema = parse(Guid::ZERO, &data).unwrap();
    assert_eq!(schema.tags, 1 << 14);
    assert_eq!(schema.name, "Ev");
    let [s, n, a, st] = &schema.fields[..] else {
        panic!("{:?}", schema.fields)
    };
    assert_eq!((s.in_type(), s.length), (Some(InType::Utf16), Length::U16));
    assert_eq!(
        (n.in_type(), n.out, n.tags),
        (Some(InType::UInt32), OutType::Hex, 1 << 21)
    );
    assert_eq!(
        (a.in_type(), a.count),
        (Some(InType::UInt8), Count::Const(2))
    );
    assert_eq!(st.count, Count::Prefixed);
    let FieldKind::Struct(members) = &st.kind else {
        panic!()
    };
    assert_eq!(
        members.iter().map(|m| &*m.name).collect::<Vec<_>>(),
        ["x", "y"]
    );
    assert_eq!(members[1].out, OutType::Boolean);
}

#[test]
fn parse_reads_an_unknown_type_as_the_rest() {
    let schema = parse(Guid::ZERO, b"\x0b\0\0e\0f\0\x1fg\0\x04").unwrap();
    assert_eq!(
        schema.fields,
        [Field::new("f", InType::Binary).with_length(Length::Rest)]
    );
}

#[test]
fn parse_refuses_cut_metadata() {
    let whole = b"\x0a\0\0e\0f\0\x88\x04";
    assert!(parse(Guid::ZERO, whole).is_ok());
    for len in [0, 1, 2, 3, 4, 6, 7, 8] {
        assert!(
            matches!(
                parse(Guid::ZERO, &whole[..len]),
                Err(Error::ShortMetadata { .. })
            ),
            "{len}"
        );
    }
    let bottomless: Vec<u8> = [&b"\xff\xff\0e\0"[..], &b"f\0\x98\x01".repeat(100)].concat();
    assert_eq!(parse(Guid::ZERO, &bottomless), Err(Error::TooDeep));
    let empty_handed = b"\x09\0\0e\0f\0\x98\x02";
    assert_eq!(parse(Guid::ZERO, empty_handed), Err(Error::MissingMembers));
}

#[test]
fn provider_traits_parse_undoes_build() {
    let group = "4f50731a-89cf-4782-b3e0-dce8c90476ba".parse().unwrap();
    let traits = ProviderTraits {
        name: "A.B".into(),
        group: Some(group),
        ..ProviderTraits::default()
    };
    let data = traits.build();
    assert_eq!(data.len(), 2 + 4 + 0x13);
    assert_eq!(ProviderTraits::parse(&data), Some(traits));
}
