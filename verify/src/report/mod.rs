//! The report, and its formats for people and pipelines. The JSON format is versioned.

mod coverage;
mod github;
mod html;
mod junit;
mod machine;
mod markdown;
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
use etl_analysis::machine::UnresolvedCause;
use etl_format::FileTime;
use serde::{Serialize, Serializer};

use crate::checks::Facts;
use crate::finding::{Finding, Outcome, Severity};
use crate::rules::{EXAMPLE_FILE, RULES, Rule, RuleTexts, Subject, TraceOrigin, more_buffers};
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
    /// Annotations of a GitHub workflow run, at most ten of a kind.
    Github,
    /// Markdown, for the summary of a job: a table of the traces, their findings and remedies.
    Markdown,
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
    /// The number of times it was seen.
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
    /// The number of its findings.
    pub findings: u64,
    /// Why it is undecided or not applicable.
    pub because: Option<String>,
}

impl RuleReport {
    fn new(facts: &Facts, rule: &Rule, findings: &[Finding]) -> Self {
        let findings: Vec<_> = findings.iter().filter(|f| f.rule == rule.id).collect();
        let subject = Subject::of(rule.id);
        let mut absence = rule.absence(facts.origin());
        if absence.is_none() && !subject.is_in(facts) {
            absence = Some(subject.absence());
        }
        // `Broken` is less than `Undecided`.
        let outcome = match findings.iter().map(|f| f.outcome).min() {
            Some(outcome) => outcome,
            None if absence.is_none() => Outcome::Holds,
            None => Outcome::NotApplicable,
        };
        let because = match outcome {
            Outcome::Undecided => findings.iter().find_map(|f| f.because.clone()),
            Outcome::NotApplicable => absence.map(str::to_owned),
            Outcome::Broken | Outcome::Holds => None,
        };
        RuleReport {
            rule: rule.id,
            outcome,
            findings: findings.len() as u64,
            because,
        }
    }
}

