//! `export parquet` and `export arrow`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use etl_test_support::{needs, python, root};
use serde_json::Value;

use crate::common::{directory, etlkit, etlkit_bytes, large, names};
use crate::failing_disks::limited;

/// Simulates the traces of a scenario of the corpus.
fn synth(directory: &Path, name: &str, args: &[&str]) {
    let script = root().join(format!("corpus/{name}.kdl"));
    let to = format!("traces/{}", if args.is_empty() { name } else { "gc" });
    let made = etlkit(
        directory,
        &[&["synth", script.to_str().unwrap(), "-o", &to], args].concat(),
    );
    assert_eq!(made.code, 0, "{}", made.err);
}

/// All files of a folder, by their paths.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut all, mut open) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                all.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    all
}

#[test]
fn data_set_does_not_depend_on_jobs_and_is_completed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for name in ["packets", "lost-events", "tracelogging"] {
        synth(path, name, &[]);
    }
    let export = |to: &str, args: &[&str]| {
        let made = etlkit(
            path,
            &[&["export", "parquet", "traces", "-o", to], args].concat(),
        );
        assert!(made.code < 2, "{}", made.err);
        made
    };
    export("one", &["--jobs", "1", "--typed"]);
    export("two", &["--jobs", "3", "--typed"]);
    let whole = files(&path.join("one"));
    assert!(whole.len() > 60, "{} files", whole.len());
    assert!(whole == files(&path.join("two")), "jobs change the files");

    // What is there is passed over; a trace that is not whole is written again.
    let again = export("one", &["--typed"]);
    assert!(
        again.out.ends_with("one: 0 of 4 traces added\n"),
        "{}",
        again.out
    );
    let entry = fs::read_dir(path.join("one/_traces"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::remove_file(&entry).unwrap();
    let half = whole
        .keys()
        .find(|name| name.starts_with("events/"))
        .unwrap();
    fs::write(path.join("one").join(half), "half a file").unwrap();
    let name = entry.file_stem().unwrap().to_str().unwrap();
    if !half.contains(name) {
        fs::write(path.join("one").join(half), &whole[half]).unwrap();
    }
    let again = export("one", &["--typed"]);
    assert!(
        again.out.ends_with("one: 1 of 4 traces added\n"),
        "{}",
        again.out
    );
    assert!(
        whole == files(&path.join("one")),
        "the data set is not what it was"
    );

    // Tables may come one after the other, too.
    export("three", &["--tables", "gcs,traces"]);
    export("three", &["--typed"]);
    let rest = files(&path.join("three"));
    let tables = |files: &BTreeMap<String, Vec<u8>>| {
        let mut files = files.clone();
        files.retain(|name, _| !name.starts_with("_traces") && name != "views.sql");
        files
    };
    assert!(
        tables(&whole) == tables(&rest),
        "tables depend on each other"
    );

    let other = etlkit(
        path,
        &["export", "parquet", "traces", "-o", "one", "--from", "1"],
    );
    assert_eq!(other.code, 2);
    assert!(
        other.err.contains("with another selection"),
        "{}",
        other.err
    );
    // Events that are decoded in another way are other rows, too.
    let args = [
        "export",
        "parquet",
        "traces",
        "-o",
        "one",
        "--event-tables",
        "documented",
    ];
    let other = etlkit(path, &args);
    assert!(
        other.err.contains("with another selection"),
        "{}",
        other.err
    );
}

#[test]
fn data_sets_are_packed_checked_and_shortened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    synth(path, "tracelogging", &["--count", "3"]);
    let made = etlkit(path, &["export", "parquet", "traces", "-o", "set"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let count = |table: &str| {
        let names = files(&path.join("set")).into_keys();
        let prefix = format!("set/{table}/");
        names
            .filter(|name| format!("set/{name}").starts_with(&prefix))
            .count()
    };
    // One for each trace, and the columns.
    assert_eq!(count("events"), 4);
    assert_eq!(count("gcs"), 1);
    let packed = etlkit(path, &["dataset", "compact", "set"]);
    assert_eq!(packed.code, 0, "{}", packed.err);
    assert_eq!(count("events"), 2);
    let again = etlkit(path, &["dataset", "compact", "set", "--format", "json"]);
    let report: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(report["written"], 0);

    let checked = etlkit(path, &["dataset", "check", "set", "--format", "json"]);
    let report: Value = serde_json::from_str(&checked.out).unwrap();
    assert_eq!((checked.code, &report["traces"]), (0, &Value::from(3)));
    let entries = fs::read_dir(path.join("set/_traces")).unwrap();
    let mut traces: Vec<String> = entries
        .map(|entry| entry.unwrap().path())
        .map(|entry| entry.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    traces.sort();
    let removed = etlkit(path, &["dataset", "remove", "set", &traces[0]]);
    assert_eq!(removed.out, format!("{}: removed\n", traces[0]));
    let unknown = etlkit(path, &["dataset", "remove", "set", &traces[0]]);
    assert_eq!(unknown.code, 2);
    let reason = "the data set has no trace with this name";
    assert!(unknown.err.contains(reason), "{}", unknown.err);
    assert_eq!(etlkit(path, &["dataset", "check", "set"]).code, 0);

    let files = fs::read_dir(path.join("set/events")).unwrap();
    for file in files {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    let checked = etlkit(path, &["dataset", "check", "set"]);
    assert_eq!(checked.code, 1);
    let missing = format!("events: {} has 0 rows", traces[1]);
    assert!(checked.out.contains(&missing), "{}", checked.out);
    let other = etlkit(path, &["dataset", "check", "traces"]);
    assert_eq!(other.code, 2);
    assert!(
        other.err.contains("this is not a data set"),
        "{}",
        other.err
    );
}

#[test]
fn events_can_be_apart_by_provider() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    synth(path, "tracelogging", &[]);
    let args = [
        "export",
        "parquet",
        "traces",
        "-o",
        "set",
        "--tables",
        "events",
        "--by-provider",
    ];
    let made = etlkit(path, &args);
    assert_eq!(made.code, 0, "{}", made.err);
    let all = files(&path.join("set"));
    assert!(
        all.keys()
            .any(|name| name.contains("/provider=Contoso.Shop/"))
    );
}

/// Engines decode the names of folders: the values come back as they are in one file of all.
#[needs(python)]
#[test]
fn providers_of_partitions_have_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    synth(path, "kernel-session", &[]);
    for (to, args) in [("set", &["--by-provider"][..]), ("whole", &[])] {
        let trace = "traces/kernel-session/merged.etl";
        let fixed = ["export", "parquet", trace, "-o", to, "--tables", "events"];
        assert_eq!(etlkit(path, &[&fixed, args].concat()).code, 0);
    }
    let script = r#"
import duckdb
count = "SELECT provider, count(*) FROM '{}' GROUP BY ALL ORDER BY 1"
ours = duckdb.sql(count.format("set/events/**/*.parquet")).fetchall()
theirs = duckdb.sql(count.format("whole/events/**/*.parquet")).fetchall()
assert ours == theirs, (ours, theirs)
assert any("/" in (name or "") for name, _ in ours), ours
"#;
    let output = Command::new(python())
        .args(["-c", script])
        .current_dir(path)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A write fails, and the trace is not to blame.
#[test]
fn full_disk_is_reported_with_the_name_of_the_output() {
    let here = directory(&[("t.etl", &large())]);
    for (blocks, args, output) in [
        (
            1,
            &["export", "arrow", "t.etl", "-o", "out.arrow"][..],
            "out.arrow: ",
        ),
        (
            1,
            &["export", "arrow", "t.etl", "-o", "-"],
            "(standard output): ",
        ),
        (0, &["export", "parquet", "t.etl", "-o", "set"], "set/"),
        (
            1,
            &[
                "export", "parquet", "t.etl", "-o", "set", "--tables", "events",
            ],
            "set/events/",
        ),
    ] {
        let said = limited(here.path(), blocks, args);
        assert_eq!(said.code, 2, "{args:?}");
        let is_named = said.err.starts_with(&format!("error: {output}"));
        assert!(
            is_named && said.err.contains(": File too large"),
            "{args:?}: {}",
            said.err
        );
        assert!(!said.err.contains(".unfinished"), "{}", said.err);
        assert_eq!(names(here.path()), ["t.etl"], "{args:?}");
    }
}

/// The next run would remove the folder, but there may be none.
#[test]
#[cfg(unix)]
fn signals_remove_unfinished_traces_of_a_data_set() {
    use rustix::process::{Pid, Signal, kill_process};
    let here = directory(&[("t.etl", &large())]);
    let unfinished = here.path().join("set/.unfinished");
    let mut ended = 0;
    for round in 0..8 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_etlkit"))
            .current_dir(here.path())
            .args([
                "export", "parquet", "t.etl", "-o", "set", "--tables", "events",
            ])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The trace is being written once its folder is there.
        while !unfinished.exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::thread::sleep(std::time::Duration::from_millis(round));
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        ended += u32::from(child.wait().unwrap().code().is_none());
        assert!(!unfinished.exists());
        let _ = fs::remove_dir_all(here.path().join("set"));
    }
    assert!(ended > 3, "it was always done before");
}

#[test]
fn options_that_select_events_are_refused_for_other_tables() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    synth(path, "tracelogging", &[]);
    let export = |table: &str, option: &[&str]| {
        let args = [
            "export",
            "arrow",
            "traces/tracelogging/shop.etl",
            "--force",
            "-o",
            "x",
        ];
        etlkit(path, &[&args, &["--table", table][..], option].concat())
    };
    for option in [
        ["--event", "A"],
        ["--id", "1"],
        ["--opcode", "1"],
        ["--level", "4"],
        ["--keyword", "1"],
        ["--provider", "Contoso.Shop"],
    ] {
        let made = export("processes", &option);
        assert_eq!(made.code, 2, "{option:?}");
        let expected = format!(
            "error: {}: the rows of the table processes are no",
            option[0]
        );
        assert!(made.err.starts_with(&expected), "{}", made.err);
        assert!(export("events", &option).code < 2, "{option:?}");
    }
    let made = export("processes", &["--from", "0"]);
    assert_eq!((made.code, &*made.err), (0, ""));
}

#[test]
fn only_pipes_and_arrows_files_are_streams() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    synth(path, "tracelogging", &[]);
    let trace = "traces/tracelogging/shop.etl";
    for (to, is_file) in [
        ("x", true),
        ("x.arrow", true),
        ("x.feather", true),
        ("x.arrows", false),
    ] {
        let made = etlkit(
            path,
            &["export", "arrow", trace, "--table", "traces", "-o", to],
        );
        assert_eq!(made.code, 0, "{}", made.err);
        assert_eq!(
            fs::read(path.join(to)).unwrap().starts_with(b"ARROW1"),
            is_file,
            "{to}"
        );
    }
    let bytes = fs::read(path.join(trace)).unwrap();
    let args = ["export", "arrow", "-", "--table", "traces", "-o", "-"];
    assert!(
        etlkit_bytes(&bytes, &args)
            .0
            .starts_with(b"\xff\xff\xff\xff")
    );
}

