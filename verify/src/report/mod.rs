//! The report: what a person or a pipeline gets to see. Its JSON form is a versioned contract.

mod coverage;
mod finding;
mod github;
mod html;
mod junit;
mod process;
mod sarif;
#[cfg(feature = "schema")]
mod schema;
mod session;
mod text;
mod words;

use serde::Serialize;

use etl_format::Clock;
use etl_format::constants::FILETIME_PER_SECOND;

use crate::facts::{Facts, Span};
use crate::rules::Judgement;
use crate::rules::catalogue::Rule;

pub use coverage::{Coverage, CoverageTable};
pub use finding::{Answer, Finding, RuleReport, Severity, Verdict};
pub use process::{BracketReport, CauseReport, ClrReport, Counts, ProcessReport};
#[cfg(feature = "schema")]
pub use schema::report_schema;
pub use session::{EnabledReport, LossReport, SessionReport};
pub(crate) use text::wrapped;

/// Version of the JSON report; raised when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// An address that resolved to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Offender {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The address, hexadecimal.
    pub address: String,
    /// How often it was seen.
    pub count: u64,
    /// Why it did not resolve.
    pub cause: &'static str,
}

/// The report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the trace.
    pub file: String,
    /// The answer.
    pub verdict: Verdict,
    /// When the session started, as UTC.
    pub start_time: String,
    /// When the last record was, as UTC.
    pub end_time: String,
    /// Microseconds from the start, or from the first record if that is earlier, to the last record.
    pub duration_us: i64,
    /// Records read.
    pub records: u64,
    /// Sessions, and what else has a beginning and an end.
    pub sessions: Vec<SessionReport>,
    /// What was lost, and where.
    pub losses: Vec<LossReport>,
    /// What the sessions were enabled with: as told, as recorded, or the least that explains what was
    /// seen.
    pub enabled: Vec<EnabledReport>,
    /// Processes that ran managed code or that addresses were seen in, in the order of their ids.
    pub processes: Vec<ProcessReport>,
    /// What the addresses of the whole trace resolved to.
    pub coverage: Coverage,
    /// Addresses that resolved to nothing, the most frequent first; at most [`Report::OFFENDERS`].
    pub offenders: Vec<Offender>,
    /// What the rules found, the gravest first.
    pub findings: Vec<Finding>,
    /// Findings that the user's policy leaves out.
    pub findings_left_out: u64,
    /// What became of each rule, in the order of the catalogue.
    pub rules: Vec<RuleReport>,
}

impl Report {
    /// How many unresolved addresses a report lists.
    pub const OFFENDERS: usize = 10;

    pub(crate) fn new(facts: &Facts, judgement: Judgement) -> Self {
        let Judgement { findings, left_out } = judgement;
        let scale = Scale::new(facts);
        let mut processes: Vec<_> = facts
            .processes
            .iter()
            .filter(|p| p.is_managed() || p.tallies.iter().any(|t| t.frames > 0))
            .map(|p| process::process(facts, &scale, p))
            .collect();
        processes.sort_by_key(|p| p.pid);
        let worst = facts.offenders.iter().take(Self::OFFENDERS);
        let offenders = worst.filter_map(|o| {
            let process = facts.processes.get(o.process)?;
            let (pid, name) = (process.pid, process.name.clone());
            let (address, count) = (format!("{:#x}", o.address), o.count);
            Some(Offender { pid, name, address, count, cause: o.cause.name() })
        });
        let names: Vec<_> = facts.files.iter().map(|f| f.name.as_str()).collect();
        Report {
            schema_version: SCHEMA_VERSION,
            file: names.join(" + "),
            verdict: finding::verdict(&processes, &findings),
            start_time: utc(&facts.clock, scale.start),
            end_time: utc(&facts.clock, scale.end),
            duration_us: scale.us(scale.end),
            records: facts.records,
            sessions: session::sessions(facts, &scale),
            losses: facts.losses.iter().map(|loss| LossReport::new(facts, loss)).collect(),
            enabled: session::enabled(facts),
            coverage: Coverage::new(facts.tallies()),
            offenders: offenders.collect(),
            processes,
            rules: finding::rules(&findings),
            findings,
            findings_left_out: left_out,
        }
    }

    /// The report as JSON, indented, ending in a line feed.
    #[must_use]
    pub fn json(&self) -> String {
        // Strings and numbers only: there is nothing in a report that JSON cannot hold.
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }

    /// The findings as SARIF 2.1.0, for tools that gather such from many checkers.
    #[must_use]
    pub fn sarif(&self) -> String {
        sarif(std::slice::from_ref(self))
    }

    /// The findings as JUnit XML: one test case per rule, failed where there are findings graver than
    /// a note.
    #[must_use]
    pub fn junit(&self) -> String {
        junit(std::slice::from_ref(self))
    }

