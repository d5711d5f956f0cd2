//! The report: what a person or a pipeline gets to see. Its JSON form is a versioned contract.

mod github;
mod html;
mod junit;
mod sarif;
mod session;
mod text;
mod words;

use serde::Serialize;

use etl_format::Clock;
use etl_format::constants::FILETIME_PER_SECOND;

use crate::facts::{Cause, Facts, Process, Span, Tally};
use crate::rules::Judgement;
use crate::rules::catalogue::Rule;

pub use session::{EnabledReport, LossReport, SessionReport};
pub(crate) use text::wrapped;

/// Version of the JSON report; raised when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Something is missing or odd; most of the trace can be used.
    Warning,
    /// The trace is not what its maker needed.
    Error,
}

impl Severity {
    /// The lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// The answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing is missing.
    Sound,
    /// Something is; see the findings.
    Broken,
    /// The trace holds nothing to judge.
    #[default]
    Undecided,
}

impl Verdict {
    /// The lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Sound => "sound",
            Verdict::Broken => "broken",
            Verdict::Undecided => "undecided",
        }
    }
}

/// What became of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It does not hold.
    Broken,
    /// It may hold or not: what was lost would decide it.
    Undecided,
    /// It holds, as far as the trace tells.
    Holds,
}

impl Answer {
    /// The lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Answer::Broken => "broken",
            Answer::Undecided => "undecided",
            Answer::Holds => "holds",
        }
    }
}

/// Something that a rule found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Id of the rule; never changes.
    pub rule: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// [`Answer::Broken`], or [`Answer::Undecided`].
    pub answer: Answer,
    /// What was found.
    pub message: String,
    /// What makes it undecided.
    pub because: Option<String>,
    /// The process, where it is about one.
    pub pid: Option<u32>,
    /// When, as UTC in ISO 8601, where it has a time.
    pub timestamp: Option<String>,
}

impl Finding {
    pub(crate) fn new(rule: &Rule, message: String) -> Self {
        let (rule, severity) = (rule.id, rule.severity);
        Finding {
            rule,
            severity,
            answer: Answer::Broken,
            message,
            because: None,
            pid: None,
            timestamp: None,
        }
    }

    /// The finding is about a process, and perhaps a moment.
    pub(crate) fn of(mut self, facts: &Facts, process: &Process, stamp: Option<i64>) -> Self {
        self.pid = Some(process.pid);
        self.at(facts, stamp)
    }

    /// The finding is about a moment.
    pub(crate) fn at(mut self, facts: &Facts, stamp: Option<i64>) -> Self {
        self.timestamp = stamp.map(|s| utc(&facts.clock, s));
        self
    }

    /// The finding cannot be decided, for a reason.
    pub(crate) fn undecided(mut self, because: impl Into<String>) -> Self {
        (self.answer, self.because) = (Answer::Undecided, Some(because.into()));
        self
    }

    /// The finding cannot be decided if something was lost in the span in which what it misses would
    /// have come.
    pub(crate) fn unless_lost(self, facts: &Facts, from: Option<i64>, to: Option<i64>) -> Self {
        match facts.lost_in(from, to) {
            Some(loss) => self.undecided(LossReport::new(facts, loss).to_string()),
            None => self,
        }
    }

    /// Whether it is not undecided.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.answer != Answer::Undecided
    }
}

/// A rundown's bracket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BracketReport {
    /// `start` or `end`.
    pub kind: &'static str,
    /// The CLR of the process.
    pub clr_instance: u16,
    /// Whether its Init is there.
    pub opened: bool,
    /// Whether its Complete is there.
    pub closed: bool,
    /// When it was opened, as UTC.
    pub opened_at: Option<String>,
    /// When it was closed, as UTC.
    pub closed_at: Option<String>,
    /// Where it lies on the timeline: microseconds since the report's start, of Init or the first thing
    /// known of it, and of the last.
    pub span_us: [i64; 2],
    /// What it lists.
    pub listed: Counts,
}

/// A CLR in a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClrReport {
    /// Its instance id.
    pub id: u16,
    /// Its version, where it told.
    pub version: Option<String>,
    /// `desktop` or `core`, where it told.
    pub sku: Option<String>,
}

