//! Runs every fuzz target on its seeds, on inputs that failed once, and on fixed changes of the
//! seeds.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use etl_tests::fuzz::mutate::{self, Dice};
use etl_tests::fuzz::regressions::regressions;
use etl_tests::fuzz::seeds::Material;
use etl_tests::fuzz::{TARGETS, find};

/// Scenarios that between them have every kind of record, and are quickly simulated.
const SCENARIOS: [&str; 9] = [
    "classic",
    "clr-stacks",
    "eventsource",
    "extended-stacks",
    "manifest-provider",
    "tracelogging",
    "two-sessions",
    "windows-7",
    "wow64",
];

/// What one input may take, on a busy machine and without optimisation.
const PATIENCE: Duration = Duration::from_secs(20);

fn try_input(target: &etl_tests::fuzz::Target, name: &str, bytes: &[u8]) {
    let begin = Instant::now();
    (target.run)(bytes);
    let took = begin.elapsed();
    assert!(took < PATIENCE, "{} takes {took:?} for {name}", target.name);
}

#[test]
fn every_target_stands_its_seeds_and_changes_to_them() {
    let material = Material::load(Some(&SCENARIOS));
    for target in TARGETS {
        let seeds = material.seeds(target);
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for (name, bytes) in &seeds {
            try_input(target, name, bytes);
        }
        let rounds = if target.trace { 30 } else { 200 };
        for round in 0..rounds {
            let (name, seed) = &seeds[round as usize % seeds.len()];
            let mut bytes = seed.clone();
            if target.trace {
                mutate::trace(&mut bytes, target.longest, round * 2 + 1);
            } else {
                let mut dice = Dice::new(round + 1);
                for _ in 0..=dice.below(4) {
                    let at = dice.below(bytes.len());
                    match (bytes.get_mut(at), dice.below(3)) {
                        (Some(byte), 0) => *byte ^= 1 << dice.below(8),
                        (Some(byte), 1) => *byte = [0, 1, 0x7f, 0x80, 0xff][dice.below(5)],
                        _ => bytes.truncate(at),
                    }
                }
            }
            try_input(target, &format!("{name}, round {round}"), &bytes);
        }
    }
}

#[test]
fn every_scenario_gives_seeds() {
    let material = Material::load(None);
    assert!(material.scripts.len() > SCENARIOS.len(), "{}", material.scripts.len());
    for (scenario, _) in &material.scripts {
        // A file whose beginning is broken gives none, and no scenario breaks all of its files so.
        let begins = format!("{scenario}-");
        assert!(material.traces.iter().any(|(name, _)| name.starts_with(&begins)), "{scenario}");
    }
}

#[test]
fn inputs_that_once_failed_do_no_more() {
    let found = regressions().expect("hexadecimal text in files called TARGET-WHAT.hex");
    assert!(!found.is_empty());
    for input in found {
        try_input(find(&input.target), &input.name, &input.bytes);
    }
}

/// The page on fuzzing names each of them, and no other.
#[test]
fn inputs_that_once_failed_are_told_of() {
    let page =
        fs::read_to_string(etl_test_support::root().join("docs/fuzzing.md")).expect("the page");
    let (_, faults) = page.split_once("Faults that were found").expect("the table of faults");
    let rows = faults.lines().filter(|line| line.starts_with("| `"));
    let names: BTreeSet<&str> = rows
        .flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2))
        .collect();
    let found = regressions().expect("readable inputs");
    assert_eq!(names, found.iter().map(|input| input.name.as_str()).collect());
}

#[test]
fn nothing_at_all_and_one_byte_are_fine() {
    for target in TARGETS {
        (target.run)(&[]);
        for byte in [0, 1, 0x7f, 0xff] {
            (target.run)(&[byte]);
            (target.run)(&[byte; 300]);
        }
    }
}

/// The fuzzers' package has a program for every target, and none more.
#[test]
fn every_target_has_a_fuzzer() {
    let root = etl_test_support::root().join("fuzz");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
    let named: BTreeSet<&str> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""))
        .collect();
    let expected: BTreeSet<&str> = TARGETS.iter().map(|t| t.name).chain(["any"]).collect();
    assert_eq!(named, expected);
    for target in TARGETS {
        let path = root.join("fuzz_targets").join(format!("{}.rs", target.name));
        let text = fs::read_to_string(&path).expect("the program of a target");
        assert!(text.contains(&format!("target!(\"{}\")", target.name)), "{}", target.name);
    }
}