    /// The findings as annotations of a GitHub workflow run, one per line.
    #[must_use]
    pub fn github(&self) -> String {
        github::render(self)
    }

    /// The report as one page of HTML that needs nothing else.
    #[must_use]
    pub fn html(&self) -> String {
        html(std::slice::from_ref(self))
    }

    /// The report as text for people.
    #[must_use]
    pub fn text(&self) -> String {
        text::render(self, text::Paint::Plain)
    }

    /// The same with colours, for terminals.
    #[must_use]
    pub fn text_in_colour(&self) -> String {
        text::render(self, text::Paint::Ansi)
    }

    /// How many rules hold, are broken and are undecided.
    #[must_use]
    pub fn answers(&self) -> (usize, usize, usize) {
        let answered = |answer| self.rules.iter().filter(|r| r.answer == answer).count();
        (answered(Answer::Holds), answered(Answer::Broken), answered(Answer::Undecided))
    }

    /// A process for people: its id, and its name where the trace tells it.
    fn process_name(&self, pid: u32) -> String {
        let process = self.processes.iter().find(|p| p.pid == pid);
        match process.filter(|p| !p.name.is_empty()) {
            Some(process) => format!("pid {pid} {}", process.name),
            None => format!("pid {pid}"),
        }
    }

    /// The command lines of a rule's repair, for this trace.
    fn commands(&self, rule: &Rule) -> Vec<String> {
        // The rule's own line is that of a session for the CLR.
        if rule.id == "file.events-lost" && self.processes.iter().all(|p| p.clr_events == 0) {
            let sessions = self.sessions.iter().filter(|s| s.kind == "session");
            let line = sessions.into_iter().next().and_then(|s| Rule::more_buffers(&s.name));
            if let Some(line) = line {
                return vec![line];
            }
        }
        // Of files judged together it is not known here which one is meant.
        let plain = |c: char| c.is_ascii_alphanumeric() || "/\\._-:".contains(c);
        let file = Some(self.file.as_str()).filter(|f| !f.is_empty() && f.chars().all(plain));
        let file = file.unwrap_or(Rule::EXAMPLE_FILE);
        rule.commands().iter().map(|line| line.replace(Rule::EXAMPLE_FILE, file)).collect()
    }
}

/// The verdicts of several reports as text: how many of each, then one line for each trace.
#[must_use]
pub fn summary(reports: &[Report]) -> String {
    text::summary(reports, text::Paint::Plain)
}

/// The same with colours, for terminals.
#[must_use]
pub fn summary_in_colour(reports: &[Report]) -> String {
    text::summary(reports, text::Paint::Ansi)
}

/// The findings of several reports as one SARIF log, a run for each.
#[must_use]
pub fn sarif(reports: &[Report]) -> String {
    sarif::render(reports)
}

/// Several reports as one page of HTML that needs nothing else.
#[must_use]
pub fn html(reports: &[Report]) -> String {
    html::render(reports)
}

/// The findings of several reports as one JUnit document, a suite for each.
#[must_use]
pub fn junit(reports: &[Report]) -> String {
    junit::render(reports)
}

/// Timestamps as places on the timeline.
pub(crate) struct Scale<'a> {
    clock: &'a Clock,
    /// Timestamp of the start.
    start: i64,
    /// Timestamp of the end.
    end: i64,
}

impl<'a> Scale<'a> {
    fn new(facts: &'a Facts) -> Self {
        let opened = facts.files.iter().flat_map(|f| &f.sessions).map(|s| s.from).min();
        let (first, last) =
            facts.span.unwrap_or((facts.clock.start_timestamp, facts.clock.start_timestamp));
        let start = opened.map_or(first, |o| o.min(first));
        Scale { clock: &facts.clock, start, end: last.max(start) }
    }

    /// Microseconds since the start, within the timeline.
    pub(crate) fn us(&self, timestamp: i64) -> i64 {
        let from = self.clock.filetime(self.start);
        let at = self.clock.filetime(timestamp.clamp(self.start, self.end));
        at.saturating_sub(from) / (FILETIME_PER_SECOND / 1_000_000)
    }

    /// A span; what has no beginning or end goes to the edge.
    pub(crate) fn span(&self, from: Option<i64>, to: Option<i64>) -> [i64; 2] {
        [self.us(from.unwrap_or(self.start)), self.us(to.unwrap_or(self.end))]
    }

    pub(crate) fn of(&self, span: Span) -> Option<[i64; 2]> {
        span.map(|(from, to)| self.span(Some(from), Some(to)))
    }
}

/// UTC of a raw timestamp in ISO 8601, to 100 ns.
fn utc(clock: &Clock, timestamp: i64) -> String {
    etl_format::clock::iso_utc(clock.filetime(timestamp))
}
