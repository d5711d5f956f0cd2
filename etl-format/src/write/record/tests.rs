//! Encoded records, compared with expected bytes.

use super::*;
use crate::constants::{ExtendedType, MessageFlags, PointerSize};
use crate::{EventDescriptor, Guid, Ticks};

fn hex(record: &impl Record) -> String {
    let mut out = Vec::new();
    record.encode(&mut out).unwrap();
    out.iter().map(|b| format!("{b:02x}")).collect()
}

const TIMESTAMP: i64 = 0x1122_3344_5566_7788;
const CLASS: Guid = Guid::new(0x03020100, 0x0504, 0x0706, [8, 9, 10, 11, 12, 13, 14, 15]);

fn full(payload: &[u8]) -> Full<'_> {
    Full::new(CLASS, 0x21, TIMESTAMP)
        .version(2)
        .level(4)
        .process(0xb0b1, 0xa0a1)
        .cpu_times(5, 6)
        .payload(payload)
}

#[test]
fn encode_writes_kernel_records() {
    let system = System::new(0x0301, TIMESTAMP)
        .pointer_size(PointerSize::P4)
        .process(9, 7)
        .cpu_times(0xc, 0xd)
        .payload(&[0xee]);
    assert_eq!(
        hex(&system),
        "020001c021000103 0700000009000000 8877665544332211 0c0000000d000000 ee".replace(' ', "")
    );
    let compact = System::new(0x0524, TIMESTAMP).process(9, 7).compact();
    assert_eq!(
        hex(&compact),
        "020004c018002405 0700000009000000 8877665544332211".replace(' ', "")
    );
    let perf = PerfInfo::new(0x0f2e, TIMESTAMP)
        .pebs_index(3)
        .counters(&[1, 2])
        .payload(&[0xaa, 0xbb]);
    assert_eq!(
        hex(&perf),
        "028211c02a002e0f 8877665544332211 0300000000000000 0100000000000000 0200000000000000 aabb"
            .replace(' ', "")
    );
    assert!(perf.counters(&[0; 8]).encode(&mut Vec::new()).is_err());
}

#[test]
fn encode_writes_classic_records() {
    let head = "210402 00a1a00000b1b00000 8877665544332211 000102030405060708090a0b0c0d0e0f \
                0500000006000000"
        .replace(' ', "");
    assert_eq!(hex(&full(&[1])), format!("310014c0{head}01"));
    let instance =
        Instance::new(full(&[1, 2]).pointer_size(PointerSize::P4), 0x11).parent(CLASS, 0x22);
    assert_eq!(
        hex(&instance),
        format!("4a000bc0{head}1100000022000000000102030405060708090a0b0c0d0e0f0102")
    );
}

#[test]
fn message_encodes_the_announced_fields() {
    let message = Message::new(CLASS, 10, TIMESTAMP)
        .sequence(0x51)
        .component(0xc0)
        .process(2, 1)
        .flags(MessageFlags(0x2b))
        .payload(&[0xff]);
    assert_eq!(
        hex(&message),
        "2d0000900a002b00 51000000 000102030405060708090a0b0c0d0e0f 8877665544332211 \
         0100000002000000 ff"
            .replace(' ', "")
    );
    let component = message
        .flags(MessageFlags(0x46))
        .marker(MessageMarker::Kind);
    assert_eq!(hex(&component), "0d000fc00a004600c0000000ff");
    assert_eq!(component.timestamp(), None);
    for bits in 0..=0xff_u16 {
        let flags = MessageFlags(bits);
        let mut out = Vec::new();
        message.flags(flags).encode(&mut out).unwrap();
        let fields = [(1, 4), (0x20, 8)].map(|(f, n)| if bits & f != 0 { n } else { 0 });
        let id = if bits & 4 != 0 {
            4
        } else {
            usize::from(bits & 2 != 0) * 16
        };
        let timestamp = if bits & 0x18 != 0 { 8 } else { 0 };
        assert_eq!(
            out.len(),
            8 + fields.iter().sum::<usize>() + id + timestamp + 1,
            "{bits:#x}"
        );
        assert_eq!(usize::from(out[0]), out.len());
    }
}

