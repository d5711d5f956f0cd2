//! `NAME.expected.json` for each trace: its content, its faults, and what a verifier has to find,
//! from the script and from what the simulation reports.

use std::collections::{BTreeMap, BTreeSet};

use etl_format::constants::LogFileMode;
use serde::Serialize;

use super::{Fact, Observer};
use crate::error::Result;
use crate::model::{Fault, Scenario};

/// Collects the content of each trace, and passes every fact on.
pub(crate) struct ExpectedFiles<'a> {
    scenario: &'a Scenario,
    observer: &'a mut dyn Observer,
    traces: BTreeMap<String, Trace>,
}

/// The content of a trace.
#[derive(Debug, Default, Serialize)]
struct Trace {
    sessions: Vec<Session>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    merged_from: Vec<String>,
    faults: BTreeSet<&'static str>,
    edited: bool,
}

/// A session that wrote into a trace.
#[derive(Debug, Serialize)]
struct Session {
    name: String,
    events_recorded: u64,
    events_lost: u64,
    buffers_lost: u64,
    closed: bool,
}

/// The content of a file `NAME.expected.json`.
#[derive(Debug, Serialize)]
struct Content<'a> {
    trace: &'a str,
    scenario: &'a str,
    about: &'a str,
    seed: u64,
    verdict: &'static str,
    exit_code: u8,
    rules: &'a [String],
    #[serde(flatten)]
    known: &'a Trace,
}

impl<'a> ExpectedFiles<'a> {
    pub fn new(scenario: &'a Scenario, observer: &'a mut dyn Observer) -> Self {
        ExpectedFiles {
            scenario,
            observer,
            traces: BTreeMap::new(),
        }
    }

    /// Names and texts of the files. Traces without an expectation have none.
    pub fn into_files(mut self) -> Vec<(String, String)> {
        let Scenario {
            name,
            about,
            seed,
            edits,
            ..
        } = self.scenario;
        for edit in edits {
            if let Some(trace) = self.traces.get_mut(&edit.file) {
                trace.edited = true;
            }
        }
        let mut files = Vec::new();
        for (trace, known) in &self.traces {
            let Some(expected) = self.scenario.expectation(trace) else {
                continue;
            };
            let content = Content {
                trace,
                scenario: name,
                about,
                seed: *seed,
                verdict: expected.verdict.name(),
                exit_code: expected.verdict.exit_code(),
                rules: &expected.rules,
                known,
            };
            // If there are traces "a" and "a.etl", the file of "a.etl" has its whole name.
            let stem = trace
                .strip_suffix(".etl")
                .filter(|stem| !self.traces.contains_key(*stem));
            let stem = stem.unwrap_or(trace);
            if let Ok(text) = serde_json::to_string_pretty(&content) {
                files.push((format!("{stem}.expected.json"), text + "\n"));
            }
        }
        files
    }

    fn trace(&mut self, file: &str) -> &mut Trace {
        self.traces.entry(file.to_owned()).or_default()
    }

    fn learn(&mut self, fact: &Fact<'_>) {
        match fact {
            Fact::SessionEnded(report) => {
                let files: BTreeSet<&String> =
                    report.file.iter().chain(&report.all_files).collect();
                for file in files {
                    let trace = self.trace(file);
                    trace
                        .faults
                        .extend(report.plan.faults.iter().map(|fault| fault.name()));
                    // A file that is not appended to is replaced.
                    if !report.plan.mode.has(LogFileMode::APPEND) {
                        trace.sessions.clear();
                    }
                    trace.sessions.push(Session {
                        name: report.name.clone(),
                        events_recorded: report.events_recorded,
                        events_lost: report.events_lost,
                        buffers_lost: report.buffers_lost,
                        closed: report.stopped.is_some()
                            && !report.plan.faults.contains(&Fault::NotClosed),
                    });
                }
            }
            Fact::Fault { fault, file, .. } => {
                self.trace(file).faults.insert(fault.name());
            }
            Fact::Merged { output, inputs } => {
                self.trace(output).merged_from = inputs.to_vec();
            }
            _ => {}
        }
    }
}

impl Observer for ExpectedFiles<'_> {
    fn observe(&mut self, fact: &Fact<'_>) -> Result<()> {
        self.learn(fact);
        self.observer.observe(fact)
    }
}