#[needs(python)]
#[test]
fn queries_of_the_page_have_the_answers_that_it_shows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let scenarios = [
        "kernel-session",
        "kernel-io",
        "packets",
        "profile",
        "lost-events",
        "tracelogging",
    ];
    for name in scenarios {
        synth(path, name, &[]);
    }
    synth(path, "gc-and-locks", &["--count", "20"]);
    let script = root().join("corpus/gc-and-locks.kdl");
    let made = etlkit(
        path,
        &["export", "parquet", "traces/", "-o", "dataset", "--typed"],
    );
    assert!(made.code < 2, "{}", made.err);
    let many = [
        "synth",
        script.to_str().unwrap(),
        "-o",
        "many",
        "--count",
        "200",
        "--no-truth",
    ];
    assert_eq!(etlkit(path, &many).code, 0);
    let made = etlkit(
        path,
        &[
            "export", "parquet", "many", "-o", "pauses", "--tables", "gcs",
        ],
    );
    assert_eq!(made.code, 0, "{}", made.err);
    let page = root().join("docs/tables.md");
    let script = root().join("tests/foreign/queries.py");
    let mut command = Command::new(python());
    command.args([script.as_path(), &path.join("dataset"), &page]);
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some() {
        command.arg("--write");
    }
    let output = command.output().unwrap();
    let (out, err) = (output.stdout, output.stderr);
    let (out, err) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
    assert!(output.status.success(), "{out}{err}");
}

