//! What `etlkit export perfetto` writes, queried with Perfetto's own trace_processor and read with
//! its bindings, against the truth of simulated machines and the reports on real traces.

use etl_synth::model::NamedValue;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use etl_format::constants::ClockType;
use etl_format::read::{Options, Trace};
use etl_schema::encode::OwnedValue;
use etl_synth::truth::{EventOutcome, KnownEvent, RecordFormat};
use etl_test_support::{needs, python, root, trace, trace_processor};
use etlkit::run_captured;
use serde_json::{Value, json};

use crate::kinds::{Kind, kinds};
use crate::runtime_reports::{analyze, computed};
use crate::sampled::{number, sampled, simulated};
use crate::simulated::Simulated;

const KERNEL: &str = "NT Kernel Logger";

/// Errors that trace_processor found.
const ERRORS: (&str, &str) = (
    "errors",
    "select name, value from stats where severity != 'info' and value > 0",
);

/// Exports traces as one recording into a file of a folder.
fn export(folder: &Path, traces: &[&Path], args: &[&str]) -> PathBuf {
    let output = folder.join("out.perfetto-trace");
    let mut words: Vec<std::ffi::OsString> = ["etlkit", "export", "perfetto", "--force", "-o"]
        .map(Into::into)
        .to_vec();
    words.push(output.clone().into());
    words.extend(args.iter().map(Into::into));
    words.extend(traces.iter().map(|path| path.as_os_str().to_owned()));
    let said = run_captured(words);
    assert!(said.code <= 1, "{}", String::from_utf8_lossy(&said.err));
    output
}

/// Writes some of the traces of a simulation into a folder.
fn write(folder: &Path, simulated: &Simulated, names: &[&str]) -> Vec<PathBuf> {
    let write = |name: &&str| {
        let path = folder.join(name);
        std::fs::write(&path, &simulated.traces[*name]).unwrap();
        path
    };
    names.iter().map(write).collect()
}

fn paths(list: &[PathBuf]) -> Vec<&Path> {
    list.iter().map(PathBuf::as_path).collect()
}

fn rows<'v>(found: &'v Value, name: &str) -> &'v [Value] {
    found[name].as_array().unwrap()
}

/// Nanoseconds on the clock of a trace that counts the performance counter.
fn clock(trace: &[u8]) -> impl Fn(i64) -> i64 {
    let clock = Trace::open(trace, &Options::default()).unwrap().clock();
    assert_eq!(clock.kind, ClockType::QPC);
    move |ticks| {
        let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(clock.frequency);
        i64::try_from(nanos).unwrap()
    }
}

/// The events of a name that a session recorded.
fn recorded<'s>(
    simulated: &'s Simulated,
    session: &str,
    name: &str,
) -> impl Iterator<Item = &'s KnownEvent> + use<'s> {
    let index = simulated
        .truth
        .sessions
        .iter()
        .find(|s| s.name == session)
        .unwrap()
        .index;
    let (events, name) = (simulated.truth.events.iter(), name.to_owned());
    events.filter(move |event| {
        event.name == name && event.outcome(index) == Some(EventOutcome::Recorded)
    })
}

/// Names of states as trace_processor has them.
const STATES: [&str; 8] = [
    "Initialized",
    "R",
    "Running",
    "Stand-by",
    "T",
    "Waiting",
    "Transition",
    "DeferredReady",
];

/// What ran on a processor: from when, for how long, thread, priority, and its state afterwards.
type Slice = (i64, i64, u64, i64, String);

#[needs(python, node)]
#[test]
fn perfetto_schedules_threads_as_the_truth_has_it() {
    let here = tempfile::tempdir().unwrap();
    for name in ["kernel-session", "kernel-io", "windows-32"] {
        compare_schedule(here.path(), name, &simulated(name), &["kernel.etl"]);
    }
    for Kind {
        name,
        simulated,
        files,
    } in kinds()
    {
        compare_schedule(here.path(), name, simulated, files);
    }
}

