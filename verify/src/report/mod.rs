//! The report: what a person or a pipeline sees. Its JSON form is a versioned contract.

mod coverage;
mod github;
mod html;
mod junit;
mod machine;
mod process;
mod sarif;
#[cfg(feature = "schema")]
mod schema;
mod session;
mod text;
mod timeline;
mod top;
mod verdict;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use etl_analysis::ProcessIndex;
use etl_analysis::machine::{Process, UnresolvedCause};
use etl_format::FileTime;
use serde::{Serialize, Serializer};

use crate::checks::Facts;
use crate::finding::{Finding, Outcome, Severity};
use crate::rules::{EXAMPLE_FILE, RULES, Rule, Subject, more_buffers};
use timeline::Timeline;
use verdict::{LossSpans, ProcessVerdicts, Scope};

pub use coverage::{Coverage, CoverageRow};
pub use machine::MachineReport;
pub use process::{CauseReport, ClrReport, ProcessReport, RundownReport};
#[cfg(feature = "schema")]
pub use schema::report_schema;
pub use session::{EnabledReport, LossReport, SessionKind, SessionReport};
pub use text::Paint;
pub use top::{EventCount, ProviderCount};
pub use verdict::Verdict;

/// Version of the JSON report; raised when a key changes its meaning or is removed.
pub const SCHEMA_VERSION: u32 = 3;

/// How a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Text for people.
    Text,
    /// Text with colours, for terminals.
    ColorText,
    /// JSON, as `docs/json.md` describes it.
    Json,
    /// SARIF 2.1.0, for tools that collect the findings of many checkers.
    Sarif,
    /// JUnit XML: a test case for each rule, failed if it has findings above a note.
    Junit,
    /// Annotations of a GitHub workflow run, one for each finding.
    Github,
    /// One HTML page without external resources.
    Html,
}

/// An address that does not resolve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UnresolvedAddress {
    /// The process.
    pub pid: u32,
    /// File name of the process's image; empty if unknown.
    pub process: String,
    /// The address, hexadecimal.
    pub address: String,
    /// How often it was seen.
    pub count: u64,
    /// Why it does not resolve.
    pub cause: UnresolvedCause,
    /// The cause in words.
    pub message: &'static str,
}

/// The outcome of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RuleReport {
    /// Id of the rule.
    pub rule: &'static str,
    /// The worst outcome among its findings.
    pub outcome: Outcome,
    /// How many findings it has.
    pub findings: u64,
    /// Why it is undecided, or what is not in the trace if it is not applicable.
    pub because: Option<String>,
}

impl RuleReport {
    fn new(facts: &Facts, rule: &Rule, findings: &[Finding]) -> Self {
        let own = || findings.iter().filter(|f| f.rule == rule.id);
        let subject = Subject::of(rule.id);
        let (outcome, because) = match own().map(|f| f.outcome).min() {
            Some(Outcome::Undecided) => (Outcome::Undecided, own().find_map(|f| f.because.clone())),
            Some(outcome) => (outcome, None),
            None if subject.is_in(facts) => (Outcome::Holds, None),
            None => (Outcome::NotApplicable, Some(subject.absence().to_owned())),
        };
        RuleReport {
            rule: rule.id,
            outcome,
            findings: own().count() as u64,
            because,
        }
    }
}

