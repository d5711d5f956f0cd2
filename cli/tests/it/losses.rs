//! What is missing from a trace: every command says so, and those that write a trace keep the loss
//! flags of its buffers.

use crate::common::{BUFFER, buffer, directory, etlkit, event, header_event};
use std::collections::BTreeMap;
use std::path::Path;

const EVENTS_LOST: u16 = 2;
const BUFFER_LOST: u16 = 4;

/// Two buffers of each of two processors, with events of the buffer's number; processor 0 lost
/// events, processor 1 a buffer.
fn lossy() -> Vec<u8> {
    let flagged = |number: u16, processor: u16, timestamp: i64, flag: u16| {
        let records = [
            event(timestamp, number, 4, 0x8, None),
            event(timestamp + 10, number, 5, 0x10, None),
        ];
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

/// Traces that lack something, with the exit code and the beginning of the line on standard error.
fn lacking() -> Vec<(&'static str, Vec<u8>, i32, &'static str)> {
    let data = |number: u64| {
        let timestamp = number as i64 * 1_000;
        let records = [
            event(timestamp, 1, 4, 0x8, None),
            event(timestamp + 10, 2, 5, 0x10, None),
        ];
        buffer(number, 0, 0, &records)
    };
    // Mode, largest size and lost events lie in the payload of the header event.
    let payload = 0x48 + 0x20;
    let file = |buffers: u32, numbers: &[u64]| {
        let mut out = buffer(0, 0, 4, &[header_event(buffers)]);
        numbers.iter().for_each(|&number| out.extend(data(number)));
        out
    };
    let sound = || file(4, &[1, 2, 3]);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut out = sound();
        change(&mut out);
        out
    };
    let relogged = |mut bytes: Vec<u8>| {
        bytes[payload + 0x20..payload + 0x24].copy_from_slice(&0x0001_0001u32.to_le_bytes());
        bytes
    };
    let at = 2 * BUFFER;
    let used = u32::from_le_bytes(sound()[at + 0x30..at + 0x34].try_into().unwrap()) as usize;
    vec![
        ("sound", sound(), 0, ""),
        (
            "filler",
            changed(&|b| b[at + 0xa0..at + used].fill(0xff)),
            1,
            "warning",
        ),
        (
            "zeros",
            changed(&|b| b[at + 0x48..at + used].fill(0)),
            1,
            "warning",
        ),
        (
            "small fill",
            changed(&|b| b[at + 0x30] = 0x48),
            1,
            "warning",
        ),
        ("large fill", changed(&|b| b[at + 0x32] = 1), 1, "warning"),
        ("fewer buffers", file(4, &[1, 2]), 1, "warning"),
        (
            "gap in a relogged file",
            relogged(file(4, &[1, 3, 4])),
            1,
            "warning",
        ),
        ("gap in a kernel file", file(4, &[1, 3, 4]), 0, "note"),
        (
            "lost events",
            changed(&|b| b[payload + 0x30] = 5),
            0,
            "note",
        ),
        (
            "short circular file",
            circular(file(4, &[1, 2]), 100),
            1,
            "warning",
        ),
        ("full circular file", circular(file(9, &[7, 8]), 12), 0, ""),
        (
            "no header event",
            changed(&|b| b[0x48..0x68].fill(0)),
            1,
            "warning",
        ),
    ]
}

#[test]
fn every_command_says_what_is_missing() {
    for (what, bytes, code, level) in lacking() {
        let here = directory(&[("t.etl", &bytes)]);
        let strict_code = if code == 1 && what != "gap in a relogged file" {
            2
        } else {
            code
        };
        let tables: &[&[&str]] = &[
            &["export", "parquet", "t.etl", "-o", "set"],
            &[
                "export", "parquet", "t.etl", "-o", "events", "--tables", "events",
            ],
            &[
                "export",
                "parquet",
                "t.etl",
                "-o",
                "typed",
                "--tables",
                "processes",
                "--typed",
            ],
            &[
                "export",
                "arrow",
                "t.etl",
                "-o",
                "events.arrow",
                "--no-names",
            ],
            &[
                "export",
                "arrow",
                "t.etl",
                "-o",
                "facts.arrow",
                "--table",
                "processes",
            ],
        ];
        let tables = if cfg!(feature = "parquet") {
            tables
        } else {
            &[]
        };
        let files = [
            (&["info", "t.etl"][..], code),
            (&["dump", "t.etl"], code),
            (&["dump", "t.etl", "--file-order"], code),
            (&["dump", "t.etl", "--threads", "2"], code),
            (&["slice", "t.etl", "-o", "slice.etl"], code),
            (
                &["slice", "t.etl", "-o", "slice2.etl", "--no-keep-state"],
                code,
            ),
            (&["scrub", "t.etl", "-o", "scrub.etl"], code),
            (&["merge", "t.etl", "-o", "merge.etl", "--salvage"], code),
            (&["repair", "t.etl", "-o", "repair.etl"], code),
            (&["merge", "t.etl", "-o", "strict.etl"], strict_code),
            (&["compress", "t.etl", "-o", "compress.etl"], strict_code),
            (&["decompress", "t.etl", "-o", "plain.etl"], strict_code),
        ];
        for (args, code) in files
            .into_iter()
            .chain(tables.iter().map(|&args| (args, code)))
        {
            let said = etlkit(here.path(), args);
            assert_eq!(
                said.code, code,
                "{what}: {args:?}: {}{}",
                said.out, said.err
            );
            let level = if code == 2 { "error" } else { level };
            let lines: Vec<_> = said
                .err
                .lines()
                .filter(|l| !l.starts_with("hint"))
                .collect();
            let start = format!("{level}: t.etl: ");
            match lines[..] {
                [] => assert_eq!(level, "", "{what}: {args:?}: nothing is said"),
                [line] => assert!(line.starts_with(&start), "{what}: {args:?}: {line}"),
                _ => panic!("{what}: {args:?}: {}", said.err),
            }
        }
        let said = etlkit(here.path(), &["diff", "t.etl", "t.etl"]);
        assert_eq!(said.code, code, "{what}: diff: {}", said.err);
        assert_eq!(
            said.err.lines().count(),
            if level.is_empty() { 0 } else { 2 },
            "{what}"
        );
    }
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

/// Where the header event's payload begins.
const HEADER_EVENT: usize = 0x48 + 0x20;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Four data buffers of one processor, with two events each. `mode` is that of the header, which
/// counts `counted` buffers.
fn four_buffers(mode: u32, counted: u32) -> Vec<u8> {
    let data = |number: u16| {
        let at = i64::from(number) * 1_000;
        let records = [
            event(at, number, 4, 0x8, None),
            event(at + 10, number, 5, 0x10, None),
        ];
        buffer(number.into(), 0, 0, &records)
    };
    let mut bytes = buffer(0, 0, 4, &[header_event(counted)]);
    bytes[HEADER_EVENT + 0x20..HEADER_EVENT + 0x24].copy_from_slice(&mode.to_le_bytes());
    [bytes, data(1), data(2), data(3), data(4)].concat()
}

/// A circular file with this limit.
fn circular(mut bytes: Vec<u8>, kilobytes: u32) -> Vec<u8> {
    bytes[HEADER_EVENT + 0x1c..HEADER_EVENT + 0x20].copy_from_slice(&kilobytes.to_le_bytes());
    bytes[HEADER_EVENT + 0x20..HEADER_EVENT + 0x24].copy_from_slice(&0x2002_u32.to_le_bytes());
    bytes
}

/// The buffers after the first one with numbers that are larger by 4.
fn renumbered(mut bytes: Vec<u8>) -> Vec<u8> {
    (1..5).for_each(|buffer| bytes[buffer * BUFFER + 0x18] += 4);
    bytes
}

fn without_buffer(mut bytes: Vec<u8>, index: usize) -> Vec<u8> {
    bytes.drain(index * BUFFER..(index + 1) * BUFFER);
    bytes
}

/// Writes buffer 2 over buffer 3.
fn with_copy(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.copy_within(2 * BUFFER..3 * BUFFER, 3 * BUFFER);
    bytes
}

/// A trace that is damaged after its first event says so, however little of it is printed.
#[test]
fn limit_does_not_hide_later_damage() {
    let mut bytes = four_buffers(1, 5);
    let second = 3 * BUFFER + 0x48 + event(0, 0, 4, 0, None).len();
    bytes[second..second + 2].copy_from_slice(&0xfff8_u16.to_le_bytes());
    let here = directory(&[("t.etl", &bytes)]);
    for args in [
        &["dump", "t.etl", "--limit", "1"][..],
        &["dump", "t.etl", "--limit", "1", "--file-order"],
        &["dump", "t.etl", "--limit", "1", "--format", "jsonl"],
    ] {
        let said = etlkit(here.path(), args);
        assert_eq!(said.code, 1, "{args:?}: {}", said.err);
        assert!(
            said.err.contains("warning: t.etl: "),
            "{args:?}: {}",
            said.err
        );
    }
}

/// The second run finds the trace in the data set, and still says that it is damaged.
#[test]
#[cfg(feature = "parquet")]
fn known_damaged_trace_is_still_reported() {
    let mut bytes = four_buffers(1, 5);
    let second = 3 * BUFFER + 0x48 + event(0, 0, 4, 0, None).len();
    bytes[second..second + 2].copy_from_slice(&0xfff8_u16.to_le_bytes());
    let here = directory(&[("t.etl", &bytes)]);
    for run in ["the first", "the second"] {
        let said = etlkit(here.path(), &["export", "parquet", "t.etl", "-o", "set"]);
        assert_eq!(said.code, 1, "{run}: {}", said.err);
        assert!(said.err.contains("warning: t.etl: "), "{run}: {}", said.err);
    }
}

#[test]
fn every_command_counts_missing_buffers_as_lost() {
    const KERNEL: u32 = 1;
    const RELOGGED: u32 = 0x1_0001;
    let mut broken = four_buffers(KERNEL, 5);
    // The size of the second record of buffer 2 leaves the buffer.
    let second = 2 * BUFFER + 0x48 + event(0, 0, 4, 0, None).len();
    broken[second..second + 2].copy_from_slice(&0xfff8_u16.to_le_bytes());
    let mut counted = four_buffers(KERNEL, 5);
    // Two buffers that the session could not write.
    counted[HEADER_EVENT + 0x114] = 2;
    for (what, bytes, lost) in [
        ("complete", four_buffers(RELOGGED, 5), 0),
        (
            "a number without buffer",
            without_buffer(four_buffers(RELOGGED, 4), 2),
            1,
        ),
        // The kernel numbers empty buffers, too.
        (
            "a number of the kernel",
            without_buffer(four_buffers(KERNEL, 4), 2),
            0,
        ),
        (
            "the same, and a count that says it",
            without_buffer(four_buffers(KERNEL, 5), 2),
            1,
        ),
        (
            "a copy of a buffer in the place of another",
            with_copy(four_buffers(KERNEL, 5)),
            1,
        ),
        ("end of the file", four_buffers(RELOGGED, 8), 3),
        ("a record that leaves its buffer", broken, 1),
        ("counted in the header", counted, 2),
        // What was in memory when it ended.
        ("a session that was not closed", four_buffers(KERNEL, 1), 1),
        (
            "a circular file that ends early",
            circular(four_buffers(KERNEL, 7), 100),
            2,
        ),
        (
            "a circular file that is full",
            circular(renumbered(four_buffers(KERNEL, 9)), 20),
            4,
        ),
    ] {
        let here = directory(&[("t.etl", &bytes)]);
        for args in [
            &["slice", "t.etl"][..],
            &["slice", "t.etl", "--id", "4", "--compress"],
            &["scrub", "t.etl"],
            &["repair", "t.etl"],
            &["merge", "t.etl", "--salvage"],
        ] {
            let said = etlkit(here.path(), &[args, &["-o", "out.etl", "--force"]].concat());
            assert!(said.code < 2, "{what}: {args:?}: {}", said.err);
            let out = std::fs::read(here.path().join("out.etl")).unwrap();
            assert_eq!(u32_at(&out, HEADER_EVENT + 0x114), lost, "{what}: {args:?}");
            assert_eq!(u32_at(&out, HEADER_EVENT + 0x30), 0, "{what}: {args:?}");
            let verdict = etlkit(here.path(), &["verify", "out.etl", "--format", "json"]);
            let verdict: serde_json::Value = serde_json::from_str(&verdict.out).unwrap();
            let found = verdict["findings"].as_array().unwrap();
            let reported = found
                .iter()
                .any(|finding| finding["rule"] == "file.buffers-lost");
            assert_eq!(reported, lost > 0, "{what}: {args:?}: {found:?}");
            // Once more: what was lost stays lost.
            let again = etlkit(
                here.path(),
                &["scrub", "out.etl", "-o", "again.etl", "--force"],
            );
            assert_eq!(again.code, 0, "{what}: {args:?}: {}", again.err);
            let again = std::fs::read(here.path().join("again.etl")).unwrap();
            assert_eq!(
                u32_at(&again, HEADER_EVENT + 0x114),
                lost,
                "{what}: {args:?}"
            );
        }
    }
}

#[test]
fn merge_adds_the_missing_buffers_of_all_inputs() {
    let one = without_buffer(four_buffers(0x1_0001, 4), 2);
    let other = four_buffers(1, 7);
    let here = directory(&[("1.etl", &one), ("2.etl", &other), ("3.etl", &one)]);
    let args = [
        "merge",
        "1.etl",
        "2.etl",
        "3.etl",
        "--salvage",
        "-o",
        "m.etl",
    ];
    let said = etlkit(here.path(), &args);
    assert_eq!(said.code, 1, "{}", said.err);
    let merged = std::fs::read(here.path().join("m.etl")).unwrap();
    assert_eq!(u32_at(&merged, HEADER_EVENT + 0x114), 4);
}

/// The parts of a session: each counts what was lost since its start.
#[test]
fn losses_of_a_session_with_several_files_are_counted_once() {
    let part = |number: u64, lost: u8| {
        let mut bytes = buffer(0, 0, 4, &[header_event(2)]);
        bytes[HEADER_EVENT + 0x20] = 8;
        (bytes[HEADER_EVENT + 0x30], bytes[HEADER_EVENT + 0x114]) = (lost, lost / 2);
        let at = number as i64 * 2_000;
        [bytes, buffer(number, 0, 0, &[event(at, 1, 4, 0x8, None)])].concat()
    };
    let parts = [part(1, 4), part(2, 4), part(3, 10)];
    let other = four_buffers(1, 5);
    let here = directory(&[
        ("1.etl", &parts[0]),
        ("2.etl", &parts[1]),
        ("3.etl", &parts[2]),
        ("other.etl", &other),
    ]);
    let files = ["3.etl", "1.etl", "other.etl", "2.etl"];
    let said = etlkit(
        here.path(),
        &[&["merge", "-o", "m.etl"], &files[..]].concat(),
    );
    assert_eq!(said.code, 0, "{}", said.err);
    let merged = std::fs::read(here.path().join("m.etl")).unwrap();
    assert_eq!(u32_at(&merged, HEADER_EVENT + 0x30), 10);
    assert_eq!(u32_at(&merged, HEADER_EVENT + 0x114), 5);
    let said = etlkit(here.path(), &[&["analyze", "summary"], &files[..]].concat());
    assert!(
        said.out
            .contains("10 events were lost, 5 buffers were lost"),
        "{}",
        said.out
    );
}