/// The report on a trace: a verdict, findings, sessions, processes and coverage. A trace that could
/// not be read has an [`error`](Report::error) and no times.
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
    /// Why the trace could not be read. Then all other keys are empty, and the verdict is
    /// [`Verdict::CannotTell`].
    pub error: Option<String>,
    /// Whether the trace is complete.
    pub verdict: Verdict,
    /// Whether verdict, processes and findings are about selected processes only.
    pub is_selection: bool,
    /// Whether the findings were compared with a baseline.
    #[serde(skip)]
    pub has_baseline: bool,
    /// What recorded the trace.
    pub origin: TraceOrigin,
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
    /// How sessions enabled providers: declared by the user, recorded in the trace, or the smallest
    /// enablement that explains the events.
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
    /// The number of unresolved addresses that a report lists.
    pub const MAX_UNRESOLVED: usize = 10;

    /// The number of providers, and of events, that a report lists by their counts.
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
        let counts = top::EventCounts::new(facts);
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
            origin: facts.origin(),
            machine: MachineReport::new(facts),
            start_time: Some(clock.time(timeline.start)),
            end_time: Some(clock.time(timeline.end)),
            duration_us: timeline.us(timeline.end),
            records: facts.machine.records(),
            top_providers: counts.top_providers(facts),
            top_events: counts.top_events(facts),
            sessions: session::sessions(facts, &timeline),
            losses: facts
                .machine
                .losses()
                .iter()
                .map(|l| LossReport::new(facts, &timeline, l))
                .collect(),
            enabled: session::enabled(facts),
            coverage: Coverage::new(facts.machine.tallies()),
            unresolved: unresolved_addresses(facts, selected),
            processes: process_reports(facts, &timeline, selected),
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

    /// Sets the verdicts, by the findings that no baseline accepts.
    pub(crate) fn judge(&mut self) {
        if self.error.is_some() {
            return;
        }
        let losses = LossSpans::new(&self.losses);
        let findings = self.findings.iter().filter(|finding| !finding.is_known);
        let verdicts = ProcessVerdicts::new(findings, &losses);
        for process in &mut self.processes {
            process.verdict = verdicts.of(process);
        }
        let verdicts = self.verdicts().map(|(_, verdict)| verdict);
        self.verdict = verdicts.max().unwrap_or(Verdict::Complete);
    }

    /// The findings that no baseline accepts, with the verdict that each alone leads to. If
    /// processes are selected, a finding about the whole trace matters if it may concern one.
    fn verdicts(&self) -> impl Iterator<Item = (&Finding, Verdict)> {
        let losses = LossSpans::new(&self.losses);
        let mut concerned: BTreeMap<Scope, bool> = BTreeMap::new();
        self.counted().map(move |finding| {
            let verdict = Verdict::of_one(finding);
            if !self.is_selection || finding.process.is_some() {
                return (finding, verdict);
            }
            let scope = Scope::of(finding.rule);
            let is_concerned = *concerned
                .entry(scope)
                .or_insert_with(|| self.processes.iter().any(|p| scope.may_concern(p, &losses)));
            if is_concerned {
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

    /// The number of findings that a baseline accepts.
    fn known(&self) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.is_known)
            .count()
    }

    /// Leaves out findings that are less severe and do not decide the verdict.
    ///
    /// ```
    /// use etl_verify::{Severity, Verifier};
    ///
    /// # let trace = etl_schema::testing::snapshot::example();
    /// // `trace` has the bytes of an `.etl` file.
    /// let mut report = Verifier::new().verify(trace.as_slice(), "app.etl")?;
    /// report.leave_out_below(Severity::Error);
    /// assert!(report.findings.iter().all(|finding| finding.severity == Severity::Error));
    /// # Ok::<(), etl_verify::Error>(())
    /// ```
    pub fn leave_out_below(&mut self, least: Severity) {
        let mut is_kept = Vec::new();
        let mut verdicts = self.verdicts();
        for finding in &self.findings {
            // Known findings have no verdict.
            let decides = !finding.is_known
                && verdicts
                    .next()
                    .is_some_and(|(_, verdict)| !verdict.passes());
            is_kept.push(decides || finding.severity >= least);
        }
        drop(verdicts);
        let count = self.findings.len();
        let mut is_kept = is_kept.into_iter();
        self.findings.retain(|_| is_kept.next().unwrap_or(true));
        self.findings_left_out += (count - self.findings.len()) as u64;
    }

    /// The report on a file that could not be read, for a list with reports on other files.
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

    /// The number of rules with an outcome.
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

    /// The processes that are test cases: the described processes, and processes with a finding
    /// above a note.
    fn judged(&self) -> Vec<&ProcessReport> {
        let serious = self.counted().filter(|f| f.severity > Severity::Note);
        let with_findings: BTreeSet<_> = serious.filter_map(|f| f.process).collect();
        let is_judged = self.processes.iter().filter(|process| {
            process.is_managed() || self.is_selection || with_findings.contains(&process.index)
        });
        is_judged.collect()
    }

    /// The texts of a rule, for the origin of this trace.
    fn texts(&self, rule: &Rule) -> RuleTexts {
        rule.texts(self.origin)
    }

    /// The command lines of a rule's remedy, for this trace.
    fn commands(&self, rule: &Rule) -> Vec<String> {
        // The rule's own line is for a session with CLR events.
        if rule.id == "file.events-lost"
            && self.origin == TraceOrigin::Etw
            && self.processes.iter().all(|p| p.clr_events == 0)
        {
            let mut sessions = self.sessions.iter();
            let session = sessions.find(|s| s.kind == SessionKind::Session);
            if let Some(line) = session.and_then(|s| more_buffers(&s.name)) {
                return vec![line];
            }
        }
        let lines = self.texts(rule).commands.iter();
        if is_plain_path(&self.file) {
            lines
                .map(|line| line.replace(EXAMPLE_FILE, &self.file))
                .collect()
        } else {
            lines.map(|&line| line.to_owned()).collect()
        }
    }
}

/// Whether a command line can contain a path unquoted. The names of several files contain spaces.
fn is_plain_path(path: &str) -> bool {
    !path.is_empty()
        && path
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/\\._-:".contains(c))
}

/// The selected processes, or else the processes with managed code or with addresses, by id.
fn process_reports(
    facts: &Facts,
    timeline: &Timeline<'_>,
    selected: Option<&BTreeSet<ProcessIndex>>,
) -> Vec<ProcessReport> {
    let mut reports = Vec::new();
    for (index, process) in facts.machine.indexed_processes() {
        let is_shown = match selected {
            Some(selected) => selected.contains(&index),
            None => process.is_managed() || process.tallies().iter().any(|t| t.frames > 0),
        };
        if is_shown {
            reports.push(ProcessReport::new(facts, timeline, process, index));
        }
    }
    reports.sort_by_key(|report| report.pid);
    reports
}

/// The most frequent unresolved addresses, of all or of the selected processes.
fn unresolved_addresses(
    facts: &Facts,
    selected: Option<&BTreeSet<ProcessIndex>>,
) -> Vec<UnresolvedAddress> {
    let addresses = facts
        .machine
        .unresolved()
        .iter()
        .filter(|address| selected.is_none_or(|selected| selected.contains(&address.process)));
    let mut out = Vec::new();
    for address in addresses.take(Report::MAX_UNRESOLVED) {
        if let Some(process) = facts.machine.process(address.process) {
            out.push(UnresolvedAddress {
                pid: process.pid().get(),
                process: process.name().to_owned(),
                address: format!("{:#x}", address.address),
                count: address.count,
                cause: address.cause,
                message: address.cause.message(),
            });
        }
    }
    out
}

/// A time as text; the empty text if there is none.
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

/// Several reports in one document: a JSON array, a JUnit suite for each, one SARIF run, one HTML
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
    match format {
        Format::Text => text::render_all(reports, text::Paint::Plain),
        Format::ColorText => text::render_all(reports, text::Paint::Ansi),
        Format::Json => json(&reports),
        Format::Sarif => sarif::render(reports),
        Format::Junit => junit::render(reports),
        Format::Github => github::render(reports),
        Format::Markdown => markdown::render(reports),
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