/// The report on a trace: a verdict, findings, and what was found out about the trace. A trace
/// that could not be read has an [`error`](Report::error) and no times.
///
/// ```
/// use etl_verify::{Outcome, SessionKind, Verdict, Verifier};
///
/// # let trace = etl_schema::testing::snapshot::example();
/// // `trace` has the bytes of an `.etl` file.
/// let report = Verifier::new().verify(trace.as_slice(), "app.etl")?;
/// assert_eq!(report.verdict, Verdict::Complete);
/// assert_eq!(report.sessions[0].kind, SessionKind::Session);
/// assert_eq!(report.coverage.samples.frames, 0, "the trace has no samples");
///
/// let rule = report.rules.iter().find(|rule| rule.rule == "file.damaged");
/// assert_eq!(rule.map(|rule| rule.outcome), Some(Outcome::Holds));
/// # Ok::<(), etl_verify::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "The report.")
)]
#[non_exhaustive]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the trace; names of files that were checked together are joined by ` + `.
    pub file: String,
    /// Why the trace could not be read. Then nothing else is known of it, and the verdict is
    /// [`Verdict::CannotTell`].
    pub error: Option<String>,
    /// Whether the trace is complete.
    pub verdict: Verdict,
    /// Whether verdict, processes and findings are those of selected processes only.
    pub is_selection: bool,
    /// Whether the findings were compared with a baseline.
    #[serde(skip)]
    pub has_baseline: bool,
    /// The machine; null if no header event is known.
    pub machine: Option<MachineReport>,
    /// When the session started, as UTC.
    #[serde(serialize_with = "text_of_time")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub start_time: Option<FileTime>,
    /// The time of the last record, as UTC.
    #[serde(serialize_with = "text_of_time")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub end_time: Option<FileTime>,
    /// Microseconds from the start, or from the first record if that is earlier, to the last
    /// record.
    pub duration_us: i64,
    /// Records read.
    pub records: u64,
    /// The providers with the most events, at most [`MAX_TOP`](Report::MAX_TOP).
    pub top_providers: Vec<ProviderCount>,
    /// The most frequent events, at most [`MAX_TOP`](Report::MAX_TOP).
    pub top_events: Vec<EventCount>,
    /// Sessions, and spans of the kernel's and the CLR's events.
    pub sessions: Vec<SessionReport>,
    /// What was lost, and where.
    pub losses: Vec<LossReport>,
    /// What the sessions were enabled with: declared by the user, recorded in the trace, or the
    /// smallest enablement that explains the events.
    pub enabled: Vec<EnabledReport>,
    /// Processes with managed code or with addresses, by id.
    pub processes: Vec<ProcessReport>,
    /// What the addresses of the whole trace resolve to.
    pub coverage: Coverage,
    /// Addresses that do not resolve, the most frequent first, at most
    /// [`MAX_UNRESOLVED`](Report::MAX_UNRESOLVED).
    pub unresolved: Vec<UnresolvedAddress>,
    /// What breaks rules, the most severe first.
    pub findings: Vec<Finding>,
    /// Findings that the user's policy leaves out.
    pub findings_left_out: u64,
    /// The outcome of each rule, in the order of [`RULES`].
    pub rules: Vec<RuleReport>,
}

impl Report {
    /// How many unresolved addresses a report lists.
    pub const MAX_UNRESOLVED: usize = 10;

    /// How many providers, and how many events, a report lists by their counts.
    pub const MAX_TOP: usize = 10;

    /// The report on a trace, or on the processes with these indices only.
    pub(crate) fn new(
        facts: &Facts,
        findings: Vec<Finding>,
        findings_left_out: u64,
        selected: Option<&BTreeSet<ProcessIndex>>,
    ) -> Self {
        let timeline = Timeline::new(facts);
        let clock = facts.machine.clock();
        let shown = |(index, p): &(ProcessIndex, &Process)| match selected {
            Some(selected) => selected.contains(index),
            None => p.is_managed() || p.tallies().iter().any(|t| t.frames > 0),
        };
        let all = facts.machine.indexed_processes();
        let mut processes: Vec<_> = all
            .filter(shown)
            .map(|(index, p)| ProcessReport::new(facts, &timeline, p, index))
            .collect();
        processes.sort_by_key(|p| p.pid);
        let is_selected = |index| selected.is_none_or(|selected| selected.contains(&index));
        let unresolved = facts
            .machine
            .unresolved()
            .iter()
            .filter(|a| is_selected(a.process));
        let unresolved = unresolved.take(Self::MAX_UNRESOLVED).filter_map(|address| {
            let process = facts.machine.process(address.process)?;
            Some(UnresolvedAddress {
                pid: process.pid().get(),
                process: process.name().to_owned(),
                address: format!("{:#x}", address.address),
                count: address.count,
                cause: address.cause,
                message: address.cause.message(),
            })
        });
        let (top_providers, top_events) = top::counts(facts);
        let names: Vec<_> = facts
            .machine
            .files()
            .iter()
            .map(|f| f.name.as_str())
            .collect();
        let mut report = Report {
            schema_version: SCHEMA_VERSION,
            file: names.join(" + "),
            error: None,
            verdict: Verdict::default(),
            is_selection: selected.is_some(),
            has_baseline: false,
            machine: MachineReport::new(facts),
            start_time: Some(clock.time(timeline.start)),
            end_time: Some(clock.time(timeline.end)),
            duration_us: timeline.us(timeline.end),
            records: facts.machine.records(),
            top_providers,
            top_events,
            sessions: session::sessions(facts, &timeline),
            losses: facts
                .machine
                .losses()
                .iter()
                .map(|l| LossReport::new(facts, &timeline, l))
                .collect(),
            enabled: session::enabled(facts),
            coverage: Coverage::new(facts.machine.tallies()),
            unresolved: unresolved.collect(),
            processes,
            rules: rules(facts, &findings),
            findings,
            findings_left_out,
        };
        report.judge();
        report
    }