/// Compares what ran when with the switches of the truth.
fn compare_schedule(folder: &Path, name: &str, simulated: &Simulated, files: &[&str]) {
    let files = write(folder, simulated, files);
    let found = trace_processor(
        &export(folder, &paths(&files), &[]),
        &[
            ERRORS,
            (
                "sched",
                "select cpu, ts, dur, tid, priority, end_state from sched join thread \
                 using (utid) order by ts, sched.id",
            ),
            (
                "states",
                "select tid, state, count(*) as count, sum(max(dur, 0)) as total from \
                 thread_state join thread using (utid) where tid != 0 group by tid, state",
            ),
        ],
    );
    assert_eq!(found["errors"], json!([]), "{name}");
    let nanos = clock(&simulated.traces["kernel.etl"]);
    let mut expected: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
    for switch in recorded(simulated, KERNEL, "CSwitch") {
        let at = nanos(switch.timestamp.get());
        let slices = expected.entry(switch.processor.into()).or_default();
        if let Some(last) = slices.last_mut() {
            assert_eq!(last.2, number(switch, "OldThreadId"));
            last.1 = at - last.0;
            last.4 = STATES[number(switch, "OldThreadState") as usize].to_owned();
        }
        let priority = number(switch, "NewThreadPriority") as i64;
        let tid = number(switch, "NewThreadId");
        slices.push((at, -1, tid, priority, String::new()));
    }
    let mut ours: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
    for row in rows(&found, "sched") {
        let int = |name: &str| row[name].as_i64().unwrap();
        let state = row["end_state"].as_str().unwrap_or_default().to_owned();
        let slice = (
            int("ts"),
            int("dur"),
            int("tid") as u64,
            int("priority"),
            state,
        );
        ours.entry(int("cpu") as u64).or_default().push(slice);
    }
    assert!(
        expected.values().map(Vec::len).sum::<usize>() > 50,
        "{name}"
    );
    // The last of a processor runs to the end of the trace.
    for slices in ours.values_mut().chain(expected.values_mut()) {
        let last = slices.last_mut().unwrap();
        (last.1, last.4) = (0, String::new());
    }
    for (cpu, slices) in &expected {
        for (ours, expected) in ours[cpu].iter().zip(slices) {
            assert_eq!(ours, expected, "{name}");
        }
    }
    let lens = |of: &BTreeMap<u64, Vec<Slice>>| of.values().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lens(&ours), lens(&expected), "{name}");
    waits_are_those_of_a_script(folder, simulated, rows(&found, "states"), &nanos);
}

/// Compares waits and runs with what another program computes from the truth.
fn waits_are_those_of_a_script(
    folder: &Path,
    simulated: &Simulated,
    states: &[Value],
    nanos: &dyn Fn(i64) -> i64,
) {
    let truth = folder.join("truth.jsonl");
    std::fs::write(&truth, &simulated.texts["truth.jsonl"]).unwrap();
    let script = root().join("tests/foreign/waits.py");
    let output = Command::new(python())
        .arg(script)
        .arg(&truth)
        .arg(KERNEL)
        .output()
        .unwrap();
    let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut compared = 0;
    for (thread, expected) in theirs["threads"].as_object().unwrap() {
        let tid: u64 = thread.split_once('|').unwrap().1.parse().unwrap();
        let ended: Vec<(u64, i64)> = (expected["waits"].as_object().unwrap().values())
            .map(|wait| (wait[0].as_u64().unwrap(), wait[1].as_i64().unwrap()))
            .collect();
        let (count, ticks) = ended
            .iter()
            .fold((0, 0), |sum, wait| (sum.0 + wait.0, sum.1 + wait.1));
        let state = |state: &str| {
            let row = states
                .iter()
                .find(|row| row["tid"] == tid && row["state"] == state);
            row.map_or((0, 0), |row| {
                (
                    row["count"].as_u64().unwrap(),
                    row["total"].as_i64().unwrap(),
                )
            })
        };
        // A wait that does not end counts for no time, in both.
        let (waits, waited) = state("Waiting");
        assert!(
            waits == count || waits == count + 1,
            "{thread}: {waits} {count}"
        );
        assert_eq!(waited, nanos(ticks), "{thread}");
        compared += count;
        let (runs, ran) = state("Running");
        assert_eq!(runs, expected["switches"].as_u64().unwrap(), "{thread}");
        let running = nanos(expected["running"].as_i64().unwrap());
        assert_eq!(ran, running, "{thread}");
    }
    assert!(compared > 10);
}

