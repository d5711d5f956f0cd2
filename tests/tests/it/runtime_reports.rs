//! `etlkit analyze gc`, `jit`, `exceptions`, `contention`, `threadpool` and `loader` against a
//! computation by another program: on real traces, and on the truth of simulated ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use etl_schema::providers::CLR_RUNTIME;
use etl_synth::truth::KnownEvent;
use etl_test_support::{needs, python, root, trace};
use etlkit::run_captured;
use serde_json::{Value, json};

use crate::kinds::{Kind, kinds};
use crate::sampled::simulated;

pub fn etlkit(args: &[&str]) -> Vec<u8> {
    let words: Vec<_> = std::iter::once("etlkit")
        .chain(args.iter().copied())
        .map(Into::into)
        .collect();
    let said = run_captured(words);
    assert_eq!(said.code, 0, "{}", String::from_utf8_lossy(&said.err));
    said.out
}

/// What a command prints, which may report findings.
pub fn etlkit_any(args: &[&str]) -> Vec<u8> {
    let words: Vec<_> = std::iter::once("etlkit")
        .chain(args.iter().copied())
        .map(Into::into)
        .collect();
    let said = run_captured(words);
    assert!(said.code <= 1, "{}", String::from_utf8_lossy(&said.err));
    said.out
}

/// A report as JSON.
pub fn analyze(kind: &str, path: &Path) -> Value {
    analyze_files(kind, &[path.to_owned()])
}

/// The report of several traces that are one recording.
fn analyze_files(kind: &str, files: &[PathBuf]) -> Value {
    let words = ["analyze", kind, "--format", "json"].into_iter();
    let words = words.chain(files.iter().map(|file| file.to_str().unwrap()));
    serde_json::from_slice(&etlkit_any(&words.collect::<Vec<_>>())).unwrap()
}

/// What the script computes from events, of a session where one is named.
pub fn computed(events: &Path, session: Option<&str>) -> Value {
    let script = root().join("tests/foreign/runtime_reports.py");
    let output = Command::new(python())
        .arg(script)
        .arg(events)
        .args(session)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows<'v>(report: &'v Value, table: &str) -> impl Iterator<Item = &'v Value> {
    report[table].as_array().unwrap().iter()
}

fn members(row: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| row[*name].clone()).collect()
}

