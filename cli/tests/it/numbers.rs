//! Numbers of reports on real traces, as other tools and the bytes state them.

use std::path::Path;

use etl_test_support::{all_traces, needs, trace as real};
use serde_json::Value;

use super::common::{directory, etlkit, trace};

/// The JSON of a report on a real trace.
fn report(kind: &str, file: &Path, args: &[&str]) -> Value {
    let file = file.to_str().unwrap();
    let done = etlkit(
        Path::new("."),
        &[&["analyze", kind, "--format", "json", file], args].concat(),
    );
    assert!(done.code < 2, "{}", done.err);
    serde_json::from_str(&done.out).unwrap()
}

/// The sum of a column.
fn sum(rows: &Value, column: &str) -> u64 {
    let rows = rows.as_array().unwrap().iter();
    rows.filter_map(|row| row[column].as_u64()).sum()
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn cpu_counts_interrupts_of_idle_processors() {
    let file = real("perfview/net.4.5.2.x64.etl");
    let cpu = report("cpu", &file, &["--group-by", "process"]);
    let mut interrupts = 0;
    for row in cpu["rows"].as_array().unwrap() {
        let name = row["process"].as_str().unwrap_or_default();
        if name.starts_with("DPC of processor ") || name.starts_with("ISR of processor ") {
            assert!(row["pid"].is_null(), "{row}");
            interrupts += row["total_samples"].as_u64().unwrap();
        }
    }
    // By the bytes: 105 of the samples of thread 0 have flag 1 or 2.
    assert_eq!(interrupts, 105);
    let total = cpu["samples"].as_u64().unwrap() + cpu["idle_samples"].as_u64().unwrap();
    assert_eq!(total, 79_528);
    let summary = report("summary", &file, &[]);
    assert_eq!(summary["samples"], cpu["samples"]);
}

#[needs(trace = "new/DynamicEvents.etl.zip")]
#[test]
fn gc_counts_allocated_bytes_by_heaps() {
    let gc = report("gc", &real("new/DynamicEvents.etl.zip"), &["--top", "0"]);
    // TraceEvent counts 4,242.7 MB.
    assert_eq!(sum(&gc["gcs"], "allocated_bytes"), 4_242_664_984);
    let first = &gc["gcs"][0];
    assert!(first["allocated_bytes"].is_null(), "{first}");
    let process = &gc["processes"][0];
    let managed = process["managed_life_pause_percent"].as_f64().unwrap();
    assert!(managed > process["pause_percent"].as_f64().unwrap());
    let suspended = process["suspend_us"].as_f64().unwrap();
    assert!(suspended > 0.0 && suspended < process["total_us"].as_f64().unwrap());
}

#[needs(trace = "new/DynamicEvents.etl.zip")]
#[test]
fn processes_of_a_rundown_are_a_tree() {
    let file = real("new/DynamicEvents.etl.zip");
    let processes = report("processes", &file, &["--top", "0"]);
    let rows = processes["processes"].as_array().unwrap();
    let depth_of = |name: &str| {
        let row = rows.iter().find(|row| row["process"] == name).unwrap();
        assert!(
            row["user"].is_string() && row["command_line"].is_string(),
            "{row}"
        );
        row["depth"].as_u64().unwrap()
    };
    assert_eq!(depth_of("services.exe"), 1);
    assert_eq!(depth_of("svchost.exe"), 2);
    assert_eq!(depth_of("crank-agent.exe"), 4);
    assert_eq!(depth_of("Benchmarks.exe"), 5);
}

#[needs(trace = "perfview/gcrundownevents.etl")]
#[test]
fn info_names_the_local_time_of_the_machine() {
    let file = real("perfview/gcrundownevents.etl");
    let done = etlkit(Path::new("."), &["info", file.to_str().unwrap()]);
    let line = "UTC-07:00, Pacific Daylight Time: UTC = local time + 420 minutes";
    assert!(done.out.contains(line), "{}", done.out);
}

#[test]
fn merged_dump_goes_on_beside_an_unreadable_file() {
    let bytes = trace();
    let here = directory(&[("a.etl", &bytes), ("b.etl", b"text"), ("c.etl", &bytes)]);
    let alone = etlkit(here.path(), &["dump", "a.etl", "--count"]);
    let merged = etlkit(here.path(), &["dump", ".", "--merge", "--count"]);
    assert_eq!(merged.code, 2);
    assert!(merged.err.contains("b.etl: this is text"), "{}", merged.err);
    let one: u64 = alone.out.trim().parse().unwrap();
    assert_eq!(merged.out.trim(), (2 * one).to_string());
}

#[test]
fn merged_dump_of_many_traces_fits_the_default_memory() {
    let bytes = trace();
    let names: Vec<String> = (0..71).map(|number| format!("{number}.etl")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &*bytes)).collect();
    let here = directory(&files);
    let alone = etlkit(here.path(), &["dump", "0.etl", "--count"]);
    let merged = etlkit(here.path(), &["dump", ".", "--merge", "--count"]);
    assert_eq!(merged.code, alone.code, "{}", merged.err);
    let one: u64 = alone.out.trim().parse().unwrap();
    assert_eq!(merged.out.trim(), (71 * one).to_string());
}

