//! The outcomes of all rules on the corpus: for each rule, one scenario keeps it and another breaks
//! it and no other rule.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::LazyLock;

use etl_format::read::{Options, Records};
use etl_synth::model::Scenario;
use etl_verify::{Gates, Outcome, Policy, RULES, Report, Rule, Truth, Verifier};

use crate::simulated::{Simulated, corpus, rules};

/// Rules that no edit of a finished file breaks alone, and what their scenario does instead.
const BY_PLOT: &[(&str, &str)] = &[
    ("file.overwritten", "the circular file is smaller"),
    (
        "filter.silent-process",
        "a native process loads the images of a CLR",
    ),
    (
        "rundown.none",
        "the documents' mask, which asks for no rundown",
    ),
    ("rundown.process-exited", "the process ends earlier"),
    (
        "rundown.endless",
        "the rundown is asked for again and again",
    ),
    ("symbols.no-module-pdb", "the module is built without a PDB"),
    ("symbols.unnamed", "sessions of level 4"),
    ("symbols.coverage", "sessions of level 4"),
    ("merge.different-clocks", "a session with another clock"),
    ("merge.gap", "the runtime session stops earlier"),
    (
        "merge.one-sided",
        "the first session asks the runtime for nothing",
    ),
];

/// The scenario whose traces break a rule and no other.
fn broken_by(rule: &Rule) -> String {
    format!("rules/{}", rule.id)
}

/// The scenario whose traces keep a rule and contain what it checks.
fn kept_by(rule: &Rule) -> String {
    let known = KEPT_BY.iter().find(|(_, ids)| ids.contains(&rule.id));
    format!("rules/{}", known.map_or("sound", |(scenario, _)| scenario))
}

/// Rules that `rules/sound` has nothing to check for, by the scenario that has.
const KEPT_BY: &[(&str, &[&str])] = &[
    (
        "small",
        &[
            "rundown.none",
            "rundown.missing",
            "rundown.process-exited",
            "rundown.partial",
            "rundown.endless",
            "rundown.wrong-provider",
            "symbols.no-module-pdb",
            "symbols.implausible",
        ],
    ),
    ("sampled", &["stacks.kernel-missing"]),
    (
        "stacks",
        &[
            "symbols.unnamed-precompiled",
            "symbols.no-image-pdb",
            "stacks.undefined-key",
            "stacks.unused-definition",
            "stacks.kernel-without-event",
            "stacks.without-event",
            "stacks.missing",
            "stacks.frame-count",
            "stacks.before-event",
            "merge.no-image-ids",
        ],
    ),
    (
        "two-files",
        &[
            "merge.different-clocks",
            "merge.different-machines",
            "merge.gap",
            "merge.one-sided",
            "merge.no-common-process",
        ],
    ),
    ("tokens", &["symbols.unnamed", "symbols.coverage"]),
    ("circular", &["file.overwritten"]),
    ("lives", &["kernel.no-start", "kernel.outside-life"]),
    ("collections", &["gc.incomplete", "symbols.runtime-unknown"]),
    (
        "life",
        &[
            "symbols.not-unloaded",
            "symbols.no-il-map",
            "filter.silent-process",
        ],
    ),
];

/// Scenarios that are verified with a gate on method names.
const GATED: &[&str] = &["rules/tokens", "rules/symbols.coverage"];

/// The report on a scenario's traces: all files that were not merged, verified together, with the
/// enablements of the truth, and with gates. An error if a file cannot be read as a trace.
pub type Judged = (&'static Simulated, Result<Report, String>);

/// The reports on all scenarios of `corpus/` and `corpus/rules/`.
pub fn judged() -> &'static [Judged] {
    static JUDGED: LazyLock<Vec<Judged>> = LazyLock::new(|| {
        corpus()
            .iter()
            .chain(rules())
            .map(|simulated| (simulated, judge(simulated)))
            .collect()
    });
    &JUDGED
}

/// Checks the location of each finding in the file: a record of its time, or the buffer that it is
/// about.
fn check_locations(report: &Report, files: &BTreeMap<String, Vec<u8>>) {
    for finding in report.findings.iter().filter(|f| f.offset.is_some()) {
        let (offset, name) = (finding.offset.unwrap(), finding.file.as_deref().unwrap());
        let bytes = &files[name];
        assert!(offset <= bytes.len() as u64, "{finding:?}");
        let mut records = Records::stream(bytes.as_slice(), &Options::salvage()).unwrap();
        let clock = records.clock();
        let mut there = finding.rule == "file.damaged";
        while let Some(record) = records.next_record().unwrap() {
            let location = record.location();
            let own = location.buffer_offset + u64::from(location.in_buffer);
            let is_there = [location.buffer_offset, own].contains(&offset);
            let time = clock.time(record.timestamp());
            // Times of files with different clocks are rounded once more.
            let files_differ = report
                .findings
                .iter()
                .any(|f| f.rule == "merge.different-clocks");
            let timely = finding.time.is_none_or(|t| t == time) || files_differ;
            there |=
                is_there && timely && finding.processor.is_none_or(|p| p == location.processor);
        }
        assert!(there, "{finding:?}");
    }
    // Findings whose time is not that of a record have no location.
    for finding in report.findings.iter().filter(|f| f.offset.is_none()) {
        let known =
            ["merge.gap", "file.overwritten", "rundown.process-exited"].contains(&finding.rule);
        assert!(
            finding.time.is_none() || known || report.findings.len() > 6,
            "{finding:?}"
        );
    }
}