/// Stacks of all samples, with how many there are: process, thread, frames from the outermost.
fn stacks(found: &Value) -> BTreeMap<String, u64> {
    let int = |row: &Value, name: &str| row[name].as_u64();
    let mut sites: BTreeMap<u64, String> = BTreeMap::new();
    for row in rows(found, "sites") {
        let name = row["name"].as_str().unwrap();
        let above = int(row, "parent_id").map(|parent| format!("{};", sites[&parent]));
        sites.insert(int(row, "id").unwrap(), above.unwrap_or_default() + name);
    }
    let mut stacks = BTreeMap::new();
    for row in rows(found, "samples") {
        let (process, pid) = (row["process"].as_str().unwrap_or("?"), &row["pid"]);
        let stack = &sites[&int(row, "callsite_id").unwrap()];
        let stack = format!("{process} ({pid}) {};{stack}", row["tid"]);
        *stacks.entry(stack).or_default() += 1;
    }
    stacks
}

const STACKS: [(&str, &str); 2] = [
    (
        "sites",
        "select c.id, c.parent_id, f.name from stack_profile_callsite c join stack_profile_frame f \
         on c.frame_id = f.id order by c.id",
    ),
    (
        "samples",
        "select p.callsite_id, tid, pid, process.name as process from perf_sample p join thread \
         using (utid) left join process using (upid)",
    ),
];

#[needs(node)]
#[test]
fn perfetto_has_the_samples_of_the_truth() {
    let here = tempfile::tempdir().unwrap();
    for (name, files) in [
        ("profile", &["profile.etl"][..]),
        // Recorded by two sessions, and not merged: methods are in the second file.
        ("kernel-session", &["kernel.etl", "clr.etl"]),
        // 32-bit Windows 7; the rundown is in the third file.
        ("windows-32", &["kernel.etl", "clr.etl", "rundown.etl"]),
    ] {
        compare_samples(here.path(), name, &simulated(name), files);
    }
    for Kind {
        name,
        simulated,
        files,
    } in kinds()
    {
        compare_samples(here.path(), name, simulated, files);
    }
}

/// Compares samples and their stacks with the truth.
fn compare_samples(folder: &Path, name: &str, simulated: &Simulated, files: &[&str]) {
    let files = write(folder, simulated, files);
    let queries = [&[ERRORS][..], &STACKS].concat();
    let found = trace_processor(&export(folder, &paths(&files), &[]), &queries);
    assert_eq!(found["errors"], json!([]), "{name}");
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for sample in sampled(simulated) {
        let labels: Vec<&str> = sample.labels.iter().rev().map(String::as_str).collect();
        let stack = format!("{} {};{}", sample.process, sample.tid, labels.join(";"));
        *expected.entry(stack).or_default() += 1;
    }
    assert!(expected.len() > 10, "{name}");
    let ours = stacks(&found);
    let wrong = expected
        .iter()
        .filter(|(stack, count)| ours.get(*stack) != Some(count));
    let more = ours
        .iter()
        .filter(|(stack, _)| !expected.contains_key(*stack));
    let wrong: Vec<_> = wrong.take(2).chain(more.take(2)).collect();
    assert!(wrong.is_empty(), "{name}: {wrong:?}");
    assert_eq!(ours.len(), expected.len(), "{name}");
}

/// Slices of a row with their processes and arguments.
const BEHAVIOR: [(&str, &str); 4] = [
    (
        "gc",
        "select pid, s.name, dur, extract_arg(s.arg_set_id, 'debug.number') as number, \
         extract_arg(s.arg_set_id, 'debug.generation') as generation, \
         extract_arg(s.arg_set_id, 'debug.paused_ns') as paused, \
         extract_arg(s.arg_set_id, 'debug.promoted_bytes') as promoted, \
         extract_arg(s.arg_set_id, 'debug.heap_bytes') as heap from slice s \
         join process_track t on t.id = s.track_id join process using (upid) \
         where s.category = 'gc' and t.name = 'GC' order by s.ts",
    ),
    (
        "pauses",
        "select pid, s.name, sum(dur) as paused from slice s join process_track t on \
         t.id = s.track_id join process using (upid) where t.name = 'GC suspensions' group by 1, 2",
    ),
    (
        "threads",
        "select pid, tid, s.category, s.name, s.dur, \
         extract_arg(s.arg_set_id, 'debug.il_size') as il, \
         extract_arg(s.arg_set_id, 'debug.code_size') as code from slice s \
         join thread_track t on t.id = s.track_id join thread using (utid) join process \
         using (upid)",
    ),
    (
        "heaps",
        "select pid, c.value from counter c join process_counter_track t on c.track_id = t.id join \
         process using (upid) where t.name = 'GC heap' order by c.ts",
    ),
];