/// A process that ran managed code, or that addresses were seen in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessReport {
    /// Its id.
    pub pid: u32,
    /// File name of its image; empty when the trace does not tell.
    pub name: String,
    /// Its CLRs.
    pub clr_instances: Vec<ClrReport>,
    /// When it started, as UTC, where that is inside the trace.
    pub started_at: Option<String>,
    /// When it ended, as UTC, where that is inside the trace.
    pub ended_at: Option<String>,
    /// Where its life lies on the timeline, in microseconds since the report's start.
    pub span_us: [i64; 2],
    /// Events of the CLR's two providers.
    pub clr_events: u64,
    /// Brackets of rundowns.
    pub brackets: Vec<BracketReport>,
    /// Distinct pieces of method code that the trace tells of.
    pub methods: u64,
    /// Distinct modules.
    pub modules: u64,
    /// Distinct assemblies.
    pub assemblies: u64,
    /// Distinct application domains.
    pub app_domains: u64,
    /// Events by which they became known.
    pub enumerated: Counts,
    /// Events of loads.
    pub loaded: Counts,
    /// Events of unloads.
    pub unloaded: Counts,
    /// What its addresses resolved to.
    pub coverage: Coverage,
    /// Why addresses did not resolve, and how many.
    pub causes: Vec<CauseReport>,
}

/// Why addresses did not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CauseReport {
    /// In words.
    pub cause: &'static str,
    /// How many.
    pub addresses: u64,
}

/// What became of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    /// Its id.
    pub id: &'static str,
    /// The gravest answer among its findings.
    pub answer: Answer,
    /// Its findings.
    pub findings: u64,
    /// What makes it undecided, if it is.
    pub because: Option<String>,
}

/// Numbers of events by what they are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Method code.
    pub methods: u64,
    /// Modules.
    pub modules: u64,
    /// Assemblies.
    pub assemblies: u64,
    /// Application domains.
    pub app_domains: u64,
}

/// What addresses of one origin resolved to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CoverageTable {
    /// Stacks; samples count as stacks of one address.
    pub stacks: u64,
    /// Addresses.
    pub frames: u64,
    /// In a managed method.
    pub managed: u64,
    /// Of these, in a method that an event names.
    pub named: u64,
    /// In a native image of the process or the kernel.
    pub image: u64,
    /// Of these, in an image whose PDB identity the trace gives.
    pub identified: u64,
    /// In neither.
    pub unresolved: u64,
}

impl From<Tally> for CoverageTable {
    fn from(t: Tally) -> Self {
        CoverageTable {
            stacks: t.stacks,
            frames: t.frames,
            managed: t.managed,
            named: t.named,
            image: t.image,
            identified: t.identified,
            unresolved: t.unresolved,
        }
    }
}

/// What addresses resolved to, by origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Stacks that the CLR logs after its events (event 82).
    pub clr_stacks: CoverageTable,
    /// Stacks in extended data items.
    pub extended_stacks: CoverageTable,
    /// Stacks that the kernel logs, those told by key included.
    pub kernel_stacks: CoverageTable,
    /// Sampled instruction pointers.
    pub samples: CoverageTable,
    /// Addresses at which exceptions were thrown.
    pub exceptions: CoverageTable,
    /// Addresses at which precompiled code is entered.
    pub entry_points: CoverageTable,
}

impl Coverage {
    fn new([clr, extended, kernel, samples, exceptions, entry_points]: [Tally; 6]) -> Self {
        Coverage {
            clr_stacks: clr.into(),
            extended_stacks: extended.into(),
            kernel_stacks: kernel.into(),
            samples: samples.into(),
            exceptions: exceptions.into(),
            entry_points: entry_points.into(),
        }
    }

    /// The tables with their names.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, CoverageTable); 6] {
        [
            ("CLR stacks", self.clr_stacks),
            ("extended stacks", self.extended_stacks),
            ("kernel stacks", self.kernel_stacks),
            ("samples", self.samples),
            ("exceptions", self.exceptions),
            ("entry points", self.entry_points),
        ]
    }
}

/// An address that resolved to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
            .map(|p| process(facts, &scale, p))
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
            verdict: verdict(&processes, &findings),
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
            rules: rules(&findings),
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

/// Stamps as places on the timeline.
pub(crate) struct Scale<'a> {
    clock: &'a Clock,
    /// Stamp of the start.
    start: i64,
    /// Stamp of the end.
    end: i64,
}

