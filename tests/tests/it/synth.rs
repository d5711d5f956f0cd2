//! Compares simulated traces with the reader, the tables and the verifier.

use std::path::PathBuf;

use etl_synth::Script;
use etl_synth::model::Scenario;
use etl_test_support::root;
use etl_verify::{Report, Verdict};

fn corpus() -> PathBuf {
    root().join("corpus")
}

/// A script of the corpus, with parameters.
fn script(name: &str, set: &[(&str, &str)]) -> Scenario {
    let text = std::fs::read_to_string(corpus().join(name)).unwrap();
    let include = |file: &str| std::fs::read_to_string(corpus().join(file));
    let script = Script::new(name, &text).parameters(set.iter().copied());
    script
        .include(&include)
        .parse()
        .unwrap_or_else(|e| panic!("{name}: {:#?}", e))
}

fn judge(file: &[u8]) -> Report {
    etl_verify::Verifier::new().verify(file, "trace").unwrap()
}

/// The traces of a scenario, without what describes them.
fn traces(scenario: &Scenario) -> Vec<(String, Vec<u8>)> {
    let mut files = etl_synth::Simulation::new(scenario)
        .run_in_memory()
        .unwrap();
    files.retain(|file| file.name.ends_with(".etl"));
    files
        .into_iter()
        .map(|file| (file.name, file.bytes))
        .collect()
}

#[test]
fn recipe_is_sound() {
    let files = traces(&script("recipe.kdl", &[]));
    let [(name, file)] = &files[..] else {
        panic!("{} files", files.len())
    };
    assert_eq!(name, "recipe.etl");
    let report = judge(file);
    assert_eq!(report.verdict, Verdict::Complete, "{}", report.text());
    assert!(report.findings.is_empty(), "{}", report.text());
    assert!(
        report.text().contains("rundown    end of CLR 9"),
        "{}",
        report.text()
    );
}

#[test]
fn verify_explains_missing_rundown_of_the_documented_mask() {
    let files = etl_synth::Simulation::new(&script("recipe.kdl", &[("rundown", "0xB8")]))
        .run_in_memory()
        .unwrap();
    let report = judge(&files[0].bytes);
    assert_eq!(report.verdict, Verdict::Incomplete);
    let text = report.text();
    assert!(
        text.contains("rundown.none") && text.contains(":0x138:0x5"),
        "{text}"
    );
}

#[test]
fn simulation_is_determined_by_script_and_seed() {
    let scenario = script("two-files.kdl", &[]);
    let once = traces(&scenario);
    assert_eq!(once, traces(&scenario));
    let names: Vec<_> = once.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["clr1.etl", "clr2.etl"]);
    let other = traces(&Scenario {
        seed: 99,
        ..scenario
    });
    assert_ne!(once[1], other[1]);
}

#[test]
fn threads_run_loaded_code_only() {
    // These record code, images and rundown, so every address must resolve.
    for (script_name, file) in [
        ("clr-stacks.kdl", "stacks.etl"),
        ("extended-stacks.kdl", "stacks.etl"),
        ("all-keywords.kdl", "all.etl"),
        ("gc-and-locks.kdl", "gc.etl"),
        ("profile.kdl", "profile.etl"),
        ("wow64.kdl", "wow64.etl"),
        ("windows-32.kdl", "windows-32.etl"),
        ("xperf-recipe.kdl", "merged.etl"),
        ("unload-domain.kdl", "unload.etl"),
    ] {
        for seed in [1, 2] {
            let scenario = Scenario {
                seed,
                ..script(script_name, &[])
            };
            let files = etl_synth::Simulation::new(&scenario)
                .run_in_memory()
                .unwrap();
            let bytes = &files
                .iter()
                .find(|simulated| simulated.name == file)
                .unwrap()
                .bytes;
            let text = judge(bytes).text();
            assert!(
                !text.contains("symbols."),
                "{script_name}, seed {seed}: {text}"
            );
        }
    }
}

#[test]
fn verify_finds_missing_image_identities_of_a_merge() {
    let files = traces(&script("kernel-session.kdl", &[]));
    let rules_found = |name: &str| -> Vec<String> {
        let (_, bytes) = files.iter().find(|(file, _)| file == name).unwrap();
        let findings = judge(bytes).findings;
        findings
            .iter()
            .map(|finding| finding.rule.to_string())
            .collect()
    };
    let plain = rules_found("plain.etl");
    assert!(
        plain.iter().any(|rule| rule == "merge.no-image-ids"),
        "{plain:?}"
    );
    let merged = rules_found("merged.etl");
    assert!(
        !merged.iter().any(|rule| rule.contains("image-id")),
        "{merged:?}"
    );
}
