//! `etlkit analyze activities` against a pairing of the printed events by hand.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use etl_test_support::{needs, trace as real};
use serde_json::Value;

use super::common::{directory, etlkit};

/// A build: targets on two threads, nested, by names without opcodes. Microseconds as in the
/// comments.
const BUILD: &str = r#"
provider "Contoso-Build" kind="manifest" {
    event "TargetStarted" level=4 { field "targetName" "UnicodeString" }
    event "TargetFinished" level=4 { field "targetName" "UnicodeString" }
    event "Append" level=4
}
process "MSBuild.exe" threads=2 {
    at "1.1s" { raise "Contoso-Build" "TargetStarted" thread=0 { targetName "Build" } }
    at "1.2s" { raise "Contoso-Build" "TargetStarted" thread=0 { targetName "Compile" } }
    at "1.25s" { raise "Contoso-Build" "TargetStarted" thread=1 { targetName "Copy" } }
    at "1.3s" { raise "Contoso-Build" "Append" thread=0 }
    at "1.4s" { raise "Contoso-Build" "TargetFinished" thread=0 { targetName "Compile" } }
    at "1.45s" { raise "Contoso-Build" "TargetStarted" thread=0 { targetName "Compile" } }
    at "1.5s" { raise "Contoso-Build" "TargetFinished" thread=0 { targetName "Compile" } }
    at "1.6s" { raise "Contoso-Build" "TargetFinished" thread=0 { targetName "Build" } }
    at "1.7s" { raise "Contoso-Build" "TargetStarted" thread=0 { targetName "Clean" } }
}
at "1s" { session "build" file="build.etl" { enable "Contoso-Build" level=4 } }
at "2s" { stop "build" }
"#;

fn build() -> tempfile::TempDir {
    let here = directory(&[("build.kdl", BUILD.as_bytes())]);
    let args = ["synth", "build.kdl", "-o", ".", "--force", "--no-truth"];
    let done = etlkit(here.path(), &args);
    assert_eq!(done.code, 0, "{}", done.err);
    here
}

fn report(directory: &Path, args: &[&str]) -> Value {
    let done = etlkit(
        directory,
        &[&["analyze", "activities", "--format", "json"], args].concat(),
    );
    assert!(done.code < 2, "{}", done.err);
    serde_json::from_str(&done.out).unwrap()
}

/// A number of microseconds as milliseconds, without the microseconds that the simulated thread
/// needs to log.
fn millis(value: &Value) -> Option<f64> {
    value.as_f64().map(|micros| (micros / 1000.0).round())
}

#[test]
fn starts_and_stops_without_opcodes_are_paired_by_thread() {
    let here = build();
    let report = report(
        here.path(),
        &["build.etl", "--manifest", ".", "--by", "targetName"],
    );
    let mut found = BTreeMap::new();
    for row in report["activities"].as_array().unwrap() {
        assert_eq!(row["operation"], "Target");
        let value = row["value"].as_str().unwrap().to_owned();
        found.entry(value).or_insert_with(Vec::new).push((
            millis(&row["duration_us"]),
            millis(&row["self_us"]),
            row["enclosing"].as_str().map(str::to_owned),
        ));
    }
    let inner = Some("Target".to_owned());
    let expected = [
        ("Build", vec![(Some(500.0), Some(250.0), None)]),
        ("Clean", vec![(None, None, None)]),
        (
            "Compile",
            vec![
                (Some(200.0), Some(200.0), inner.clone()),
                (Some(50.0), Some(50.0), inner),
            ],
        ),
        ("Copy", vec![(None, None, None)]),
    ];
    let expected: BTreeMap<String, _> = expected
        .into_iter()
        .map(|(value, rows)| (value.to_owned(), rows))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn operations_are_sums_by_name_and_value() {
    let here = build();
    let whole = report(here.path(), &["build.etl", "--manifest", "."]);
    let rows = whole["operations"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["count"], &rows[0]["unended"]),
        (&3.into(), &2.into())
    );
    assert_eq!(millis(&rows[0]["total_us"]), Some(750.0));
    assert_eq!(millis(&rows[0]["self_us"]), Some(500.0));
    assert!(rows[0].get("value").is_none());
    let by_value = report(
        here.path(),
        &["build.etl", "--manifest", ".", "--by", "targetName"],
    );
    let rows = by_value["operations"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["value"].as_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["Build", "Compile"]);
    assert_eq!(millis(&rows[1]["total_us"]), Some(250.0));
    let late = report(
        here.path(),
        &["build.etl", "--manifest", ".", "--from", "0.42"],
    );
    assert_eq!(late["activities"].as_array().unwrap().len(), 2);
}

