//! `etlkit analyze dpc`, `processors`, `faults` and `startup` against the truth of simulations, and
//! against sums of the printed events of a real trace.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use etl_test_support::{needs, root, trace as real};
use serde_json::Value;

use super::common::{directory, etlkit};

fn simulated(name: &str) -> tempfile::TempDir {
    let here = directory(&[]);
    let script = root().join(format!("corpus/{name}.kdl"));
    let args = ["synth", script.to_str().unwrap(), "-o", ".", "--force"];
    let done = etlkit(here.path(), &args);
    assert_eq!(done.code, 0, "{}", done.err);
    here
}

fn report(directory: &Path, args: &[&str]) -> Value {
    let done = etlkit(
        directory,
        &[&["analyze"], args, &["--format", "json"]].concat(),
    );
    assert!(done.code < 2, "{}", done.err);
    serde_json::from_str(&done.out).unwrap()
}

fn rows<'v>(report: &'v Value, table: &str) -> &'v [Value] {
    report[table].as_array().unwrap()
}

fn text(row: &Value, column: &str) -> String {
    row[column].as_str().unwrap_or_default().to_owned()
}

/// The lines of a kind in the truth.
fn truth(directory: &Path, kind: &str) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("truth.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["kind"] == kind).collect()
}

/// How long something in the truth lasted, in the ticks of the simulated counter: 100 ns.
fn ticks(line: &Value) -> u64 {
    line["ended_ns"].as_u64().unwrap() / 100 - line["started_ns"].as_u64().unwrap() / 100
}

/// What a test adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    count: u64,
    ticks: u64,
    max: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, ticks: u64, bytes: u64) {
        self.count += 1;
        self.ticks += ticks;
        self.max = self.max.max(ticks);
        self.bytes += bytes;
    }

    fn of_row(row: &Value) -> Self {
        let ticks = |column: &str| (row[column].as_f64().unwrap() * 10.0).round() as u64;
        Sum {
            count: row["count"].as_u64().unwrap(),
            ticks: ticks("total_us"),
            max: ticks("max_us"),
            bytes: row["bytes"].as_u64().unwrap_or(0),
        }
    }
}

/// Sums of rows by two of their columns.
fn sums(rows: &[Value], by: [&str; 2]) -> BTreeMap<[String; 2], Sum> {
    let mut sums = BTreeMap::new();
    for row in rows {
        let key = by.map(|column| match &row[column] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        sums.insert(key, Sum::of_row(row));
    }
    sums
}

fn kind_of_call(call: &str) -> &'static str {
    match call {
        "isr" => "ISR",
        "message_isr" => "ISR of a message",
        "dpc" => "DPC",
        "timer_dpc" => "timer DPC",
        "threaded_dpc" => "threaded DPC",
        other => panic!("{other}"),
    }
}

#[test]
fn calls_of_drivers_are_the_truth_of_the_simulation() {
    let here = simulated("interrupts");
    let report = report(here.path(), &["dpc", "merged.etl"]);
    let mut by_routine = BTreeMap::new();
    let mut by_processor = BTreeMap::new();
    let mut nested = 0;
    for call in truth(here.path(), "interrupt") {
        let kind = kind_of_call(call["call"].as_str().unwrap()).to_owned();
        let class = if kind.starts_with("ISR") {
            "ISR"
        } else {
            "DPC"
        };
        let key = [kind, text(&call, "driver")];
        let sum: &mut Sum = by_routine.entry(key).or_default();
        sum.add(ticks(&call), 0);
        let key = [call["processor"].to_string(), class.to_owned()];
        let sum: &mut Sum = by_processor.entry(key).or_default();
        sum.add(ticks(&call), 0);
        nested += u64::from(call["driver"] == "ndis.sys" && class == "DPC");
    }
    assert_eq!(by_routine.len(), 6);
    assert_eq!(
        sums(rows(&report, "interrupts"), ["kind", "driver"]),
        by_routine
    );
    assert_eq!(
        sums(rows(&report, "processors"), ["cpu", "kind"]),
        by_processor
    );
    // Service routines of 9 µs interrupt the deferred calls of one driver.
    for row in rows(&report, "interrupts") {
        let interrupted = match text(row, "driver").as_str() {
            "ndis.sys" if row["kind"] == "DPC" => 9.0 * nested as f64,
            _ => 0.0,
        };
        let total = row["total_us"].as_f64().unwrap();
        assert_eq!(row["self_us"], total - interrupted, "{row}");
    }
}

