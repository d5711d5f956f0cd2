//! Compares the outputs of the corpus with `corpus.lock`, and the verdicts on its traces with
//! corpus/README.md.

use std::collections::BTreeSet;

use etl_test_support::root;
use etl_verify::{Report, Verdict, Verifier};

use crate::simulated::{Simulated, corpus, rules};

/// A line of `corpus.lock` for each output of these scenarios.
fn lock_lines(scenarios: &[Simulated]) -> Vec<String> {
    let line = |name: &str, (file, bytes): (&String, &Vec<u8>)| {
        format!(
            "{name}/{file} {:08x} {}",
            crc32fast::hash(bytes),
            bytes.len()
        )
    };
    let outputs = |s: &Simulated| -> Vec<String> {
        s.traces
            .iter()
            .chain(&s.texts)
            .map(|output| line(&s.name, output))
            .collect()
    };
    scenarios.iter().flat_map(outputs).collect()
}

#[test]
fn simulation_writes_the_bytes_that_corpus_lock_states() {
    let lock = std::fs::read_to_string(root().join("corpus/corpus.lock")).unwrap();
    assert!(lock.lines().is_sorted());
    let mut found: Vec<String> = [corpus(), rules()]
        .into_iter()
        .flat_map(lock_lines)
        .collect();
    found.sort();
    let hint = "if the change is intended, `etlkit corpus check --update` writes the lock again";
    for (found, locked) in found.iter().zip(lock.lines()) {
        assert_eq!(found, locked, "{hint}");
    }
    assert_eq!(found.len(), lock.lines().count(), "{hint}");
}

fn trace(scenario: &str, file: &str) -> &'static [u8] {
    let simulated = corpus().iter().find(|s| s.name == scenario).unwrap();
    &simulated.traces[file]
}

fn judge(name: &str, bytes: &[u8]) -> Report {
    Verifier::new()
        .verify(bytes, name)
        .unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The verdict on a file, and the rules of the findings.
fn verdict(name: &str, bytes: &[u8]) -> String {
    match Verifier::new().verify(bytes, name) {
        Err(e) => format!("unreadable: {e}"),
        Ok(report) => {
            let rules: BTreeSet<&str> = report.findings.iter().map(|f| f.rule).collect();
            let rules: Vec<&str> = rules.into_iter().collect();
            let list = if rules.is_empty() {
                String::new()
            } else {
                format!(" ({})", rules.join(", "))
            };
            format!("{}{list}", report.verdict.words())
        }
    }
}

/// The verdicts on the files of a scenario. Files with the same verdict stand together.
fn verdicts(simulated: &Simulated) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (file, bytes) in &simulated.traces {
        let (file, verdict) = (file.trim_end_matches(".etl"), verdict(file, bytes));
        match groups.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, files)) => files.push(file),
            None => groups.push((verdict, vec![file])),
        }
    }
    match &groups[..] {
        [(verdict, _)] => verdict.clone(),
        groups => {
            let text =
                |(verdict, files): &(String, Vec<&str>)| format!("{}: {verdict}", files.join(", "));
            groups.iter().map(text).collect::<Vec<_>>().join("; ")
        }
    }
}

