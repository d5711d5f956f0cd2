//! What the rules found, and what becomes of a rule and of the whole trace by that.

use serde::Serialize;

use super::{LossReport, ProcessReport, Report, utc};
use crate::facts::{Facts, Process};
use crate::rules::catalogue::Rule;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The processor whose buffer shows it, where it can be shown.
    pub processor: Option<u16>,
    /// Where in the file: of the record, or of its buffer where that is compressed or shows it as a whole.
    pub offset: Option<u64>,
    /// The file that the offset is of.
    pub file: Option<String>,
    /// The moment, as the facts have it.
    #[serde(skip)]
    pub(crate) ticks: Option<i64>,
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
            processor: None,
            offset: None,
            file: None,
            ticks: None,
        }
    }

    /// The finding is about a process, and perhaps a moment.
    pub(crate) fn of(mut self, facts: &Facts, process: &Process, timestamp: Option<i64>) -> Self {
        self.pid = Some(process.pid);
        self.at(facts, timestamp)
    }

    /// The finding is about a moment.
    pub(crate) fn at(mut self, facts: &Facts, timestamp: Option<i64>) -> Self {
        self.timestamp = timestamp.map(|s| utc(&facts.clock, s));
        self.ticks = timestamp;
        self
    }

    /// The finding shows in a place of a file.
    pub(crate) fn in_file(mut self, file: &str, offset: u64, processor: Option<u16>) -> Self {
        (self.file, self.offset, self.processor) = (Some(file.to_owned()), Some(offset), processor);
        self
    }

    /// Where it shows, in words; of which file only if it is not this one.
    pub(super) fn place(&self, report: &Report) -> Option<String> {
        let offset = self.offset?;
        // Damage says so itself.
        if self.message.contains(&format!("offset {offset:#x}")) {
            return self.processor.map(|p| format!("processor {p}"));
        }
        let processor = self.processor.map_or(String::new(), |p| format!("processor {p}, "));
        let file = self.file.as_deref().filter(|file| *file != report.file);
        let file = file.map_or(String::new(), |file| format!(" of {file}"));
        Some(format!("{processor}offset {offset:#x}{file}"))
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

/// What became of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// What became of each rule.
pub(super) fn rules(findings: &[Finding]) -> Vec<RuleReport> {
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

/// The answer to all findings.
pub(super) fn verdict(processes: &[ProcessReport], findings: &[Finding]) -> Verdict {
    let grave = |answer| findings.iter().any(|f| f.severity > Severity::Note && f.answer == answer);
    if grave(Answer::Broken) {
        Verdict::Broken
    } else if processes.is_empty() || grave(Answer::Undecided) {
        Verdict::Undecided
    } else {
        Verdict::Sound
    }
}