#[test]
fn processor_use_is_the_time_between_switches() {
    let here = simulated("interrupts");
    let report = report(
        here.path(),
        &["processors", "--interval", "10s", "merged.etl"],
    );
    // The whole recording is one interval: what each processor ran between context switches.
    let printed = etlkit(
        here.path(),
        &[
            "dump",
            "--format",
            "json",
            "--event",
            "CSwitch",
            "merged.etl",
        ],
    );
    let mut last: BTreeMap<u64, (i64, bool)> = BTreeMap::new();
    let mut busy: BTreeMap<u64, [i64; 2]> = BTreeMap::new();
    for line in printed.out.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let cpu = event["cpu"].as_u64().unwrap();
        let time = event["timestamp"].as_i64().unwrap();
        let runs = event["fields"]["NewThreadId"] != 0;
        if let Some((since, ran)) = last.insert(cpu, (time, runs)) {
            let [ran_ticks, all] = busy.entry(cpu).or_default();
            *all += time - since;
            *ran_ticks += if ran { time - since } else { 0 };
        }
    }
    assert_eq!(busy.len(), 2);
    let calls = self::report(here.path(), &["dpc", "merged.etl"]);
    for row in rows(&report, "processor_use") {
        let cpu = row["cpu"].as_u64().unwrap();
        let own = |kind: &str| {
            let mut of_kind = rows(&calls, "processors").iter();
            of_kind.find(|sum| sum["cpu"] == cpu && sum["kind"] == kind)
        };
        let length = row["interval_us"].as_f64().unwrap();
        for (kind, column) in [("DPC", "dpc_percent"), ("ISR", "isr_percent")] {
            let own = own(kind).unwrap()["self_us"].as_f64().unwrap();
            let share = row[column].as_f64().unwrap();
            assert!((share - own / length * 100.0).abs() < 0.001, "{row} {own}");
        }
        // After the last switch nothing runs; calls of idle processors are at most all calls.
        let [ran, all] = busy[&cpu];
        let share = row["busy_percent"].as_f64().unwrap();
        let least = ran as f64 / (length * 10.0) * 100.0;
        let calls = row["dpc_percent"].as_f64().unwrap() + row["isr_percent"].as_f64().unwrap();
        let most = ran as f64 / all as f64 * 100.0 + calls * length * 10.0 / all as f64;
        assert!(
            least < share && share < most + 0.01,
            "{least} {share} {most}"
        );
    }
}

#[test]
fn hard_faults_are_the_truth_of_the_simulation() {
    let here = simulated("interrupts");
    let report = report(here.path(), &["faults", "merged.etl"]);
    let mut expected = BTreeMap::new();
    for fault in truth(here.path(), "hard_fault") {
        let key = [fault["pid"].to_string(), text(&fault, "path")];
        let sum: &mut Sum = expected.entry(key).or_default();
        sum.add(ticks(&fault), fault["bytes"].as_u64().unwrap());
    }
    assert_eq!(expected.len(), 2);
    assert_eq!(
        sums(rows(&report, "hard_faults"), ["pid", "path"]),
        expected
    );
}

/// A process that starts in the recording.
const START: &str = r#"
machine processors=2 { disk "Disk" gb=64 { volume "C:" gb=64 } }
process "App.exe" pid=4312 threads=2 start="1.2s" {
    clr "core" version="8.0.0" {
        assembly "App" { module "C:\\App\\App.dll" { methods 60 ready=10 } }
    }
    at "1.3s" { load-image "C:\\App\\codec.dll"; jit 5; page-in "C:\\App\\data.bin" bytes=16384 }
    at "1.35s" { read-file "C:\\App\\data.bin" bytes=65536 }
    at "1.4s" { gc 0 }
    at "1.8s" { jit 3 }
}
process "Old.exe" pid=1300 { at "1.3s" { page-in "C:\\App\\old.bin" } }
session "clr" file="clr.etl" { enable "runtime" keywords=0x39 level=5 }
at "1s" { session "kernel" file="kernel.etl" { kernel "processes images disks faults" } }
at "2s" { stop "clr"; stop "kernel" }
"#;

