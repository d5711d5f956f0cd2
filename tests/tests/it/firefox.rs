//! `etlkit export firefox`: the tables of the profile by a script of its own, what the code of the
//! Firefox Profiler makes of them, and both against the truth of simulated machines and against
//! `etlkit analyze` on real traces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use etl_test_support::{foreign, needs, node_packages, python, root, trace};
use etlkit::run_captured;
use serde_json::{Value, json};

use crate::kinds::{Kind, kinds};
use crate::sampled::{sampled, simulated};
use crate::simulated::Simulated;
use crate::thread_waits::locks;

/// Counts by stack, outermost frame first.
type Stacks = BTreeMap<String, u64>;

fn etlkit(args: &[&str]) -> Vec<u8> {
    let words = ["etlkit"].into_iter().chain(args.iter().copied());
    let said = run_captured(words.map(Into::into).collect::<Vec<_>>());
    assert_eq!(said.code, 0, "{}", String::from_utf8_lossy(&said.err));
    said.out
}

fn analyze(kind: &str, files: &[PathBuf]) -> Value {
    let files = files.iter().map(|file| file.to_str().unwrap());
    let args: Vec<&str> = ["analyze", kind, "--format", "json", "--top", "0"]
        .into_iter()
        .chain(files)
        .collect();
    serde_json::from_slice(&etlkit(&args)).unwrap()
}

/// Exports traces to a file with this name, and returns its path.
fn export(folder: &Path, name: &str, files: &[PathBuf], more: &[&str]) -> PathBuf {
    let path = folder.join(name);
    let files = files.iter().map(|file| file.to_str().unwrap());
    let args = ["export", "firefox"]
        .into_iter()
        .chain(more.iter().copied())
        .chain(files);
    etlkit(
        &args
            .chain(["-o", path.to_str().unwrap(), "--force"])
            .collect::<Vec<_>>(),
    );
    path
}

/// What is in a profile, by the script.
fn read(profile: &Path) -> Value {
    foreign("firefox.py", &[profile.to_owned()]).remove(0)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap()
}

fn markers<'v>(
    read: &'v Value,
    kind: &'static str,
) -> impl Iterator<Item = (&'v Value, &'v Value)> {
    let threads = list(read, "threads").iter();
    let all = threads.flat_map(|thread| list(thread, "markers").iter().map(move |m| (thread, m)));
    all.filter(move |(_, marker)| marker["type"] == kind)
}

/// Writes the traces of a simulated machine to a folder.
fn written(simulated: &Simulated, names: &[&str], folder: &Path) -> Vec<PathBuf> {
    let write = |name: &&str| {
        let path = folder.join(name);
        std::fs::write(&path, &simulated.traces[*name]).unwrap();
        path
    };
    names.iter().map(write).collect()
}

#[needs(python)]
#[test]
fn samples_are_those_of_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    // Merged and separate files, 64 and 32 bit, the latter of Windows 7.
    for (name, merged, separate) in [
        (
            "profile",
            "profile.etl",
            &["kernel.etl", "clr.etl", "rundown.etl"][..],
        ),
        ("kernel-session", "merged.etl", &["kernel.etl", "clr.etl"]),
        (
            "windows-32",
            "windows-32.etl",
            &["kernel.etl", "clr.etl", "rundown.etl"],
        ),
    ] {
        let simulated = simulated(name);
        for (files, out) in [(&[merged][..], "p.json"), (separate, "p.json.gz")] {
            compare_samples(folder.path(), (name, out), &simulated, files);
        }
    }
    for Kind {
        name,
        simulated,
        files,
    } in kinds()
    {
        compare_samples(folder.path(), (name, "p.json"), simulated, files);
    }
}

