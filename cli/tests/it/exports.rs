//! Exports through pipes.

use crate::common::{directory, etlkit, etlkit_bytes};
use crate::dump_selection::{START, later};
use crate::provider_names::{made_up, trace_of};

const SCRIPT: &str = r#"
process "App.exe" { clr "core" version="6.0.100" { assembly "A" { module "C:\\A.dll" { methods 9 } } }
    every "5ms" from="1.1s" until="1.5s" { jit 1; throw 1 } }
at "1s" { session "s" file="s.etl" { enable "runtime" keywords=0x8019 level=5 } }
at "2s" { stop "s" }
"#;

#[test]
fn perfetto_goes_from_a_pipe_to_a_pipe() {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("s.kdl"), SCRIPT).unwrap();
    assert_eq!(etlkit(here.path(), &["synth", "s.kdl", "-o", "."]).code, 0);
    let said = etlkit(here.path(), &["export", "perfetto", "s.etl", "-o", "out"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(
        said.out
            .starts_with("out: 0 samples, 0 events of the kernel, "),
        "{}",
        said.out
    );
    let file = std::fs::read(here.path().join("out")).unwrap();
    assert!(file.len() > 5_000);
    let trace = std::fs::read(here.path().join("s.etl")).unwrap();
    let (piped, report) = etlkit_bytes(&trace, &["export", "perfetto", "-", "-o", "-"]);
    assert!(piped == file);
    assert!(
        report.starts_with("(standard output): 0 samples"),
        "{report}"
    );
    // A file that exists is kept.
    let said = etlkit(here.path(), &["export", "perfetto", "s.etl", "-o", "out"]);
    assert!(
        said.code == 2 && said.err.contains("--force"),
        "{}",
        said.err
    );
}

#[test]
fn packets_are_selected_by_time() {
    let here = tempfile::tempdir().unwrap();
    let script = etl_test_support::root().join("corpus/packets.kdl");
    let synth = ["synth", script.to_str().unwrap(), "-o", "."];
    assert_eq!(etlkit(here.path(), &synth).code, 0);
    let packets = |span: &[&str]| -> u64 {
        let files = [
            "--together",
            "nettrace.etl",
            "pktmon.etl",
            "-o",
            "out",
            "--force",
        ];
        let said = etlkit(
            here.path(),
            &[&["export", "pcapng"], span, &files[..]].concat(),
        );
        assert_eq!(said.code, 0, "{}", said.err);
        let (_, text) = said.out.split_once("out: ").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    };
    let all = packets(&[]);
    let (before, after) = (packets(&["--to", "1.2"]), packets(&["--from", "1.2"]));
    assert!(before > 10 && after > 10, "{before} {after}");
    assert_eq!(before + after, all);
    // Both traces start at this time.
    assert_eq!(packets(&["--from", "2026-01-04T17:00:02.2Z"]), after);
    for (span, expected) in [
        (["--from", "9", "--to", "10"], "no packet is selected"),
        (["--from", "2", "--to", "1"], "must be after --from"),
        (["--from", "x", "--to", "1"], "--from: \"x\" is not a time"),
    ] {
        let files = ["nettrace.etl", "-o", "none"];
        let said = etlkit(
            here.path(),
            &[&["export", "pcapng"], &span[..], &files[..]].concat(),
        );
        assert!(
            said.code == 2 && said.err.contains(expected),
            "{}",
            said.err
        );
        assert!(!here.path().join("none").exists());
    }
}

/// Times of the packets of a capture that hold an event with id 7, in FILETIME units.
fn times_of_events(capture: &[u8]) -> Vec<i64> {
    const ENHANCED_PACKET: u32 = 6;
    const UNIX_EPOCH: u64 = 116_444_736_000_000_000;
    let number = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
    let (mut at, mut times) = (0, Vec::new());
    while at < capture.len() {
        // The event is after seven numbers of the block; its id is at 40.
        if number(at) == ENHANCED_PACKET && number(at + 28 + 40) & 0xffff == 7 {
            let time = u64::from(number(at + 12)) << 32 | u64::from(number(at + 16));
            times.push((time + UNIX_EPOCH).try_into().unwrap());
        }
        at += number(at + 4) as usize;
    }
    times
}

/// The time of day was set between the starts of two sessions on one counter.
#[test]
fn packets_of_several_traces_stand_on_one_timeline() {
    const SECOND: i64 = 10_000_000;
    let events = |times: [i64; 2]| trace_of(&times.map(|time| made_up(1_000 + time, 7, &[])));
    let first = events([SECOND, 3 * SECOND]);
    let second = later(events([2 * SECOND + 1, 4 * SECOND]), 2 * SECOND, 3_000_000);
    let here = directory(&[("a.etl", &first), ("b.etl", &second)]);
    for files in [["a.etl", "b.etl"], ["b.etl", "a.etl"]] {
        let export = ["export", "pcapng", "--events", "-o", "out", "--force"];
        let said = etlkit(here.path(), &[&export[..], &files].concat());
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        let times = times_of_events(&std::fs::read(here.path().join("out")).unwrap());
        let expected = [SECOND, 2 * SECOND + 1, 3 * SECOND, 4 * SECOND];
        assert_eq!(times, expected.map(|time| START + time));
    }
}
