//! Every report of `etlkit analyze`, with every option, on inputs of all kinds.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use etl_test_support::{needs, root};
use serde_json::Value;

use super::common::{directory, etlkit, etlkit_piped, trace};

const KINDS: [&str; 20] = [
    "summary",
    "cpu",
    "gc",
    "allocations",
    "jit",
    "exceptions",
    "contention",
    "threadpool",
    "loader",
    "io",
    "faults",
    "startup",
    "network",
    "waits",
    "dpc",
    "processors",
    "activities",
    "processes",
    "images",
    "sessions",
];

/// A report as JSON.
fn json(directory: &Path, kind: &str, args: &[&str]) -> Value {
    let done = etlkit(
        directory,
        &[&["analyze", kind, "--format", "json"], args].concat(),
    );
    assert!(done.code < 2, "{kind} {args:?}: {}", done.err);
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{kind} {args:?}: {error}"))
}

/// Writes the traces of a scenario to a directory.
fn recorded(name: &str) -> tempfile::TempDir {
    let here = directory(&[]);
    let script = root().join("corpus").join(format!("{name}.kdl"));
    let script = script.to_str().unwrap();
    let done = etlkit(
        here.path(),
        &["synth", script, "-o", ".", "--force", "--no-truth"],
    );
    assert!(done.code < 2, "{}", done.err);
    here
}

#[test]
fn common_members_of_json_are_no_tables() {
    let here = recorded("kernel-session");
    for kind in KINDS {
        let report = json(here.path(), kind, &["merged.etl"]);
        assert_eq!(
            (&report["kind"], &report["schema_version"]),
            (&kind.into(), &3.into())
        );
        assert_eq!(report["files"], serde_json::json!(["merged.etl"]), "{kind}");
        let missing = report["missing"].as_array().unwrap();
        assert!(missing.iter().all(Value::is_string), "{kind}: {missing:?}");
    }
}

#[test]
fn members_of_json_are_documented() {
    let reports = include_str!("../../../docs/analyze.md");
    let tables = include_str!("../../../docs/columns.md");
    for (scenario, file) in [
        ("kernel-session", "merged.etl"),
        ("gc-and-locks", "gc.etl"),
        ("kernel-io", "merged.etl"),
    ] {
        let here = recorded(scenario);
        for kind in KINDS {
            let report = json(here.path(), kind, &[file]);
            let own = report.as_object().unwrap();
            let rows = own.values().filter_map(Value::as_array).flatten();
            let rows: Vec<_> = rows.filter_map(Value::as_object).collect();
            for row in rows.iter().filter(|row| row.contains_key("process")) {
                assert!(row.contains_key("pid"), "{kind} {row:?}");
            }
            let columns = rows.iter().flat_map(|row| row.keys());
            for name in own.keys().chain(columns) {
                let code = format!("`{name}`");
                let is_documented = reports.contains(&code) || tables.contains(&code);
                assert!(
                    is_documented,
                    "docs/analyze.md, docs/columns.md: {kind} {name}"
                );
            }
        }
    }
}

#[needs(time)]
#[test]
fn reports_have_all_forms_with_every_option() {
    let here = recorded("kernel-session");
    for files in [&["merged.etl"][..], &["kernel.etl", "clr.etl"]] {
        for options in [
            &[][..],
            &["--process", "Managed"],
            &["--process", "2300", "--children"],
            &["--from", "0.2", "--to", "0.5"],
            &["--from", "100"],
            &["--top", "1"],
            &["--top", "0", "--threads", "1"],
        ] {
            let args = [options, files].concat();
            for kind in KINDS {
                let selects = options.iter().any(|o| ["--process", "--from"].contains(o));
                let of_machine =
                    ["dpc", "processors"].contains(&kind) && options.contains(&"--process");
                if kind == "sessions" && selects || of_machine {
                    let done = etlkit(here.path(), &[&["analyze", kind], &args[..]].concat());
                    assert_eq!((done.code, &*done.out), (2, ""), "{args:?}");
                    continue;
                }
                let report = json(here.path(), kind, &args);
                assert_eq!(report["kind"], kind);
                let text = etlkit(here.path(), &[&["analyze", kind], &args[..]].concat());
                assert_eq!(text.code, 0, "{kind} {args:?}: {}", text.err);
                assert!(
                    text.out.starts_with(files[0]),
                    "{kind} {args:?}: {}",
                    text.out
                );
                let csv = [&["analyze", kind, "--format", "csv"], &args[..]].concat();
                let csv = etlkit(here.path(), &csv).out;
                let mut lines = csv.lines();
                let columns = lines.next().unwrap().split(',').count();
                // No text of these reports has commas or line breaks.
                let quoted = |line: &str| line.contains('"') || line.split(',').count() == columns;
                assert!(lines.all(quoted), "{kind} {args:?}: {csv}");
            }
        }
    }
}

