//! The catalogue of rules against the corpus: each rule has a scenario that keeps it and one that breaks it
//! and no other, and the answers to every scenario of `corpus/` stand in a table that people have read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use etl_format::read::{FileOrder, Options};
use etl_synth::model::Scenario;
use etl_synth::scenario::{Settings as ScriptSettings, parse_with};
use etl_synth::truth::Lines;
use etl_synth::{Memory, simulate};
use etl_test_support::root;
use etl_verify::{Answer, Gates, Policy, RULES, Report, Settings, Truth, verify_together};

/// The rules that are broken by another plot, since no edit of a finished file breaks just them; what
/// their scenario does instead.
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
    let include = |file: &str| {
        std::fs::read_to_string(directory.join(file)).map_err(|e| format!("{file}: {e}"))
    };
    let settings = ScriptSettings { set: &[], seed: None, include: &include };
    let name = path.file_name().unwrap().to_string_lossy();
    parse_with(&name, &text, settings).unwrap_or_else(|e| panic!("{}: {:#?}", path.display(), e.0))
}

/// What the verifier says to a scenario's traces: those that were merged go by what became of them, several
/// are judged together; with what the truth tells of their sessions, and with gates. An error if a file is
/// no trace any more.
pub fn judge(path: &Path) -> Result<Report, String> {
    let (report, files) = judged(path)?;
    hold_places(&report, &files);
    Ok(report)
}

/// Where a finding is said to show there is what came at its time, or the buffer that it is about: looked up by reading
/// the file as it stands.
fn hold_places(report: &Report, files: &[(String, Vec<u8>)]) {
    for finding in report.findings.iter().filter(|f| f.offset.is_some()) {
        let (offset, name) = (finding.offset.unwrap(), finding.file.as_deref().unwrap());
        let bytes = &files.iter().find(|(file, _)| file == name).expect("a file of the report").1;
        assert!(offset <= bytes.len() as u64, "{finding:?}");
        let mut records = FileOrder::open(bytes.as_slice(), &Options::salvage()).unwrap();
        let clock = records.clock();
        let mut there = finding.rule == "file.damaged";
        while let Some(record) = records.next_record().unwrap() {
            let place = record.location();
            let own = place.buffer_offset + u64::from(place.in_buffer);
            let stands = [place.buffer_offset, own].contains(&offset);
            let time = etl_format::clock::iso_utc(clock.filetime(record.timestamp()));
            // Of files with different clocks the times are rounded once more.
            let files_differ = report.findings.iter().any(|f| f.rule == "merge.different-clocks");
            let timely = finding.timestamp.as_ref().is_none_or(|t| *t == time) || files_differ;
            there |= stands && timely && finding.processor.is_none_or(|p| p == place.processor);
        }
        assert!(there, "{finding:?}");
    }
    // Few have a time and no place: those whose moment is that of no record.
    for finding in report.findings.iter().filter(|f| f.offset.is_none()) {
        let known =
            ["merge.gap", "file.overwritten", "rundown.process-exited"].contains(&finding.rule);
        assert!(finding.timestamp.is_none() || known || report.findings.len() > 6, "{finding:?}");
    }
}

/// The report, and the files that were judged.
type Judged = (Report, Vec<(String, Vec<u8>)>);

fn judged(path: &Path) -> Result<Judged, String> {
    let (mut files, mut truth) = (Memory::default(), Lines::new(Vec::new()));
    simulate(&scenario(path), &mut files, &mut truth)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let truth = truth.into_inner();
    let merged: BTreeSet<String> = String::from_utf8_lossy(&truth)
        .lines()
        .filter(|line| line.starts_with("{\"kind\":\"merge\""))
        .flat_map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let of = line["of"].as_array().cloned().unwrap_or_default();
            of.into_iter().filter_map(|f| f.as_str().map(str::to_owned))
        })
        .collect();
    let truth = Truth::read(truth.as_slice()).unwrap();
    // What stands beside traces, as the texts of WPP messages do, is none.
    let is_left = |name: &String| !merged.contains(name) && name.ends_with(".etl");
    let files: Vec<_> = files.into_files().into_iter().filter(|(name, _)| is_left(name)).collect();
    let enabled = files.iter().flat_map(|(name, _)| truth.of(name).unwrap_or_default());
    let mut gates = Gates { coverage: Some(50.0), ..Gates::default() };
    if GATED.iter().any(|name| path.ends_with(format!("{name}.kdl"))) {
        gates.named = Some(60.0);
    }
    let policy = Policy { gates, ..Policy::default() };
    let settings = Settings { policy, enabled: enabled.collect(), ..Settings::default() };
    let sources = files.iter().map(|(name, bytes)| (bytes.as_slice(), name.as_str())).collect();
    let report = verify_together(sources, &settings, |_| {}).map_err(|(_, e)| e.to_string())?;
    Ok((report, files))
}

/// Rules with an answer other than "holds".
fn answers(report: &Report) -> Vec<(&'static str, Answer)> {
    let rules = report.rules.iter().map(|r| (r.id, r.answer));
    rules.filter(|(_, answer)| *answer != Answer::Holds).collect()
}

fn line(name: &str, report: &Result<Report, String>) -> String {
    let report = match report {
        Ok(report) => report,
        Err(reason) => return format!("{name}: cannot be judged: {reason}"),
    };
    let mut line = format!("{name}: {}", report.verdict.name());
    for (rule, answer) in answers(report) {
        let mark = if answer == Answer::Undecided { "?" } else { "" };
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
    let is = |report: &Result<Report, String>, expected: &[(&str, Answer)]| {
        report.as_ref().is_ok_and(|report| answers(report) == expected)
    };
    let mut wrong = Vec::new();
    for rule in RULES {
        let (broken, kept) = (rule.broken_by(), rule.kept_by());
        let Some(report) = reports.get(&*broken) else {
            wrong.push(format!("{}: no scenario breaks it", rule.id));
            continue;
        };
        if !is(report, &[(rule.id, Answer::Broken)]) {
            wrong.push(format!("{} {}", line(&broken, report), text(report)));
        }
        let Some(report) = reports.get(&*kept) else {
            wrong.push(format!("{}: there is no {kept} to keep it", rule.id));
            continue;
        };
        if !is(report, &[]) {
            wrong.push(format!("{} {}", line(&kept, report), text(report)));
        }
        // What breaks it is what keeps it and an edit of a file: the thing that the rule is about is there.
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
        RULES.iter().flat_map(|rule| [rule.broken_by(), rule.kept_by()]).collect();
    for stranger in scripts.keys().filter(|name| !known.contains(*name)) {
        wrong.push(format!("{stranger} belongs to no rule"));
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