fn judge(simulated: &Simulated) -> Result<Report, String> {
    let truth = Truth::read(simulated.texts["truth.jsonl"].as_slice()).unwrap();
    let merges = &simulated.truth.merges;
    let is_input = |name: &String| merges.iter().any(|merge| merge.inputs.contains(name));
    let files: Vec<_> = simulated
        .traces
        .iter()
        .filter(|(name, _)| !is_input(name))
        .collect();
    let enabled = files
        .iter()
        .flat_map(|(name, _)| truth.of(name).unwrap_or_default());
    let mut gates = Gates::default();
    gates.coverage = Some(50.0);
    if GATED.contains(&simulated.name.as_str()) {
        gates.named_methods = Some(60.0);
    }
    let policy = Policy::new().require(gates);
    let sources = files
        .iter()
        .map(|(name, bytes)| (bytes.as_slice(), name.as_str()));
    let report = Verifier::new()
        .policy(policy)
        .enabled(enabled)
        .verify_together(sources);
    let report = report.map_err(|e| e.to_string())?;
    check_locations(&report, &simulated.traces);
    Ok(report)
}

/// Rules that do not hold although the trace has what they look at.
fn answers(report: &Report) -> Vec<(&'static str, Outcome)> {
    let rules = report.rules.iter().map(|r| (r.rule, r.outcome));
    rules
        .filter(|(_, answer)| *answer < Outcome::Holds)
        .collect()
}

fn line(name: &str, report: &Result<Report, String>) -> String {
    let report = match report {
        Ok(report) => report,
        Err(reason) => return format!("{name}: cannot be judged: {reason}"),
    };
    let mut line = format!("{name}: {}", report.verdict.name());
    for (rule, answer) in answers(report) {
        let mark = if answer == Outcome::Undecided {
            "?"
        } else {
            ""
        };
        write!(line, " {rule}{mark}").unwrap();
    }
    line
}

#[test]
fn corpus_keeps_and_breaks_every_rule_alone() {
    let in_folder = judged()
        .iter()
        .filter(|(s, _)| s.name.starts_with("rules/"));
    let reports: BTreeMap<_, _> = in_folder.map(|(s, r)| (s.name.as_str(), (s, r))).collect();
    let text =
        |report: &Result<Report, String>| report.as_ref().map(Report::text).unwrap_or_default();
    let is = |report: &Result<Report, String>, expected: &[(&str, Outcome)]| {
        report
            .as_ref()
            .is_ok_and(|report| answers(report) == expected)
    };
    let mut wrong = Vec::new();
    for rule in RULES {
        let (broken, kept) = (broken_by(rule), kept_by(rule));
        let Some((edited, report)) = reports.get(&*broken) else {
            wrong.push(format!("{}: no scenario breaks it", rule.id));
            continue;
        };
        // Nothing in two traces of CLRs proves that the processes of one lived until the rundown of
        // the other.
        let outcome = match rule.id {
            "merge.no-common-process" => Outcome::Undecided,
            _ => Outcome::Broken,
        };
        if !is(report, &[(rule.id, outcome)]) {
            wrong.push(format!("{} {}", line(&broken, report), text(report)));
        }
        let Some((sound, report)) = reports.get(&*kept) else {
            wrong.push(format!("{}: there is no {kept} to keep it", rule.id));
            continue;
        };
        if !is(report, &[]) {
            wrong.push(format!("{} {}", line(&kept, report), text(report)));
        }
        // The scenario that breaks it is the one that keeps it and an edit of a file.
        let by_plot = BY_PLOT.iter().any(|(id, _)| *id == rule.id);
        let (a, b) = (edited.scenario.clone(), sound.scenario.clone());
        let edited = a.edits.len() > b.edits.len() && a.edits.starts_with(&b.edits);
        // What is expected of its trace differs, too.
        let plot = |scenario: Scenario| Scenario {
            edits: Vec::new(),
            expectations: Vec::new(),
            about: String::new(),
            name: String::new(),
            ..scenario
        };
        let (plot, other) = (plot(a), plot(b));
        if by_plot == (edited && plot == other) {
            wrong.push(format!(
                "{}: broken by {}",
                rule.id,
                if by_plot { "an edit" } else { "a plot" }
            ));
        }
    }
    let known: BTreeSet<String> = RULES
        .iter()
        .flat_map(|rule| [broken_by(rule), kept_by(rule)])
        .collect();
    for unrelated in reports.keys().filter(|name| !known.contains(**name)) {
        wrong.push(format!("{unrelated} belongs to no rule"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn corpus_outcomes_match_snapshot() {
    let mut table = String::new();
    for (simulated, report) in judged() {
        writeln!(table, "{}", line(&simulated.name, report)).unwrap();
    }
    insta::assert_snapshot!("matrix", table);
}
