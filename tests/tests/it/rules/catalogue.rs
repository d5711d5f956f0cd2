//! Runs every rule on the corpus: one scenario keeps it and one breaks it alone. A table lists the
//! outcome of each rule for each scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use etl_format::read::{Options, Records};
use etl_synth::model::Scenario;
use etl_synth::truth::JsonlWriter;
use etl_synth::{MemoryFileSystem, Script, Simulation};
use etl_test_support::root;
use etl_verify::{Outcome, Policy, RULES, Report, Rule, Truth, Verifier};

/// The rules that are broken by another plot, since no edit of a finished file breaks just them,
/// and what their scenario does.
const BY_PLOT: &[(&str, &str)] = &[
    ("file.overwritten", "the circular file is smaller"),
    ("rundown.none", "the documents' mask, which asks for no rundown"),
    ("rundown.process-exited", "the process ends earlier"),
    ("rundown.endless", "the rundown is asked for again and again"),
    ("symbols.no-module-pdb", "the module is built without a PDB"),
    ("symbols.unnamed", "sessions of level 4"),
    ("symbols.coverage", "sessions of level 4"),
    ("merge.different-clocks", "a session with another clock"),
    ("merge.gap", "the runtime session stops earlier"),
    ("merge.one-sided", "the first session asks the runtime for nothing"),
];

/// The scenario whose traces break a rule and no other.
fn broken_by(rule: &Rule) -> String {
    format!("rules/{}", rule.id)
}

/// The scenario whose traces keep a rule and hold what it is about.
fn kept_by(rule: &Rule) -> String {
    let known = KEPT_BY.iter().find(|(_, ids)| ids.contains(&rule.id));
    format!("rules/{}", known.map_or("sound", |(scenario, _)| scenario))
}

/// Rules that need more than `rules/sound` to be about something, by the scenario that has it.
const KEPT_BY: &[(&str, &[&str])] = &[
    (
        "small",
        &[
            "rundown.none",
            "rundown.missing",
            "rundown.process-exited",
            "rundown.mixed",
            "rundown.partial",
            "rundown.endless",
            "rundown.wrong-provider",
            "symbols.no-module-pdb",
        ],
    ),
    (
        "stacks",
        &[
            "symbols.unnamed-precompiled",
            "symbols.no-image-pdb",
            "stacks.undefined-key",
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
];

/// Scenarios that are judged with a gate on names.
const GATED: &[&str] = &["rules/tokens", "rules/symbols.coverage"];

/// Scripts of a directory by their name in the corpus.
pub fn scripts(directory: &str) -> BTreeMap<String, PathBuf> {
    let path = root().join("corpus").join(directory);
    let entries = std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path());
    let scripts = entries.filter(|p| p.extension().is_some_and(|e| e == "kdl"));
    let name = |p: &Path| p.file_stem().unwrap().to_string_lossy().into_owned();
    scripts
        .map(|p| (Path::new(directory).join(name(&p)).to_string_lossy().into_owned(), p))
        .collect()
}

fn scenario(path: &Path) -> Scenario {
    let text = std::fs::read_to_string(path).unwrap();
    let directory = path.parent().unwrap();
    let include = |file: &str| std::fs::read_to_string(directory.join(file));
    let name = path.file_name().unwrap().to_string_lossy();
    Script::new(&name, &text)
        .include(&include)
        .parse()
        .unwrap_or_else(|e| panic!("{}: {:#?}", path.display(), e))
}

/// The report on a scenario's traces: the merged file in place of its inputs, several files
/// together, with the enablements of the truth, and with gates. An error if a file cannot be read
/// as a trace.
pub fn judge(path: &Path) -> Result<Report, String> {
    let (report, files) = judged(path)?;
    check_locations(&report, &files);
    Ok(report)
}

/// Checks the location of each finding in the file: a record of its time, or the buffer that it is
/// about.
fn check_locations(report: &Report, files: &[(String, Vec<u8>)]) {
    for finding in report.findings.iter().filter(|f| f.offset.is_some()) {
        let (offset, name) = (finding.offset.unwrap(), finding.file.as_deref().unwrap());
        let bytes = &files.iter().find(|(file, _)| file == name).expect("a file of the report").1;
        assert!(offset <= bytes.len() as u64, "{finding:?}");
        let mut records = Records::stream(bytes.as_slice(), &Options::salvage()).unwrap();
        let clock = records.clock();
        let mut there = finding.rule == "file.damaged";
        while let Some(record) = records.next_record().unwrap() {
            let location = record.location();
            let own = location.buffer_offset + u64::from(location.in_buffer);
            let is_there = [location.buffer_offset, own].contains(&offset);
            let time = etl_format::clock::iso_utc(clock.filetime(record.timestamp()));
            // Of files with different clocks the times are rounded once more.
            let files_differ = report.findings.iter().any(|f| f.rule == "merge.different-clocks");
            let timely = finding.time.as_ref().is_none_or(|t| *t == time) || files_differ;
            there |=
                is_there && timely && finding.processor.is_none_or(|p| p == location.processor);
        }
        assert!(there, "{finding:?}");
    }
    // Few have a time and no location: those whose time is that of no record.
    for finding in report.findings.iter().filter(|f| f.offset.is_none()) {
        let known =
            ["merge.gap", "file.overwritten", "rundown.process-exited"].contains(&finding.rule);
        assert!(finding.time.is_none() || known || report.findings.len() > 6, "{finding:?}");
    }
}

/// The report, and the files that were judged.
type Judged = (Report, Vec<(String, Vec<u8>)>);

fn judged(path: &Path) -> Result<Judged, String> {
    let (mut files, mut truth) = (MemoryFileSystem::default(), JsonlWriter::new(Vec::new()));
    Simulation::new(&scenario(path))
        .observer(&mut truth)
        .run(&mut files)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let truth = truth.into_inner();
    let merged: BTreeSet<String> = String::from_utf8_lossy(&truth)
        .lines()
        .filter(|line| line.starts_with("{\"kind\":\"merge\""))
        .flat_map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let inputs = line["inputs"].as_array().cloned().unwrap_or_default();
            inputs.into_iter().filter_map(|f| f.as_str().map(str::to_owned))
        })
        .collect();
    let truth = Truth::read(truth.as_slice()).unwrap();
    // What stands beside traces, as the texts of WPP messages do, is none.
    let is_left = |name: &String| !merged.contains(name) && name.ends_with(".etl");
    let files: Vec<_> = files.into_files().into_iter().filter(|(name, _)| is_left(name)).collect();
    let enabled = files.iter().flat_map(|(name, _)| truth.of(name).unwrap_or_default());
    let mut policy = Policy::default();
    policy.gates.coverage = Some(50.0);
    if GATED.iter().any(|name| path.ends_with(format!("{name}.kdl"))) {
        policy.gates.named_methods = Some(60.0);
    }
    let sources = files.iter().map(|(name, bytes)| (bytes.as_slice(), name.as_str()));
    let report = Verifier::new().policy(policy).enabled(enabled).verify_together(sources);
    let report = report.map_err(|e| e.to_string())?;
    Ok((report, files))
}

