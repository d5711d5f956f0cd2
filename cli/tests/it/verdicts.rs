//! Verdicts of `etlverify` as users meet them: exit codes, processes, several files, baselines.

use std::path::Path;

use crate::common::{directory, etlkit, etlkit_piped, etlverify, trace, trace_of};
use etl_test_support::{needs, trace as trace_path};
use serde_json::Value;

/// Traces of the corpus: `NAME.etl` is the file `clr.etl` of the scenario `rules/NAME`.
pub fn made(names: &[&str]) -> tempfile::TempDir {
    let here = directory(&[]);
    for name in names {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../corpus/rules/{name}.kdl"));
        let said = etlkit(
            here.path(),
            &["synth", script.to_str().unwrap(), "-o", "made"],
        );
        assert_eq!(said.code, 0, "{}", said.err);
        let to = here.path().join(format!("{name}.etl"));
        std::fs::rename(here.path().join("made/clr.etl"), to).unwrap();
        std::fs::remove_dir_all(here.path().join("made")).unwrap();
    }
    here
}

/// A trace with one event of an unknown provider.
fn small() -> Vec<u8> {
    trace_of([0x5a; 16], 1, 0, b"")
}

fn json(here: &Path, args: &[&str]) -> (i32, Value) {
    let said = etlverify(here, &[&["--no-config", "--format", "json"], args].concat());
    let report = serde_json::from_str(&said.out);
    (
        said.code,
        report.unwrap_or_else(|e| panic!("{args:?}: {e}: {}", said.err)),
    )
}

#[test]
fn exit_code_follows_the_verdict() {
    let here = made(&["sound", "file.clock", "file.events-lost", "rundown.missing"]);
    for (file, args, code, verdict) in [
        ("sound.etl", &[][..], 0, "complete"),
        ("file.clock.etl", &[], 0, "complete_with_warnings"),
        ("file.clock.etl", &["--deny", "warnings"], 1, "incomplete"),
        (
            "file.clock.etl",
            &["--deny", "warnings", "--allow", "file.clock"],
            0,
            "complete",
        ),
        ("file.events-lost.etl", &[], 1, "cannot_tell"),
        (
            "file.events-lost.etl",
            &["--deny", "file.events-lost"],
            1,
            "incomplete",
        ),
        (
            "file.events-lost.etl",
            &["--allow", "file.events-lost"],
            0,
            "complete",
        ),
        ("rundown.missing.etl", &[], 1, "incomplete"),
    ] {
        let (found, report) = json(here.path(), &[args, &[file]].concat());
        assert_eq!(
            (found, report["verdict"].as_str().unwrap()),
            (code, verdict),
            "{file} {args:?}"
        );
    }
    // The report says which questions are open.
    let said = etlverify(here.path(), &["--no-config", "file.events-lost.etl"]);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(
        lines[1].starts_with("verdict   cannot tell ("),
        "{}",
        said.out
    );
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("open      file.events-lost")),
        "{lines:?}"
    );
}

#[test]
fn trace_without_managed_code_is_judged() {
    let here = directory(&[("small.etl", &small()), ("sample.etl", &trace())]);
    // Its one sample is in no image.
    let (code, report) = json(here.path(), &["sample.etl"]);
    assert_eq!((code, &report["verdict"]), (1, &Value::from("incomplete")));
    let (code, report) = json(here.path(), &["small.etl"]);
    assert_eq!(
        (code, &report["verdict"]),
        (0, &Value::from("complete")),
        "{report}"
    );
    let rules = report["rules"].as_array().unwrap();
    let rule = |id: &str| rules.iter().find(|rule| rule["rule"] == id).unwrap();
    assert_eq!(rule("rundown.missing")["outcome"], "not_applicable");
    assert_eq!(rule("rundown.missing")["because"], "no managed code");
    assert_eq!(rule("file.damaged")["outcome"], "holds");
}