/// Compares samples and their stacks with the truth.
fn compare_samples(
    folder: &Path,
    (name, out): (&str, &str),
    simulated: &Simulated,
    files: &[&str],
) {
    let mut expected = Stacks::new();
    for sample in sampled(simulated) {
        let key = format!("{};{};{}", sample.process, sample.tid, sample.stack());
        *expected.entry(key).or_default() += 1;
    }
    assert!(expected.values().sum::<u64>() > 50, "{name}");
    let files = written(simulated, files, folder);
    let read = read(&export(folder, out, &files, &[]));
    let mut found = Stacks::new();
    for thread in list(&read, "threads") {
        let process = thread["process"].as_str().unwrap();
        let of = format!(
            "{process} ({});{}",
            thread["pid"].as_str().unwrap(),
            thread["tid"]
        );
        for (stack, count) in thread["stacks"].as_object().unwrap() {
            found.insert(format!("{of};{stack}"), count.as_u64().unwrap());
        }
    }
    let wrong = expected
        .iter()
        .filter(|(stack, count)| found.get(*stack) != Some(count));
    let more = found
        .iter()
        .filter(|(stack, _)| !expected.contains_key(*stack));
    let wrong: Vec<_> = wrong.chain(more).take(3).collect();
    assert!(wrong.is_empty(), "{name} {out}: {wrong:?}");
}

/// Each row is `[pid, ...]`; in the order of their text.
fn sorted(rows: impl Iterator<Item = Value>) -> Vec<String> {
    let mut rows: Vec<String> = rows.map(|row| row.to_string()).collect();
    rows.sort();
    rows
}

/// Milliseconds in 100 ns.
fn ticks(millis: &Value) -> i64 {
    (millis.as_f64().unwrap() * 1e4).round() as i64
}

/// The collections of a profile, and those of `theirs`, with generation and pause.
fn assert_same_collections(read: &Value, theirs: &[Value], name: &str) {
    let pid = |thread: &Value| thread["pid"].as_str().unwrap().parse::<u32>().unwrap();
    let ours = markers(read, "GC").map(|(thread, gc)| {
        json!([
            pid(thread),
            gc["number"],
            gc["generation"],
            ticks(&gc["pause"])
        ])
    });
    let micros = |row: &Value| (row.as_f64().unwrap() * 10.0).round() as i64;
    let theirs = theirs.iter();
    let theirs = theirs.map(|gc| {
        json!([
            gc["pid"],
            gc["number"],
            gc["generation"],
            micros(&gc["pause_us"])
        ])
    });
    assert_eq!(sorted(ours), sorted(theirs), "{name}");
}

#[needs(python)]
#[test]
fn markers_are_those_of_the_truth() {
    let here = tempfile::tempdir().unwrap();
    for (name, file) in [
        ("gc-and-locks", "gc.etl"),
        ("profile", "clr.etl"),
        ("tiering", "tiering.etl"),
        ("windows-7", "windows7.etl"),
        ("windows-32", "clr.etl"),
    ] {
        compare_markers(here.path(), name, &simulated(name), &[file]);
    }
    for Kind {
        name,
        simulated,
        files,
    } in kinds()
    {
        compare_markers(here.path(), name, simulated, files);
    }
}