/// Runs a script on the tables of a trace in a folder, beside what `dump` and `verify` print of it.
fn check_tables(folder: &Path, trace: &str, script: &str, args: &[&str]) {
    let made = etlkit(folder, &["export", "parquet", trace, "-o", "set"]);
    assert!(made.code < 2, "{}", made.err);
    let print = |args: &[&str], to: &str| fs::write(folder.join(to), etlkit(folder, args).out);
    print(&["dump", trace, "--format", "jsonl"], "events.jsonl").unwrap();
    print(&["verify", trace, "--format", "json"], "verify.json").unwrap();
    let script = root().join("tests/foreign").join(script);
    let output = Command::new(python())
        .arg(script)
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    let (out, err) = (output.stdout, output.stderr);
    let (out, err) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
    assert!(output.status.success(), "{trace}: {out}{err}");
}

#[needs(python)]
#[test]
fn tables_have_all_rows_and_values_of_the_simulated_machine() {
    let directory = tempfile::tempdir().unwrap();
    for (name, trace) in [
        ("kernel-session", "merged.etl"),
        ("windows-32", "windows-32.etl"),
    ] {
        synth(directory.path(), name, &[]);
        let folder = directory.path().join("traces").join(name);
        check_tables(&folder, trace, "tables.py", &[]);
    }
}