#[test]
fn every_process_has_a_verdict() {
    let here = made(&["rundown.missing"]);
    let file = "rundown.missing.etl";
    let (_, report) = json(here.path(), &[file]);
    let verdict = |pid: u64| {
        let mut all = report["processes"].as_array().unwrap().iter();
        all.find(|p| p["pid"] == pid).unwrap()["verdict"].clone()
    };
    assert_eq!(verdict(100), "incomplete");
    let others = report["processes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| p["pid"] != 100);
    let others: Vec<_> = others.map(|p| p["pid"].as_u64().unwrap()).collect();
    assert!(!others.is_empty());
    for pid in others {
        assert_eq!(verdict(pid), "complete", "{pid}");
        let (code, selected) = json(here.path(), &["--process", &pid.to_string(), file]);
        assert_eq!((code, &selected["verdict"]), (0, &Value::from("complete")));
        assert_eq!(selected["processes"].as_array().unwrap().len(), 1);
    }
    let (code, selected) = json(here.path(), &["--process", "0x64", file]);
    assert_eq!(
        (code, &selected["verdict"]),
        (1, &Value::from("incomplete"))
    );

    let said = etlverify(here.path(), &["--no-config", "--format", "junit", file]);
    let document = roxmltree::Document::parse(&said.out).unwrap();
    let mut cases = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"));
    let is_own = |case: &roxmltree::Node<'_, '_>| {
        case.attribute("name")
            .is_some_and(|name| name.starts_with("process 100"))
    };
    let case = cases.find(is_own).unwrap();
    assert!(
        case.children().any(|child| child.has_tag_name("failure")),
        "{}",
        said.out
    );
    let said = etlverify(here.path(), &["--no-config", "--format", "sarif", file]);
    let sarif: Value = serde_json::from_str(&said.out).unwrap();
    let processes = sarif["runs"][0]["properties"]["traces"][0]["processes"]
        .as_array()
        .unwrap();
    assert!(
        processes
            .iter()
            .any(|p| p["pid"] == 100 && p["verdict"] == "incomplete"),
        "{sarif}"
    );
}

/// A server with thousands of processes has a case for those that a gate is about.
#[test]
fn junit_has_cases_for_judged_processes_only() {
    let here = made(&["rundown.missing"]);
    let file = "rundown.missing.etl";
    let cases = |args: &[&str]| {
        let args = [&["--no-config", "--format", "junit"], args, &[file]].concat();
        let said = etlverify(here.path(), &args);
        let document = roxmltree::Document::parse(&said.out).unwrap();
        let cases = document
            .descendants()
            .filter_map(|node| node.attribute("name"));
        let cases = cases.filter(|name| name.starts_with("process "));
        cases.map(str::to_owned).collect::<Vec<_>>()
    };
    let managed = cases(&[]);
    let (_, report) = json(here.path(), &[file]);
    let processes = report["processes"].as_array().unwrap();
    let is_managed = |p: &&Value| p["clr_events"].as_u64() > Some(0);
    assert_eq!(managed.len(), processes.iter().filter(is_managed).count());
    assert_eq!(cases(&["--process", "100"]).len(), 1);
}

/// A gate must not pass because a program was renamed.
#[test]
fn unknown_process_is_an_error() {
    let here = made(&["sound"]);
    let said = etlverify(here.path(), &["--process", "renamed.exe", "sound.etl"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(
        said.err.contains("sound.etl") && said.err.contains("renamed.exe"),
        "{}",
        said.err
    );
}

#[test]
fn unreadable_files_are_errors_in_every_format() {
    let here = made(&["sound"]);
    std::fs::write(here.path().join("notes.etl"), b"some notes").unwrap();
    let said = |format| {
        let said = etlverify(
            here.path(),
            &["--no-config", "--format", format, "notes.etl", "sound.etl"],
        );
        assert_eq!(said.code, 2, "{format}");
        assert!(
            said.err.starts_with("error: notes.etl: "),
            "{format}: {}",
            said.err
        );
        said.out
    };
    for format in ["text", "html"] {
        let out = said(format);
        assert!(
            out.contains("not checked") && out.contains("notes.etl"),
            "{format}: {out}"
        );
    }
    let reports: Value = serde_json::from_str(&said("json")).unwrap();
    assert!(
        reports[0]["error"].is_string() && reports[1]["error"].is_null(),
        "{reports}"
    );
    assert_eq!(reports[1]["verdict"], "complete");
    let sarif: Value = serde_json::from_str(&said("sarif")).unwrap();
    let invocation = &sarif["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert_eq!(
        invocation["toolExecutionNotifications"][0]["level"],
        "error"
    );
    let junit = said("junit");
    let document = roxmltree::Document::parse(&junit).unwrap();
    let suite = document
        .descendants()
        .find(|node| node.has_tag_name("testsuite"))
        .unwrap();
    assert_eq!(
        (suite.attribute("tests"), suite.attribute("errors")),
        (Some("1"), Some("1"))
    );
    assert_eq!(
        suite
            .descendants()
            .filter(|node| node.has_tag_name("error"))
            .count(),
        1
    );
    assert!(said("github").starts_with("::error file=notes.etl,title=not checked::"));
}

#[test]
fn annotations_have_an_error_where_the_run_fails() {
    let here = made(&["sound", "file.clock", "file.events-lost", "rundown.missing"]);
    for file in ["sound", "file.clock", "file.events-lost", "rundown.missing"] {
        let file = format!("{file}.etl");
        let said = etlverify(here.path(), &["--no-config", "--format", "github", &file]);
        let has_error = said.out.lines().any(|line| line.starts_with("::error "));
        assert_eq!(has_error, said.code == 1, "{file}: {}", said.out);
    }
    let args = ["--no-config", "--format", "github", "file.events-lost.etl"];
    let said = etlverify(here.path(), &args).out;
    let first = said.lines().next().unwrap();
    assert!(
        first.starts_with("::error file=file.events-lost.etl,title=cannot tell::"),
        "{first}"
    );
    assert!(first.contains("file.events-lost"), "{first}");
}

#[test]
fn allow_overrules_what_the_file_denies() {
    let here = made(&["rundown.missing"]);
    let deny = |name: &str| {
        std::fs::write(
            here.path().join("etlverify.toml"),
            format!("deny = [\"{name}\"]"),
        )
        .unwrap();
    };
    for (denied, allowed) in [
        ("rundown", "rundown.missing"),
        ("rundown.missing", "rundown"),
    ] {
        deny(denied);
        let args = [
            "--format",
            "json",
            "rundown.missing.etl",
            "--allow",
            allowed,
        ];
        let said = etlverify(here.path(), &args);
        assert!(
            !said
                .out
                .contains("\"rule\": \"rundown.missing\",\n      \"severity\""),
            "{}",
            said.out
        );
        assert_eq!(said.code, 0, "{denied} {allowed}: {}", said.out);
    }
}

#[test]
fn truth_is_read_from_standard_input() {
    let here = directory(&[("two.kdl", include_bytes!("two.kdl"))]);
    let made = etlkit(here.path(), &["synth", "two.kdl", "-o", "out"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let truth = std::fs::read(here.path().join("out/truth.jsonl")).unwrap();
    let trace = made
        .out
        .lines()
        .find_map(|line| line.split_once(".etl"))
        .unwrap()
        .0;
    let trace = here
        .path()
        .join(format!("{trace}.etl"))
        .to_str()
        .unwrap()
        .to_owned();
    let said = etlkit_piped(&truth, &["verify", "--no-config", "--truth", "-", &trace]);
    assert!(said.code < 2, "{}", said.err);
    let said = etlkit_piped(&truth, &["verify", "--no-config", "--truth", "-", "-"]);
    assert!(
        said.err
            .contains("only one of the files can be standard input"),
        "{}",
        said.err
    );
}

#[test]
fn subdirectories_are_searched() {
    let here = directory(&[]);
    let root = here.path();
    for directory in ["in/a/b", "in/empty", "nothing"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    for file in ["in/z.etl", "in/a/y.ETL", "in/a/b/x.etl"] {
        std::fs::write(root.join(file), small()).unwrap();
    }
    std::fs::write(root.join("in/a/other.txt"), b"text").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.join("in"), root.join("in/a/loop.etl")).unwrap();
    let said = etlverify(root, &["--no-config", "--format", "json", "nothing", "in"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.err.starts_with("note: nothing: contains no .etl file"),
        "{}",
        said.err
    );
    let reports: Value = serde_json::from_str(&said.out).unwrap();
    let files = reports
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["file"].as_str().unwrap());
    let files: Vec<String> = files.map(|file| file.replace('\\', "/")).collect();
    assert_eq!(files, ["in/a/b/x.etl", "in/a/y.ETL", "in/z.etl"]);
    let said = etlverify(root, &["nothing"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("there is no trace to read"),
        "{}",
        said.err
    );
}

#[test]
fn baseline_accepts_known_findings() {
    let here = made(&["rundown.missing", "rundown.unclosed"]);
    let file = "rundown.missing.etl";
    let said = etlverify(
        here.path(),
        &["--no-config", "--write-baseline", "known.json", file],
    );
    assert_eq!(said.code, 0, "{}", said.out);
    assert!(
        said.out.contains("accepted by the baseline"),
        "{}",
        said.out
    );
    let (code, report) = json(here.path(), &["--baseline", "known.json", file]);
    assert_eq!((code, &report["verdict"]), (0, &Value::from("complete")));
    let findings = report["findings"].as_array().unwrap();
    assert!(
        !findings.is_empty() && findings.iter().all(|f| f["is_known"] == true),
        "{findings:?}"
    );
    assert!(
        said.err.starts_with("note: known.json: known findings: "),
        "{}",
        said.err
    );
    let said = etlverify(
        here.path(),
        &["--no-config", "-q", "--baseline", "known.json", file],
    );
    assert!(
        said.out.starts_with("complete ") && said.out.contains(" known)"),
        "{}",
        said.out
    );
    let strict = [
        "--deny",
        "warnings",
        "--deny",
        "rundown",
        "--baseline",
        "known.json",
        file,
    ];
    assert_eq!(json(here.path(), &strict).0, 0, "what is known stays known");
    // Code scanning tools show which results are new.
    let states = |args: &[&str]| {
        let sarif = ["--no-config", "--format", "sarif"];
        let said = etlverify(here.path(), &[&sarif, args].concat());
        let log: Value = serde_json::from_str(&said.out).unwrap();
        let results = log["runs"][0]["results"].as_array().unwrap().iter();
        results
            .map(|r| r["baselineState"].as_str().unwrap_or("none").to_owned())
            .collect()
    };
    let all_are = |states: Vec<String>, state| states.iter().all(|s| s == state);
    let known = ["--baseline", "known.json"];
    assert!(all_are(states(&[file]), "none"));
    assert!(all_are(
        states(&[&known[..], &[file]].concat()),
        "unchanged"
    ));
    assert!(all_are(
        states(&[&known[..], &["rundown.unclosed.etl"]].concat()),
        "new"
    ));
    // Findings of another trace, and new ones, count.
    let (code, _) = json(
        here.path(),
        &["--baseline", "known.json", "rundown.unclosed.etl"],
    );
    assert_eq!(code, 1);
    std::fs::rename(
        here.path().join("rundown.unclosed.etl"),
        here.path().join(file),
    )
    .unwrap();
    let (code, _) = json(here.path(), &["--baseline", "known.json", file]);
    assert_eq!(code, 1);
    let said = etlverify(here.path(), &["--baseline", file, file]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("not a baseline"), "{}", said.err);
}

#[test]
fn write_baseline_replaces_nothing_but_a_baseline() {
    let here = made(&["rundown.missing", "sound"]);
    let root = here.path();
    std::fs::write(root.join("notes.json"), b"{\"mine\": 1}").unwrap();
    let before = std::fs::read(root.join("sound.etl")).unwrap();
    let said =
        |args: &[&str]| etlverify(root, &[&["--no-config", "--write-baseline"], args].concat());
    let refused = |args: &[&str], reason: &str| {
        let said = said(args);
        assert_eq!(
            (said.code, said.out.as_str()),
            (2, ""),
            "{args:?}: {}",
            said.err
        );
        assert!(said.err.contains(reason), "{args:?}: {}", said.err);
        assert!(!said.err.contains(".part"), "{args:?}: {}", said.err);
    };
    // The name of the file is forgotten, as a shell expands `*.etl`.
    refused(
        &["sound.etl", "rundown.missing.etl"],
        "exists and is not a baseline",
    );
    refused(&["sound.etl", "sound.etl"], "is one of the inputs");
    refused(&["./sound.etl", "."], "is one of the inputs");
    refused(&["notes.json", "sound.etl"], "exists and is not a baseline");
    refused(&["-", "sound.etl"], "needs the name of a file");
    refused(
        &["none/known.json", "sound.etl"],
        "its directory does not exist",
    );
    refused(&[".", "sound.etl"], "is a directory");
    assert_eq!(std::fs::read(root.join("sound.etl")).unwrap(), before);
    assert_eq!(
        std::fs::read(root.join("notes.json")).unwrap(),
        b"{\"mine\": 1}"
    );
    assert!(!root.join("-").exists());
    // A trace that cannot be read has findings that are not known: the earlier baseline stays.
    assert_eq!(said(&["known.json", "rundown.missing.etl"]).code, 0);
    let known = std::fs::read(root.join("known.json")).unwrap();
    let failed = said(&["known.json", "notes.json", "sound.etl"]);
    assert_eq!(failed.code, 2);
    assert!(
        failed.err.contains("note: known.json: not written"),
        "{}",
        failed.err
    );
    assert_eq!(std::fs::read(root.join("known.json")).unwrap(), known);
    // An empty file has nothing to lose, and a link stays a link.
    std::fs::write(root.join("empty.json"), b"").unwrap();
    assert_eq!(said(&["empty.json", "sound.etl"]).code, 0);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("known.json", root.join("link.json")).unwrap();
        std::os::unix::fs::symlink("sound.etl", root.join("link.etl")).unwrap();
        assert_eq!(said(&["link.json", "sound.etl"]).code, 0);
        assert!(root.join("link.json").is_symlink());
        assert_ne!(std::fs::read(root.join("known.json")).unwrap(), known);
        refused(&["link.etl", "sound.etl"], "is one of the inputs");
    }
}

#[test]
fn quiet_prints_a_line_for_each_trace() {
    let here = made(&["sound", "file.events-lost"]);
    let said = etlverify(here.path(), &["--no-config", "-q", "sound.etl"]);
    assert_eq!(
        (said.code, said.out.lines().count()),
        (0, 1),
        "{}",
        said.out
    );
    assert!(said.out.starts_with("complete "), "{}", said.out);
    let said = etlverify(here.path(), &["--no-config", "--quiet", "."]);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!((said.code, lines.len()), (1, 2), "{lines:?}");
    assert!(lines[0].starts_with("cannot tell ") && lines[0].contains("file.events-lost.etl"));
}

#[test]
fn info_counts_the_events_that_dump_prints_of_a_process() {
    let here = made(&["sound"]);
    let info = |args: &[&str]| -> Value {
        let said = etlkit(
            here.path(),
            &[&["info", "--format", "json", "sound.etl"], args].concat(),
        );
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        serde_json::from_str(&said.out).unwrap()
    };
    let (all, own) = (info(&[]), info(&["--process", "FIRST.exe"]));
    let dumped = etlkit(
        here.path(),
        &["dump", "sound.etl", "--pid", "100", "--format", "jsonl"],
    );
    assert_eq!(own["records"], dumped.out.lines().count());
    assert!(own["records"].as_u64() < all["records"].as_u64());
    assert_eq!(
        (&own["buffers"], &own["processes"][0]),
        (&all["buffers"], &"FIRST.exe".into())
    );
    let said = etlkit(here.path(), &["info", "sound.etl", "--process", "0x64"]);
    assert!(said.out.contains("\n  events of   0x64\n"), "{}", said.out);
    let said = etlkit(here.path(), &["info", "sound.etl", "--process", "other"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(
        said.err.contains("no process of the trace is \"other\""),
        "{}",
        said.err
    );
}

#[test]
fn diff_compares_the_selected_processes() {
    let here = made(&["sound"]);
    let said = etlkit(
        here.path(),
        &["slice", "sound.etl", "--pid", "100", "-o", "first.etl"],
    );
    assert_eq!(said.code, 0, "{}", said.err);
    let diff = |args: &[&str]| {
        let common = [
            "diff",
            "sound.etl",
            "first.etl",
            "--ignore",
            "header",
            "--format",
            "json",
        ];
        let said = etlkit(here.path(), &[&common, args].concat());
        let report: Value = serde_json::from_str(&said.out).unwrap();
        (
            said.code,
            report["missing"].as_u64().unwrap(),
            report["same"].as_u64().unwrap(),
        )
    };
    let (code, missing, _) = diff(&[]);
    assert!(code == 1 && missing > 0);
    let (code, missing, same) = diff(&["--process", "first"]);
    assert!(
        code == 0 && missing == 0 && same > 0,
        "{code} {missing} {same}"
    );
    let args = ["diff", "sound.etl", "first.etl", "--process", "second"];
    let said = etlkit(here.path(), &args);
    assert_eq!(said.code, 2, "{}", said.out);
}

/// Ids of EVENT, FULL and MESSAGE records, and of the header event: no record is about a process.
#[test]
fn every_command_selects_an_id_that_only_events_have() {
    let here = directory(&[("t.etl", &trace())]);
    let run = |args: &[&str]| etlkit(here.path(), args);
    for (pid, count) in [("100", 2), ("0xc8", 1), ("300", 1), ("66", 1)] {
        let counted = run(&["dump", "--count", "--process", pid, "t.etl"]);
        assert_eq!(
            (counted.code, counted.out.as_str()),
            (0, &*format!("{count}\n")),
            "{pid}"
        );
        assert_eq!(
            run(&["dump", "--count", "--pid", pid, "t.etl"]).out,
            counted.out,
            "{pid}"
        );
        let info = run(&["info", "--format", "json", "--process", pid, "t.etl"]);
        let info: Value = serde_json::from_str(&info.out).unwrap();
        assert_eq!(info["records"], count, "{pid}");
        if pid == "66" {
            // A slice has the header event in any case, and a comparison has it apart.
            continue;
        }
        let slice = [
            "slice",
            "--no-keep-state",
            "t.etl",
            "--format",
            "json",
            "--force",
            "-o",
            "s",
        ];
        let slice: Value =
            serde_json::from_str(&run(&[&slice, &["--process", pid][..]].concat()).out).unwrap();
        assert_eq!(slice["selected"], count, "{pid}");
        let diff = run(&[
            "diff",
            "--format",
            "json",
            "--process",
            pid,
            "t.etl",
            "t.etl",
        ]);
        let diff: Value = serde_json::from_str(&diff.out).unwrap();
        assert_eq!(
            (&diff["same"], &diff["missing"]),
            (&count.into(), &0.into()),
            "{pid}"
        );
        for kind in ["summary", "waits", "processes"] {
            assert_eq!(
                run(&["analyze", kind, "--process", pid, "t.etl"]).code,
                0,
                "{kind} {pid}"
            );
        }
        let verified = etlverify(here.path(), &["--no-config", "--process", pid, "t.etl"]);
        assert!(verified.code < 2, "{pid}: {}", verified.err);
        let exported = run(&["export", "perfetto", "--process", pid, "t.etl", "-o", "p"]);
        assert!(
            !exported.err.contains("no process"),
            "{pid}: {}",
            exported.err
        );
    }
    for command in [
        &["dump"][..],
        &["info"],
        &["slice", "-o", "none.etl"],
        &["diff", "t.etl"],
        &["analyze", "summary"],
        &["verify"],
        &["export", "perfetto", "-o", "none"],
    ] {
        let said = run(&[command, &["t.etl", "--process", "101"]].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{command:?}");
        assert!(
            said.err.contains("no process of the trace is \"101\""),
            "{command:?}"
        );
    }
}

#[test]
fn dump_and_slice_select_processes_by_name() {
    let here = made(&["sound"]);
    let lines = |args: &[&str]| {
        let said = etlkit(here.path(), &[&["dump", "sound.etl"], args].concat());
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        said.out
    };
    let by_name = lines(&["--process", "first"]);
    assert!(!by_name.is_empty());
    assert_eq!(by_name, lines(&["--pid", "100"]));
    assert_eq!(
        lines(&["--process", "first", "--pid", "200"]),
        lines(&["--pid", "100", "--pid", "200"])
    );
    let said = etlkit(
        here.path(),
        &[
            "slice",
            "sound.etl",
            "--process",
            "First.exe",
            "-o",
            "a.etl",
        ],
    );
    assert_eq!(said.code, 0, "{}", said.err);
    let said = etlkit(
        here.path(),
        &["slice", "sound.etl", "--pid", "100", "-o", "b.etl"],
    );
    assert_eq!(said.code, 0, "{}", said.err);
    let read = |name: &str| std::fs::read(here.path().join(name)).unwrap();
    assert!(read("a.etl") == read("b.etl"));
    let said = etlkit(here.path(), &["dump", "sound.etl", "--process", "other"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(
        said.err.contains("no process of the trace is \"other\""),
        "{}",
        said.err
    );
}

/// PerfView's `-GCCollectOnly` requests no code on purpose (mask 0x1 of the runtime provider,
/// 0x1000000101 of the rundown provider).
#[needs(trace = "new/DynamicEvents.etl.zip")]
#[test]
fn trace_of_collections_alone_needs_no_rundown() {
    let here = directory(&[]);
    let path = trace_path("new/DynamicEvents.etl.zip")
        .display()
        .to_string();
    let (_, report) = json(here.path(), &[&path]);
    let findings = report["findings"].as_array().unwrap();
    let rundown: Vec<&Value> = findings
        .iter()
        .filter(|found| found["rule"].as_str().unwrap().starts_with("rundown."))
        .collect();
    assert_eq!(rundown, [] as [&Value; 0]);
}