#[test]
fn startup_has_what_other_reports_have_on_one_axis() {
    let here = directory(&[("start.kdl", START.as_bytes())]);
    let args = ["synth", "start.kdl", "-o", ".", "--force"];
    let done = etlkit(here.path(), &args);
    assert_eq!(done.code, 0, "{}", done.err);
    let files = ["kernel.etl", "clr.etl"];
    let of = |kind: &[&str]| report(here.path(), &[kind, &files].concat());
    let whole = of(&["startup", "--for", "10s"]);
    let steps = rows(&whole, "steps");
    assert!(
        steps.iter().all(|step| step["pid"] == 4312),
        "Old.exe started before"
    );
    let count = |kind: &str| steps.iter().filter(|step| step["kind"] == kind).count();
    let table = |kind: &str, table: &str| {
        let report = of(&[kind, "--process", "App"]);
        rows(&report, table).to_vec()
    };
    assert_eq!(count("compilation"), table("jit", "compilations").len());
    assert_eq!(count("collection"), table("gc", "gcs").len());
    let loads = table("loader", "loads");
    let images = loads.iter().filter(|load| load["kind"] == "image").count();
    assert_eq!(count("image"), images);
    assert_eq!((count("hard fault"), count("disk read")), (1, 2));
    // Times are since the start of the process.
    let faults = truth(here.path(), "hard_fault");
    let fault = faults.iter().find(|fault| fault["pid"] == 4312).unwrap();
    let step = steps
        .iter()
        .find(|step| step["kind"] == "hard fault")
        .unwrap();
    let processes = table("processes", "processes");
    let started = &processes[0]["started"];
    let start = etlkit(
        here.path(),
        &["dump", "--relative", "--format", "json", "kernel.etl"],
    );
    let start = start.out.lines().find(|line| {
        line.contains("\"opcode\":1,") && line.contains("App.exe") && line.contains("\"Process\"")
    });
    let start: Value = serde_json::from_str(start.unwrap()).unwrap();
    assert!(!started.is_null());
    let since_start = step["at_us"].as_f64().unwrap();
    let session_start = 1_000_000.0;
    let started = start["seconds"].as_f64().unwrap() * 1e6 + session_start;
    let touched = fault["started_ns"].as_f64().unwrap() / 1e3;
    assert!(
        (touched - started - since_start).abs() < 1000.0,
        "{touched} {started} {since_start}"
    );
    // The steps are limited, and summed by kind.
    let short = of(&["startup", "--for", "300ms"]);
    let compiled = rows(&short, "kinds")
        .iter()
        .find(|sum| sum["kind"] == "compilation");
    assert_eq!(compiled.unwrap()["count"], count("compilation") - 3);
}

