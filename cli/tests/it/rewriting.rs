//! `merge`, `repair`, `compress` and `decompress`.

use crate::common::{
    BUFFER, CommandOutput, buffer, directory, etlkit, etlkit_bytes, event, header_event, names,
    trace,
};
use serde_json::Value;
use std::path::Path;

/// Both streams and the exit code.
fn all(said: &CommandOutput) -> String {
    format!(
        "{}--- stderr\n{}--- exit {}\n",
        said.out, said.err, said.code
    )
}

/// A trace with two events, on a clock of some frequency.
fn other(frequency: u64, build: u32, start: u64) -> Vec<u8> {
    let mut head = header_event(2);
    head[0x20 + 8..0x20 + 12].copy_from_slice(&build.to_le_bytes());
    head[0x20 + 0x100..0x20 + 0x108].copy_from_slice(&frequency.to_le_bytes());
    head[0x20 + 0x108..0x20 + 0x110].copy_from_slice(&start.to_le_bytes());
    let records = [
        event(1_015, 7, 4, 0x8, None),
        event(1_045, 8, 5, 0x10, None),
    ];
    [buffer(0, 0, 4, &[head]), buffer(1, 1, 0, &records)].concat()
}

const START: u64 = 133_000_000_000_000_000;

fn timestamps(here: &Path, file: &str) -> Vec<i64> {
    let said = etlkit(here, &["dump", "--raw", "--format", "jsonl", file]);
    assert_eq!(said.code, 0, "{}", said.err);
    let mut timestamps = Vec::new();
    for line in said.out.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        // A merged trace has the header events of its inputs among its records.
        let is_header_of_input = record["hook"] == "0x0000" && !timestamps.is_empty();
        if !is_header_of_input {
            timestamps.push(record["timestamp"].as_i64().unwrap());
        }
    }
    timestamps
}

#[test]
fn merge_combines_traces() {
    let second = other(10_000_000, 19_045, START);
    let here = directory(&[("a.etl", &trace()), ("b.etl", &second)]);
    let said = etlkit(here.path(), &["merge", "a.etl", "b.etl", "-o", "m.etl"]);
    insta::assert_snapshot!("merge", all(&said));
    assert_eq!(
        timestamps(here.path(), "m.etl"),
        [1_000, 1_010, 1_015, 1_020, 1_030, 1_040, 1_045, 1_050]
    );
    let json = [
        "merge",
        "b.etl",
        "a.etl",
        "-o",
        "m2.etl",
        "--compress",
        "--format",
        "json",
    ];
    let said = etlkit(here.path(), &json);
    insta::assert_snapshot!("merge_json", all(&said));
    assert_eq!(
        timestamps(here.path(), "m2.etl"),
        timestamps(here.path(), "m.etl")
    );
    let info = etlkit(here.path(), &["info", "m.etl"]);
    insta::assert_snapshot!("merge_info", info.out);
    assert_eq!(names(here.path()), ["a.etl", "b.etl", "m.etl", "m2.etl"]);
}

#[test]
fn merge_puts_a_record_of_a_much_later_buffer_in_its_place() {
    let at = |times: &[i64]| {
        times
            .iter()
            .map(|t| event(*t, 7, 4, 0x8, None))
            .collect::<Vec<_>>()
    };
    let mut late = buffer(0, 0, 4, &[header_event(5)]);
    for (number, times) in [
        (1, &[1_010][..]),
        (2, &[1_100]),
        (3, &[1_200]),
        (4, &[1_300, 1_015]),
    ] {
        late.extend(buffer(number, 0, 0, &at(times)));
    }
    let here = directory(&[("a.etl", &trace()), ("late.etl", &late)]);
    std::fs::write(here.path().join("m.etl"), [0xff; 0x8_0000]).unwrap();
    let said = etlkit(
        here.path(),
        &["merge", "late.etl", "a.etl", "-o", "m.etl", "--force"],
    );
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(
        timestamps(here.path(), "m.etl"),
        [
            1_000, 1_010, 1_010, 1_015, 1_020, 1_030, 1_040, 1_050, 1_100, 1_200, 1_300
        ]
    );
    assert_eq!(etlkit(here.path(), &["info", "m.etl"]).code, 0);
}

