//! CPU profiles against what was sampled: by the truth of simulated machines, and by a computation
//! of another program on a real trace.

use std::collections::{BTreeMap, BTreeSet};

use etl_analysis::profile::{FrameTotal, Profile, ProfileOptions, SampleCollector};
use etl_analysis::{Analysis, Machine, Recording};
use etl_test_support::{foreign, needs, trace};
use etlkit::run_captured;
use serde_json::Value;

use crate::kinds::{Kind, kinds};
use crate::sampled::{sampled, simulated};
use crate::simulated::Simulated;

/// Samples in a method and what it called, and in the method, by name.
type Counts = BTreeMap<String, (u64, u64)>;

fn profile_of(files: &[(&str, &[u8])], options: &ProfileOptions) -> (Machine, Profile) {
    let files = files.iter().map(|(name, bytes)| (*bytes, *name));
    let mut recording = Recording::open(files).unwrap();
    let mut collector = SampleCollector::new();
    let machine = Analysis::new()
        .with_names()
        .run(&mut recording, &mut collector)
        .unwrap();
    let profile = collector.profile(&machine, options);
    (machine, profile)
}

fn counts_of(profile: &Profile) -> Counts {
    let rows = profile.by_frame().into_iter();
    rows.map(|FrameTotal { frame, total, .. }| {
        (
            profile.label(frame),
            (total.inclusive.samples, total.exclusive.samples),
        )
    })
    .collect()
}

/// What the samples of a session are, by its truth.
fn expected(simulated: &Simulated) -> Counts {
    let mut counts = Counts::new();
    for sample in sampled(simulated) {
        counts.entry(sample.labels[0].clone()).or_default().1 += 1;
        for label in sample.labels.into_iter().collect::<BTreeSet<_>>() {
            counts.entry(label).or_default().0 += 1;
        }
    }
    counts
}

#[test]
fn methods_have_the_samples_of_the_truth() {
    // Merged and separate files, 64 and 32 bit.
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
        for files in [&[merged][..], separate] {
            compare(name, &simulated, files);
        }
    }
    for Kind {
        name,
        simulated,
        files,
    } in kinds()
    {
        compare(name, simulated, files);
    }
}

/// Compares the profile of a recording with the truth.
fn compare(name: &str, simulated: &Simulated, files: &[&str]) {
    let expected = expected(simulated);
    let total: u64 = expected.values().map(|(_, own)| own).sum();
    assert!(total > 50, "{name}: {total} samples");
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|file| (*file, simulated.traces[*file].as_slice()))
        .collect();
    let (_, profile) = profile_of(&files, &ProfileOptions::new());
    assert_eq!(profile.total().samples, total, "{name}");
    let found = counts_of(&profile);
    for (label, counts) in &expected {
        assert_eq!(found.get(label), Some(counts), "{name}: {label}");
    }
    assert_eq!(found.len(), expected.len(), "{name}");
}

#[test]
fn totals_agree_with_each_other() {
    let simulated = simulated("profile");
    let file = [("profile.etl", simulated.traces["profile.etl"].as_slice())];
    let (_, by_process) = profile_of(&file, &ProfileOptions::new());
    let (_, by_thread) = profile_of(&file, &ProfileOptions::new().by_thread());
    assert!(by_thread.roots().len() > by_process.roots().len());
    assert_eq!(by_thread.total(), by_process.total());
    assert_eq!(counts_of(&by_thread), counts_of(&by_process));
    let total = by_process.total();
    // One sample in a millisecond.
    assert_eq!(total.time, total.samples * 10_000);
    let own: u64 = by_process
        .nodes()
        .iter()
        .map(|node| node.exclusive.samples)
        .sum();
    assert_eq!(own, total.samples);
    let modules = by_process.by_module();
    let own: u64 = modules
        .iter()
        .map(|module| module.total.exclusive.samples)
        .sum();
    assert_eq!(own, total.samples);
    // Around each method: what calls it and what it calls.
    for FrameTotal { frame, total, .. } in by_process.by_frame() {
        let focus = by_process.focus(|other| other == frame);
        assert_eq!(focus.total, total);
        let callers: u64 = focus
            .callers
            .iter()
            .map(|caller| caller.weight.samples)
            .sum();
        assert_eq!(
            callers,
            total.inclusive.samples,
            "{}",
            by_process.label(frame)
        );
        let callees: u64 = focus
            .callees
            .iter()
            .map(|callee| callee.weight.samples)
            .sum();
        assert!(callees + total.exclusive.samples >= total.inclusive.samples);
    }
}