/// Rules with an answer other than "holds".
fn answers(report: &Report) -> Vec<(&'static str, Outcome)> {
    let rules = report.rules.iter().map(|r| (r.rule, r.outcome));
    rules.filter(|(_, answer)| *answer != Outcome::Holds).collect()
}

fn line(name: &str, report: &Result<Report, String>) -> String {
    let report = match report {
        Ok(report) => report,
        Err(reason) => return format!("{name}: cannot be judged: {reason}"),
    };
    let mut line = format!("{name}: {}", report.verdict.name());
    for (rule, answer) in answers(report) {
        let mark = if answer == Outcome::Undecided { "?" } else { "" };
        write!(line, " {rule}{mark}").unwrap();
    }
    line
}

#[test]
fn every_rule_has_a_scenario_that_keeps_it_and_one_that_breaks_just_it() {
    let scripts = scripts("rules");
    let reports: BTreeMap<_, _> =
        scripts.iter().map(|(name, path)| (name.as_str(), judge(path))).collect();
    let text =
        |report: &Result<Report, String>| report.as_ref().map(Report::text).unwrap_or_default();
    let is = |report: &Result<Report, String>, expected: &[(&str, Outcome)]| {
        report.as_ref().is_ok_and(|report| answers(report) == expected)
    };
    let mut wrong = Vec::new();
    for rule in RULES {
        let (broken, kept) = (broken_by(rule), kept_by(rule));
        let Some(report) = reports.get(&*broken) else {
            wrong.push(format!("{}: no scenario breaks it", rule.id));
            continue;
        };
        if !is(report, &[(rule.id, Outcome::Broken)]) {
            wrong.push(format!("{} {}", line(&broken, report), text(report)));
        }
        let Some(report) = reports.get(&*kept) else {
            wrong.push(format!("{}: there is no {kept} to keep it", rule.id));
            continue;
        };
        if !is(report, &[]) {
            wrong.push(format!("{} {}", line(&kept, report), text(report)));
        }
        // The scenario that breaks it is the one that keeps it and an edit of a file.
        let by_plot = BY_PLOT.iter().any(|(id, _)| *id == rule.id);
        let (a, b) = (scenario(&scripts[&broken]), scenario(&scripts[&kept]));
        let edited = a.edits.len() > b.edits.len() && a.edits.starts_with(&b.edits);
        let plot = Scenario { edits: Vec::new(), about: String::new(), name: String::new(), ..a };
        let other = Scenario { edits: Vec::new(), about: String::new(), name: String::new(), ..b };
        if by_plot == (edited && plot == other) {
            wrong.push(format!(
                "{}: broken by {}",
                rule.id,
                if by_plot { "an edit" } else { "a plot" }
            ));
        }
    }
    let known: BTreeSet<String> =
        RULES.iter().flat_map(|rule| [broken_by(rule), kept_by(rule)]).collect();
    for unrelated in scripts.keys().filter(|name| !known.contains(*name)) {
        wrong.push(format!("{unrelated} belongs to no rule"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Rule by scenario, for the whole corpus.
#[test]
fn the_answers_to_every_scenario_are_known() {
    let mut table = String::new();
    for (name, path) in scripts("").into_iter().chain(scripts("rules")) {
        writeln!(table, "{}", line(&name, &judge(&path))).unwrap();
    }
    insta::assert_snapshot!("matrix", table);
}
