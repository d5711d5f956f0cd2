//! A case: a recording, what the user states about it, and the verdict that it deserves.

use std::collections::BTreeMap;

use etl_format::rewrite::merge::Merger;
use etl_synth::Script;
use etl_verify::{Baseline, Enabled, Finding, Outcome, Report, Severity, Truth, Verifier};

use crate::edit::{Rec, records, write};
use crate::simulated::{Simulated, simulate};

/// A change of the records of a trace.
pub type Edit = fn(&mut Vec<Rec>);

/// A recording with what is stated about it, and the verdict that it deserves.
#[derive(Clone)]
pub struct Case {
    pub name: String,
    /// The scenario.
    pub script: String,
    /// The file that is verified.
    pub file: &'static str,
    /// Files that are merged into it by this project. Empty if the scenario makes the file.
    pub merged: &'static [&'static str],
    /// A change of the file.
    pub edit: Option<Edit>,
    pub declared: Declared,
    /// A change of the file whose findings are accepted.
    pub accepted: Option<Edit>,
    pub expected: Expected,
}

impl Case {
    /// A recording `clr.etl` about which the user states nothing.
    pub fn new(name: String, script: String, expected: Expected) -> Self {
        Case {
            name,
            script,
            file: "clr.etl",
            merged: &[],
            edit: None,
            declared: Declared::default(),
            accepted: None,
            expected,
        }
    }
}

/// What the user states about the sessions.
#[derive(Clone, Default)]
pub struct Declared {
    /// The values of `--enable`, joined by `+`; empty without one.
    pub enabled: String,
    /// Whether the truth of the simulation is given (`--truth`).
    pub has_truth: bool,
    /// Whether there may be other sessions (`--other-sessions`).
    pub has_other_sessions: bool,
}

/// The verdict that a case deserves.
#[derive(Clone, Debug)]
pub enum Expected {
    /// No warning and no error: exit code 0.
    Sound,
    /// No warning and no error of this rule.
    Without(&'static str),
    /// A decided error of one of these rules: exit code 1.
    Error(&'static [&'static str]),
    /// A decided warning or error of one of these rules.
    Found(&'static [&'static str]),
    /// The rule is undecided, and no error: exit code 0.
    Undecided(&'static str),
    /// A finding that is not accepted.
    New,
    /// All warnings and errors are accepted.
    Known,
}

impl Expected {
    /// Whether something is wrong with the recording or with what is stated about it.
    pub fn is_broken(&self) -> bool {
        matches!(
            self,
            Expected::Error(_) | Expected::Found(_) | Expected::New
        )
    }
}

/// Cases of one cause of wrong verdicts.
pub struct Family {
    /// The cause.
    pub name: &'static str,
    pub cases: Vec<Case>,
}

/// Simulated recordings by their script.
#[derive(Default)]
pub struct Recordings(BTreeMap<String, Simulated>);

impl Recordings {
    fn of(&mut self, script: &str) -> &Simulated {
        self.0.entry(script.to_owned()).or_insert_with(|| {
            let scenario = Script::new("case", script)
                .parse()
                .unwrap_or_else(|error| panic!("{error}\n{script}"));
            simulate("case", script.to_owned(), scenario)
        })
    }

    /// Verifies a case. Returns what is wrong with the verdict, if anything is.
    pub fn check(&mut self, case: &Case) -> Result<(), String> {
        let simulated = self.of(&case.script);
        let mut report = verify(simulated, case, case.edit);
        if let Some(accepted) = case.accepted {
            let known = verify(simulated, case, Some(accepted));
            Baseline::of(&[known]).accept(&mut report);
        }
        let is_right = match &case.expected {
            Expected::Sound => !report.findings.iter().any(is_alarm) && report.verdict.passes(),
            Expected::Without(rule) => {
                let mut alarms = report.findings.iter().filter(|f| is_alarm(f));
                !alarms.any(|f| f.rule == *rule)
            }
            Expected::Error(rules) => {
                let mut errors = report
                    .findings
                    .iter()
                    .filter(|f| f.severity == Severity::Error);
                errors.any(|f| f.is_decided() && rules.contains(&f.rule))
                    && !report.verdict.passes()
            }
            Expected::Found(rules) => {
                let mut alarms = report.findings.iter().filter(|f| is_alarm(f));
                alarms.any(|f| f.is_decided() && rules.contains(&f.rule))
            }
            Expected::Undecided(rule) => {
                let mut rules = report.rules.iter().filter(|of| of.rule == *rule);
                rules.any(|of| of.outcome == Outcome::Undecided) && report.verdict.passes()
            }
            Expected::New => report.findings.iter().any(|f| is_alarm(f) && !f.is_known),
            Expected::Known => !report.findings.iter().any(|f| is_alarm(f) && !f.is_known),
        };
        if is_right {
            return Ok(());
        }
        let found: Vec<String> = report.findings.iter().map(describe).collect();
        let declared = &case.declared.enabled;
        Err(format!(
            "{} ({declared}): expected {:?}, found {found:#?}",
            case.name, case.expected
        ))
    }
}

fn verify(simulated: &Simulated, case: &Case, edit: Option<Edit>) -> Report {
    let bytes = if case.merged.is_empty() {
        simulated.traces[case.file].clone()
    } else {
        let inputs = case.merged.iter();
        let inputs = inputs.map(|file| simulated.traces[*file].as_slice());
        let merged = Merger::new().run(inputs.collect(), Vec::new());
        merged.unwrap().output
    };
    let bytes = match edit {
        Some(edit) => {
            let mut all = records(&bytes);
            edit(&mut all);
            write(&bytes, &all)
        }
        None => bytes,
    };
    let mut enabled = Vec::new();
    if !case.declared.enabled.is_empty() {
        enabled.extend(Enabled::parse(&case.declared.enabled).unwrap());
    }
    if case.declared.has_truth {
        let truth = Truth::read(simulated.texts["truth.jsonl"].as_slice()).unwrap();
        enabled.extend(truth.of(case.file).unwrap());
    }
    let mut verifier = Verifier::new().enabled(enabled);
    if case.declared.has_other_sessions {
        verifier = verifier.with_other_sessions();
    }
    verifier.verify(bytes.as_slice(), case.file).unwrap()
}

fn is_alarm(finding: &Finding) -> bool {
    finding.severity > Severity::Note
}

fn describe(finding: &Finding) -> String {
    let open = if finding.is_decided() { "" } else { "?" };
    format!(
        "{} {}{open}: {}",
        finding.severity.name(),
        finding.rule,
        finding.message
    )
}