#[test]
fn merge_reports_reason_of_mismatch() {
    let here = directory(&[
        ("a.etl", &trace()),
        ("machine.etl", &other(10_000_000, 9_600, START)),
        (
            "boot.etl",
            &other(10_000_000, 19_045, START + 36_000_000_000),
        ),
        ("clock.etl", &other(0, 19_045, START)),
        ("slow.etl", &other(1_000_000, 19_045, START)),
        ("cut.etl", &trace()[..2 * BUFFER + 0x60]),
        ("zip.etl", b"PK\x03\x04and so on"),
    ]);
    let mut text = String::new();
    for file in [
        "machine.etl",
        "boot.etl",
        "clock.etl",
        "cut.etl",
        "zip.etl",
        "none.etl",
        "./a.etl",
    ] {
        let said = etlkit(here.path(), &["merge", "a.etl", file, "-o", "m.etl"]);
        assert_eq!((said.code, said.out.as_str()), (2, ""));
        text.push_str(&said.err);
        assert!(!here.path().join("m.etl").exists());
    }
    insta::assert_snapshot!("merge_refusals", text);
    for (reason, timestamps_of) in [
        ("machine", [1_015, 1_045]),
        ("boot", [36_000_001_015, 36_000_001_045]),
        ("clock", [1_015, 1_045]),
    ] {
        let file = format!("{reason}.etl");
        let args = [
            "merge",
            "a.etl",
            &file,
            "-o",
            "m.etl",
            "--allow-mismatch",
            reason,
            "--force",
        ];
        assert_eq!(etlkit(here.path(), &args).code, 0);
        let found = timestamps(here.path(), "m.etl");
        assert!(
            timestamps_of.iter().all(|s| found.contains(s)),
            "{reason}: {found:?}"
        );
    }
    let said = etlkit(
        here.path(),
        &["merge", "a.etl", "slow.etl", "-o", "slower.etl"],
    );
    insta::assert_snapshot!("merge_clocks", all(&said));
    // 15 and 45 ticks of one microsecond.
    assert_eq!(timestamps(here.path(), "slower.etl")[6..], [1_150, 1_450]);
    let salvage = ["merge", "a.etl", "cut.etl", "-o", "s.etl", "--salvage"];
    let said = etlkit(here.path(), &salvage);
    insta::assert_snapshot!("merge_salvage", all(&said));
}

#[test]
fn compress_then_decompress_restores_bytes() {
    let here = directory(&[("t.etl", &trace())]);
    let said = etlkit(here.path(), &["compress", "t.etl", "-o", "c.etl"]);
    insta::assert_snapshot!("compress", all(&said));
    let said = etlkit(
        here.path(),
        &["decompress", "c.etl", "-o", "p.etl", "--format", "json"],
    );
    insta::assert_snapshot!("decompress_json", all(&said));
    assert_eq!(std::fs::read(here.path().join("p.etl")).unwrap(), trace());
    for algorithm in ["lznt1", "xpress-huff"] {
        for effort in ["fast", "best"] {
            let how = [
                "--algorithm",
                algorithm,
                "--compression-level",
                effort,
                "--force",
            ];
            let args = [&["compress", "t.etl", "-o", "d.etl"][..], &how].concat();
            assert_eq!(etlkit(here.path(), &args).code, 0);
            assert_eq!(
                timestamps(here.path(), "d.etl"),
                timestamps(here.path(), "t.etl")
            );
        }
    }
}