/// The samples of a real trace.
fn printed_samples(file: &str) -> Vec<Value> {
    let args = ["dump", "--format", "json", "--event", "SampleProf", file];
    let done = etlkit(Path::new("."), &args);
    let lines = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

fn number(text: &Value) -> u64 {
    match text {
        Value::String(digits) => u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap(),
        other => other.as_u64().unwrap(),
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn samples_in_calls_of_a_real_trace_are_those_of_its_flags() {
    let file = real("perfview/net.4.5.2.x64.etl");
    let file = file.to_str().unwrap();
    let images = report(Path::new("."), &["images", file]);
    let mut drivers: Vec<[u64; 2]> = Vec::new();
    let mut names = Vec::new();
    for image in rows(&images, "images") {
        if image["pid"] == 0 || image["pid"] == 4 {
            let start = number(&image["address"]);
            drivers.push([start, start + number(&image["size_bytes"])]);
            names.push(text(image, "path"));
        }
    }
    let mut by_driver: BTreeMap<[String; 2], u64> = BTreeMap::new();
    let mut by_processor: BTreeMap<[String; 2], u64> = BTreeMap::new();
    let mut idle: BTreeMap<(u64, u64), [u64; 2]> = BTreeMap::new();
    for sample in printed_samples(file) {
        let fields = &sample["fields"];
        let kind = match number(&fields["Flags"]) & 3 {
            0 => "",
            1 => "DPC",
            _ => "ISR",
        };
        let cpu = sample["cpu"].as_u64().unwrap();
        let second = sample["timestamp"].as_u64().unwrap() / 10_000_000;
        let [idle_samples, all] = idle.entry((second, cpu)).or_default();
        *all += 1;
        *idle_samples += u64::from(kind.is_empty() && number(&fields["ThreadId"]) == 0);
        if kind.is_empty() {
            continue;
        }
        let address = number(&fields["InstructionPointer"]);
        let driver = drivers
            .iter()
            .position(|[start, end]| (*start..*end).contains(&address));
        let path = driver.map_or("", |driver| &names[driver]);
        let name = path.rsplit('\\').next().unwrap().to_owned();
        *by_driver.entry([kind.to_owned(), name]).or_default() += 1;
        *by_processor
            .entry([cpu.to_string(), kind.to_owned()])
            .or_default() += 1;
    }
    let dpc = report(Path::new("."), &["dpc", file]);
    let mut ours = BTreeMap::new();
    for row in rows(&dpc, "interrupt_samples") {
        let samples = row["samples"].as_u64().unwrap();
        ours.insert([text(row, "kind"), text(row, "driver")], samples);
        assert_eq!(row["cpu_us"], samples as f64 * 1000.0);
    }
    assert_eq!(ours, by_driver);
    assert!(ours.len() > 5);
    let mut ours = BTreeMap::new();
    for row in rows(&dpc, "processors") {
        let key = [row["cpu"].to_string(), text(row, "kind")];
        ours.insert(key, row["samples"].as_u64().unwrap());
    }
    assert_eq!(ours, by_processor);
    let used = report(Path::new("."), &["processors", file]);
    let samples = rows(&used, "processor_use").iter();
    let samples: u64 = samples.map(|row| row["samples"].as_u64().unwrap()).sum();
    assert_eq!(samples, idle.values().map(|[_, all]| all).sum::<u64>());
    let mut idle_samples = 0.0;
    for row in rows(&used, "processor_use") {
        let share = 1.0 - row["busy_percent"].as_f64().unwrap() / 100.0;
        idle_samples += share * row["samples"].as_f64().unwrap();
    }
    let expected = idle.values().map(|[idle, _]| idle).sum::<u64>() as f64;
    assert!(
        (idle_samples - expected).abs() < 1.0,
        "{idle_samples} {expected}"
    );
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn hard_faults_of_a_real_trace_are_those_of_its_events() {
    let file = real("perfview/net.4.5.2.x64.etl");
    let file = file.to_str().unwrap();
    let print = |name: &str| {
        let args = ["dump", "--format", "json", "--event", name, file];
        let done = etlkit(Path::new("."), &args);
        let lines = done
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        lines.collect::<Vec<Value>>()
    };
    let mut names = BTreeMap::new();
    for name in print("FileRundown") {
        let fields = &name["fields"];
        names.insert(text(fields, "FileObject"), text(fields, "FileName"));
    }
    let mut expected: BTreeMap<String, Sum> = BTreeMap::new();
    for fault in print("HardFault") {
        let fields = &fault["fields"];
        let path = names.get(&text(fields, "FileObject")).cloned();
        let name = path.unwrap_or_default();
        let name = name.rsplit('\\').next().unwrap().to_owned();
        let lasted = fault["timestamp"].as_u64().unwrap() - number(&fields["InitialTime"]);
        let bytes = number(&fields["ByteCount"]);
        expected.entry(name).or_default().add(lasted, bytes);
    }
    let faults = report(Path::new("."), &["faults", file]);
    let mut ours: BTreeMap<String, Sum> = BTreeMap::new();
    for row in rows(&faults, "hard_faults") {
        let row_sum = Sum::of_row(row);
        let path = text(row, "path");
        let name = path.rsplit('\\').next().unwrap().to_owned();
        let sum = ours.entry(name).or_default();
        sum.count += row_sum.count;
        sum.bytes += row_sum.bytes;
        sum.ticks += row_sum.ticks;
        sum.max = sum.max.max(row_sum.max);
    }
    assert_eq!(ours.values().map(|sum| sum.count).sum::<u64>(), 153);
    assert_eq!(ours, expected);
}