/// Compares slices and counters with what a script computes from the events.
fn compare_behavior(found: &Value, theirs: &Value, name: &str) {
    let us = |nanos: &Value| nanos.as_f64().unwrap() / 1000.0;
    let mut pauses: BTreeMap<String, f64> = BTreeMap::new();
    for row in rows(found, "pauses") {
        let name = row["name"].as_str().unwrap();
        if let Some((_, number)) = name.split_once('#') {
            pauses.insert(format!("{}|{number}", row["pid"]), us(&row["paused"]));
        }
    }
    let mut ours = Vec::new();
    for row in rows(found, "gc") {
        let paused = us(&row["paused"]);
        let slices = pauses
            .remove(&format!("{}|{}", row["pid"], row["number"]))
            .unwrap_or(0.0);
        assert!((slices - paused).abs() < 1e-3, "{name}: {row} {slices}");
        let dur = if row["dur"] == -1 {
            Value::Null
        } else {
            json!(us(&row["dur"]))
        };
        let (promoted, heap) = (&row["promoted"], &row["heap"]);
        let (number, generation) = (&row["number"], &row["generation"]);
        ours.push(json!([
            row["pid"], number, generation, dur, paused, promoted, heap
        ]));
    }
    assert!(pauses.is_empty(), "{name}: {pauses:?}");
    let mut expected: Vec<Value> = rows(theirs, "gc").to_vec();
    for row in &mut expected {
        // Bytes that were allocated before.
        row.as_array_mut().unwrap().remove(5);
    }
    assert_eq!(json!(ours), json!(expected), "{name}");
    let heaps: Vec<&Value> = expected
        .iter()
        .map(|row| &row[6])
        .filter(|v| !v.is_null())
        .collect();
    let counted: Vec<u64> = rows(found, "heaps")
        .iter()
        .map(|row| row["value"].as_f64().unwrap() as u64)
        .collect();
    assert_eq!(json!(counted), json!(heaps), "{name}");

    let of = |category: &'static str| {
        let all = rows(found, "threads").iter();
        all.filter(move |row| row["category"] == category)
    };
    let compiled = |row: &Value| {
        // What has no beginning is an instant.
        let is_whole = row["il"].as_u64().is_some();
        let (dur, il) = if is_whole {
            (json!(us(&row["dur"])), row["il"].clone())
        } else {
            Default::default()
        };
        json!([row["pid"], row["tid"], row["name"], dur, il, row["code"]]).to_string()
    };
    let mut jit: Vec<String> = of("jit").map(compiled).collect();
    let mut expected: Vec<String> = rows(theirs, "jit").iter().map(Value::to_string).collect();
    jit.sort();
    expected.sort();
    assert_eq!(jit, expected, "{name}");

    let mut thrown: BTreeMap<String, u64> = BTreeMap::new();
    for row in of("exception") {
        let key = format!("{}|{}", row["pid"], row["name"].as_str().unwrap());
        *thrown.entry(key).or_default() += 1;
    }
    assert_eq!(json!(thrown), theirs["exceptions"], "{name}");

    let mut waits: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    for row in of("contention") {
        let (count, total) = waits
            .entry(format!("{}|{}", row["pid"], row["tid"]))
            .or_default();
        (*count, *total) = (*count + 1, *total + us(&row["dur"]));
    }
    let theirs = theirs["contention"].as_object().unwrap();
    assert_eq!(waits.len(), theirs.len(), "{name}");
    for (key, (count, total)) in waits {
        assert_eq!(theirs[&key][0], count, "{name}");
        assert!(
            (theirs[&key][1].as_f64().unwrap() - total).abs() < 1e-3,
            "{name}"
        );
    }
}

#[needs(python, node)]
#[test]
fn perfetto_has_the_runtime_events_of_the_truth() {
    let here = tempfile::tempdir().unwrap();
    for (name, file) in [
        ("gc-and-locks", "gc.etl"),
        ("profile", "clr.etl"),
        ("tiering", "tiering.etl"),
    ] {
        compare_clr(here.path(), name, &simulated(name), &[file]);
    }
    for Kind {
        name,
        simulated,
        files,
    } in kinds()
    {
        compare_clr(here.path(), name, simulated, files);
    }
}

/// Compares what the CLR did with what a script computes from the truth.
fn compare_clr(folder: &Path, name: &str, simulated: &Simulated, files: &[&str]) {
    let files = write(folder, simulated, files);
    let truth = folder.join("truth.jsonl");
    std::fs::write(&truth, &simulated.texts["truth.jsonl"]).unwrap();
    let queries = [&[ERRORS][..], &BEHAVIOR].concat();
    let found = trace_processor(&export(folder, &paths(&files), &[]), &queries);
    assert_eq!(found["errors"], json!([]), "{name}");
    compare_behavior(&found, &computed(&truth, Some("clr")), name);
}