/// `etlkit analyze cpu` as JSON.
fn analyze(args: &[&str]) -> Value {
    let words = ["etlkit", "analyze", "cpu", "--format", "json"]
        .into_iter()
        .chain(args.to_vec());
    let said = run_captured(words.map(Into::into));
    assert_eq!(said.code, 0, "{}", String::from_utf8_lossy(&said.err));
    serde_json::from_slice(&said.out).unwrap()
}

#[needs(trace = "perfview/net.4.5.2.x64.etl", python)]
#[test]
fn real_trace_has_the_profile_that_a_script_computes() {
    let path = trace("perfview/net.4.5.2.x64.etl");
    let path = path.to_str().unwrap();
    let here = tempfile::tempdir().unwrap();
    let events = here.path().join("events.jsonl");
    let words = ["etlkit", "dump", "--format", "jsonl", "--no-names", path];
    let dumped = run_captured(words.map(Into::into));
    std::fs::write(&events, dumped.out).unwrap();
    let theirs = &foreign("cpu_profile.py", &[events])[0];
    for (group, name) in [("method", "name"), ("process", "pid")] {
        let ours = analyze(&["--idle", "--group-by", group, path]);
        assert_eq!(ours["samples"], theirs["samples"]);
        let mut found = BTreeMap::new();
        for row in ours["rows"].as_array().unwrap() {
            let key = match &row[name] {
                Value::String(text) => text.clone(),
                // An interrupt of an idle processor.
                Value::Null => row["process"].as_str().unwrap().to_owned(),
                other => other.to_string(),
            };
            let own = row.get("self_samples").cloned().unwrap_or(Value::Null);
            assert!(
                found
                    .insert(key, vec![row["total_samples"].clone(), own])
                    .is_none()
            );
        }
        let theirs = theirs[group].as_object().unwrap();
        for (key, counts) in theirs {
            let ours = found.get(key).unwrap_or_else(|| panic!("{group} {key}"));
            assert_eq!(ours, counts.as_array().unwrap(), "{group} {key}");
        }
        assert_eq!(found.len(), theirs.len(), "{group}");
    }
}

/// What became slower between two traces: differences of what each of them has.
#[test]
fn comparison_has_the_differences_of_two_profiles() {
    let here = tempfile::tempdir().unwrap();
    let file = |name: &str, trace: &str| {
        let path = here.path().join(trace);
        std::fs::write(&path, &simulated(name).traces[trace]).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let before = file("profile", "profile.etl");
    let after = file("windows-32", "windows-32.etl");
    let counts = |name: &str| expected(&simulated(name));
    let (old, new) = (counts("profile"), counts("windows-32"));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let report = analyze(&["--compare", &before, &after]);
    let rows = report["rows"].as_array().unwrap();
    assert!(old.len() > 5 && new.len() > 5 && rows.len() == names.len());
    let mut last = i64::MAX;
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let of = |counts: &Counts| counts.get(name).copied().unwrap_or_default();
        let (was, is) = (of(&old), of(&new));
        let number = |member: &str| row[member].as_i64().unwrap();
        assert_eq!(number("total_before_samples"), was.0 as i64, "{name}");
        assert_eq!(number("total_after_samples"), is.0 as i64, "{name}");
        assert_eq!(
            number("total_delta_samples"),
            is.0 as i64 - was.0 as i64,
            "{name}"
        );
        assert_eq!(
            number("self_delta_samples"),
            is.1 as i64 - was.1 as i64,
            "{name}"
        );
        // One sample in a millisecond.
        assert_eq!(
            row["self_before_us"].as_f64().unwrap(),
            was.1 as f64 * 1e3,
            "{name}"
        );
        assert!(number("self_delta_samples") <= last, "{name}");
        last = number("self_delta_samples");
    }
    // Scaled, both have the same sum, and a trace has not changed since itself.
    let report = analyze(&[
        "--compare",
        &before,
        "--normalize",
        "--group-by",
        "process",
        &after,
    ]);
    let sum = |member: &str| -> f64 {
        report["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row[member].as_f64().unwrap())
            .sum()
    };
    assert!((sum("total_before_us") - sum("total_after_us")).abs() < 10.0);
    let report = analyze(&["--compare", &before, "--group-by", "module", &before]);
    for row in report["rows"].as_array().unwrap() {
        assert_eq!(
            (&row["self_delta_us"], &row["total_delta_us"]),
            (&0.0.into(), &0.0.into())
        );
    }
}