    /// When the session started, of a trace that could be read.
    pub(crate) fn start(&self) -> FileTime {
        self.start_time.unwrap_or_default()
    }

    /// The time of the last record, of a trace that could be read.
    pub(crate) fn end(&self) -> FileTime {
        self.end_time.unwrap_or_default()
    }

    /// Sets the verdicts, by the findings that count.
    pub(crate) fn judge(&mut self) {
        if self.error.is_some() {
            return;
        }
        let losses = LossSpans::new(&self.losses);
        let findings = self.findings.iter().filter(|finding| !finding.is_known);
        let verdicts = ProcessVerdicts::new(findings, &losses);
        self.processes
            .iter_mut()
            .for_each(|p| p.verdict = verdicts.of(p));
        let verdicts = self.verdicts().map(|(_, verdict)| verdict);
        self.verdict = verdicts.max().unwrap_or(Verdict::Complete);
    }

    /// The findings that count, with the verdict that each alone leads to. With selected processes,
    /// findings about the whole trace count if they may concern one of them.
    fn verdicts(&self) -> impl Iterator<Item = (&Finding, Verdict)> {
        let losses = LossSpans::new(&self.losses);
        let mut concerned: BTreeMap<Scope, bool> = BTreeMap::new();
        self.counted().map(move |finding| {
            let verdict = Verdict::of_one(finding);
            if !self.is_selection || finding.process.is_some() {
                return (finding, verdict);
            }
            let scope = Scope::of(finding.rule);
            let is_concerned = || self.processes.iter().any(|p| scope.may_concern(p, &losses));
            if *concerned.entry(scope).or_insert_with(is_concerned) {
                (finding, verdict.min(Verdict::CannotTell))
            } else {
                (finding, Verdict::Complete)
            }
        })
    }