/// Compares all reports on a trace with what was computed; returns how much there was of each.
fn compare(files: &[PathBuf], theirs: &Value) -> [usize; 7] {
    let analyze = |kind| analyze_files(kind, files);
    let gc = analyze("gc");
    let names = [
        "pid",
        "number",
        "generation",
        "duration_us",
        "pause_us",
        "allocated_bytes",
        "promoted_bytes",
        "heap_bytes",
    ];
    let ours: Vec<Value> = rows(&gc, "gcs").map(|row| members(row, &names)).collect();
    assert_eq!(json!(ours), theirs["gc"]);
    let names = [
        "pid",
        "number",
        "heap",
        "before_bytes",
        "after_bytes",
        "survived_bytes",
        "fragmented_bytes",
        "gen2_before_bytes",
        "gen1_bytes",
    ];
    let ours: Vec<Value> = rows(&gc, "gc_heaps")
        .map(|row| members(row, &names))
        .collect();
    assert_eq!(json!(ours), theirs["heaps"]);
    for row in rows(&gc, "gcs") {
        let own = rows(&gc, "gc_heaps").filter(|heap| heap["number"] == row["number"]);
        let before: u64 = own.map(|heap| heap["before_bytes"].as_u64().unwrap()).sum();
        assert_eq!(row["heap_before_bytes"].as_u64().unwrap_or(0), before);
    }
    let total: f64 = rows(&gc, "gcs")
        .map(|row| row["pause_us"].as_f64().unwrap_or(0.0))
        .sum();
    let sums: f64 = rows(&gc, "processes")
        .map(|row| row["total_us"].as_f64().unwrap())
        .sum();
    assert!((total - sums).abs() < 1e-3, "{total} {sums}");

    let jit = analyze("jit");
    let names = [
        "pid",
        "tid",
        "method",
        "duration_us",
        "il_bytes",
        "code_bytes",
    ];
    let mut ours: Vec<String> = rows(&jit, "compilations")
        .map(|row| members(row, &names).to_string())
        .collect();
    let mut expected: Vec<String> = rows(theirs, "jit").map(Value::to_string).collect();
    ours.sort();
    expected.sort();
    assert_eq!(ours, expected);

    let exceptions = analyze("exceptions");
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows(&exceptions, "exceptions") {
        let key = format!("{}|{}", row["pid"], row["type"].as_str().unwrap());
        *ours.entry(key).or_default() += row["count"].as_u64().unwrap();
    }
    assert_eq!(json!(ours), theirs["exceptions"]);

    let contention = analyze("contention");
    let ours: BTreeMap<String, Value> = rows(&contention, "lock_waits")
        .map(|row| {
            let key = format!("{}|{}", row["pid"], row["tid"]);
            (key, members(row, &["count", "total_us"]))
        })
        .collect();
    assert_eq!(json!(ours), theirs["contention"]);

    let pool = analyze("threadpool");
    let names = [
        "pid",
        "tid",
        "thread_kind",
        "change",
        "count",
        "items_per_second",
    ];
    let ours: Vec<Value> = rows(&pool, "thread_pool_changes")
        .map(|row| members(row, &names))
        .collect();
    assert_eq!(json!(ours), theirs["pool"]);
    let ours: BTreeMap<String, Value> = rows(&pool, "thread_pool_queues")
        .map(|row| {
            assert_eq!(row["queued_before"], 0, "{row}");
            let key = format!("{}|{}", row["pid"], row["queue"].as_str().unwrap());
            (key, members(row, &["queued", "taken", "total_us"]))
        })
        .collect();
    assert_eq!(json!(ours), theirs["queues"]);

    let loader = analyze("loader");
    let ours: Vec<Value> = rows(&loader, "loads")
        .filter(|row| row["kind"] != "image")
        .map(|row| {
            let (kind, name) = match row["kind"].as_str().unwrap() {
                "module" => ("Module", &row["path"]),
                "assembly" => ("Assembly", &row["name"]),
                _ => ("AppDomain", &row["name"]),
            };
            let name = name.as_str().unwrap_or_default();
            let is_unloaded = row["unloaded"].is_string();
            json!([
                row["pid"],
                row["tid"],
                kind,
                name,
                is_unloaded,
                row["duration_us"]
            ])
        })
        .collect();
    assert_eq!(json!(ours), theirs["loads"]);
    let count = |kind: &str| match &theirs[kind] {
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    [
        "gc",
        "jit",
        "exceptions",
        "contention",
        "heaps",
        "pool",
        "loads",
    ]
    .map(count)
}

#[needs(traces, python)]
#[test]
fn real_traces_have_the_reports_that_a_script_computes() {
    let here = tempfile::tempdir().unwrap();
    for (name, counts) in [
        ("perfview/net.4.5.2.x64.etl", [264, 290, 1, 0, 0, 2, 6]),
        ("perfview/gcevents.etl", [2, 0, 0, 0, 2, 0, 0]),
        (
            "perfview/diaghub.user_paged.1.etl",
            [0, 5409, 0, 0, 0, 0, 113],
        ),
    ] {
        let path = trace(name);
        let events = here.path().join("events.jsonl");
        let dumped = etlkit(&[
            "dump",
            "--format",
            "jsonl",
            "--no-names",
            path.to_str().unwrap(),
        ]);
        std::fs::write(&events, dumped).unwrap();
        assert_eq!(compare(&[path], &computed(&events, None)), counts, "{name}");
    }
}

#[needs(python)]
#[test]
fn reports_are_those_of_the_truth() {
    let here = tempfile::tempdir().unwrap();
    for (name, file, session, has) in [
        (
            "gc-and-locks",
            "gc.etl",
            "clr",
            "gc exceptions contention heaps pool",
        ),
        (
            "newest-clr",
            "newest.etl",
            "newest",
            "gc jit exceptions contention heaps pool loads",
        ),
        (
            "desktop-collector",
            "desktop.etl",
            "desktop",
            "gc jit exceptions pool loads",
        ),
        ("profile", "clr.etl", "clr", "jit"),
        ("tiering", "tiering.etl", "clr", "jit"),
        ("unload-domain", "unload.etl", "clr", "jit loads"),
    ] {
        let simulated = simulated(name);
        let (path, truth): (PathBuf, PathBuf) = (here.path().join(file), here.path().join("truth"));
        std::fs::write(&path, &simulated.traces[file]).unwrap();
        std::fs::write(&truth, &simulated.texts["truth.jsonl"]).unwrap();
        let counts = compare(&[path], &computed(&truth, Some(session)));
        let kinds = [
            "gc",
            "jit",
            "exceptions",
            "contention",
            "heaps",
            "pool",
            "loads",
        ];
        let seen = kinds.iter().zip(counts).filter(|(_, count)| *count > 0);
        let seen: Vec<&str> = seen.map(|(kind, _)| *kind).collect();
        assert_eq!(seen.join(" "), has, "{name}");
    }
    for Kind {
        name,
        simulated,
        files,
    } in kinds()
    {
        let truth = here.path().join("truth");
        std::fs::write(&truth, &simulated.texts["truth.jsonl"]).unwrap();
        let files = files.iter().map(|file| {
            let path = here.path().join(file);
            std::fs::write(&path, &simulated.traces[*file]).unwrap();
            path
        });
        let [collections, compiled, exceptions, locks, ..] =
            compare(&files.collect::<Vec<_>>(), &computed(&truth, Some("clr")));
        assert!(
            collections > 2 && compiled > 10 && exceptions > 0 && locks > 0,
            "{name}"
        );
    }
}

/// The processes, images and sessions of a simulated machine, by its truth.
#[test]
fn processes_and_images_are_those_of_the_truth() {
    let simulated = simulated("kernel-session");
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("merged.etl");
    std::fs::write(&path, &simulated.traces["merged.etl"]).unwrap();
    let inventory: Vec<Value> = (simulated.truth.inventory.iter())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &'static str| inventory.iter().filter(move |item| item["kind"] == kind);
    let processes = analyze("processes", &path);
    let find = |pid: &Value| rows(&processes, "processes").find(|row| row["pid"] == *pid);
    let mut count = 0;
    for known in of("process") {
        let row = find(&known["pid"]).unwrap_or_else(|| panic!("{known}"));
        assert_eq!(row["process"], known["name"]);
        assert_eq!(
            row["ended"].is_string(),
            known.get("exited_ns").is_some(),
            "{known}"
        );
        let threads = of("thread")
            .filter(|thread| thread["pid"] == known["pid"])
            .count();
        if row["ended"].is_null() {
            assert_eq!(row["threads"], threads, "{known}");
        }
        count += 1;
    }
    assert!(count > 5);
    let images = analyze("images", &path);
    let mut count = 0;
    for known in of("image") {
        let base = format!("{:#x}", known["base"].as_u64().unwrap());
        let here = |row: &&Value| row["pid"] == known["pid"] && row["address"] == base.as_str();
        let row = rows(&images, "images")
            .find(here)
            .unwrap_or_else(|| panic!("{known}"));
        assert_eq!(row["size_bytes"], known["size"]);
        let name = |value: &Value| {
            value
                .as_str()
                .unwrap()
                .rsplit('\\')
                .next()
                .unwrap()
                .to_owned()
        };
        assert_eq!(name(&row["path"]), name(&known["path"]));
        assert_eq!(row["pdb_guid"], known["pdb_signature"], "{known}");
        assert_eq!(row["pdb_age"], known["pdb_age"], "{known}");
        count += 1;
    }
    assert!(count > 20);
    // The files of the sessions, as one recording.
    let mut files = Vec::new();
    for name in ["kernel.etl", "clr.etl"] {
        files.push(here.path().join(name).display().to_string());
        std::fs::write(&files[files.len() - 1], &simulated.traces[name]).unwrap();
    }
    let words = ["analyze", "sessions", "--format", "json"].into_iter();
    let out = etlkit(
        &words
            .chain(files.iter().map(String::as_str))
            .collect::<Vec<_>>(),
    );
    let sessions: Value = serde_json::from_slice(&out).unwrap();
    let names: Vec<&Value> = rows(&sessions, "sessions")
        .map(|row| &row["session"])
        .collect();
    assert_eq!(json!(names), json!(["NT Kernel Logger", "clr"]));
}

/// Sums of what the truth has, by process and another key.
type Sums = BTreeMap<(u64, String), [u64; 2]>;

#[test]
fn input_and_output_are_those_of_the_truth() {
    let simulated = simulated("kernel-io");
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("merged.etl");
    std::fs::write(&path, &simulated.traces["merged.etl"]).unwrap();
    let truth = String::from_utf8(simulated.texts["truth.jsonl"].clone()).unwrap();
    let lines: Vec<Value> = truth
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // The session ran from 1.9 s to 3 s.
    let session = 1_900_000_000..3_000_000_000u64;
    let u64 = |value: &Value, name: &str| value[name].as_u64().unwrap();
    let (mut count, mut bytes): (Sums, Sums) = Default::default();
    let (mut latency, mut network): (Sums, Sums) = Default::default();
    for line in &lines {
        let operation = line["operation"].as_str().unwrap_or_default();
        match line["kind"].as_str().unwrap() {
            kind @ ("disk_io" | "file_io") if session.contains(&u64(line, "ended_ns")) => {
                let is_disk = kind == "disk_io";
                if !is_disk && operation != "read" && operation != "write" {
                    continue;
                }
                let what = if is_disk { "disk" } else { "file" };
                let path = line["path"].as_str().unwrap();
                // The event of a flush names no file.
                let path = if operation == "flush" { "" } else { path };
                let key = (u64(line, "pid"), format!("{what} {operation} {path}"));
                count.entry(key.clone()).or_default()[0] += 1;
                bytes.entry(key.clone()).or_default()[0] += u64(line, "bytes");
                latency.entry(key).or_default()[0] +=
                    u64(line, "ended_ns") - u64(line, "started_ns");
            }
            "network_io" if session.contains(&u64(line, "at_ns")) => {
                let way = match operation {
                    "send" => 0,
                    "receive" => 1,
                    _ => continue,
                };
                let text = |name: &str| line[name].as_str().unwrap();
                let key = format!("{} {} {}", text("protocol"), text("local"), text("remote"));
                network.entry((u64(line, "pid"), key)).or_default()[way] += u64(line, "bytes");
            }
            _ => {}
        }
    }
    let io = analyze("io", &path);
    let mut seen = 0;
    for row in rows(&io, "io") {
        let path = row["path"].as_str().unwrap_or_default();
        let key = (
            u64(row, "pid"),
            format!("{} {path}", row["operation"].as_str().unwrap()),
        );
        assert_eq!(row["count"], count[&key][0], "{key:?}");
        assert_eq!(row["bytes"], bytes[&key][0], "{key:?}");
        // Events have 100 ns.
        let (ours, theirs) = (
            row["total_us"].as_f64().unwrap(),
            latency[&key][0] as f64 / 1e3,
        );
        let per_operation = (ours - theirs).abs() / count[&key][0] as f64;
        assert!(per_operation <= 0.2, "{key:?}: {ours} {theirs}");
        seen += 1;
    }
    assert_eq!(seen, count.len());
    assert!(seen > 5);
    let found = analyze("network", &path);
    let found: Sums = rows(&found, "connections")
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap();
            let key = format!("{} {} {}", text("protocol"), text("local"), text("remote"));
            (
                (u64(row, "pid"), key),
                [u64(row, "sent_bytes"), u64(row, "received_bytes")],
            )
        })
        .filter(|(_, bytes)| *bytes != [0, 0])
        .collect();
    assert!(network.len() > 3);
    assert_eq!(found, network);
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn summary_has_the_numbers_of_the_other_reports() {
    let path = trace("perfview/net.4.5.2.x64.etl");
    let summary = analyze("summary", &path);
    let by_process = |report: &Value, table: &str, name: &str| {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for row in rows(report, table) {
            let value = row[name].as_u64().unwrap();
            *sums.entry(row["pid"].to_string()).or_default() += value;
        }
        sums.retain(|_, sum| *sum > 0);
        sums
    };
    let words = [
        "analyze",
        "cpu",
        "--group-by",
        "process",
        "--format",
        "json",
    ];
    let cpu = etlkit(&[&words[..], &[path.to_str().unwrap()]].concat());
    let cpu: Value = serde_json::from_slice(&cpu).unwrap();
    for (name, report, table, column) in [
        ("cpu_samples", &cpu, "rows", "total_samples"),
        (
            "collections",
            &analyze("gc", &path),
            "processes",
            "collections",
        ),
        (
            "exceptions",
            &analyze("exceptions", &path),
            "exceptions",
            "count",
        ),
        (
            "sent_bytes",
            &analyze("network", &path),
            "connections",
            "sent_bytes",
        ),
        (
            "received_bytes",
            &analyze("network", &path),
            "connections",
            "received_bytes",
        ),
    ] {
        let expected = by_process(report, table, column);
        assert!(!expected.is_empty(), "{name}");
        assert_eq!(by_process(&summary, "processes", name), expected, "{name}");
    }
    // The numbers of events are those of another command.
    let info = etlkit(&["info", "--format", "json", path.to_str().unwrap()]);
    let info: Value = serde_json::from_slice(&info).unwrap();
    let count = |provider: &str, names: &[&str]| -> u64 {
        let events = rows(&info, "events");
        let own = events.filter(|event| {
            event["provider"]
                .as_str()
                .is_some_and(|p| p.ends_with(provider))
                && event["event"]
                    .as_str()
                    .is_some_and(|n| names.iter().any(|x| n.starts_with(x)))
        });
        own.map(|event| event["count"].as_u64().unwrap()).sum()
    };
    let runtime = "DotNETRuntime";
    for (subject, expected) in [
        ("CPU samples", count("PerfInfo", &["SampleProf"])),
        ("garbage collections", count(runtime, &["GCStart"])),
        (
            "compiled methods",
            count(runtime, &["MethodJittingStarted"]),
        ),
        ("exceptions", count(runtime, &["ExceptionThrown"])),
        ("network", count("TcpIp", &[""]) + count("UdpIp", &[""])),
    ] {
        let row = rows(&summary, "subjects").find(|row| row["subject"] == subject);
        assert_eq!(
            row.map(|row| row["events"].clone()),
            Some(json!(expected)),
            "{subject}"
        );
    }
    let missing = summary["missing"].to_string();
    assert!(
        missing.contains("CSWITCH") && !missing.contains("DISK_IO"),
        "{missing}"
    );
}

