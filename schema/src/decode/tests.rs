use super::*;
use crate::model::{Count, FieldRef, Identity, InType, Length, OutType, SchemaSource};
use etl_format::Guid;

#[test]
fn string_layout_finds_texts_between_fixed_fields() {
    let field = |ty| Field::new("F", ty);
    let text = || field(InType::Utf16);
    let (number, pointer) = (|| field(InType::UInt32), || field(InType::Pointer));
    let around = |fields| decoder(fields).string_layout(PointerSize::P8);
    let is = |before, texts, after| {
        Some(StringLayout {
            before,
            texts,
            after,
        })
    };
    assert_eq!(
        around(vec![number(), text(), text(), pointer(), number()]),
        is(4, 2, 12)
    );
    assert_eq!(around(vec![text()]), is(0, 1, 0));
    assert_eq!(around(vec![number()]), None, "none");
    assert_eq!(around(vec![text(), number(), text()]), None, "not in a row");
    assert_eq!(
        around(vec![text().with_length(Length::Fixed(4))]),
        None,
        "of a fixed size"
    );
    assert_eq!(around(vec![]), None);
}

#[test]
fn fixed_size_sums_all_fields() {
    let number = |name| Field::new(name, InType::UInt32);
    let fixed = decoder(vec![number("A"), Field::new("B", InType::Pointer)]);
    assert_eq!(fixed.fixed_size(PointerSize::P4), Some(8));
    assert_eq!(fixed.fixed_size(PointerSize::P8), Some(12));
    assert!(fixed.check(&[0; 12], PointerSize::P8).is_exact());
    assert!(!fixed.check(&[0; 12], PointerSize::P4).is_exact());
    let text = decoder(vec![
        number("A"),
        Field::new("B", InType::Utf16),
        number("C"),
    ]);
    assert_eq!(text.fixed_size(PointerSize::P8), None);
    assert_eq!(decoder(vec![]).fixed_size(PointerSize::P8), Some(0));
}

fn decoder(fields: Vec<Field>) -> Decoder {
    let id = Identity::Modern { id: 1, version: 0 };
    let schema = EventSchema {
        fields,
        ..EventSchema::new(Guid::ZERO, id, SchemaSource::Table)
    };
    Decoder::new(Arc::new(schema))
}

#[test]
fn fields_reads_pointers_of_both_widths() {
    let d = decoder(vec![
        Field::new("P", InType::Pointer),
        Field::new("N", InType::UInt16),
    ]);
    let payload = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0];
    let read = |p| {
        let mut f = d.fields(&payload, p);
        let v: Vec<_> = f.by_ref().filter_map(|(_, v)| v.as_u64()).collect();
        (v, f.note().trailing.len())
    };
    assert_eq!(read(PointerSize::P4), (vec![1, 2], 4));
    assert_eq!(read(PointerSize::P8), (vec![0x2_0000_0001, 3], 0));
}

