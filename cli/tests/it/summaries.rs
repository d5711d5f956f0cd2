//! `etlkit analyze summary` of traces of any kind, and `symbols list --missing`, against the
//! printed events and the identities of PDBs.

use std::collections::BTreeMap;
use std::path::Path;

use etl_test_support::{needs, trace as real};
use serde_json::Value;

use super::common::etlkit;

fn json(args: &[&str]) -> Value {
    let done = etlkit(Path::new("."), &[args, &["--format", "json"]].concat());
    assert!(done.code < 2, "{args:?}: {}", done.err);
    serde_json::from_str(&done.out).unwrap()
}

fn rows<'v>(report: &'v Value, table: &str) -> &'v [Value] {
    report[table].as_array().unwrap()
}

/// The events of a trace as `dump` prints them.
fn printed(file: &str) -> Vec<Value> {
    let done = etlkit(Path::new("."), &["dump", "--format", "jsonl", file]);
    assert!(done.code < 2, "{}", done.err);
    let lines = done.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Checks the kinds of events of a trace, and returns its report.
fn check_kinds(file: &str) -> Value {
    const LEVELS: [&str; 6] = ["", "critical", "error", "warning", "information", "verbose"];
    let report = json(&["analyze", "summary", file]);
    let mut expected: BTreeMap<[String; 3], u64> = BTreeMap::new();
    for event in printed(file) {
        let text = |name: &str| event[name].as_str().map(str::to_owned);
        let guid = || {
            event["provider_guid"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let provider = text("provider").unwrap_or_else(|| format!("{{{}}}", guid()));
        let level = event["level"].as_u64().unwrap_or(0) as usize;
        let level = LEVELS.get(level).copied().unwrap_or_default().to_owned();
        let key = [provider, text("event").unwrap(), level];
        *expected.entry(key).or_default() += 1;
    }
    let mut found: BTreeMap<[String; 3], u64> = BTreeMap::new();
    for row in rows(&report, "event_kinds") {
        let names = ["provider", "event", "level_name"];
        let key = names.map(|name| row[name].as_str().unwrap_or_default().to_owned());
        let count = row["count"].as_u64().unwrap();
        assert_eq!(found.insert(key, count), None, "{row}");
    }
    assert_eq!(found, expected, "{file}");
    report
}

#[needs(traces)]
#[test]
fn summary_of_any_trace_has_its_events_with_examples() {
    for (file, examples) in [
        (
            "tx/HTTP_Server.etl",
            "Url=\"http://georgis2:80/windir.txt\"",
        ),
        (
            "etl-parser/AMSITrace.etl",
            "Engine=\"VBScript\" Script=\"IWshShell3.Run(",
        ),
        (
            "s4/WindowsUpdate.20251008.140245.443.8.etl",
            "Unhandled work item type",
        ),
        (
            "demikernel/PktMon.etl",
            "Direction Rx, Type Ethernet, Component 59",
        ),
        ("etl-parser/lxcore_kernel.etl", "ErrorLevel=2"),
    ] {
        let path = real(file);
        let report = check_kinds(path.to_str().unwrap());
        let text: Vec<&str> = rows(&report, "event_kinds")
            .iter()
            .filter_map(|row| row["example"].as_str())
            .collect();
        let has_example = text.iter().any(|example| example.contains(examples));
        assert!(has_example, "{file}: {text:?}");
        // One line for the kernel and one for .NET, not one for each kind of report.
        assert_eq!(rows(&report, "missing").len(), 2, "{file}");
        let commands = rows(&report, "commands");
        let command = commands[0]["command"].as_str().unwrap();
        assert!(command.starts_with("etlkit dump -p "), "{command}");
    }
}

#[needs(trace = "tx/WsRm01.etl")]
#[test]
fn summary_lists_failures_by_code_and_level() {
    let path = real("tx/WsRm01.etl");
    let file = path.to_str().unwrap();
    let report = check_kinds(file);
    let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
    let mut by_level = 0;
    for event in printed(file) {
        let code = event["fields"]["errorCode"].as_u64().unwrap_or(0);
        if code != 0 {
            *expected.entry(code).or_default() += 1;
        } else if (1..=2).contains(&event["level"].as_u64().unwrap_or(0)) {
            by_level += 1;
        }
    }
    assert_eq!(expected, BTreeMap::from([(995, 3), (122, 1)]));
    let failures = rows(&report, "failures");
    let row = |code: &str| {
        failures
            .iter()
            .find(|row| row["status_code"] == code)
            .unwrap()
    };
    assert_eq!(row("0x3e3")["count"], 3);
    assert_eq!(row("0x3e3")["status_name"], "ERROR_OPERATION_ABORTED");
    assert_eq!(row("0x7a")["status_name"], "ERROR_INSUFFICIENT_BUFFER");
    let levels = failures.iter().filter(|row| row["status_code"].is_null());
    let counted: u64 = levels.map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!((counted, failures.len()), (by_level, 2 + by_level as usize));
    // The first command shows them.
    let command = report["commands"][0]["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let shown = etlkit(Path::new("."), &words);
    assert_eq!(shown.out.matches("errorCode=995").count(), 3, "{command}");
}

#[needs(trace = "new/ebpforwindows.etl")]
#[test]
fn codes_of_a_program_are_failures_of_its_error_events() {
    let path = real("new/ebpforwindows.etl");
    let report = json(&["analyze", "summary", path.to_str().unwrap()]);
    let row = |event: &str| {
        let mut rows = rows(&report, "failures").iter();
        rows.find(|row| row["event"] == event).unwrap()
    };
    let error = row("EbpfGenericError");
    // 14 is a code of the program, not ERROR_OUTOFMEMORY.
    assert_eq!(
        [
            &error["status_code"],
            &error["status_name"],
            &error["count"]
        ],
        [&Value::from("0xe"), &Value::Null, &Value::from(240)]
    );
    assert_eq!(row("EbpfGenericMessage")["level_name"], "error");
}

#[cfg(feature = "symbols")]
#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn missing_pdbs_are_printed_for_curl_and_symchk() {
    let path = real("perfview/net.4.5.2.x64.etl");
    let file = path.to_str().unwrap();
    let report = json(&["symbols", "list", file]);
    let mut paths: Vec<String> = Vec::new();
    let mut manifest: Vec<String> = Vec::new();
    for row in rows(&report, "pdbs") {
        if row["addresses"] == 0 || !row["found"].is_null() {
            continue;
        }
        let names = ["server_path", "portable_server_path"];
        let of_row: Vec<&str> = names
            .iter()
            .filter_map(|name| row[*name].as_str())
            .collect();
        let parts: Vec<&str> = of_row[0].split('/').collect();
        manifest.push(format!("{},{},1", parts[0], parts[1]));
        paths.extend(of_row.into_iter().map(str::to_owned));
    }
    assert!(paths.len() > 100);
    let list = ["symbols", "list", file];
    let symchk = etlkit(Path::new("."), &[&list[..], &["--missing=symchk"]].concat());
    let mut printed: Vec<&str> = symchk.out.lines().collect();
    printed.sort_unstable();
    manifest.sort();
    manifest.dedup();
    assert_eq!(printed, manifest);
    let server = ["--missing=curl", "--server", "https://symbols.example/"];
    let curl = etlkit(Path::new("."), &[&list[..], &server].concat());
    assert_eq!(curl.code, 1);
    for path in &paths {
        let lines = format!(
            "url = \"https://symbols.example/{path}\"\noutput = \"symbols/{path}\"\ncreate-dirs\n"
        );
        assert!(curl.out.contains(&lines), "{path}");
    }
    let whole = etlkit(Path::new("."), &[&list[..], &["--missing"]].concat());
    paths.sort();
    paths.dedup();
    assert_eq!(whole.out.lines().count(), paths.len());
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn native_code_without_names_has_a_hint_at_symbols() {
    let path = real("perfview/net.4.5.2.x64.etl");
    let file = path.to_str().unwrap();
    let report = json(&["analyze", "cpu", file]);
    let unnamed = rows(&report, "rows").iter();
    let unnamed = unnamed.filter(|row| row["name"].as_str().unwrap_or("").ends_with("!?"));
    let images = unnamed.count();
    assert!(images > 10);
    let missing = rows(&report, "missing").iter().filter_map(Value::as_str);
    let hint: Vec<&str> = missing.filter(|line| line.contains("--symbols")).collect();
    let begin = format!("names of functions in {images} images, shown as `image!?`");
    assert!(hint.len() == 1 && hint[0].starts_with(&begin), "{hint:?}");
}
