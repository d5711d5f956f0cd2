//! The report: what a person or a pipeline gets to see. Its JSON form is a versioned contract.

mod github;
mod junit;
mod sarif;
mod text;

use serde::Serialize;

use etl_format::Clock;

use crate::facts::{Facts, Process, Tally};
use crate::rules::catalogue::Rule;

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

/// Something that a rule found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Id of the rule; never changes.
    pub rule: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// What was found.
    pub message: String,
    /// The process, where it is about one.
    pub pid: Option<u32>,
    /// When, as UTC in ISO 8601, where it has a time.
    pub timestamp: Option<String>,
}

impl Finding {
    pub(crate) fn new(rule: &Rule, message: String) -> Self {
        let (rule, severity) = (rule.id, rule.severity);
        Finding { rule, severity, message, pid: None, timestamp: None }
    }

    /// The finding is about a process, and perhaps a moment.
    pub(crate) fn of(mut self, facts: &Facts, process: &Process, stamp: Option<i64>) -> Self {
        self.pid = Some(process.pid);
        self.timestamp = stamp.map(|s| utc(&facts.clock, s));
        self
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
    /// In a native image of the process or the kernel.
    pub image: u64,
    /// In neither.
    pub unresolved: u64,
}

impl From<Tally> for CoverageTable {
    fn from(t: Tally) -> Self {
        CoverageTable {
            stacks: t.stacks,
            frames: t.frames,
            managed: t.managed,
            image: t.image,
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
}

impl Coverage {
    fn new([clr, extended, kernel, samples]: [Tally; 4]) -> Self {
        Coverage {
            clr_stacks: clr.into(),
            extended_stacks: extended.into(),
            kernel_stacks: kernel.into(),
            samples: samples.into(),
        }
    }

    /// The tables with their names.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, CoverageTable); 4] {
        [
            ("CLR stacks", self.clr_stacks),
            ("extended stacks", self.extended_stacks),
            ("kernel stacks", self.kernel_stacks),
            ("samples", self.samples),
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
    /// Records read.
    pub records: u64,
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
}

impl Report {
    /// How many unresolved addresses a report lists.
    pub const OFFENDERS: usize = 10;

    pub(crate) fn new(file: &str, facts: &Facts, findings: Vec<Finding>, left_out: u64) -> Self {
        let mut processes: Vec<_> = facts
            .processes
            .iter()
            .filter(|p| p.is_managed() || p.tallies.iter().any(|t| t.frames > 0))
            .map(|p| process(facts, p))
            .collect();
        processes.sort_by_key(|p| p.pid);
        let worst = facts.offenders.iter().take(Self::OFFENDERS);
        let offenders = worst.filter_map(|&(index, address, count)| {
            let process = facts.processes.get(index)?;
            let (pid, name) = (process.pid, process.name.clone());
            Some(Offender { pid, name, address: format!("{address:#x}"), count })
        });
        Report {
            schema_version: SCHEMA_VERSION,
            file: file.to_owned(),
            verdict: verdict(&processes, &findings),
            start_time: utc(&facts.clock, facts.header.stamp),
            records: facts.records,
            coverage: Coverage::new(facts.tallies()),
            offenders: offenders.collect(),
            processes,
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

    /// The report as text for people.
    #[must_use]
    pub fn text(&self) -> String {
        text::render(self)
    }
}

/// The findings of several reports as one SARIF log, a run for each.
#[must_use]
pub fn sarif(reports: &[Report]) -> String {
    sarif::render(reports)
}

/// The findings of several reports as one JUnit document, a suite for each.
#[must_use]
pub fn junit(reports: &[Report]) -> String {
    junit::render(reports)
}

fn verdict(processes: &[ProcessReport], findings: &[Finding]) -> Verdict {
    if findings.iter().any(|f| f.severity > Severity::Note) {
        Verdict::Broken
    } else if processes.is_empty() {
        Verdict::Undecided
    } else {
        Verdict::Sound
    }
}

fn process(facts: &Facts, p: &Process) -> ProcessReport {
    let at = |stamp: Option<i64>| stamp.map(|s| utc(&facts.clock, s));
    let counts = |of: fn(&crate::facts::Seen) -> u64| Counts {
        methods: of(&p.methods),
        modules: of(&p.modules),
        assemblies: of(&p.assemblies),
        app_domains: of(&p.app_domains),
    };
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
            })
            .collect(),
        methods: p.methods.known.len() as u64,
        modules: p.modules.known.len() as u64,
        assemblies: p.assemblies.known.len() as u64,
        app_domains: p.app_domains.known.len() as u64,
        enumerated: counts(|s| s.enumerated),
        loaded: counts(|s| s.loaded),
        unloaded: counts(|s| s.unloaded),
        coverage: Coverage::new(p.tallies),
    }
}

/// UTC of a raw stamp in ISO 8601, to 100 ns.
fn utc(clock: &Clock, stamp: i64) -> String {
    etl_format::clock::iso_utc(clock.filetime(stamp))
}
