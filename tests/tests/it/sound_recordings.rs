//! Simulates sound recordings of many shapes: verify reports no warning and no error.
//!
//! Each script of `tests/cases/sound` is a shape; other seeds are other recordings of it.

use std::collections::{BTreeMap, BTreeSet};

use etl_synth::Script;
use etl_test_support::root;
use etl_verify::{Severity, Truth, Verifier};

use crate::simulated::{Simulated, simulate};

/// Seeds of each shape.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// Shapes whose files are recordings of their own.
const APART: &[&str] = &["detach"];

/// The shapes: names and scripts.
fn shapes() -> BTreeMap<String, String> {
    let folder = root().join("tests/cases/sound");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// The recording of a shape and a seed.
fn recording(name: &str, script: &str, seed: u64) -> Simulated {
    let script = script.replacen("seed=1", &format!("seed={seed}"), 1);
    let scenario = Script::new(name, &script)
        .parse()
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    simulate(name, script, scenario)
}

/// Rules with findings above a note, with and without what the sessions are known to have enabled.
fn alarms(recording: &Simulated) -> BTreeSet<&'static str> {
    let inputs: BTreeSet<&String> = recording
        .truth
        .merges
        .iter()
        .flat_map(|merge| &merge.inputs)
        .collect();
    let mut files: Vec<(&[u8], &str)> = recording
        .traces
        .iter()
        .filter(|(name, _)| !inputs.contains(name))
        .map(|(name, bytes)| (bytes.as_slice(), name.as_str()))
        .collect();
    let apart = APART.contains(&recording.name.as_str());
    let groups: Vec<Vec<_>> = match apart {
        true => files.drain(..).map(|file| vec![file]).collect(),
        false => vec![files],
    };
    let truth = Truth::read(recording.texts["truth.jsonl"].as_slice()).unwrap();
    let mut found = BTreeSet::new();
    for group in groups {
        let known = group
            .iter()
            .flat_map(|(_, name)| truth.of(name).unwrap_or_default());
        for enabled in [Vec::new(), known.collect()] {
            let report = Verifier::new()
                .enabled(enabled)
                .verify_together(group.clone())
                .unwrap();
            let alarms = report
                .findings
                .iter()
                .filter(|f| f.severity > Severity::Note);
            found.extend(alarms.map(|finding| finding.rule));
        }
    }
    found
}

#[test]
fn sound_recordings_of_many_shapes_have_no_warning() {
    let shapes = shapes();
    let (mut count, mut found) = (0, BTreeMap::new());
    for (name, script) in &shapes {
        for seed in SEEDS {
            for rule in alarms(&recording(name, script, seed)) {
                found.entry((name.as_str(), rule)).or_insert(seed);
            }
            count += 1;
        }
    }
    assert!(
        shapes.len() >= 12 && count >= 60,
        "{count} recordings of {} shapes",
        shapes.len()
    );
    assert!(found.is_empty(), "shape, rule and seed: {found:?}");
}
