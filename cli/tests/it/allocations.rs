//! `etlkit analyze allocations` and exports in bytes against sums of the printed events.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use etl_test_support::{needs, trace as real};
use flate2::read::MultiGzDecoder;
use serde_json::Value;

use super::common::{etlkit, etlkit_bytes};

/// The events of a trace whose name begins with a text.
fn printed(file: &str, name: &str) -> Vec<Value> {
    let runtime = "Microsoft-Windows-DotNETRuntime";
    let args = ["dump", "--format", "json", "-p", runtime, file];
    let done = etlkit(Path::new("."), &args);
    let lines = done.out.lines().filter(|line| line.contains(name));
    let events = lines.map(|line| serde_json::from_str(line).unwrap());
    let is_named = |event: &Value| event["event"].as_str().unwrap_or("").starts_with(name);
    events.filter(is_named).collect()
}

fn number(value: &Value) -> u64 {
    match value {
        Value::String(digits) => u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap(),
        other => other.as_u64().unwrap(),
    }
}

/// Events and bytes by process, heap and type.
type Sums = BTreeMap<String, [u64; 2]>;

fn add(sums: &mut Sums, key: String, events: u64, bytes: u64) {
    let [all_events, all_bytes] = sums.entry(key).or_default();
    *all_events += events;
    *all_bytes += bytes;
}

fn report(args: &[&str]) -> Value {
    let kind = ["analyze", "allocations", "--format", "json"];
    let done = etlkit(Path::new("."), &[&kind, args].concat());
    assert!(done.code < 2, "{}", done.err);
    serde_json::from_str(&done.out).unwrap()
}

fn rows<'v>(report: &'v Value, table: &str) -> &'v [Value] {
    report[table].as_array().unwrap()
}

/// Compares the sums of a report with the raw ticks of a trace. Returns their bytes.
fn compare(file: &str) -> u64 {
    let mut expected = Sums::new();
    let mut large = 0;
    for tick in printed(file, "GCAllocationTick") {
        let fields = &tick["fields"];
        let heap = ["small", "large", "pinned"][number(&fields["AllocationKind"]) as usize];
        large += u64::from(heap == "large");
        let bytes = number(&fields["AllocationAmount64"]);
        let name = fields["TypeName"].as_str().unwrap();
        let key = format!("{} {heap} {name}", tick["pid"]);
        add(&mut expected, key, 1, bytes);
    }
    assert!(!expected.is_empty());
    let report = report(&[file]);
    let mut ours = Sums::new();
    for row in rows(&report, "allocations") {
        assert_eq!(row["source"], "tick");
        let [heap, name] = ["heap_kind", "type"].map(|column| row[column].as_str().unwrap());
        let [events, bytes] = ["events", "bytes"].map(|column| row[column].as_u64().unwrap());
        add(
            &mut ours,
            format!("{} {heap} {name}", row["pid"]),
            events,
            bytes,
        );
    }
    assert_eq!(ours, expected);
    let bytes = expected.values().map(|[_, bytes]| bytes).sum();
    assert_eq!(report["bytes"], bytes);
    assert_eq!(rows(&report, "large_objects").len() as u64, large);
    let seconds = rows(&report, "seconds").iter();
    let by_second: u64 = seconds.map(|row| row["bytes"].as_u64().unwrap()).sum();
    assert_eq!(by_second, bytes);
    let mut pinned = Sums::new();
    for object in printed(file, "PinObjectAtGCTime") {
        let fields = &object["fields"];
        let name = fields["TypeName"].as_str().unwrap_or_default();
        let key = format!("{} {name}", object["pid"]);
        add(&mut pinned, key, 1, number(&fields["ObjectSize"]));
    }
    let mut ours = Sums::new();
    for row in rows(&report, "pinned") {
        let key = format!(
            "{} {}",
            row["pid"],
            row["type"].as_str().unwrap_or_default()
        );
        let [count, bytes] = ["count", "bytes"].map(|column| row[column].as_u64().unwrap());
        add(&mut ours, key, count, bytes);
    }
    assert_eq!(ours, pinned);
    bytes
}

/// Compares exports in bytes with the sum of the ticks.
fn compare_exports(file: &str, bytes: u64) {
    let export = |format: &str| {
        let args = ["export", format, "--weight", "bytes", file, "-o", "-"];
        let done = etlkit(Path::new("."), &args);
        assert!(done.code < 2, "{}", done.err);
        done.out
    };
    let folded = export("folded");
    let mut sum = 0;
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        assert!(
            stack.rsplit(';').next().unwrap().starts_with("Type "),
            "{line}"
        );
        sum += weight.parse::<u64>().unwrap();
    }
    assert_eq!(sum, bytes);
    let speedscope: Value = serde_json::from_str(&export("speedscope")).unwrap();
    let mut sum = 0;
    for profile in rows(&speedscope, "profiles") {
        assert_eq!(profile["unit"], "bytes");
        sum += profile["endValue"].as_u64().unwrap();
    }
    assert_eq!(sum, bytes);
    let page = export("flamegraph");
    assert!(
        page.contains(&format!("\"total\":{bytes},")),
        "{}",
        &page[..200]
    );
    assert!(page.contains("\"unit\":\"bytes\""));
    let args = ["export", "pprof", "--weight", "bytes", file, "-o", "-"];
    let (packed, _) = etlkit_bytes(&[], &args);
    let mut pprof = Vec::new();
    MultiGzDecoder::new(&packed[..])
        .read_to_end(&mut pprof)
        .unwrap();
    for text in ["alloc_space", "Type System."] {
        let is_there = pprof
            .windows(text.len())
            .any(|part| part == text.as_bytes());
        assert!(is_there, "{text}");
    }
    // Most ticks have stacks with methods.
    let tree = report(&["--tree", "--min-percent", "0", file]);
    let total: u64 = rows(&tree, "rows")
        .iter()
        .filter(|row| row["depth"] == 0)
        .map(|row| row["total_bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(total, bytes);
    assert!(folded.lines().any(|line| line.matches(';').count() > 2));
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn allocations_of_a_real_trace_are_the_sums_of_its_ticks() {
    let file = real("perfview/net.4.5.2.x64.etl");
    let file = file.to_str().unwrap();
    let bytes = compare(file);
    compare_exports(file, bytes);
}

#[needs(traces)]
#[test]
fn allocations_of_streams_are_the_sums_of_their_ticks() {
    for name in ["3.1-1CCBD-5", "10.0-1CCBD-5"] {
        let file = real(&format!("nettrace/{name}.nettrace.gz"));
        let file = file.to_str().unwrap();
        let bytes = compare(file);
        compare_exports(file, bytes);
    }
}

#[needs(trace = "perfview/gcevents.etl")]
#[test]
fn ticks_of_dotnet_5_and_later_are_summed() {
    let file = real("perfview/gcevents.etl");
    assert!(compare(file.to_str().unwrap()) > 1_000_000);
}

#[needs(traces)]
#[test]
fn survivors_are_the_sums_of_their_ranges() {
    let file = real("nettrace/8.0-sampled.nettrace.gz");
    let file = file.to_str().unwrap();
    let mut expected = [0, 0];
    for event in printed(file, "GCBulkSurvivingObjectRanges") {
        for range in event["fields"]["Values"].as_array().unwrap() {
            expected[0] += 1;
            expected[1] += number(&range["RangeLength"]);
        }
    }
    assert!(expected[0] > 16);
    let survivors = report(&[file]);
    let row = &rows(&survivors, "survivors")[0];
    assert_eq!(
        ["ranges", "bytes"].map(|column| row[column].as_u64().unwrap()),
        expected
    );
}