#[needs(traces, python, node)]
#[test]
fn perfetto_has_what_reports_say_of_real_traces() {
    let here = tempfile::tempdir().unwrap();
    for name in [
        "perfview/net.4.5.2.x64.etl",
        "perfview/gcevents.etl",
        "perfview/diaghub.user_paged.1.etl",
        "perfview/diaghub.kernel.1.etl",
        "tx/Process.etl",
    ] {
        let path = trace(name);
        let queries = [
            &[ERRORS][..],
            &BEHAVIOR,
            &[
                (
                    "samples",
                    "select pid, count(*) as samples from perf_sample join thread using (utid) left \
                     join process using (upid) group by pid",
                ),
                (
                    "processes",
                    "select pid, name from process where name is not null",
                ),
                (
                    "cpu",
                    "select pid, sum(value * (next - ts)) as sum from (select pid, value, c.ts, \
                     lead(c.ts) over (partition by track_id order by c.ts) as next from counter c \
                     join process_counter_track t on c.track_id = t.id join process using (upid) \
                     where t.name = 'CPU by samples') group by pid",
                ),
                (
                    "lives",
                    "select count(*) as count from slice where category = 'process'",
                ),
            ],
        ];
        let found = trace_processor(&export(here.path(), &[&path], &[]), &queries.concat());
        assert_eq!(found["errors"], json!([]), "{name}");
        let out = crate::runtime_reports::etlkit_any(&[
            "analyze",
            "cpu",
            "--format",
            "json",
            "--group-by",
            "process",
            path.to_str().unwrap(),
        ]);
        let cpu: Value = serde_json::from_slice(&out).unwrap();
        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
        let mut times: BTreeMap<u64, f64> = BTreeMap::new();
        let mut names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for row in cpu["rows"].as_array().unwrap() {
            let mut pid = row["pid"].as_u64();
            if pid.is_none() {
                // An interrupt of an idle processor, for example "DPC of processor 2".
                let label = row["process"].as_str().unwrap();
                let kind = label.split(' ').next().unwrap();
                pid = match kind {
                    "DPC" => Some(1),
                    "ISR" => Some(2),
                    _ => None,
                };
                names.insert(pid.unwrap(), vec![kind.to_owned()]);
            }
            let pid = pid.unwrap();
            *expected.entry(pid).or_default() += row["total_samples"].as_u64().unwrap();
            *times.entry(pid).or_default() += row["total_us"].as_f64().unwrap_or_default();
        }
        let mut ours: BTreeMap<u64, u64> = BTreeMap::new();
        for row in rows(&found, "samples") {
            ours.insert(
                row["pid"].as_u64().unwrap(),
                row["samples"].as_u64().unwrap(),
            );
        }
        assert_eq!(ours, expected, "{name}");
        for row in rows(&found, "cpu") {
            // Percent of a processor, times ns.
            let us = row["sum"].as_f64().unwrap() / 100.0 / 1000.0;
            let time = times[&row["pid"].as_u64().unwrap()];
            assert!((us - time).abs() < 1.0, "{name}: {row} {time}");
        }
        let listed = analyze("processes", &path);
        let mut lives = 0;
        for row in listed["processes"].as_array().unwrap() {
            let name = row["process"].as_str().unwrap_or_default().to_owned();
            let pid = row["pid"].as_u64().unwrap();
            lives += u64::from(pid != 0 && !(row["started"].is_null() && row["ended"].is_null()));
            if pid != 0 && !name.is_empty() {
                names.entry(pid).or_default().push(name);
            }
        }
        let mut theirs: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for row in rows(&found, "processes") {
            let pid = row["pid"].as_u64().unwrap();
            theirs
                .entry(pid)
                .or_default()
                .push(row["name"].as_str().unwrap().to_owned());
        }
        assert_eq!(theirs, names, "{name}");
        assert_eq!(found["lives"][0]["count"], lives, "{name}");
        if ["perfview/net.4.5.2.x64.etl", "perfview/gcevents.etl"].contains(&name) {
            let events = here.path().join("events.jsonl");
            let dumped = crate::runtime_reports::etlkit(&[
                "dump",
                "--format",
                "jsonl",
                "--no-names",
                path.to_str().unwrap(),
            ]);
            std::fs::write(&events, dumped).unwrap();
            compare_behavior(&found, &computed(&events, None), name);
        }
    }
}