#[test]
fn values_that_begin_with_a_dash_follow_a_space() {
    let here = directory(&[("a.etl", &trace())]);
    for option in ["--grep", "--where"] {
        let done = etlkit(here.path(), &["dump", "a.etl", option, "-enc", "--count"]);
        assert!(!done.err.contains("unexpected argument"), "{}", done.err);
    }
    let done = etlkit(here.path(), &["dump", "a.etl", "--grep", "-enc", "--count"]);
    assert_eq!((done.code, done.out.trim()), (0, "0"), "{}", done.err);
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn compare_names_the_trace_without_the_process() {
    let now = real("perfview/net.4.5.2.x64.etl");
    let before = real("perfview/diaghub.kernel.1.etl");
    let (now, before) = (now.to_str().unwrap(), before.to_str().unwrap());
    let compare = ["analyze", "cpu", now, "--compare", before];
    let one = etlkit(
        Path::new("."),
        &[&compare[..], &["--process", "Test.x64"]].concat(),
    );
    assert_eq!(one.code, 2);
    assert!(
        one.err.contains("diaghub.kernel.1.etl: no process"),
        "{}",
        one.err
    );
    let same = ["analyze", "cpu", now, "--compare", now];
    let renamed = ["--process", "Test.x64", "--process", "csrss"];
    let both = etlkit(Path::new("."), &[&same[..], &renamed].concat());
    assert_eq!(both.code, 0, "{}", both.err);
    let unknown = ["--process", "Test.x64", "--process", "nowhere"];
    let neither = etlkit(Path::new("."), &[&same[..], &unknown].concat());
    assert!(
        neither
            .err
            .contains("no process of the traces is \"nowhere\""),
        "{}",
        neither.err
    );
}

#[needs(trace = "tx/HTTP_Server.etl")]
#[test]
fn dump_names_the_channel_of_events_of_windows() {
    let file = real("tx/HTTP_Server.etl");
    let file = file.to_str().unwrap();
    let dump = ["dump", file, "--provider", "HttpService"];
    let json = etlkit(
        Path::new("."),
        &[&dump[..], &["--format", "jsonl"]].concat(),
    );
    let mut events = 0;
    for line in json.out.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!(row["channel_name"], HTTP_CHANNEL, "{row}");
        events += 1;
    }
    // The event log has the same events; Windows names the channel of each.
    assert_eq!(events, 2_041);
    let log = std::fs::read(real("tx/HTTP_Server.evtx")).unwrap();
    let name: Vec<u8> = HTTP_CHANNEL
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(log.windows(name.len()).any(|bytes| bytes == name));
    let text = etlkit(Path::new("."), &[&dump[..], &["--limit", "1"]].concat());
    let channel = format!(" channel {HTTP_CHANNEL} ");
    assert!(text.out.contains(&channel), "{}", text.out);
}

const HTTP_CHANNEL: &str = "Microsoft-Windows-HttpService/Trace";

/// Traces of kernels, of the CLR and of captures, with buffers of 4 KiB to 16 MiB.
#[needs(traces)]
#[test]
fn merged_dump_of_many_real_traces_fits_the_default_memory() {
    let mut small = Vec::new();
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() < 200_000 {
            small.push(bytes);
        }
    }
    assert!(small.len() > 5);
    let names: Vec<String> = (0..71).map(|number| format!("{number:02}.etl")).collect();
    let mut files: Vec<(&str, &[u8])> = Vec::new();
    for (name, bytes) in names.iter().zip(small.iter().cycle()) {
        files.push((name, bytes));
    }
    let here = directory(&files);
    let each = etlkit(here.path(), &["dump", ".", "--count"]);
    let merged = etlkit(here.path(), &["dump", ".", "--merge", "--count"]);
    assert!(merged.code < 2, "{}", merged.err);
    assert_eq!(merged.out.trim(), each.out.trim());
}