/// The scripts state what is to be found; no verifier has written it.
#[test]
fn verifier_finds_what_the_scripts_expect() {
    let mut differences = String::new();
    for Simulated {
        name,
        scenario,
        traces,
        texts,
        ..
    } in corpus().iter().chain(rules())
    {
        for (file, bytes) in traces {
            let expected = scenario.expectation(file);
            let expected = expected.unwrap_or_else(|| panic!("{name} expects nothing of {file}"));
            let (verdict, found, code) = match Verifier::new().verify(&bytes[..], file) {
                Err(_) => ("unreadable", BTreeSet::new(), 2),
                Ok(report) => {
                    let found: BTreeSet<&str> = report.findings.iter().map(|f| f.rule).collect();
                    (
                        report.verdict.name(),
                        found,
                        u8::from(!report.verdict.passes()),
                    )
                }
            };
            let rules: BTreeSet<&str> = expected.rules.iter().map(String::as_str).collect();
            let stated = (expected.verdict.name(), rules, expected.verdict.exit_code());
            if (verdict, found.clone(), code) != stated {
                differences +=
                    &format!("{name}/{file}: {verdict} {found:?}, expected {stated:?}\n");
            }
            let beside = format!("{}.expected.json", file.trim_end_matches(".etl"));
            let text = texts
                .iter()
                .find(|(file, _)| **file == beside)
                .map(|(_, text)| text);
            let text: serde_json::Value =
                serde_json::from_slice(text.unwrap_or_else(|| panic!("{name}/{beside}"))).unwrap();
            assert_eq!(
                (&text["verdict"], &text["exit_code"]),
                (&stated.0.into(), &stated.2.into())
            );
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn verify_finds_nothing_in_the_merged_recipe() {
    let report = judge("merged", trace("xperf-recipe", "merged.etl"));
    assert_eq!(report.verdict, Verdict::Complete, "{}", report.text());
    assert!(report.findings.is_empty(), "{}", report.text());
    assert!(
        report.text().contains("rundown    end of CLR"),
        "{}",
        report.text()
    );
}

#[test]
fn verify_explains_missing_rundown_of_mask_0xb8() {
    let report = judge("merged.etl", trace("xperf-recipe-0xB8", "merged.etl"));
    assert_eq!(report.verdict, Verdict::Incomplete, "{}", report.text());
    insta::assert_snapshot!("recipe_0xB8", report.text());
    let text = report.text();
    for expected in ["rundown.none", "request an end rundown", "0x138"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn recipe_scripts_run_the_documented_command_lines() {
    let runtime =
        "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl";
    for (name, mask) in [("xperf-recipe", "{rundown}"), ("xperf-recipe-0xB8", "0xB8")] {
        let text = std::fs::read_to_string(root().join(format!("corpus/{name}.kdl"))).unwrap();
        let rundown = format!(
            "xperf -start clrRundown -on A669021C-C450-4609-A035-5AF59AF4DF18:{mask}:0x5 -f clr2.etl"
        );
        let lines = [
            runtime,
            &rundown,
            "xperf -stop clrRundown",
            "xperf -stop clr",
            "xperf -merge clr1.etl clr2.etl merged.etl",
        ];
        let mut rest = text.as_str();
        for line in lines {
            let quoted = format!("run \"{line}\"");
            let at = rest
                .find(&quoted)
                .unwrap_or_else(|| panic!("{name} lacks, or too early: {line}"));
            rest = &rest[at + quoted.len()..];
        }
    }
    let text = std::fs::read_to_string(root().join("corpus/xperf-recipe.kdl")).unwrap();
    assert!(text.contains("param \"rundown\" \"0x138\""));
}

/// The text of corpus/README.md: every scenario with its description, its content, and the verdicts
/// on it.
fn readme() -> String {
    let mut out = String::from(
        "# The corpus\n\n\
        Scenarios for `etlkit synth`: the documented recipe (`recipe`, and `xperf-recipe` with its command\n\
        lines), and a scenario for each kind of session, mode, provider, rule and fault.\n\n\
        | path | content |\n|---|---|\n\
        | `*.kdl` | the scenarios in the table below |\n\
        | `rules/` | for each rule of `etlverify`, a scenario that breaks only this rule, and some that break none |\n\
        | `parts/` | parts that several scripts include |\n\
        | `corpus.lock` | CRC-32 and size of every output |\n\n\
        `etlkit corpus build -o out` generates the traces; no trace is committed. `etlkit corpus check`\n\
        compares the traces with `corpus.lock`. [docs/scenario.md](../docs/scenario.md) describes the\n\
        language of the scripts.\n\n\
        A test writes this page from the scenarios and from the reports of `etlverify` on their traces\n\
        (`ETLKIT_WRITE_DOCS=1 cargo test -p etl-tests --test it corpus`). The last column contains the\n\
        verdict and, in parentheses, the rules with findings, including notes. If the traces of a scenario\n\
        have different verdicts, the column names the files.\n\n\
        | scenario | description | content | verdict of etlverify |\n|---|---|---|---|\n",
    );
    for simulated in corpus() {
        let Simulated { name, scenario, .. } = simulated;
        assert_eq!(&scenario.name, name, "a scenario has the name of its file");
        assert!(!scenario.about.is_empty(), "{name} has no description");
        let (about, covers) = (&scenario.about, scenario.covers().join(", "));
        out.push_str(&format!(
            "| [{name}]({name}.kdl) | {about} | {covers} | {} |\n",
            verdicts(simulated)
        ));
    }
    out
}

#[test]
fn corpus_page_lists_every_scenario() {
    let path = root().join("corpus/README.md");
    let found = readme();
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some_and(|v| v == "1") {
        std::fs::write(&path, &found).unwrap();
    }
    let text = std::fs::read_to_string(&path)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    assert!(
        text == found,
        "corpus/README.md is not up to date: run with ETLKIT_WRITE_DOCS=1"
    );
    // Each of these has a scenario.
    for covered in [
        "sequential file",
        "circular file",
        "preallocated file",
        "no per-processor buffers",
        "independent session",
        "unclosed session",
        "manifest provider",
        "TraceLogging provider",
        "EventSource",
        "classic provider",
        "kernel events",
        "fault: truncated",
        "fault: torn",
        "fault: flipped",
        "fault: lost-buffers",
        "fault: skew",
        "start rundown",
        "end rundown",
        "rundown provider without a rundown",
        "capture state",
        "merge",
        "CLR stacks",
        "kernel stacks",
        "stacks as extended data",
        "32-bit process",
        "desktop CLR",
        "two CLRs side by side",
        "filter by id",
        "filter by process",
        "clock: system time",
        "clock: cycles",
        "rundown.none",
    ] {
        assert!(text.contains(covered), "nothing covers {covered}");
    }
}