#[test]
fn reports_are_the_same_of_a_file_a_pipe_and_packed() {
    let here = recorded("kernel-session");
    let bytes = std::fs::read(here.path().join("merged.etl")).unwrap();
    let packed = std::fs::File::create(here.path().join("merged.etl.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
    packed.write_all(&bytes).unwrap();
    packed.finish().unwrap();
    for kind in KINDS {
        let of = |report: &str| {
            ["merged.etl.gz", "(standard input)"]
                .iter()
                .fold(report.to_owned(), |report, name| {
                    report.replace(name, "merged.etl")
                })
        };
        let file = etlkit(
            here.path(),
            &["analyze", kind, "--format", "json", "merged.etl"],
        );
        let piped = etlkit_piped(&bytes, &["analyze", kind, "--format", "json", "-"]);
        assert_eq!(
            (file.code, piped.code),
            (0, 0),
            "{kind}: {}{}",
            file.err,
            piped.err
        );
        assert_eq!(of(&file.out), of(&piped.out), "{kind}");
        let packed = etlkit(
            here.path(),
            &["analyze", kind, "--format", "json", "merged.etl.gz"],
        );
        assert_eq!(of(&file.out), of(&packed.out), "{kind}: {}", packed.err);
        // Half of it: what is there is reported, and that it is not whole.
        let half = etlkit_piped(&bytes[..bytes.len() / 2], &["analyze", kind, "-"]);
        assert_eq!(half.code, 1, "{kind}: {}", half.err);
        assert!(
            half.err.contains("the header counts 5 buffers"),
            "{kind}: {}",
            half.err
        );
    }
}

#[test]
fn inputs_that_are_no_traces_are_errors() {
    let here = directory(&[
        ("empty.etl", b""),
        ("text.etl", &b"not a trace\n".repeat(100)),
    ]);
    for kind in KINDS {
        for (file, expected) in [
            ("empty.etl", "this file is empty"),
            ("text.etl", "this is text"),
            ("none.etl", "file not found"),
            (".", "is a directory"),
        ] {
            let done = etlkit(here.path(), &["analyze", kind, file]);
            assert_eq!((done.code, &*done.out), (2, ""), "{kind} {file}");
            assert!(done.err.contains(expected), "{kind} {file}: {}", done.err);
        }
    }
}

/// Shares are those of the selected time; what can be analysed is a matter of the whole recording.
#[test]
fn a_part_of_the_time_has_its_own_shares() {
    let here = recorded("gc-and-locks");
    let pauses = |args: &[&str]| {
        let report = json(here.path(), "gc", &[args, &["gc.etl"]].concat());
        let process = &report["processes"][0];
        let [us, percent] = ["total_us", "pause_percent"].map(|key| process[key].as_f64().unwrap());
        (
            report["gcs"].as_array().unwrap().len(),
            us / percent * 100.0,
        )
    };
    let (all, whole_us) = pauses(&[]);
    let (some, part_us) = pauses(&["--from", "0.5", "--to", "1"]);
    assert!(some > 5 && some < all, "{some} of {all}");
    assert!((whole_us / 2.0e6 - 1.0).abs() < 0.01, "{whole_us}");
    assert!((part_us / 0.5e6 - 1.0).abs() < 0.01, "{part_us}");

    let subjects = |args: &[&str]| {
        let report = json(here.path(), "summary", &[args, &["gc.etl"]].concat());
        (report["subjects"].clone(), report["missing"].clone())
    };
    assert_eq!(subjects(&[]), subjects(&["--from", "0.5", "--to", "1"]));
    assert_eq!(subjects(&[]), subjects(&["--from", "100"]));

    // A collection is the same whether its suspension and allocations before it are selected.
    let all = json(here.path(), "gc", &["gc.etl"]);
    let gc = &all["gcs"][3];
    let from = gc["started"].as_str().unwrap();
    let some = json(here.path(), "gc", &["--from", from, "gc.etl"]);
    assert_eq!(some["gcs"][0], *gc);
    assert!(gc["pause_us"].as_f64() > Some(0.0) && gc["allocated_bytes"].as_u64() > Some(0));
    // The recording has collections, only not then.
    let done = etlkit(here.path(), &["analyze", "gc", "--from", "100", "gc.etl"]);
    assert!(!done.out.contains("enable"), "{}", done.out);

    let done = etlkit(
        here.path(),
        &["analyze", "threadpool", "--from", "100", "gc.etl"],
    );
    assert!(
        done.out.contains("\nmissing at this time\n"),
        "{}",
        done.out
    );
    let note = "note: nothing was recorded at this time, but from 0.000 to 2.002 s\n";
    assert_eq!((done.code, &*done.err), (0, note));
}

/// A warning of every command is one line with the offset that `info` lists.
#[test]
fn damage_has_one_offset_and_one_line() {
    let whole = trace();
    let here = directory(&[("t.etl", &whole[..whole.len() - 0x800])]);
    let commands = [
        &["info"][..],
        &["dump", "--count"],
        &["slice", "--pid", "100", "-o", "s.etl"],
        &["diff", "t.etl"],
        &["analyze", "summary"],
        &["symbols", "list"],
    ];
    for command in commands {
        if command[0] == "symbols" && !cfg!(feature = "symbols") {
            continue;
        }
        let said = etlkit(here.path(), &[command, &["t.etl"]].concat());
        let at = "at offset 0x2800: buffer: needs 4096 bytes, has 2048 (to 0x3000)";
        for line in said.err.lines() {
            assert!(
                line.starts_with("warning: t.etl: ") && line.contains(at),
                "{command:?}: {line}"
            );
        }
        let lines = if command[0] == "diff" { 2 } else { 1 };
        assert_eq!(
            (said.code, said.err.lines().count()),
            (1, lines),
            "{command:?}: {}",
            said.err
        );
        assert!(command != ["info"] || said.out.contains("damage-truncated at 0x2800:"));
    }
}

#[test]
fn one_of_a_kind_has_no_plural() {
    let mut trace = trace();
    // The number of processors in the header event.
    trace[0x48 + 0x20 + 0x0c] = 1;
    let here = directory(&[("t.etl", &trace)]);
    for command in [&["info", "t.etl"][..], &["analyze", "summary", "t.etl"]] {
        let said = etlkit(here.path(), command);
        assert!(said.out.contains(", 1 processor"), "{}", said.out);
        assert!(!said.out.contains("1 processors"), "{}", said.out);
    }
}

/// `Short.exe` runs from 0.7 to 0.8 s.
#[test]
fn processes_and_images_are_those_of_the_selected_time() {
    let here = recorded("kernel-session");
    for (kind, names) in [("processes", "processes"), ("images", "images")] {
        let is_there = |args: &[&str]| {
            let all = json(here.path(), kind, &[args, &["merged.etl"]].concat());
            let rows = all[names].as_array().unwrap().clone();
            assert!(!rows.is_empty(), "{kind} {args:?}");
            rows.iter().any(|row| row.to_string().contains("Short.exe"))
        };
        assert!(is_there(&[]) && is_there(&["--from", "0.75"]) && is_there(&["--to", "0.75"]));
        assert!(
            !is_there(&["--from", "0.9"]) && !is_there(&["--to", "0.6"]),
            "{kind}"
        );
    }
}

/// The sums of columns, by the others that are named.
fn sums(
    report: &Value,
    table: &str,
    keys: &[&str],
    columns: &[&str],
) -> BTreeMap<String, Vec<f64>> {
    let mut sums = BTreeMap::<String, Vec<f64>>::new();
    for row in report[table].as_array().unwrap() {
        let key: Vec<String> = keys.iter().map(|key| row[key].to_string()).collect();
        let sum = sums
            .entry(key.join(" "))
            .or_insert_with(|| vec![0.0; columns.len()]);
        for (sum, column) in sum.iter_mut().zip(columns) {
            *sum += row[column].as_f64().unwrap_or(0.0);
        }
    }
    sums.retain(|_, sums| sums.iter().any(|sum| *sum > 0.0));
    sums
}

/// What is before a part, such as the interval of samples, the name of a file or the beginning of a
/// wait, counts in it.
#[test]
fn parts_of_the_time_add_up_to_the_whole() {
    for (scenario, file, kind, table, keys, columns) in [
        (
            "kernel-session",
            "merged.etl",
            "summary",
            "processes",
            &["pid"][..],
            &["cpu_us"][..],
        ),
        (
            "kernel-session",
            "merged.etl",
            "waits",
            "thread_waits",
            &["tid"],
            &["running_us", "switches", "wait_us", "ready_us"],
        ),
        (
            "kernel-session",
            "merged.etl",
            "waits",
            "wait_reasons",
            &["pid", "reason"],
            &["wait_us"],
        ),
        (
            "kernel-io",
            "kernel.etl",
            "io",
            "io",
            &["pid", "path", "operation"],
            &["count", "bytes"],
        ),
    ] {
        let here = recorded(scenario);
        let part = |args: &[&str]| {
            let report = json(here.path(), kind, &[args, &[file]].concat());
            sums(&report, table, keys, columns)
        };
        let whole = part(&[]);
        assert!(whole.len() > 2, "{kind} {table}: {whole:?}");
        let mut all = BTreeMap::<String, Vec<f64>>::new();
        for args in [
            &["--to", "0.35"][..],
            &["--from", "0.35", "--to", "0.6"],
            &["--from", "0.6"],
        ] {
            let part = part(args);
            assert!(!part.is_empty(), "{kind} {table} {args:?}");
            for (key, sums) in part {
                let all = all.entry(key).or_insert_with(|| vec![0.0; columns.len()]);
                all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
            }
        }
        let keys = |sums: &BTreeMap<String, Vec<f64>>| sums.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&all), keys(&whole), "{kind} {table}");
        for (key, whole) in &whole {
            for (whole, all) in whole.iter().zip(&all[key]) {
                assert!(
                    (whole - all).abs() < 1.0,
                    "{kind} {table} {key}: {whole} {all}"
                );
            }
        }
    }
}