/// The name of a field as Perfetto has it: `OldThreadState` is `old_thread_state`.
fn snake_case(name: &str) -> String {
    match name {
        "Irp" => return "irp_ptr".to_owned(),
        "HighResResponseTime" => return "response_time".to_owned(),
        "TTID" => return "ttid".to_owned(),
        _ => {}
    }
    let mut out = String::new();
    for (at, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && at > 0 {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

#[needs(python)]
#[test]
fn perfetto_packets_have_the_fields_of_the_truth() {
    let here = tempfile::tempdir().unwrap();
    let simulated = simulated("kernel-io");
    let files = write(here.path(), &simulated, &["kernel.etl"]);
    let exported = export(here.path(), &paths(&files), &[]);
    let found = &etl_test_support::foreign("perfetto_packets.py", &[exported])[0];
    let bytes = &simulated.traces["kernel.etl"];
    let nanos = clock(bytes);
    let etw = Trace::open(&bytes[..], &Options::default())
        .unwrap()
        .clock();
    let unix = (etw.start_time.get() - etl_format::constants::FILETIME_UNIX_EPOCH) * 100;
    assert_eq!(
        found["clocks"],
        json!([{ "6": nanos(etw.start_timestamp.get()), "1": unix }])
    );
    // Everything is of one sequence, whose state begins once.
    assert_eq!(
        (&found["unknown"], &found["states"]),
        (&json!(0), &json!([0]))
    );

    let kinds: BTreeMap<&str, (&str, bool)> = [
        ("CSwitch", ("c_switch", false)),
        ("ReadyThread", ("ready_thread", false)),
        ("Create", ("file_io_create", false)),
        ("Cleanup", ("file_io_simple_op", true)),
        ("Close", ("file_io_simple_op", true)),
        ("Flush", ("file_io_simple_op", true)),
        ("Delete", ("file_io_info", true)),
        ("OperationEnd", ("file_io_op_end", false)),
        ("FlushBuffers", ("disk_io", true)),
    ]
    .into();
    let index = simulated
        .truth
        .sessions
        .iter()
        .find(|s| s.name == KERNEL)
        .unwrap()
        .index;
    let mut expected = Vec::new();
    for event in &simulated.truth.events {
        let (RecordFormat::System(hook) | RecordFormat::PerfInfo(hook)) = event.format else {
            continue;
        };
        if event.outcome(index) != Some(EventOutcome::Recorded) {
            continue;
        }
        let (kind, has_opcode) = match (hook, kinds.get(event.name.as_str())) {
            (0x010a | 0x010b, _) => ("disk_io", true),
            (0x0443 | 0x0444, _) => ("file_io_read_write", true),
            (_, Some(kind)) => *kind,
            _ => continue,
        };
        let mut values = serde_json::Map::new();
        for NamedValue { name, value } in &event.fields {
            // Of the flags, Perfetto has the mode; the simulation sets no other.
            let name = match &**name {
                "ThreadFlags" if kind == "c_switch" => "OldThreadWaitMode",
                name => name,
            };
            let name = snake_case(name);
            let value = match value {
                OwnedValue::UInt(v) | OwnedValue::Pointer(v) => json!(v),
                OwnedValue::Int(v) => json!(v),
                OwnedValue::Text(text) => json!(text),
                other => panic!("{name}: {other:?}"),
            };
            let is_number_of_enum = matches!(
                name.as_str(),
                "old_thread_wait_reason"
                    | "old_thread_wait_mode"
                    | "old_thread_state"
                    | "adjust_reason"
                    | "flag"
            );
            if !["reserved", "spare_byte"].contains(&name.as_str()) {
                values.insert(
                    if is_number_of_enum {
                        name + "_int"
                    } else {
                        name
                    },
                    value,
                );
            }
        }
        if has_opcode {
            values.insert("opcode".to_owned(), json!(hook & 0xff));
        }
        expected
            .push(json!([kind, nanos(event.timestamp.get()), event.processor, values]).to_string());
    }
    let mut ours: Vec<String> = rows(found, "etw")
        .iter()
        .map(|event| json!([event[0], event[1], event[2], event[4]]).to_string())
        .collect();
    let kinds = |all: &[String]| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for event in all {
            *counts
                .entry(event.split(',').next().unwrap().to_owned())
                .or_default() += 1;
        }
        counts
    };
    assert_eq!(kinds(&ours), kinds(&expected));
    assert!(kinds(&ours).len() == 8);
    ours.sort();
    expected.sort();
    for (ours, expected) in ours.iter().zip(&expected) {
        assert_eq!(ours, expected);
    }
    // The thread that made another one ready ran on the processor.
    let mut current = BTreeMap::new();
    for event in rows(found, "etw") {
        if event[0] == "c_switch" {
            current.insert(event[2].to_string(), event[4]["new_thread_id"].clone());
        } else if event[0] == "ready_thread"
            && let Some(running) = current.get(&event[2].to_string())
        {
            assert_eq!(&event[3], running, "{event}");
        }
    }
}

#[needs(traces, python)]
#[test]
fn perfetto_interns_before_use_and_identifies_images() {
    let here = tempfile::tempdir().unwrap();
    let path = trace("perfview/net.4.5.2.x64.etl");
    let exported = export(here.path(), &[&path], &[]);
    let found = &etl_test_support::foreign("perfetto_packets.py", &[exported])[0];
    assert_eq!(
        (&found["late"], &found["states"]),
        (&json!([]), &json!([0]))
    );
    assert_eq!(
        found["modes"]
            .as_object()
            .unwrap()
            .values()
            .map(|n| n.as_u64().unwrap())
            .sum::<u64>(),
        // 6215 samples of processes, and 105 in interrupts of idle processors.
        6320
    );
    for kind in ["KIND_KERNEL", "KIND_NATIVE", "KIND_JIT"] {
        assert!(
            found["frames"][kind].as_u64().unwrap() > 50,
            "{}",
            found["frames"]
        );
    }
    // Signature and age of each PDB, as the report on images has them.
    let images = analyze("images", &path);
    let mut known = 0;
    for image in images["images"].as_array().unwrap() {
        let Some(signature) = image["pdb_guid"].as_str() else {
            continue;
        };
        let key = format!(
            "{}@{}",
            image["path"].as_str().unwrap(),
            image["address"].as_str().unwrap()
        );
        let Some(mapping) = found["mappings"].get(&key) else {
            continue;
        };
        let age = image["pdb_age"].as_u64().unwrap();
        assert_eq!(
            mapping[1],
            format!("{}{age:08x}", signature.replace('-', "")),
            "{key}"
        );
        known += 1;
    }
    assert!(known > 10, "{known}");
}

#[needs(node)]
#[test]
fn perfetto_has_the_activities_of_the_truth() {
    let here = tempfile::tempdir().unwrap();
    let simulated = simulated("activities");
    let files = write(here.path(), &simulated, &["web.etl"]);
    let found = trace_processor(
        &export(here.path(), &paths(&files), &[]),
        &[
            ERRORS,
            (
                "slices",
                "select s.ts, s.dur, s.name, pid, extract_arg(s.arg_set_id, 'debug.activity') as id \
                 from slice s join process_track t on t.id = s.track_id join process using (upid) \
                 where s.category = 'activity' order by s.ts, s.id",
            ),
        ],
    );
    assert_eq!(found["errors"], json!([]));
    let nanos = clock(&simulated.traces["web.etl"]);
    let mut expected = Vec::new();
    for name in ["Request", "Query"] {
        let stops: Vec<_> = recorded(&simulated, "web", &format!("{name}Stop"))
            .map(|event| (event.activity, event.timestamp))
            .collect();
        for start in recorded(&simulated, "web", &format!("{name}Start")) {
            let stop = stops
                .iter()
                .find(|(id, at)| *id == start.activity && *at >= start.timestamp);
            let from = nanos(start.timestamp.get());
            let id = start.activity.to_string();
            let dur = nanos(stop.unwrap().1.get()) - from;
            expected
                .push(json!({ "ts": from, "dur": dur, "name": name, "pid": start.pid, "id": id }));
        }
    }
    let key = |row: &Value| (row["ts"].as_i64(), row["id"].as_str().map(str::to_owned));
    let mut ours = rows(&found, "slices").to_vec();
    ours.sort_by_key(key);
    expected.sort_by_key(key);
    assert!(expected.len() > 50);
    assert_eq!(ours, expected);
}

/// What the command prints, with its exit code.
fn run(args: &[&str]) -> (u8, String) {
    let words = ["etlkit", "export", "perfetto"]
        .iter()
        .chain(args)
        .map(Into::into);
    let said = run_captured(words.collect::<Vec<_>>());
    (said.code, String::from_utf8_lossy(&said.err).into_owned())
}

#[test]
fn perfetto_export_is_the_same_with_any_number_of_threads() {
    let here = tempfile::tempdir().unwrap();
    let simulated = simulated("profile");
    let files = write(here.path(), &simulated, &["profile.etl"]);
    let one = std::fs::read(export(here.path(), &paths(&files), &["--threads", "1"])).unwrap();
    let two = std::fs::read(export(here.path(), &paths(&files), &["--threads", "2"])).unwrap();
    assert!(one.len() > 10_000 && one == two);
}

#[needs(node)]
#[test]
fn perfetto_export_selects_processes_threads_and_times() {
    let here = tempfile::tempdir().unwrap();
    let simulated = simulated("kernel-session");
    let files = write(here.path(), &simulated, &["kernel.etl", "clr.etl"]);
    let query = |args: &[&str]| {
        let queries = [
            ERRORS,
            (
                "samples",
                "select tid, count(*) as n from perf_sample join thread using (utid) group by 1",
            ),
            (
                "sched",
                "select tid, count(*) as n, sum(max(dur, 0)) as total from sched join thread \
                 using (utid) where tid != 0 and tid < 4294967295 group by 1",
            ),
            (
                "names",
                "select pid from process where name is not null order by 1",
            ),
            (
                "slices",
                "select distinct pid from slice s join thread_track t on t.id = s.track_id \
                 join thread using (utid) join process using (upid)",
            ),
            ("span", "select max(ts) - min(ts) as span from perf_sample"),
        ];
        let found = trace_processor(&export(here.path(), &paths(&files), args), &queries);
        assert_eq!(found["errors"], json!([]));
        found
    };
    let all = query(&[]);
    let one = query(&["--process", "Long", "--process", "2200"]);
    let of = |found: &Value, name: &str, tid: u64| {
        rows(found, name)
            .iter()
            .find(|row| row["tid"] == tid)
            .cloned()
    };
    assert_eq!(one["names"], json!([{ "pid": 2100 }, { "pid": 2200 }]));
    assert_eq!(rows(&one, "samples").len(), 2);
    for row in rows(&one, "samples") {
        assert_eq!(
            of(&all, "samples", row["tid"].as_u64().unwrap()).as_ref(),
            Some(row)
        );
    }
    // Of other threads there is nothing but that they ran.
    assert_eq!(rows(&one, "sched").len(), 2);
    for row in rows(&one, "sched") {
        assert_eq!(
            of(&all, "sched", row["tid"].as_u64().unwrap()).as_ref(),
            Some(row)
        );
    }
    assert_eq!(
        (rows(&all, "slices"), rows(&one, "slices")),
        (&[json!({ "pid": 2300 })][..], &[][..])
    );
    let thread = query(&["--thread", "1036"]);
    assert_eq!(
        rows(&thread, "samples"),
        [of(&all, "samples", 1036).unwrap()]
    );
    let later = query(&["--from", "0.6", "--to", "0.61"]);
    assert!(later["span"][0]["span"].as_i64().unwrap() < 10_000_000);
    assert!(rows(&later, "samples").len() == 2, "{}", later["samples"]);
}

#[test]
fn perfetto_export_of_nothing_says_what_would_record_it() {
    let here = tempfile::tempdir().unwrap();
    let simulated = simulated("wpp");
    let name = simulated.traces.keys().next().unwrap().clone();
    let files = write(here.path(), &simulated, &[&name]);
    let output = here.path().join("out");
    let file = files[0].to_str().unwrap();
    let (code, err) = run(&[file, "-o", output.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(
        err.contains("nothing that Perfetto shows") && err.contains("xperf -on"),
        "{err}"
    );
    let (code, err) = run(&[
        "--process",
        "Absent.exe",
        file,
        "-o",
        output.to_str().unwrap(),
    ]);
    assert!(code == 2 && err.contains("Absent.exe"), "{err}");
    assert!(!output.exists());
    // Neither is the life of a process anything that happened at another time, or in a thread.
    let simulated = self::simulated("kernel-session");
    let file = write(here.path(), &simulated, &["merged.etl"]).remove(0);
    for nothing in [["--from", "100"], ["--thread", "999999"]] {
        let args = [
            &nothing[..],
            &[file.to_str().unwrap(), "-o", output.to_str().unwrap()],
        ];
        let (code, err) = run(&args.concat());
        assert!(
            code == 2 && err.contains("nothing that Perfetto shows"),
            "{nothing:?}: {err}"
        );
    }
}