/// Every command that writes a trace can compress it; decompressed it equals the uncompressed
/// output.
#[test]
fn every_command_compresses_its_output() {
    let here = directory(&[("t.etl", &trace())]);
    let read = |name: &str| std::fs::read(here.path().join(name)).unwrap();
    for tool in [
        &["merge"][..],
        &["slice", "--pid", "100"],
        &["scrub", "--salt", "x"],
        &["repair"],
    ] {
        let make = |more: &[&str]| {
            let args = [tool, &["t.etl", "--force"], more].concat();
            let said = etlkit(here.path(), &args);
            (said.code, said.err)
        };
        assert_eq!(make(&["-o", "plain.etl"]).0, 0);
        for (algorithm, format) in [("lznt1", 2), ("xpress", 3), ("xpress-huff", 4)] {
            for effort in ["fast", "default", "best"] {
                let how = [
                    "--compress",
                    "--algorithm",
                    algorithm,
                    "--compression-level",
                    effort,
                ];
                assert_eq!(
                    make(&[&how[..], &["-o", "c.etl"]].concat()).0,
                    0,
                    "{tool:?}"
                );
                assert_eq!(read("c.etl")[0x2c], format, "{tool:?} {algorithm}");
                let back = ["decompress", "c.etl", "-o", "back.etl", "--force"];
                assert_eq!(etlkit(here.path(), &back).code, 0);
                assert_eq!(read("back.etl"), read("plain.etl"), "{tool:?} {algorithm}");
            }
        }
        for how in [["--algorithm", "lznt1"], ["--compression-level", "best"]] {
            let (code, err) = make(&[&how[..], &["-o", "c.etl"]].concat());
            assert_eq!((code, err.contains("--compress")), (2, true), "{err}");
        }
    }
}

/// Inputs are not kept open, so there may be more of them than a process may open.
#[test]
#[cfg(unix)]
fn merge_reads_more_inputs_than_open_files() {
    let here = directory(&[]);
    let mut names = Vec::new();
    for number in 0..300_i64 {
        let name = format!("{number:03}.etl");
        let records = [
            event(1_015 + number, 7, 4, 0x8, None),
            event(2_000 - number, 8, 5, 0x10, None),
        ];
        let file = [
            buffer(0, 0, 4, &[header_event(2)]),
            buffer(1, (number % 2) as u16, 0, &records),
        ];
        std::fs::write(here.path().join(&name), file.concat()).unwrap();
        names.push(name);
    }
    let said = std::process::Command::new("sh")
        .current_dir(here.path())
        .args([
            "-c",
            "ulimit -n 16; exec \"$0\" merge -o m.etl \"$@\"",
            env!("CARGO_BIN_EXE_etlkit"),
        ])
        .args(&names)
        .output()
        .unwrap();
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    let found = timestamps(here.path(), "m.etl");
    assert_eq!(found.len(), 601);
    assert!(found.is_sorted());

    // Each input needs a buffer: with less memory, they are merged in passes with the same result.
    let merge = |files: &[&str], out: &str, memory: &str| {
        let limit = ["-o", out, "--max-memory", memory, "--format", "json"];
        let said = etlkit(here.path(), &[&["merge"], files, &limit].concat());
        (said.code, said.err, said.out)
    };
    // Large buffers, so that few are enough: `count` records of 60 KB each.
    let large = |number: i64, count: usize| {
        let mut one = event(1_015 + number, 7, 4, 0x8, None);
        one.resize(60_000, 0);
        one[..2].copy_from_slice(&60_000_u16.to_le_bytes());
        let fill = 0x48 + count * one.len();
        let size = fill.next_multiple_of(0x1000);
        let mut first = buffer(0, 0, 4, &[header_event(2)]);
        first[0x68..0x6c].copy_from_slice(&(size as u32).to_le_bytes());
        let mut data = buffer(1, 0, 0, &[]);
        data.truncate(0x48);
        data.extend(one.repeat(count));
        for at in [0x04, 0x08, 0x30] {
            data[at..at + 4].copy_from_slice(&(fill as u32).to_le_bytes());
        }
        for buffer in [&mut first, &mut data] {
            buffer[..4].copy_from_slice(&(size as u32).to_le_bytes());
            buffer.resize(size, 0xff);
        }
        [first, data].concat()
    };
    let mut names = Vec::new();
    for number in 0..200 {
        let name = format!("large{number:03}.etl");
        std::fs::write(here.path().join(&name), large(number, 1)).unwrap();
        names.push(name);
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let (code, err, at_once) = merge(&all, "once.etl", "2G");
    assert_eq!((code, err.as_str()), (0, ""));
    let (code, err, in_passes) = merge(&all, "passes.etl", "1M");
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(in_passes, at_once.replace("once.etl", "passes.etl"));
    assert_eq!(
        timestamps(here.path(), "passes.etl")[1..],
        (1_015..1_215).collect::<Vec<_>>()
    );
    let bytes = |name: &str| std::fs::read(here.path().join(name)).unwrap();
    assert!(bytes("once.etl") == bytes("passes.etl"), "the same bytes");
    // Two inputs have to be read at the same time.
    for (name, number) in [("huge0.etl", 0), ("huge1.etl", 1)] {
        std::fs::write(here.path().join(name), large(number, 150)).unwrap();
    }
    let (code, err, _) = merge(&["huge0.etl", "huge1.etl"], "none.etl", "0");
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("2 traces") && err.contains("--max-memory"),
        "{err}"
    );
    // Errors name the right trace, in whichever pass it was read.
    std::fs::write(here.path().join("large150.etl"), b"no trace at all").unwrap();
    let (code, err, _) = merge(&all, "none.etl", "1M");
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("large150.etl"), "{err}");
    std::fs::write(
        here.path().join("large150.etl"),
        other(10_000_000, 22_631, START),
    )
    .unwrap();
    let (code, err, _) = merge(&all, "none.etl", "1M");
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("large150.etl") && err.contains("--allow-mismatch machine"),
        "{err}"
    );
}

