//! Traces whose header event is lost: unknown values are not shown as if they were known, and a
//! file without any record is not a trace.

use crate::common::{BUFFER, directory, etlkit, etlkit_piped, etlverify, trace};
use serde_json::Value;

/// A trace without its first buffer.
fn headless() -> Vec<u8> {
    trace()[BUFFER..].to_vec()
}

#[test]
fn unknown_values_are_not_shown() {
    let here = directory(&[("t.etl", &headless())]);
    let run = |args: &[&str]| etlkit(here.path(), args);
    let info = run(&["info", "t.etl"]);
    assert_eq!(info.code, 1, "{}", info.err);
    insta::assert_snapshot!("missing_header_info", info.out);
    let json: Value =
        serde_json::from_str(&run(&["info", "--format", "json", "t.etl"]).out).unwrap();
    assert_eq!(
        (&json["header"], &json["records"]),
        (&false.into(), &5.into())
    );
    for field in [
        "os",
        "processors",
        "clock",
        "perf_freq",
        "ticks_per_second",
        "start_time",
        "logger_name",
        "dialect",
        "mode",
        "events_lost",
        "first_event_time",
        "last_event_time",
        "pointer_size",
    ] {
        assert_eq!(json.get(field), Some(&Value::Null), "{field}");
    }
    // Times count from the first record, also in file order and from a pipe.
    let lost = "warning: t.etl: the header event is lost: times count from the first record";
    for args in [&["dump", "t.etl"][..], &["dump", "--file-order", "t.etl"]] {
        let said = run(args);
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.err.contains(lost), "{}", said.err);
        let first = said
            .out
            .lines()
            .find(|line| line.contains("1601-"))
            .unwrap_or_default();
        assert!(
            first.contains("1601-01-01T00:00:00.0000000"),
            "{args:?}: {}",
            said.out
        );
    }
    let piped = etlkit_piped(&headless(), &["dump", "--file-order", "-"]);
    assert_eq!(piped.out, run(&["dump", "--file-order", "t.etl"]).out);
    for args in [
        &["slice", "t.etl", "-o", "s.etl"][..],
        &["scrub", "t.etl", "-o", "c.etl"],
        &["merge", "--salvage", "t.etl", "-o", "m.etl"],
        &["diff", "t.etl", "t.etl"],
    ] {
        let said = run(args);
        assert!(
            said.code < 2 && said.err.contains(lost),
            "{args:?}: {}",
            said.err
        );
    }
    let repaired = run(&["repair", "t.etl", "-o", "r.etl"]);
    assert!(
        repaired
            .out
            .contains("the header event is lost: times count"),
        "{}",
        repaired.out
    );
    std::fs::write(here.path().join("whole.etl"), trace()).unwrap();
    for args in [&["t.etl"][..], &["--together", "t.etl", "whole.etl"]] {
        let verified = etlverify(here.path(), args);
        assert_eq!(verified.code, 1, "{}", verified.err);
        assert!(
            verified.out.contains("the header event is lost"),
            "{}",
            verified.out
        );
    }
    let alone = etlverify(here.path(), &["t.etl"]);
    assert!(!alone.out.contains("ticks a second"), "{}", alone.out);
}

#[test]
fn trace_prefixes_are_rejected() {
    let here = directory(&[("good.etl", &trace())]);
    for keep in [73, 100, 200, 300] {
        std::fs::write(here.path().join("cut.etl"), &trace()[..keep]).unwrap();
        for args in [
            &["info", "cut.etl"][..],
            &["info", "--format", "json", "cut.etl"],
            &["dump", "cut.etl"],
            &["dump", "--file-order", "cut.etl"],
            &["verify", "cut.etl"],
            &["repair", "cut.etl", "-o", "o.etl"],
            &["slice", "cut.etl", "-o", "o.etl"],
            &["scrub", "cut.etl", "-o", "o.etl"],
            &["merge", "--salvage", "cut.etl", "-o", "o.etl"],
            &["merge", "--salvage", "good.etl", "cut.etl", "-o", "o.etl"],
            &["verify", "--together", "good.etl", "cut.etl"],
            &["diff", "cut.etl", "good.etl"],
            &["diff", "good.etl", "cut.etl"],
        ] {
            let said = etlkit(here.path(), args);
            assert_eq!(
                (said.code, said.out.as_str()),
                (2, ""),
                "{keep} {args:?}: {}",
                said.err
            );
            assert!(
                said.err.contains("cut.etl: "),
                "{keep} {args:?}: {}",
                said.err
            );
            assert!(
                said.err.contains("copy the file again"),
                "{keep} {args:?}: {}",
                said.err
            );
            assert!(!here.path().join("o.etl").exists(), "{keep} {args:?}");
        }
    }
}

/// Of several files, the readable ones and each failure are reported.
#[test]
fn unreadable_file_does_not_hide_others() {
    let cut = &trace()[..2 * BUFFER + 0x60];
    let here = directory(&[
        ("a.etl", &trace()),
        ("b.etl", cut),
        (
            "notes.txt",
            b"a text that is long enough to be taken for the header of a buffer, or so",
        ),
    ]);
    for threads in ["1", "3"] {
        let run = |rest: &[&str]| {
            etlkit(
                here.path(),
                &[&["info", "--threads", threads], rest].concat(),
            )
        };
        let said = run(&["notes.txt", "a.etl", "missing.etl", "b.etl"]);
        assert_eq!(said.code, 2);
        assert!(
            said.out.starts_with("a.etl\n") && said.out.contains("\nb.etl\n"),
            "{}",
            said.out
        );
        assert!(
            said.err.contains("error: notes.txt: this is text"),
            "{}",
            said.err
        );
        assert!(
            said.err.contains("error: missing.etl: file not found"),
            "{}",
            said.err
        );
        // The output stays a list, however many files can be read.
        let said = run(&["--format", "json", "notes.txt", "a.etl"]);
        assert_eq!(said.code, 2);
        let json: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(json.as_array().map(Vec::len), Some(1));
        assert_eq!(json[0]["file"], "a.etl");
        assert_eq!(run(&["a.etl", "b.etl"]).code, 1);
        assert_eq!(run(&["notes.txt", "missing.etl"]).out, "");
    }
}