#[test]
fn fields_that_no_start_has_are_refused() {
    let here = build();
    let done = etlkit(
        here.path(),
        &[
            "analyze",
            "activities",
            "build.etl",
            "--manifest",
            ".",
            "--by",
            "targetPath",
        ],
    );
    assert_eq!(done.code, 2);
    assert!(
        done.err
            .contains("no start event has a field \"targetPath\""),
        "{}",
        done.err
    );
}

/// A start that waits for its stop.
struct Start {
    operation: String,
    time: f64,
}

/// Sums by hand, from the printed events: those of the opcodes Start and Stop, paired by activity
/// id or thread, with provider and task.
fn paired_by_hand(file: &str) -> BTreeMap<(u64, String), (u64, f64)> {
    let done = etlkit(
        Path::new("."),
        &["dump", "--format", "json", "--relative", file],
    );
    let mut open: HashMap<String, Vec<Start>> = HashMap::new();
    let mut sums = BTreeMap::new();
    for line in done.out.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let provider = event["provider"].as_str().unwrap_or_default();
        if event["id"].is_null() || provider.starts_with("Microsoft-Windows-DotNETRuntime") {
            continue;
        }
        let scope = match event["activity"].as_str() {
            Some(activity) => activity.to_owned(),
            None => format!("{} {}", event["pid"], event["tid"]),
        };
        let key = format!("{scope} {provider} {}", event["task"]);
        let time = event["seconds"].as_f64().unwrap();
        match event["opcode"].as_u64() {
            Some(1) => {
                let name = event["event"].as_str().unwrap();
                let operation = name
                    .trim_end_matches("Start")
                    .trim_end_matches('/')
                    .to_owned();
                open.entry(key).or_default().push(Start { operation, time });
            }
            Some(2) => {
                if let Some(start) = open.get_mut(&key).and_then(Vec::pop) {
                    let key = (event["pid"].as_u64().unwrap(), start.operation);
                    let sum = sums.entry(key).or_insert((0, 0.0));
                    sum.0 += 1;
                    sum.1 += (time - start.time) * 1e6;
                }
            }
            _ => {}
        }
    }
    sums
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn activities_of_a_real_trace_are_those_of_its_events() {
    let file = real("perfview/net.4.5.2.x64.etl");
    let file = file.to_str().unwrap();
    let report = report(Path::new("."), &[file]);
    let mut ours = BTreeMap::new();
    for row in report["operations"].as_array().unwrap() {
        let count = row["count"].as_u64().unwrap();
        if count > 0 {
            let operation = row["operation"].as_str().unwrap().to_owned();
            let total = row["total_us"].as_f64().unwrap();
            ours.insert((row["pid"].as_u64().unwrap(), operation), (count, total));
        }
    }
    let by_hand = paired_by_hand(file);
    assert_eq!(ours.len(), 5);
    assert!(ours.keys().eq(by_hand.keys()), "{ours:?} {by_hand:?}");
    for (key, (count, total)) in &ours {
        let (expected, time) = by_hand[key];
        assert_eq!(*count, expected, "{key:?}");
        assert!((total - time).abs() < 1.0, "{key:?}: {total} {time}");
    }
}