impl<'a> Scale<'a> {
    fn new(facts: &'a Facts) -> Self {
        let opened = facts.files.iter().flat_map(|f| &f.sessions).map(|s| s.from).min();
        let (first, last) =
            facts.span.unwrap_or((facts.clock.start_stamp, facts.clock.start_stamp));
        let start = opened.map_or(first, |o| o.min(first));
        Scale { clock: &facts.clock, start, end: last.max(start) }
    }

    /// Microseconds since the start, within the timeline.
    pub(crate) fn us(&self, stamp: i64) -> i64 {
        let from = self.clock.filetime(self.start);
        let at = self.clock.filetime(stamp.clamp(self.start, self.end));
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

/// What became of each rule.
fn rules(findings: &[Finding]) -> Vec<RuleReport> {
    crate::RULES
        .iter()
        .map(|rule| {
            let own: Vec<_> = findings.iter().filter(|f| f.rule == rule.id).collect();
            let answer = own.iter().map(|f| f.answer).min().unwrap_or(Answer::Holds);
            let because = own.iter().find_map(|f| f.because.clone());
            let because = because.filter(|_| answer == Answer::Undecided);
            RuleReport { id: rule.id, answer, findings: own.len() as u64, because }
        })
        .collect()
}

fn verdict(processes: &[ProcessReport], findings: &[Finding]) -> Verdict {
    let grave = |answer| findings.iter().any(|f| f.severity > Severity::Note && f.answer == answer);
    if grave(Answer::Broken) {
        Verdict::Broken
    } else if processes.is_empty() || grave(Answer::Undecided) {
        Verdict::Undecided
    } else {
        Verdict::Sound
    }
}

fn process(facts: &Facts, scale: &Scale<'_>, p: &Process) -> ProcessReport {
    let at = |stamp: Option<i64>| stamp.map(|s| utc(&facts.clock, s));
    let things = |of: fn(&crate::facts::Things) -> u64| {
        let sum = |pick: fn(&crate::facts::Clr) -> &crate::facts::Things| {
            p.clrs.values().map(|clr| of(pick(clr))).sum()
        };
        Counts {
            methods: 0,
            modules: sum(|c| &c.modules),
            assemblies: sum(|c| &c.assemblies),
            app_domains: sum(|c| &c.domains),
        }
    };
    let known = things(|t| t.len() as u64);
    ProcessReport {
        pid: p.pid,
        name: p.name.clone(),
        clr_instances: p
            .clrs
            .iter()
            .map(|(&id, clr)| ClrReport {
                id,
                version: clr.version.map(|v| v.map(|part| part.to_string()).join(".")),
                sku: clr.sku.map(|sku| match sku {
                    1 => "desktop".to_owned(),
                    2 => "core".to_owned(),
                    other => format!("{other:#x}"),
                }),
            })
            .collect(),
        started_at: at(p.started),
        ended_at: at(p.ended),
        span_us: scale.span(p.started, p.ended),
        clr_events: p.clr_events,
        brackets: p
            .brackets
            .iter()
            .map(|b| BracketReport {
                kind: b.kind.name(),
                clr_instance: b.instance,
                opened: b.opened.is_some(),
                closed: b.closed.is_some(),
                opened_at: at(b.opened),
                closed_at: at(b.closed),
                span_us: scale.span(b.opened.or(b.closed), Some(b.last)),
                listed: Counts {
                    methods: b.listed.methods,
                    modules: b.listed.modules,
                    assemblies: b.listed.assemblies,
                    app_domains: b.listed.domains,
                },
            })
            .collect(),
        methods: p.methods,
        modules: known.modules,
        assemblies: known.assemblies,
        app_domains: known.app_domains,
        enumerated: Counts { methods: p.methods_enumerated, ..things(|t| t.enumerated) },
        loaded: Counts { methods: p.methods_loaded, ..things(|t| t.loaded) },
        unloaded: Counts { methods: p.methods_unloaded, ..things(|t| t.unloaded) },
        coverage: Coverage::new(p.tallies),
        causes: Cause::ALL
            .into_iter()
            .zip(p.causes)
            .filter(|(_, n)| *n > 0)
            .map(|(cause, addresses)| CauseReport { cause: cause.name(), addresses })
            .collect(),
    }
}

/// UTC of a raw stamp in ISO 8601, to 100 ns.
fn utc(clock: &Clock, stamp: i64) -> String {
    etl_format::clock::iso_utc(clock.filetime(stamp))
}