/// Compares markers with what a script computes from the truth.
fn compare_markers(folder: &Path, name: &str, simulated: &Simulated, files: &[&str]) {
    let truth = folder.join("truth.jsonl");
    std::fs::write(&truth, &simulated.texts["truth.jsonl"]).unwrap();
    let script = root().join("tests/foreign/runtime_reports.py");
    let output = Command::new(python())
        .arg(script)
        .arg(&truth)
        .arg("clr")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = written(simulated, files, folder);
    let read = read(&export(folder, "p.json", &files, &[]));

    let keyed = |gc: &Value| {
        let (pid, number, generation, pause) = (&gc[0], &gc[1], &gc[2], &gc[4]);
        json!({ "pid": pid, "number": number, "generation": generation, "pause_us": pause })
    };
    let collections: Vec<Value> = list(&theirs, "gc").iter().map(keyed).collect();
    assert_same_collections(&read, &collections, name);
    let pid = |thread: &Value| thread["pid"].as_str().unwrap().parse::<u32>().unwrap();
    let ours = markers(&read, "JIT")
        .map(|(thread, m)| json!([pid(thread), thread["tid"], m["method"], m["il"], m["code"]]));
    let jit = list(&theirs, "jit").iter();
    let jit = jit.map(|row| json!([row[0], row[1], row[2], row[4], row[5]]));
    assert_eq!(sorted(ours), sorted(jit), "{name}");
    let mut exceptions: BTreeMap<String, u64> = BTreeMap::new();
    for (thread, marker) in markers(&read, "Exception") {
        let kind = marker["exception"].as_str().unwrap();
        *exceptions
            .entry(format!("{}|{kind}", pid(thread)))
            .or_default() += 1;
    }
    assert_eq!(json!(exceptions), theirs["exceptions"], "{name}");
    let mut waits: BTreeMap<String, u64> = BTreeMap::new();
    for (thread, _) in markers(&read, "Contention") {
        *waits
            .entry(format!("{}|{}", pid(thread), thread["tid"]))
            .or_default() += 1;
    }
    let theirs = theirs["contention"].as_object().unwrap().iter();
    let theirs = theirs.map(|(thread, row)| (thread.clone(), row[0].as_u64().unwrap()));
    assert_eq!(waits, theirs.collect(), "{name}");
}

#[needs(python)]
#[test]
fn waits_for_locks_have_the_stacks_of_the_truth() {
    let (simulated, stacks) = locks();
    let here = tempfile::tempdir().unwrap();
    let files = written(&simulated, &["clr.etl"], here.path());
    let read = read(&export(here.path(), "p.json", &files, &[]));
    let causes = markers(&read, "Contention").map(|(_, marker)| marker["cause"].clone());
    let expected = stacks.into_iter().map(|(_, path)| Value::from(path));
    assert!(markers(&read, "Contention").count() > 30);
    assert_eq!(sorted(causes), sorted(expected));
}

/// The exception of this trace was thrown in code that the CLR's stack shows.
#[needs(trace = "perfview/net.4.5.2.x64.etl", python)]
#[test]
fn exceptions_of_a_real_trace_have_the_stacks_of_the_clr() {
    let here = tempfile::tempdir().unwrap();
    let files = [trace("perfview/net.4.5.2.x64.etl")];
    let read = read(&export(here.path(), "p.json", &files, &[]));
    let all: Vec<&Value> = markers(&read, "Exception")
        .map(|(_, marker)| marker)
        .collect();
    let [exception] = all[..] else {
        panic!("{all:?}")
    };
    let cause = exception["cause"].as_str().unwrap();
    assert!(
        cause.starts_with("ntdll.dll!?;") && cause.matches(';').count() > 10,
        "{cause}"
    );
}

#[needs(python)]
#[test]
fn activities_have_the_names_and_times_of_the_truth() {
    let here = tempfile::tempdir().unwrap();
    let simulated = simulated("activities");
    let files = written(&simulated, &["web.etl"], here.path());
    let read = read(&export(here.path(), "p.json", &files, &[]));
    let of = |name: &str| -> Vec<i64> {
        let events = simulated.truth.events.iter();
        events
            .filter(|e| e.name == name && !e.outcomes.is_empty())
            .map(|e| e.at as i64)
            .collect()
    };
    for name in ["Request", "Query"] {
        let (starts, stops) = (of(&format!("{name}Start")), of(&format!("{name}Stop")));
        let mut expected: Vec<i64> = starts
            .iter()
            .zip(&stops)
            .map(|(start, stop)| (stop - start) / 100)
            .collect();
        let mut found: Vec<i64> = markers(&read, "Activity")
            .filter(|(_, marker)| marker["name"] == name)
            .map(|(_, marker)| ticks(&marker["end"]) - ticks(&marker["start"]))
            .collect();
        assert!(expected.len() > 20);
        expected.sort_unstable();
        found.sort_unstable();
        // Both times are rounded down to 100 ns.
        assert_eq!(found.len(), expected.len());
        let differ = |(a, b): (&i64, &i64)| (a - b).abs() > 1;
        assert!(
            !found.iter().zip(&expected).any(differ),
            "{found:?} {expected:?}"
        );
    }
    let providers = markers(&read, "Activity").all(|(_, m)| m["provider"] == "Contoso-Activities");
    assert!(providers);
}