#[test]
fn event_rounds_and_links_extended_items() {
    let event = Event::new(
        CLASS,
        EventDescriptor {
            id: 0x0a0b,
            version: 1,
            channel: 11,
            level: 4,
            opcode: 2,
            task: 0x0c0d,
            keyword: 0x8000_0000_0000_0001,
        },
        TIMESTAMP,
    )
    .process(2, 1)
    .cpu_times(3, 4)
    .extended(&[
        Extended::ProviderTraits(&[3, 0, 0]),
        Extended::Stack32 {
            match_id: 9,
            addresses: &[0x77],
        },
    ])
    .payload(&[0xab]);
    assert_eq!(
        hex(&event),
        "790013c001000000 0100000002000000 8877665544332211 000102030405060708090a0b0c0d0e0f \
         0b0a010b04020d0c 0100000000000080 0300000004000000 00000000000000000000000000000000 \
         10000c0001000300 0300000000000000 18000500 00000c00 0900000000000000 77000000 00000000 ab"
            .replace(' ', "")
    );
    let plain = event.extended(&[]);
    assert_eq!(hex(&plain).get(8..12), Some("0000"));
}

#[test]
fn extended_encodes_the_size_of_each_type() {
    use Extended::*;
    let cases: &[(Extended<'_>, u16, usize)] = &[
        (RelatedActivity(CLASS), 1, 16),
        (
            Stack32 {
                match_id: 0,
                addresses: &[1, 2, 3],
            },
            5,
            20,
        ),
        (
            Stack64 {
                match_id: 0,
                addresses: &[1, 2, 3],
            },
            6,
            32,
        ),
        (Schema(&[2, 0]), 11, 2),
        (ProviderTraits(&[2, 0]), 12, 2),
        (
            Other(ExtendedType::SID, &[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0]),
            2,
            12,
        ),
        (Other(ExtendedType(99), &[]), 99, 0),
    ];
    for (item, kind, size) in cases {
        let mut out = Vec::new();
        item.encode(false, &mut out).unwrap();
        assert_eq!(out.len() % 8, 0);
        assert_eq!(
            usize::from(u16::from_le_bytes([out[0], out[1]])),
            out.len(),
            "{item:?}"
        );
        assert_eq!(u16::from_le_bytes([out[2], out[3]]), *kind);
        assert_eq!(out[4..6], [0, 0]);
        assert_eq!(
            usize::from(u16::from_le_bytes([out[6], out[7]])),
            *size,
            "{item:?}"
        );
        assert_eq!(out.len(), 8 + size.next_multiple_of(8));
        assert_eq!(out.len(), item.encoded_len());
    }
}

#[test]
fn encode_leaves_the_output_unchanged_when_too_long() {
    let mut out = vec![1, 2, 3];
    assert!(full(&[0; 0x1_0000 - 0x30]).encode(&mut out).is_err());
    assert_eq!(out, [1, 2, 3]);
    full(&[0; 0xffff - 0x30]).encode(&mut out).unwrap();
    assert_eq!(out.len(), 3 + 0xffff);
}

#[test]
fn raw_checks_the_size_field() {
    let mut bytes = Vec::new();
    full(&[9; 3]).encode(&mut bytes).unwrap();
    let mut out = Vec::new();
    Raw {
        bytes: &bytes,
        timestamp: Some(Ticks::new(1)),
    }
    .encode(&mut out)
    .unwrap();
    assert_eq!(out, bytes);
    assert!(
        Raw {
            bytes: &bytes[..0x30],
            timestamp: None
        }
        .encode(&mut out)
        .is_err()
    );
    assert!(
        Raw {
            bytes: &[8, 0],
            timestamp: None
        }
        .encode(&mut out)
        .is_err()
    );
}