#[test]
fn commands_read_and_write_pipes() {
    let (small, err) = etlkit_bytes(&trace(), &["compress", "-", "-o", "-"]);
    assert!(err.contains("(standard output): 3 buffers"), "{err}");
    let (plain, _) = etlkit_bytes(&small, &["decompress", "-", "-o", "-"]);
    assert_eq!(plain, trace());
    let here = directory(&[("t.etl", &other(10_000_000, 19_045, START))]);
    let path = here.path().join("t.etl");
    let args = ["merge", "-", path.to_str().unwrap(), "-o", "-"];
    let (merged, err) = etlkit_bytes(&trace(), &args);
    assert!(err.contains("(standard input): 5 records"), "{err}");
    std::fs::write(here.path().join("m.etl"), merged).unwrap();
    assert_eq!(timestamps(here.path(), "m.etl").len(), 8);
    let (repaired, _) = etlkit_bytes(&trace(), &["repair", "-", "-o", "-"]);
    std::fs::write(here.path().join("r.etl"), repaired).unwrap();
    assert_eq!(timestamps(here.path(), "r.etl").len(), 6);
}

#[test]
fn repair_writes_intact_traces() {
    let mut broken = trace();
    broken[BUFFER + 0x48..BUFFER + 0x4c].fill(0xab);
    let here = directory(&[
        ("t.etl", &trace()),
        ("broken.etl", &broken),
        ("cut.etl", &trace()[..2 * BUFFER + 0x60]),
        ("text.etl", &[b'x'; 9_000]),
    ]);
    let mut text = String::new();
    for (file, code) in [
        ("t.etl", 0),
        ("broken.etl", 1),
        ("cut.etl", 1),
        ("text.etl", 2),
    ] {
        let out = format!("new-{file}");
        let said = etlkit(here.path(), &["repair", file, "-o", &out]);
        assert_eq!(said.code, code);
        text.push_str(&all(&said));
        if code < 2 {
            let strict = etlkit(here.path(), &["info", "--strict", &out]);
            assert_eq!(
                (strict.code, strict.out.contains("damage-")),
                (0, false),
                "{}",
                strict.out
            );
        }
    }
    insta::assert_snapshot!("repair", text);
    let json = ["repair", "broken.etl", "-o", "j.etl", "--format", "json"];
    insta::assert_snapshot!("repair_json", all(&etlkit(here.path(), &json)));
}

