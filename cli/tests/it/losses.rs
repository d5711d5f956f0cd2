//! Every command that writes a trace keeps the loss flags of buffers.

use crate::common::{BUFFER, buffer, directory, etlkit, event, header_event};
use std::collections::BTreeMap;
use std::path::Path;

const EVENTS_LOST: u16 = 2;
const BUFFER_LOST: u16 = 4;

/// Two buffers of each of two processors, with events of the buffer's number; processor 0 lost
/// events, processor 1 a buffer.
fn lossy() -> Vec<u8> {
    let flagged = |number: u16, processor: u16, timestamp: i64, flag: u16| {
        let records =
            [event(timestamp, number, 4, 0x8, None), event(timestamp + 10, number, 5, 0x10, None)];
        let mut bytes = buffer(number.into(), processor, 0, &records);
        let flags = u16::from_le_bytes([bytes[0x34], bytes[0x35]]) | flag;
        bytes[0x34..0x36].copy_from_slice(&flags.to_le_bytes());
        bytes
    };
    [
        buffer(0, 0, 4, &[header_event(5)]),
        flagged(1, 0, 1_000, 0),
        flagged(2, 1, 1_005, BUFFER_LOST),
        flagged(3, 0, 2_000, EVENTS_LOST),
        flagged(4, 1, 2_005, 0),
    ]
    .concat()
}

/// The loss flags of the data buffers of each processor.
fn loss_flags(here: &Path, file: &str) -> BTreeMap<u16, u16> {
    let bytes = std::fs::read(here.join(file)).unwrap();
    let mut rest = bytes.as_slice();
    let mut loss_flags = BTreeMap::new();
    while rest.len() >= 0x48 {
        let u16_at = |at: usize| u16::from_le_bytes([rest[at], rest[at + 1]]);
        let size = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        if u16_at(0x36) != 4 {
            *loss_flags.entry(u16_at(0x28) & 0x7ff).or_default() |=
                u16_at(0x34) & (EVENTS_LOST | BUFFER_LOST);
        }
        rest = rest.get(size..).unwrap_or_default();
    }
    loss_flags
}

#[test]
fn every_command_keeps_loss_flags() {
    let here = directory(&[("t.etl", &lossy())]);
    let here = here.path();
    let all = BTreeMap::from([(0, EVENTS_LOST), (1, BUFFER_LOST)]);
    assert_eq!(loss_flags(here, "t.etl"), all);
    for (tool, args) in [
        ("slice", &["slice", "t.etl"][..]),
        // No record of the flagged buffers is kept; one processor has a later buffer, one has none.
        ("slice --id", &["slice", "t.etl", "--id", "1", "--id", "4"]),
        ("scrub", &["scrub", "t.etl"]),
        ("repair", &["repair", "t.etl"]),
        ("merge", &["merge", "t.etl"]),
        ("compress", &["compress", "t.etl"]),
    ] {
        let output = format!("{}.etl", tool.replace(' ', ""));
        let said = etlkit(here, &[args, &["-o", &output]].concat());
        assert!(said.code < 2, "{tool}: {}", said.err);
        assert_eq!(loss_flags(here, &output), all, "{tool}");
    }
    let said = etlkit(here, &["decompress", "compress.etl", "-o", "plain.etl"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(loss_flags(here, "plain.etl"), all);
}

#[test]
fn repair_keeps_loss_flags() {
    // The last buffer is truncated.
    let whole = lossy();
    let here = directory(&[("t.etl", &whole[..4 * BUFFER + BUFFER / 2])]);
    let said = etlkit(here.path(), &["repair", "t.etl", "-o", "r.etl"]);
    assert!(said.code < 2, "{}", said.err);
    assert_eq!(
        loss_flags(here.path(), "r.etl"),
        BTreeMap::from([(0, EVENTS_LOST), (1, BUFFER_LOST)])
    );
}