#[test]
fn collections_and_exceptions_of_a_thread_match_the_truth() {
    let here = tempfile::tempdir().unwrap();
    let simulated = simulated("gc-and-locks");
    let path = here.path().join("gc.etl");
    std::fs::write(&path, &simulated.traces["gc.etl"]).unwrap();
    // Ids of the events that a collection starts and that an exception was thrown.
    for (kind, id) in [("gc", 1), ("exceptions", 80)] {
        let mut expected: BTreeMap<u32, u64> = BTreeMap::new();
        let is_one =
            |event: &&KnownEvent| event.provider == CLR_RUNTIME && event.descriptor.id == id;
        for event in simulated.truth.events.iter().filter(is_one) {
            *expected.entry(event.tid.get()).or_default() += 1;
        }
        assert!(expected.len() > 1, "{kind}");
        for (tid, count) in expected {
            let words = [
                "analyze",
                kind,
                "--format",
                "json",
                "--thread",
                &tid.to_string(),
            ];
            let out = etlkit(&[&words[..], &[path.to_str().unwrap()]].concat());
            let report: Value = serde_json::from_slice(&out).unwrap();
            let found = match kind {
                "gc" => rows(&report, "gcs").count() as u64,
                _ => rows(&report, kind)
                    .map(|row| row["count"].as_u64().unwrap())
                    .sum(),
            };
            assert_eq!(found, count, "{kind} {tid}");
        }
    }
}

#[needs(traces)]
#[test]
fn traces_of_two_machines_are_a_warning() {
    let [kernel, clr, other] = [
        "diaghub.kernel.1.etl",
        "diaghub.user_paged.1.etl",
        "gcevents.etl",
    ]
    .map(|name| trace(&format!("perfview/{name}")).into_os_string());
    let said = |files: [&std::ffi::OsString; 2]| {
        let words = ["etlkit", "analyze", "gc", "--together"].map(Into::into);
        let said = run_captured(words.into_iter().chain(files.map(Clone::clone)));
        assert_eq!(said.code, 0);
        String::from_utf8(said.err).unwrap()
    };
    assert_eq!(said([&kernel, &clr]), "");
    let warning = said([&kernel, &other]);
    assert!(
        warning.contains("are not of one recording: Windows build "),
        "{warning}"
    );
}