    /// The findings that no baseline accepts.
    fn counted(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.is_known)
    }

    /// How many findings a baseline accepts.
    fn known(&self) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.is_known)
            .count()
    }

    /// The report on a file that could not be read, to stand beside those on others.
    #[must_use]
    pub fn unreadable(file: impl Into<String>, error: impl Into<String>) -> Self {
        Report {
            schema_version: SCHEMA_VERSION,
            file: file.into(),
            error: Some(error.into()),
            ..Report::default()
        }
    }

    /// The report in a format.
    ///
    /// ```
    /// use etl_verify::{Format, Verifier};
    ///
    /// # let trace = etl_schema::testing::snapshot::example();
    /// // `trace` has the bytes of an `.etl` file.
    /// let report = Verifier::new().verify(trace.as_slice(), "app.etl")?;
    /// assert!(report.render(Format::Junit).starts_with("<?xml"));
    /// assert!(report.render(Format::Html).contains("app.etl"));
    /// # Ok::<(), etl_verify::Error>(())
    /// ```
    #[must_use]
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Text => text::render(self, text::Paint::Plain),
            Format::ColorText => text::render(self, text::Paint::Ansi),
            Format::Json => json(self),
            Format::Github => github::render(self),
            format => render(std::slice::from_ref(self), format),
        }
    }

    /// The report as indented JSON that ends in a line feed.
    ///
    /// ```
    /// use etl_verify::{Report, SCHEMA_VERSION};
    ///
    /// let report = Report::unreadable("app.etl", "the file is empty");
    /// let json: serde_json::Value = serde_json::from_str(&report.json())?;
    /// assert_eq!(json["schema_version"], SCHEMA_VERSION);
    /// assert_eq!(json["error"], "the file is empty");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn json(&self) -> String {
        self.render(Format::Json)
    }

    /// The report as text for people.
    #[must_use]
    pub fn text(&self) -> String {
        self.render(Format::Text)
    }

    /// How many rules have an outcome.
    fn count(&self, outcome: Outcome) -> usize {
        self.rules
            .iter()
            .filter(|rule| rule.outcome == outcome)
            .count()
    }

    /// The processes that the report describes one by one: selected ones, or those with managed
    /// code.
    fn described(&self) -> impl Iterator<Item = &ProcessReport> {
        let is_selection = self.is_selection;
        self.processes
            .iter()
            .filter(move |p| p.is_managed() || is_selection)
    }

    /// The processes that a gate is about: those that are described, and those with a finding of
    /// their own above a note.
    fn judged(&self) -> Vec<&ProcessReport> {
        let findings = self
            .counted()
            .filter(|finding| finding.severity > Severity::Note);
        let own: BTreeSet<_> = findings.filter_map(|finding| finding.process).collect();
        let is_judged =
            |p: &&ProcessReport| p.is_managed() || self.is_selection || own.contains(&p.index);
        self.processes.iter().filter(is_judged).collect()
    }

    /// The command lines of a rule's remedy, for this trace.
    fn commands(&self, rule: &Rule) -> Vec<String> {
        // The rule's own line is for a session with CLR events.
        if rule.id == "file.events-lost" && self.processes.iter().all(|p| p.clr_events == 0) {
            let session = self
                .sessions
                .iter()
                .find(|s| s.kind == SessionKind::Session);
            if let Some(line) = session.and_then(|s| more_buffers(&s.name)) {
                return vec![line];
            }
        }
        // Of several files it is not known which one is meant.
        let plain = |c: char| c.is_ascii_alphanumeric() || "/\\._-:".contains(c);
        let file = Some(self.file.as_str()).filter(|f| !f.is_empty() && f.chars().all(plain));
        let file = file.unwrap_or(EXAMPLE_FILE);
        rule.commands
            .iter()
            .map(|line| line.replace(EXAMPLE_FILE, file))
            .collect()
    }
}

/// A time as text; none is the empty text.
fn text_of_time<S: Serializer>(time: &Option<FileTime>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => time.serialize(serializer),
        None => serializer.serialize_str(""),
    }
}

fn rules(facts: &Facts, findings: &[Finding]) -> Vec<RuleReport> {
    RULES
        .iter()
        .map(|rule| RuleReport::new(facts, rule, findings))
        .collect()
}

/// Several reports in one document: a JSON array, a SARIF run or a JUnit suite for each, one HTML
/// page; text begins with the verdicts.
///
/// ```
/// use etl_verify::{Format, Report, render};
///
/// let reports = ["a.etl", "b.etl"].map(|name| Report::unreadable(name, "not a trace"));
/// let text = render(&reports, Format::Text);
/// assert!(text.contains("a.etl") && text.contains("b.etl"));
/// ```
#[must_use]
pub fn render(reports: &[Report], format: Format) -> String {
    let text = |paint| {
        let each = reports.iter().map(|report| text::render(report, paint));
        let all: Vec<_> = std::iter::once(text::summary(reports, paint))
            .chain(each)
            .collect();
        all.join("\n")
    };
    match format {
        Format::Text => text(text::Paint::Plain),
        Format::ColorText => text(text::Paint::Ansi),
        Format::Json => json(&reports),
        Format::Sarif => sarif::render(reports),
        Format::Junit => junit::render(reports),
        Format::Github => reports.iter().map(github::render).collect(),
        Format::Html => html::render(reports),
    }
}

/// A line of text for each report: verdict, name, and the findings of the verdict.
#[must_use]
pub fn lines(reports: &[Report], paint: Paint) -> String {
    text::lines(reports, paint)
}

fn json(value: &impl Serialize) -> String {
    // Strings and numbers only: there is nothing that JSON cannot hold.
    let mut json = serde_json::to_string_pretty(value).unwrap_or_default();
    json.push('\n');
    json
}