/// Counts that are needed one after the other take turns.
#[test]
fn fields_decodes_any_number_of_counted_fields() {
    let counted = |at: u16| {
        let count = Count::Field(FieldRef::Here(2 * at));
        [
            Field::new("N", InType::UInt8),
            Field::new("V", InType::UInt8).with_count(count),
        ]
    };
    let mut fields: Vec<_> = (0..40).flat_map(counted).collect();
    // Members that are counted by the first of all fields, which so is needed to the end.
    let by_top = Field::new("T", InType::UInt8).with_count(Count::Field(FieldRef::Top(0)));
    fields.push(Field::structure("S", vec![by_top]));
    let payload: Vec<u8> = (0..40).flat_map(|at| [1, at]).chain([77]).collect();
    let d = decoder(fields);
    let mut fields = d.fields(&payload, PointerSize::P8);
    let arrays: Vec<_> = (fields.by_ref())
        .filter_map(|(_, value)| match value {
            Value::Array(array) => array.iter().next()?.as_u64(),
            Value::Struct(members) => match members.fields().next()? {
                (_, Value::Array(array)) => array.iter().next()?.as_u64(),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(arrays, (0..40).chain([77]).collect::<Vec<_>>());
    assert!(fields.note().is_exact());
}

#[test]
fn fields_ends_before_a_field_whose_count_is_not_kept() {
    // All counts first: the last of them has no slot.
    let mut fields: Vec<_> = (0..17).map(|_| Field::new("N", InType::UInt8)).collect();
    let counted = |at| Field::new("V", InType::UInt8).with_count(Count::Field(FieldRef::Here(at)));
    fields.extend((0..17).map(counted));
    fields.push(Field::new("End", InType::UInt8));
    let d = decoder(fields);
    let payload: Vec<u8> = [1; 17].into_iter().chain([7; 17]).chain([99]).collect();
    let mut fields = d.fields(&payload, PointerSize::P8);
    assert_eq!(fields.by_ref().count(), 17 + 16);
    assert_eq!(fields.note().trailing, [7, 99]);
}

#[test]
fn next_with_range_excludes_counts_and_nuls() {
    let d = decoder(vec![
        Field::new("A", InType::UInt32),
        Field::new("B", InType::Utf16),
        Field::new("C", InType::Binary),
        Field::structure(
            "D",
            vec![
                Field::new("E", InType::UInt8),
                Field::new("F", InType::Ansi),
            ],
        ),
        Field::new("G", InType::UInt16).with_count(Count::Const(2)),
    ]);
    let payload = b"\x01\0\0\0x\0y\0\0\0\x03\0abc\x07text\0\x08\0\x09\0";
    let mut fields = d.fields(payload, PointerSize::P8);
    let mut ranges = Vec::new();
    while let Some(LocatedField { value, range, .. }) = fields.next_with_range() {
        match value {
            Value::Utf16(text) => assert_eq!(payload.get(range.clone()), Some(text.bytes())),
            Value::Binary(bytes) => assert_eq!(payload.get(range.clone()), Some(bytes)),
            Value::Struct(members) => {
                let mut members = members.fields();
                assert_eq!(
                    members.next_with_range().map(|located| located.range),
                    Some(0..1)
                );
                assert_eq!(
                    members.next_with_range().map(|located| located.range),
                    Some(1..5)
                );
            }
            Value::Array(items) => {
                let mut items = items.iter();
                assert_eq!(
                    items.next_with_range().map(|located| located.range),
                    Some(0..2)
                );
                assert_eq!(
                    items.next_with_range().map(|located| located.range),
                    Some(2..4)
                );
                assert!(items.next_with_range().is_none());
            }
            _ => {}
        }
        ranges.push(range);
    }
    assert_eq!(ranges, [0..4, 4..8, 12..15, 15..21, 21..25]);
    assert!(fields.note().is_exact());
}

#[test]
fn note_counts_the_fields_that_a_short_payload_lacks() {
    let d = decoder(vec![
        Field::new("A", InType::UInt32),
        Field::new("B", InType::Utf16),
        Field::new("C", InType::UInt32),
    ]);
    let note = |bytes| d.check(bytes, PointerSize::P8);
    assert_eq!(
        note(b""),
        Note {
            missing: 3,
            clipped: false,
            trailing: b""
        }
    );
    assert_eq!(
        note(b"\x01\0\0"),
        Note {
            missing: 3,
            clipped: false,
            trailing: b"\x01\0\0"
        }
    );
    assert_eq!(
        note(b"\x01\0\0\0"),
        Note {
            missing: 2,
            clipped: false,
            trailing: b""
        }
    );
    // Text without its NUL reaches to the end.
    assert_eq!(
        note(b"\x01\0\0\0x\0"),
        Note {
            missing: 1,
            clipped: false,
            trailing: b""
        }
    );
    let name = d
        .get("B", b"\x01\0\0\0x\0", PointerSize::P8)
        .and_then(|v| v.as_utf16());
    assert!(name.is_some_and(|n| n.to_string() == "x"));
    assert!(d.get("C", b"\x01\0\0\0x\0", PointerSize::P8).is_none());
    assert!(note(b"\x01\0\0\0x\0\0\0\x02\0\0\0").is_exact());
}

#[test]
fn fields_reads_a_wbem_sid_without_a_sid() {
    let d = decoder(vec![
        Field::new("Sid", InType::WbemSid),
        Field::new("N", InType::UInt8),
    ]);
    let none = [0, 0, 0, 0, 7];
    assert!(matches!(
        d.get("Sid", &none, PointerSize::P8),
        Some(Value::Null)
    ));
    assert_eq!(
        d.get("N", &none, PointerSize::P8).and_then(|v| v.as_u64()),
        Some(7)
    );
    let mut some = vec![0xcc; 8];
    some.extend([1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0, 9]);
    let Some(Value::Sid(sid)) = d.get("Sid", &some, PointerSize::P4) else {
        panic!()
    };
    assert_eq!(sid.0.len(), 12);
    assert_eq!(
        d.get("N", &some, PointerSize::P4).and_then(|v| v.as_u64()),
        Some(9)
    );
}

#[test]
fn fields_reads_arrays_of_structs_with_counted_members() {
    let d = decoder(vec![
        Field::new("Width", InType::UInt8),
        Field::new("Count", InType::UInt16),
        Field::structure(
            "Items",
            vec![
                Field::new("Len", InType::UInt8),
                Field::new("Name", InType::Ansi).with_length(Length::Field(FieldRef::Here(0))),
                Field::new("Blob", InType::Binary).with_length(Length::Field(FieldRef::Top(0))),
            ],
        )
        .with_count(Count::Field(FieldRef::Here(1))),
        Field::new("Port", InType::UInt16).with_out(OutType::Port),
    ]);
    let payload = b"\x02\x02\0\x01aXY\x03bcdZW\x1f\x90";
    let Some(Value::Array(items)) = d.get("Items", payload, PointerSize::P8) else {
        panic!()
    };
    let items: Vec<Vec<&[u8]>> = items
        .iter()
        .map(|v| {
            let Value::Struct(s) = v else { panic!() };
            s.fields().filter_map(|(_, v)| v.as_bytes()).collect()
        })
        .collect();
    assert_eq!(items, [[&b"a"[..], b"XY"], [&b"bcd"[..], b"ZW"]]);
    assert_eq!(
        d.get("Port", payload, PointerSize::P8)
            .and_then(|v| v.as_u64()),
        Some(8080)
    );
    assert!(d.check(payload, PointerSize::P8).is_exact());
    // The second element is cut: one is there.
    let cut = &payload[..9];
    let Some(Value::Array(items)) = d.get("Items", cut, PointerSize::P8) else {
        panic!()
    };
    assert_eq!(items.len(), 1);
    assert!(d.check(cut, PointerSize::P8).clipped);
}

#[test]
fn fields_bounds_the_cost_of_hostile_counts() {
    // Arrays of arrays of arrays of nothing, all counted 65535 times.
    let count = Count::Field(FieldRef::Top(0));
    let mut field = Field::structure("s", vec![]).with_count(count);
    for _ in 0..12 {
        field = Field::structure("s", vec![field]).with_count(count);
    }
    field.count = Count::Field(FieldRef::Here(0));
    let d = decoder(vec![Field::new("n", InType::UInt16), field]);
    fn visit(fields: Fields<'_>) -> usize {
        fields
            .map(|(_, v)| match v {
                Value::Array(a) => a
                    .iter()
                    .map(|v| match v {
                        Value::Struct(s) => 1 + visit(s.fields()),
                        _ => 1,
                    })
                    .sum(),
                _ => 1,
            })
            .sum()
    }
    assert!(visit(d.fields(b"\xff\xff", PointerSize::P8)) < 100_000);
}

#[test]
fn fields_reads_an_array_up_to_the_end_of_the_payload() {
    let d = decoder(vec![
        Field::new("Ticks", InType::UInt64),
        Field::new("Stack", InType::Pointer).with_count(Count::Rest),
    ]);
    let mut payload = vec![0; 8];
    payload.extend(1u64.to_le_bytes());
    payload.extend(2u64.to_le_bytes());
    let Some(Value::Array(stack)) = d.get("Stack", &payload, PointerSize::P8) else {
        panic!()
    };
    assert_eq!(
        stack.iter().filter_map(|v| v.as_u64()).collect::<Vec<_>>(),
        [1, 2]
    );
    payload.push(0);
    assert_eq!(d.check(&payload, PointerSize::P8).trailing, [0]);
    assert!(
        d.check(&payload[..8], PointerSize::P8).is_exact(),
        "no frame is fine"
    );
}