/// A repair reports the losses of an intact trace and keeps their counts.
#[test]
fn repair_keeps_loss_counts() {
    let mut lossy = trace();
    // `EventsLost` of the header event.
    lossy[0x48 + 0x20 + 0x30] = 7;
    let here = directory(&[("lossy.etl", &lossy)]);
    let said = etlkit(here.path(), &["repair", "lossy.etl", "-o", "new.etl"]);
    insta::assert_snapshot!("repair_notes", all(&said));
    let header = |file| {
        let info = etlkit(here.path(), &["info", "--format", "json", file]);
        serde_json::from_str::<Value>(&info.out).unwrap()["events_lost"].clone()
    };
    assert_eq!(
        (header("lossy.etl"), header("new.etl")),
        (7.into(), 7.into())
    );
}

#[test]
fn existing_output_is_kept_without_force() {
    let here = directory(&[("t.etl", &trace()), ("out.etl", b"mine")]);
    let mut text = String::new();
    for tool in ["merge", "repair", "compress", "decompress"] {
        for args in [
            &["-o", "out.etl"][..],
            &["-o", "t.etl", "--force"],
            &["-o", "no/such/place.etl"],
        ] {
            let said = etlkit(here.path(), &[&[tool, "t.etl"], args].concat());
            assert_eq!((said.code, said.out.as_str()), (2, ""));
            if tool == "merge" {
                text.push_str(&said.err);
            }
        }
    }
    assert_eq!(std::fs::read(here.path().join("t.etl")).unwrap(), trace());
    assert_eq!(std::fs::read(here.path().join("out.etl")).unwrap(), b"mine");
    assert_eq!(
        names(here.path()),
        ["out.etl", "t.etl"],
        "nothing half done is left"
    );
    insta::assert_snapshot!("clobber", text);
    let said = etlkit(here.path(), &["merge", "t.etl", "-o", "out.etl", "--force"]);
    assert_eq!(said.code, 0);
    assert_eq!(timestamps(here.path(), "out.etl").len(), 6);
}

#[test]
fn report_json_fields_are_documented() {
    let here = directory(&[
        ("t.etl", &trace()),
        ("cut.etl", &trace()[..2 * BUFFER + 0x60]),
    ]);
    for (args, page) in [
        (
            &["merge", "t.etl", "cut.etl", "--salvage"][..],
            include_str!("../../../docs/rewrite.md"),
        ),
        (
            &["repair", "cut.etl"],
            include_str!("../../../docs/rewrite.md"),
        ),
        (
            &["compress", "t.etl"],
            include_str!("../../../docs/rewrite.md"),
        ),
    ] {
        let out = format!("{}.etl", args[0]);
        let args = [args, &["-o", &out, "--format", "json"]].concat();
        let said = etlkit(here.path(), &args);
        let report: Value = serde_json::from_str(&said.out).unwrap();
        let inner = report
            .get("inputs")
            .map_or(&Value::Null, |inputs| &inputs[1]);
        let fields = |value: &Value| -> Vec<String> {
            value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key.clone())
                .collect()
        };
        for field in fields(&report).into_iter().chain(fields(inner)) {
            assert!(
                page.contains(&format!("`{field}`")),
                "{} does not say {field}",
                args[0]
            );
        }
    }
}

/// As `dump` does, which has one line for each event.
#[cfg(unix)]
#[test]
fn reports_escape_line_breaks_in_names_of_files() {
    let here = directory(&[("a\nb.etl", &trace())]);
    for command in [
        &["compress"][..],
        &["slice", "--id", "1"],
        &["scrub"],
        &["repair"],
    ] {
        let said = etlkit(
            here.path(),
            &[command, &["a\nb.etl", "-o", "c\nd.etl", "--force"]].concat(),
        );
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.out.contains("c\\nd.etl"), "{}", said.out);
        assert!(
            !said.out.contains("a\nb") && !said.out.contains("c\nd"),
            "{}",
            said.out
        );
    }
    assert!(
        etlkit(here.path(), &["info", "a\nb.etl"])
            .out
            .starts_with("a\\nb.etl\n")
    );
}