#[needs(python)]
#[test]
fn libraries_have_the_identities_that_a_merge_recorded() {
    let here = tempfile::tempdir().unwrap();
    let simulated = simulated("profile");
    let files = written(&simulated, &["profile.etl"], here.path());
    let read = read(&export(here.path(), "p.json", &files, &[]));
    let pdbs: Vec<String> = (simulated.truth.identities.values().flatten())
        .map(|(signature, age)| {
            format!(
                "{}{age:x}",
                signature.to_string().replace('-', "").to_uppercase()
            )
        })
        .collect();
    let codes: Vec<(String, String)> = (simulated.truth.versions.iter())
        .map(|(_, path, time, size)| {
            let name = path.rsplit('\\').next().unwrap().to_owned();
            (name, format!("{time:08X}{size:x}"))
        })
        .collect();
    assert!(list(&read, "libs").len() > 2);
    for library in list(&read, "libs") {
        let name = library["name"].as_str().unwrap().to_lowercase();
        assert!(
            pdbs.iter().any(|pdb| library["breakpadId"] == **pdb),
            "{library}"
        );
        let debug_name = library["debugName"].as_str().unwrap().to_lowercase();
        assert!(debug_name.ends_with(".pdb"), "{library}");
        let known = codes
            .iter()
            .any(|(of, code)| *of == name && library["codeId"] == **code);
        assert!(known, "{library}: {codes:?}");
    }
    // The kernel's own file has no identities.
    let files = written(&simulated, &["kernel.etl"], here.path());
    let read = self::read(&export(here.path(), "k.json", &files, &[]));
    for library in list(&read, "libs") {
        assert_eq!(library["breakpadId"], "0".repeat(33), "{library}");
    }
}

#[needs(python)]
#[test]
fn selections_apply_to_samples_and_markers() {
    let here = tempfile::tempdir().unwrap();
    let files = written(&simulated("profile"), &["profile.etl"], here.path());
    let all = read(&export(here.path(), "all.json", &files, &[]));
    let one = read(&export(
        here.path(),
        "one.json",
        &files,
        &["--process", "editor"],
    ));
    assert!(
        list(&one, "threads")
            .iter()
            .all(|thread| thread["process"] == "Editor.exe")
    );
    let number = |read: &Value| list(read, "threads").len();
    assert!(number(&one) > 0 && number(&one) < number(&all));
    let part = read(&export(
        here.path(),
        "part.json",
        &files,
        &["--from", "0.5", "--to", "1"],
    ));
    let mut times = Vec::new();
    for thread in list(&part, "threads") {
        times.extend(
            list(thread, "times")
                .iter()
                .map(|time| time.as_f64().unwrap()),
        );
        times.extend(
            list(thread, "markers")
                .iter()
                .map(|m| m["start"].as_f64().unwrap()),
        );
    }
    assert!(!times.is_empty() && times.iter().all(|time| (500.0..1000.0).contains(time)));
    let idle = read(&export(here.path(), "idle.json", &files, &["--idle"]));
    assert!(
        list(&idle, "threads")
            .iter()
            .any(|thread| thread["pid"] == "0")
    );
    assert!(
        list(&all, "threads")
            .iter()
            .all(|thread| thread["pid"] != "0")
    );
}

#[test]
fn profiles_without_content_say_what_would_record_it() {
    let here = tempfile::tempdir().unwrap();
    let files = written(&simulated("packets"), &["nettrace.etl"], here.path());
    let (file, out) = (files[0].to_str().unwrap(), here.path().join("p.json"));
    let words = [
        "etlkit",
        "export",
        "firefox",
        file,
        "-o",
        out.to_str().unwrap(),
    ];
    let said = run_captured(words.map(Into::into).to_vec());
    let err = String::from_utf8(said.err).unwrap();
    assert_eq!(said.code, 2);
    assert!(
        err.contains("no CPU sample and no marker") && err.contains("xperf -on"),
        "{err}"
    );
    assert!(!out.exists());
}

