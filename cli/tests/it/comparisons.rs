//! `etlkit analyze KIND --compare` against the subtraction of two single reports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use etl_test_support::{needs, root, trace as real};
use serde_json::Value;

use super::common::{directory, etlkit};

/// A table that is compared.
struct Compared {
    kind: &'static str,
    table: &'static str,
    keys: &'static [&'static str],
    /// The sums, with the names of the growth, of the sum before and of the sum after.
    sums: &'static [[&'static str; 4]],
    /// Whether the rows are counted.
    is_counted: bool,
}

const COUNT: [&str; 4] = ["count", "count_delta", "count_before", "count_after"];
const TOTAL: [&str; 4] = [
    "total_us",
    "total_delta_us",
    "total_before_us",
    "total_after_us",
];
const BYTES: [&str; 4] = ["bytes", "delta_bytes", "before_bytes", "after_bytes"];

const TABLES: [Compared; 11] = [
    Compared {
        kind: "gc",
        table: "gcs",
        keys: &["process", "generation", "reason", "type"],
        sums: &[
            [
                "pause_us",
                "pause_delta_us",
                "pause_before_us",
                "pause_after_us",
            ],
            [
                "allocated_bytes",
                "allocated_delta_bytes",
                "allocated_before_bytes",
                "allocated_after_bytes",
            ],
        ],
        is_counted: true,
    },
    Compared {
        kind: "gc",
        table: "processes",
        keys: &["process"],
        sums: &[TOTAL, ["gen0", "gen0_delta", "gen0_before", "gen0_after"]],
        is_counted: false,
    },
    Compared {
        kind: "allocations",
        table: "allocations",
        keys: &["process", "source", "heap_kind", "type"],
        sums: &[
            BYTES,
            ["events", "events_delta", "events_before", "events_after"],
        ],
        is_counted: false,
    },
    Compared {
        kind: "jit",
        table: "compilations",
        keys: &["process", "method"],
        sums: &[
            [
                "duration_us",
                "duration_delta_us",
                "duration_before_us",
                "duration_after_us",
            ],
            [
                "code_bytes",
                "code_delta_bytes",
                "code_before_bytes",
                "code_after_bytes",
            ],
        ],
        is_counted: true,
    },
    Compared {
        kind: "contention",
        table: "lock_waits",
        keys: &["process", "thread"],
        sums: &[TOTAL, COUNT],
        is_counted: false,
    },
    Compared {
        kind: "exceptions",
        table: "exceptions",
        keys: &["process", "type", "method"],
        sums: &[COUNT],
        is_counted: false,
    },
    Compared {
        kind: "io",
        table: "io",
        keys: &["process", "operation", "path"],
        sums: &[TOTAL, COUNT, BYTES],
        is_counted: false,
    },
    Compared {
        kind: "waits",
        table: "thread_waits",
        keys: &["process", "thread"],
        sums: &[
            [
                "wait_us",
                "wait_delta_us",
                "wait_before_us",
                "wait_after_us",
            ],
            [
                "running_us",
                "running_delta_us",
                "running_before_us",
                "running_after_us",
            ],
        ],
        is_counted: true,
    },
    Compared {
        kind: "waits",
        table: "wait_reasons",
        keys: &["process", "reason"],
        sums: &[["waits", "waits_delta", "waits_before", "waits_after"]],
        is_counted: false,
    },
    Compared {
        kind: "waits",
        table: "wakers",
        keys: &["process", "waker_process"],
        sums: &[[
            "wait_us",
            "wait_delta_us",
            "wait_before_us",
            "wait_after_us",
        ]],
        is_counted: false,
    },
    Compared {
        kind: "activities",
        table: "operations",
        keys: &["process", "provider", "operation"],
        sums: &[
            TOTAL,
            COUNT,
            [
                "self_us",
                "self_delta_us",
                "self_before_us",
                "self_after_us",
            ],
        ],
        is_counted: false,
    },
];

fn report(args: &[&str]) -> Value {
    let done = etlkit(
        Path::new("."),
        &[&["analyze"], args, &["--format", "json"]].concat(),
    );
    assert!(done.code < 2, "{args:?}: {}", done.err);
    serde_json::from_str(&done.out).unwrap()
}

fn rows<'v>(report: &'v Value, table: &str) -> &'v [Value] {
    report[table].as_array().unwrap()
}

