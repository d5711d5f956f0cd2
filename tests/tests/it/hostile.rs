//! Runs every fuzz target on its seeds, on changed seeds, and on inputs that failed once.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use etl_tests::fuzz::mutate::{self, Dice};
use etl_tests::fuzz::regressions::regressions;
use etl_tests::fuzz::seeds::Material;
use etl_tests::fuzz::{TARGETS, find};

use crate::simulated::{Simulated, corpus};

/// Scenarios that together have every kind of record, and are simulated quickly.
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

/// Maximum time for an input, on a busy machine and without optimisation.
const MAX_TIME: Duration = Duration::from_secs(20);

fn try_input(target: &etl_tests::fuzz::Target, name: &str, bytes: &[u8]) {
    let begin = Instant::now();
    (target.run)(bytes);
    let took = begin.elapsed();
    assert!(took < MAX_TIME, "{} takes {took:?} for {name}", target.name);
}

#[test]
fn targets_accept_seeds_and_changed_seeds() {
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

/// Parts into which the hostile corpus is divided. `scripts/hostile.sh` runs all of them.
const PARTS: usize = 50;

/// The part to run: `ETLKIT_HOSTILE_PART`, or the first.
fn wanted_part() -> usize {
    match std::env::var("ETLKIT_HOSTILE_PART") {
        Ok(part) => part.parse().expect("a number"),
        Err(_) => 0,
    }
}

/// Traces of the corpus, each as it is and with changes, through every command that reads a trace.
#[test]
fn commands_accept_a_part_of_the_hostile_corpus() {
    const CHANGES: u32 = 3;
    let part = wanted_part();
    assert!(part < PARTS, "parts are numbered from 0 to {}", PARTS - 1);
    let material = Material::load(Some(&SCENARIOS));
    let mut runs = 0;
    let mut number = 0;
    for target in [find("commands"), find("printed")] {
        for (name, seed) in material.seeds(target) {
            let (_, trace) = seed.split_last().expect("a command after the trace");
            for change in 0..=CHANGES {
                let mut bytes = trace.to_vec();
                if change > 0 {
                    mutate::trace(&mut bytes, target.longest - 1, change * 2 + 1);
                }
                for way in 0..target.ways() {
                    number += 1;
                    if number % PARTS != part {
                        continue;
                    }
                    runs += 1;
                    let input = [&bytes[..], &[way]].concat();
                    try_input(
                        target,
                        &format!("{name}, change {change}, way {way}"),
                        &input,
                    );
                }
            }
        }
    }
    assert!(runs > 20, "{runs} runs");
}

#[test]
fn material_has_seeds_of_every_scenario() {
    let mut material = Material::default();
    for Simulated {
        name,
        script,
        traces,
        texts,
        ..
    } in corpus()
    {
        let files = traces
            .iter()
            .map(|(file, bytes)| (file.as_str(), bytes.as_slice()));
        material.add_scenario(name, script.clone(), files, &texts["truth.jsonl"]);
    }
    for (scenario, _) in &material.scripts {
        // Files with a damaged header event have no seeds, but each scenario has another file.
        let begins = format!("{scenario}-");
        assert!(
            material
                .traces
                .iter()
                .any(|(name, _)| name.starts_with(&begins)),
            "{scenario}"
        );
    }
}

#[test]
fn targets_accept_inputs_that_failed_once() {
    let found = regressions().expect("hexadecimal text in files called TARGET-WHAT.hex");
    assert!(!found.is_empty());
    for input in found {
        try_input(find(&input.target), &input.name, &input.bytes);
    }
}

#[test]
fn fuzzing_page_lists_every_input_that_failed_once() {
    let page =
        fs::read_to_string(etl_test_support::root().join("reports/fuzzing.md")).expect("the page");
    let (_, faults) = page
        .split_once("Faults that were found")
        .expect("the table of faults");
    let rows = faults.lines().filter(|line| line.starts_with("| `"));
    let names: BTreeSet<&str> = rows
        .flat_map(|row| {
            row.split('|')
                .nth(1)
                .unwrap_or_default()
                .split('`')
                .skip(1)
                .step_by(2)
        })
        .collect();
    let found = regressions().expect("readable inputs");
    assert_eq!(
        names,
        found.iter().map(|input| input.name.as_str()).collect()
    );
}

#[test]
fn targets_accept_empty_and_uniform_input() {
    for target in TARGETS {
        (target.run)(&[]);
        for byte in [0, 1, 0x7f, 0xff] {
            (target.run)(&[byte]);
            (target.run)(&[byte; 300]);
        }
    }
}