/// What the code of the Firefox Profiler makes of a profile.
fn shown(profile: &Path) -> Value {
    let script = root().join("tests/foreign/firefox_profiler.cjs");
    let mut command = Command::new("node");
    let output = command
        .arg(script)
        .arg(node_packages())
        .arg(profile)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Compares what the viewer shows with what `etlkit analyze` reports; returns how many samples and
/// collections there are.
fn compare(files: &[PathBuf]) -> (u64, usize) {
    let here = tempfile::tempdir().unwrap();
    let profile = export(here.path(), "p.json.gz", files, &[]);
    let (read, shown) = (read(&profile), shown(&profile));
    let cpu = analyze("cpu", files);
    let name = files[0].display().to_string();

    // Methods: the viewer counts each thread, and names native code by the symbol server.
    let mut counts: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for thread in list(&shown, "threads") {
        for (function, samples) in thread["functions"].as_object().unwrap() {
            let count = counts.entry(function.clone()).or_default();
            for (at, sum) in count.iter_mut().enumerate() {
                *sum += samples[at].as_u64().unwrap();
            }
        }
    }
    let mut managed = 0;
    for method in list(&cpu, "rows")
        .iter()
        .filter(|method| method["code"] == "managed")
    {
        let name = method["name"].as_str().unwrap();
        let expected = ["total_samples", "self_samples"].map(|key| method[key].as_u64().unwrap());
        assert_eq!(counts.get(name), Some(&expected), "{name}");
        managed += 1;
    }
    assert!(managed > 10, "{name}: {managed} methods");
    let own: u64 = counts.values().map(|[_, own]| own).sum();
    assert_eq!(Some(own), cpu["samples"].as_u64(), "{name}");
    // Each library was asked for by its identity, and its frames have the names of the answer.
    let known = |library: &&Value| library["breakpadId"] != *"0".repeat(33);
    for library in list(&read, "libs").iter().filter(known) {
        let name = library["debugName"].as_str().unwrap();
        let id = format!("{name}/{}", library["breakpadId"].as_str().unwrap());
        assert!(shown["requested"].get(&id).is_some(), "{id}");
    }
    let is_identified = list(&read, "libs").iter().any(|library| known(&library));
    assert_eq!(
        counts.keys().any(|name| name.contains(".pdb@")),
        is_identified,
        "{name}"
    );

    let gc = analyze("gc", files);
    assert_same_collections(&read, list(&gc, "gcs"), &name);
    let theirs = list(&shown, "markers")
        .iter()
        .filter(|marker| marker["type"] == "GC");
    let mut pauses: Vec<i64> = theirs
        .map(|marker| ticks(&marker["data"]["pause"]))
        .collect();
    let expected = list(&gc, "gcs").iter();
    let mut expected: Vec<i64> = expected
        .map(|gc| (gc["pause_us"].as_f64().unwrap() * 10.0).round() as i64)
        .collect();
    pauses.sort_unstable();
    expected.sort_unstable();
    assert_eq!(pauses, expected, "{name}");
    (own, pauses.len())
}

#[needs(python, node)]
#[test]
fn firefox_profiler_shows_simulated_recordings_as_they_are() {
    let here = tempfile::tempdir().unwrap();
    for (name, files) in [
        ("profile", &["profile.etl"][..]),
        ("windows-32", &["kernel.etl", "clr.etl", "rundown.etl"]),
    ] {
        let files = written(&simulated(name), files, here.path());
        let (samples, _) = compare(&files);
        assert!(samples > 50, "{name}");
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl", python, node)]
#[test]
fn firefox_profiler_shows_a_real_recording_as_it_is() {
    // 6215 samples of processes, and 105 in interrupts of idle processors.
    assert_eq!(compare(&[trace("perfview/net.4.5.2.x64.etl")]), (6320, 264));
}