/// A wait that lasts all the time that is selected has its stack, too.
#[test]
fn waits_that_cross_the_selected_time_have_stacks() {
    let here = recorded("kernel-session");
    let args = [
        "--tree",
        "--from",
        "0.125",
        "--to",
        "0.155",
        "--thread",
        "1028",
        "merged.etl",
    ];
    let report = json(here.path(), "waits", &args);
    assert_eq!(
        (&report["count"], &report["wait_us"]),
        (&1.into(), &30_000.0.into()),
        "{report}"
    );
}

/// Windows writes private sessions in the traced process, with another version in the header.
#[test]
fn info_names_the_process_of_a_private_session() {
    let here = directory(&[]);
    let script = root().join("corpus/private-sessions.kdl");
    let made = etlkit(
        here.path(),
        &["synth", script.to_str().unwrap(), "-o", "made"],
    );
    assert_eq!(made.code, 0, "{}", made.err);
    let info = etlkit(here.path(), &["info", "made/p1.etl"]);
    assert!(
        info.out.contains("private session of process "),
        "{}",
        info.out
    );
    let json = etlkit(here.path(), &["info", "--format", "json", "made/p1.etl"]);
    let report: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(report["dialect"], "private session");
    assert!(report["private_process"].as_u64().unwrap() > 0);
}