/// The key of a row, as text in lower case.
fn key(row: &Value, columns: &[&str]) -> String {
    let values = columns.iter().map(|column| row[*column].to_string());
    values.collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Tenths of a unit.
fn tenths(value: &Value) -> Option<i64> {
    value.as_f64().map(|number| (number * 10.0).round() as i64)
}

/// The sums of one column of a table by key; `None` if no row has a value.
fn sums(report: &Value, compared: &Compared, column: &str) -> BTreeMap<String, Option<i64>> {
    let mut sums: BTreeMap<String, Option<i64>> = BTreeMap::new();
    for row in rows(report, compared.table) {
        let sum = sums.entry(key(row, compared.keys)).or_default();
        if let Some(value) = tenths(&row[column]) {
            *sum = Some(sum.unwrap_or(0) + value);
        }
    }
    sums
}

/// Checks the comparison of two traces by all tables of a kind, and returns how many rows differ.
fn check(kind: &str, before: &str, after: &str) -> usize {
    let earlier = report(&[kind, before]);
    let later = report(&[kind, after]);
    let changes = report(&[kind, after, "--compare", before]);
    let mut differences = 0;
    for compared in TABLES.iter().filter(|compared| compared.kind == kind) {
        for [column, delta_name, before_name, after_name] in compared.sums {
            let was = sums(&earlier, compared, column);
            let is = sums(&later, compared, column);
            let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
            let printed = rows(&changes, compared.table);
            let mut printed_keys: Vec<String> = Vec::new();
            for row in printed {
                let key = key(row, compared.keys);
                let before = *was.get(&key).unwrap_or(&Some(0));
                let after = *is.get(&key).unwrap_or(&Some(0));
                let delta = match (before, after) {
                    (Some(before), Some(after)) => Some(after - before),
                    _ => None,
                };
                let sums = [delta_name, before_name, after_name].map(|name| tenths(&row[*name]));
                assert_eq!(sums, [delta, before, after], "{kind} {column} {row}");
                differences += usize::from(delta.unwrap_or(0) != 0);
                printed_keys.push(key);
            }
            printed_keys.sort();
            assert_eq!(
                printed_keys.iter().collect::<Vec<_>>(),
                keys.into_iter().collect::<Vec<_>>(),
                "{kind} {}",
                compared.table
            );
        }
        if compared.is_counted {
            check_counts(compared, &changes, &[&earlier, &later]);
        }
    }
    differences
}

/// Checks the numbers of rows with the same key.
fn check_counts(compared: &Compared, changes: &Value, [earlier, later]: &[&Value; 2]) {
    for row in rows(changes, compared.table) {
        let wanted = key(row, compared.keys);
        let count = |report: &Value| {
            let rows = rows(report, compared.table).iter();
            rows.filter(|row| key(row, compared.keys) == wanted).count() as i64
        };
        let before = count(earlier);
        let after = count(later);
        let counts = [after - before, before, after].map(Some);
        let names = ["count_delta", "count_before", "count_after"];
        assert_eq!(names.map(|name| row[name].as_i64()), counts, "{row}");
    }
}

/// The paths of simulated traces.
fn simulated(here: &Path, scenario: &str) -> PathBuf {
    let script = root().join(format!("corpus/{scenario}.kdl"));
    let out = here.join(scenario);
    let args = [
        "synth",
        script.to_str().unwrap(),
        "-o",
        out.to_str().unwrap(),
        "--no-truth",
    ];
    let done = etlkit(here, &args);
    assert_eq!(done.code, 0, "{}", done.err);
    out.join("merged.etl")
}

#[test]
fn changes_of_threads_and_files_are_differences_of_reports() {
    let here = directory(&[]);
    let before = simulated(here.path(), "kernel-session");
    let after = simulated(here.path(), "kernel-io");
    for kind in ["waits", "io"] {
        let [before, after] = [&before, &after].map(|path| path.to_str().unwrap());
        assert!(check(kind, before, after) > 2, "{kind}");
        assert_eq!(check(kind, after, after), 0, "{kind}");
    }
}

#[needs(traces)]
#[test]
fn changes_of_real_runtimes_are_differences_of_reports() {
    let before = real("nettrace/3.1-1CCBD-5.nettrace.gz");
    let after = real("nettrace/8.0-1CCBD-5.nettrace.gz");
    let [before, after] = [&before, &after].map(|path| path.to_str().unwrap());
    for kind in ["gc", "jit", "allocations", "contention"] {
        assert!(check(kind, before, after) > 0, "{kind}");
    }
    check("exceptions", before, after);
    assert_eq!(check("jit", after, after), 0);
    let filter = real("new/ebpforwindows.etl");
    let dynamic = real("new/DynamicEvents.etl.zip");
    let [filter, dynamic] = [&filter, &dynamic].map(|path| path.to_str().unwrap());
    assert!(check("activities", filter, dynamic) > 2);
    assert_eq!(check("activities", filter, filter), 0);
}

#[test]
fn renamed_programs_are_one_row() {
    let here = directory(&[]);
    let trace = simulated(here.path(), "kernel-session");
    let trace = trace.to_str().unwrap();
    let single = report(&["waits", trace]);
    let compare = ["waits", trace, "--compare", trace];
    let renamed = report(&[&compare[..], &["--renamed", "managed=Orders"]].concat());
    let managed = rows(&single, "wait_reasons").iter();
    let managed = managed.filter(|row| row["process"] == "Managed.exe");
    let time: i64 = managed.filter_map(|row| tenths(&row["wait_us"])).sum();
    assert!(time > 0);
    let changes = rows(&renamed, "wait_reasons");
    let process = |name: &str| changes.iter().find(|row| row["process"] == name).unwrap();
    let names = ["wait_delta_us", "wait_before_us", "wait_after_us"];
    let values = |row: &Value| names.map(|name| tenths(&row[name]).unwrap());
    assert_eq!(values(process("Managed.exe")), [time, 0, time]);
    assert_eq!(values(process("Orders.exe")), [-time, time, 0]);
    // The earlier trace has the old name, and the later one the new name.
    let select = ["--process", "Work", "--renamed", "Managed=Work"];
    let selected = report(&[&compare[..], &select].concat());
    let [row] = rows(&selected, "wait_reasons") else {
        panic!("{selected}")
    };
    assert_eq!(tenths(&row["wait_delta_us"]), Some(-time));
    let unknown = [&["analyze"], &compare[..], &["--process", "nowhere"]].concat();
    let unknown = etlkit(here.path(), &unknown);
    assert_eq!((unknown.code, &*unknown.out), (2, ""));
}

#[test]
fn normalized_changes_have_the_length_of_the_later_trace() {
    let here = directory(&[]);
    let before = simulated(here.path(), "kernel-session");
    let after = simulated(here.path(), "kernel-io");
    let [before, after] = [&before, &after].map(|path| path.to_str().unwrap());
    let compare = ["waits", after, "--compare", before];
    let plain = report(&compare);
    let scaled = report(&[&compare[..], &["--normalize"]].concat());
    let [time, time_before] = ["time_us", "time_before_us"].map(|name| scaled[name].as_f64());
    let factor = time.unwrap() / time_before.unwrap();
    assert!((factor - 1.0).abs() > 0.05, "{factor}");
    assert_eq!([&plain["normalized"], &scaled["normalized"]], [0, 1]);
    let keys = ["process", "thread"];
    for row in rows(&scaled, "thread_waits") {
        let mut others = rows(&plain, "thread_waits").iter();
        let other = others.find(|other| key(other, &keys) == key(row, &keys));
        let expected = other.unwrap()["wait_before_us"].as_f64().unwrap() * factor;
        let printed = row["wait_before_us"].as_f64().unwrap();
        assert!((printed - expected).abs() < 0.2, "{row}: {expected}");
        assert_eq!(row["wait_after_us"], other.unwrap()["wait_after_us"]);
    }
}

#[test]
fn changes_have_text_and_csv() {
    let here = directory(&[]);
    simulated(here.path(), "kernel-session");
    simulated(here.path(), "kernel-io");
    let args = [
        "analyze",
        "waits",
        "kernel-io/merged.etl",
        "--compare",
        "kernel-session/merged.etl",
    ];
    let text = etlkit(here.path(), &args);
    let with = "compared with kernel-session/merged.etl: 11 threads ran";
    assert!(text.out.contains(with), "{}", text.out);
    let hint = "--normalize compares the same time";
    assert!(text.out.contains(hint), "{}", text.out);
    assert!(text.out.contains("waiting ms +"), "{}", text.out);
    let csv = etlkit(here.path(), &[&args[..], &["--format", "csv"]].concat());
    let columns = "process,thread,count_delta,count_before,count_after,running_delta_us,";
    assert!(csv.out.starts_with(columns), "{}", csv.out);
    assert!(csv.out.lines().count() > 3);
}

/// The weights of folded stacks, without the ids of processes.
fn folded(here: &Path, args: &[&str]) -> BTreeMap<String, Vec<u64>> {
    let done = etlkit(here, &[&["export", "folded"], args, &["-o", "-"]].concat());
    assert!(done.code < 2, "{args:?}: {}", done.err);
    let mut stacks: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in done.out.lines() {
        let words: Vec<&str> = line.rsplitn(3, ' ').collect();
        let is_number = |word: &&&str| word.parse::<u64>().is_ok();
        let count = words.iter().take(2).take_while(is_number).count();
        let numbers = words.iter().take(count).rev();
        let numbers: Vec<u64> = numbers.map(|word| word.parse().unwrap()).collect();
        let length: usize = words.iter().take(count).map(|word| word.len() + 1).sum();
        let stack = &line[..line.len() - length];
        let (process, frames) = stack.split_once(';').unwrap_or((stack, ""));
        let name = process.split(" (").next().unwrap();
        let sums = stacks.entry(format!("{name};{frames}")).or_default();
        sums.resize(numbers.len(), 0);
        for (sum, number) in sums.iter_mut().zip(numbers) {
            *sum += number;
        }
    }
    stacks
}

#[test]
fn folded_stacks_of_two_traces_have_both_numbers() {
    let here = directory(&[]);
    simulated(here.path(), "kernel-session");

    let traces = ["kernel-session/merged.etl", "kernel-session/kernel.etl"];
    let [before, after] = traces.map(|trace| folded(here.path(), &[trace]));
    let both = folded(here.path(), &[traces[1], "--compare", traces[0]]);
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    assert_eq!(both.keys().collect::<BTreeSet<_>>(), keys);
    let number =
        |stacks: &BTreeMap<String, Vec<u64>>, key: &str| stacks.get(key).map_or(0, |s| s[0]);
    for (key, numbers) in &both {
        assert_eq!(
            numbers,
            &[number(&before, key), number(&after, key)],
            "{key}"
        );
    }
    let same = folded(here.path(), &[traces[0], "--compare", traces[0]]);
    assert!(same.values().all(|numbers| numbers[0] == numbers[1]) && same.len() > 3);
    let names = ["--renamed", "Work=Orders"];
    let renamed = [traces[0], "--compare", traces[0], names[0], names[1]];
    let renamed = folded(here.path(), &renamed);
    let orders: u64 = renamed
        .iter()
        .filter(|(key, _)| key.starts_with("Orders.exe;"))
        .map(|(_, numbers)| numbers[0])
        .sum();
    let work: u64 = before
        .iter()
        .filter(|(key, _)| key.starts_with("Work.exe;"))
        .map(|(_, numbers)| numbers[0])
        .sum();
    assert!(orders == work && work > 0, "{orders} {work}");
}

#[test]
fn flame_graph_of_two_traces_has_the_growth_of_frames() {
    let here = directory(&[]);
    simulated(here.path(), "kernel-session");

    let traces = ["kernel-session/merged.etl", "kernel-session/kernel.etl"];
    let args = ["export", "flamegraph", traces[1], "--compare", traces[0]];
    let samples = ["--weight", "samples", "--normalize", "-o", "-"];
    let done = etlkit(here.path(), &[&args[..], &samples].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    let (_, data) = done.out.split_once("type=\"application/json\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    // Normalized: both have the same sum, but for what is rounded.
    let total = data["head"]["total"].as_u64().unwrap();
    let total_before = data["head"]["total_before"].as_u64().unwrap();
    assert!(
        total > 0 && total.abs_diff(total_before) < 50,
        "{total} {total_before}"
    );
    let nodes = rows(&data, "nodes");
    let sum = |column: usize| -> u64 { nodes.iter().map(|n| n[column].as_u64().unwrap()).sum() };
    // Own weights of the visible frames.
    assert_eq!(sum(5), total);
    let threads = ["--by-thread", "-o", "-"];
    let refused = etlkit(here.path(), &[&args[..], &threads].concat());
    assert_eq!((refused.code, &*refused.out), (2, ""));
}