#[needs(python)]
#[test]
fn tables_of_sums_are_those_of_the_events() {
    let directory = tempfile::tempdir().unwrap();
    for (name, trace, tables) in [
        ("kernel-io", "merged.etl", &["io"][..]),
        ("packets", "nettrace.etl", &["packets"][..]),
        ("gc-and-locks", "gc.etl", &["gcs"][..]),
        ("lost-events", "lost.etl", &["losses", "findings"][..]),
    ] {
        synth(directory.path(), name, &[]);
        let folder = directory.path().join("traces").join(name);
        check_tables(&folder, trace, "table_sums.py", tables);
    }
}

#[needs(python)]
#[test]
fn other_readers_see_all_events_of_arrow_and_parquet_files() {
    let directory = tempfile::tempdir().unwrap();
    for (name, trace) in [
        ("kernel-session", "merged.etl"),
        ("windows-7", "windows7.etl"),
        ("wpp", "driver.etl"),
        ("manifest-provider", "shop.etl"),
    ] {
        synth(directory.path(), name, &[]);
        let folder = directory.path().join("traces").join(name);
        for to in ["events.arrow", "events.arrows"] {
            let made = etlkit(&folder, &["export", "arrow", trace, "-o", to]);
            assert_eq!(made.code, 0, "{}", made.err);
        }
        check_tables(&folder, trace, "arrow_events.py", &[]);
    }
}

#[test]
fn traces_that_cannot_be_added_are_counted_and_leave_nothing() {
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("a.etl"), "no trace").unwrap();
    fs::write(here.path().join("b.etl"), "this is not one, either").unwrap();
    let made = etlkit(
        here.path(),
        &["export", "parquet", "a.etl", "b.etl", "-o", "set"],
    );
    assert_eq!(
        (made.code, &*made.out),
        (2, "set: 0 of 2 traces added\n"),
        "{}",
        made.err
    );
    assert!(!here.path().join("set").exists());
    synth(here.path(), "tracelogging", &[]);
    let made = etlkit(
        here.path(),
        &["export", "parquet", "traces", "a.etl", "-o", "set"],
    );
    assert!(
        made.out.ends_with("set: 1 of 2 traces added\n"),
        "{}",
        made.out
    );
    assert!(!here.path().join("set/.unfinished").exists());
}

#[test]
fn tables_that_are_not_there_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    synth(path, "tracelogging", &[]);
    let made = etlkit(
        path,
        &[
            "export", "parquet", "traces", "-o", "set", "--tables", "event",
        ],
    );
    assert_eq!(made.code, 2);
    assert!(
        made.err
            .contains("no table `event`: the tables are events,"),
        "{}",
        made.err
    );
    let trace = "traces/tracelogging/shop.etl";
    let args = [
        "export",
        "arrow",
        trace,
        "--table",
        "events",
        "--columns",
        "process_id",
        "-o",
        "x.arrow",
    ];
    let made = etlkit(path, &args);
    assert_eq!(made.code, 2);
    assert!(made.err.contains("no column `process_id`"), "{}", made.err);
    assert!(!path.join("x.arrow").exists());
    let made = etlkit(path, &["export", "parquet", "traces", "-o", trace]);
    assert_eq!(made.code, 2);
    assert!(
        made.err.contains("shop.etl: this is a file\n"),
        "{}",
        made.err
    );
}

#[test]
fn arrow_reports_selected_names_that_the_trace_lacks() {
    let directory = tempfile::tempdir().unwrap();
    synth(directory.path(), "packets", &[]);
    let trace = fs::read_dir(directory.path().join("traces/packets")).unwrap();
    let is_trace = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "etl");
    let trace = trace
        .map(|entry| entry.unwrap().path())
        .find(is_trace)
        .unwrap();
    for selection in [["-p", "nosuch"], ["--event", "NoSuch"]] {
        let arrow = [
            "export",
            "arrow",
            trace.to_str().unwrap(),
            "-o",
            "x.arrow",
            "--force",
        ];
        let said = etlkit(directory.path(), &[&arrow[..], &selection].concat());
        let dumped = etlkit(
            directory.path(),
            &[&["dump", arrow[2]][..], &selection].concat(),
        );
        assert_eq!((said.code, dumped.code), (1, 1), "{selection:?}");
        let error = dumped
            .err
            .lines()
            .find(|line| line.starts_with("error: "))
            .unwrap();
        assert!(said.err.contains(error), "{}", said.err);
    }
}
