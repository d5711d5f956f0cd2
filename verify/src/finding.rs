//! A finding: what breaks a rule, where and when.

use std::collections::BTreeSet;

use etl_analysis::ProcessIndex;
use etl_analysis::loss::Loss;
use etl_analysis::machine::Process;
use etl_format::{Clock, FileTime, ProcessId, Ticks};
use serde::Serialize;

use crate::checks::Facts;
use crate::checks::losses::EventOrigin;

etl_schema::named! {
    /// How severe a finding is.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[derive(serde::Deserialize)]
    Severity {
        /// Worth knowing; nothing is wrong.
        Note "note",
        /// Something is missing or odd; most of the trace can be used.
        Warning "warning",
        /// The trace does not serve its purpose.
        Error "error",
    }
}

etl_schema::named! {
    /// The outcome of a rule.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    Outcome {
        /// The rule does not hold.
        Broken "broken",
        /// The trace does not show whether the rule holds: lost events would decide it.
        Undecided "undecided",
        /// The rule holds.
        Holds "holds",
        /// The trace has nothing that the rule checks.
        NotApplicable "not_applicable",
    }
}

impl Outcome {
    /// The outcome for people.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Outcome::NotApplicable => "not applicable",
            outcome => outcome.name(),
        }
    }
}

/// Something that breaks a rule.
///
/// ```
/// use etl_verify::{Rule, Severity, Verifier};
///
/// # let trace = etl_schema::testing::snapshot::example();
/// // `trace` has the bytes of an `.etl` file without its end.
/// let trace = &trace[..trace.len() - 100];
/// let report = Verifier::new().verify(trace, "app.etl")?;
/// for finding in &report.findings {
///     // Errors come first.
///     let when = finding.time.map(|time| time.to_string()).unwrap_or_default();
///     println!("{:?} {} {when} {}", finding.severity, finding.rule, finding.message);
/// }
/// let damage = report.findings.iter().find(|finding| finding.rule == "file.damaged");
/// let damage = damage.ok_or("the damage was not found")?;
/// assert!(damage.is_decided() && damage.offset.is_some());
///
/// // What to do is part of the rule.
/// let rule = Rule::find(damage.rule).ok_or("every finding has a rule")?;
/// assert!(!rule.remedy.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "Something that breaks a rule.")
)]
#[non_exhaustive]
pub struct Finding {
    /// Id of the rule; never changes.
    pub rule: &'static str,
    /// How severe it is.
    pub severity: Severity,
    /// [`Outcome::Broken`], or [`Outcome::Undecided`].
    pub outcome: Outcome,
    /// What was found.
    pub message: String,
    /// Why it is undecided.
    pub because: Option<String>,
    /// The process, if the finding is about one.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u32>"))]
    pub pid: Option<ProcessId>,
    /// The time as UTC in ISO 8601, if the finding has one.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub time: Option<FileTime>,
    /// The processor of the buffer that shows it, if there is such a buffer.
    pub processor: Option<u16>,
    /// File offset of the record that shows it, or of its buffer if the buffer is compressed or
    /// shows it as a whole.
    pub offset: Option<u64>,
    /// The file of the offset.
    pub file: Option<String>,
    /// Whether a baseline accepts it. Verdicts ignore known findings.
    pub is_known: bool,
    /// How severe it is without the user's policy.
    #[serde(skip)]
    pub(crate) own_severity: Severity,
    /// The index of the process: an id may be used again.
    #[serde(skip)]
    pub(crate) process: Option<ProcessIndex>,
    /// File name of the process's image; empty if there is no process or its name is unknown.
    #[serde(skip)]
    pub(crate) process_name: String,
    /// What the process is: its file name, or what is known of its CLR and its modules.
    #[serde(skip)]
    pub(crate) process_identity: String,
    /// The number of events, items or addresses that it is about; 0 if it has none.
    #[serde(skip)]
    pub(crate) amount: u64,
    /// The time in ticks of the recording's clock.
    #[serde(skip)]
    pub(crate) timestamp: Option<Ticks>,
}

impl Finding {
    /// The time in ticks of the recording's clock, if the finding has a time.
    #[must_use]
    pub fn timestamp(&self) -> Option<Ticks> {
        self.timestamp
    }

    pub(crate) fn new(rule: &'static str, severity: Severity, message: String) -> Self {
        Finding {
            rule,
            severity,
            outcome: Outcome::Broken,
            message,
            because: None,
            pid: None,
            time: None,
            processor: None,
            offset: None,
            file: None,
            is_known: false,
            own_severity: severity,
            process: None,
            process_name: String::new(),
            process_identity: String::new(),
            amount: 0,
            timestamp: None,
        }
    }

    /// Whether the trace shows that the rule is broken, and no loss leaves that open.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.outcome != Outcome::Undecided
    }

    /// Processor and offset in words. The file is named unless it is `report_file`.
    pub(crate) fn location(&self, report_file: &str) -> Option<String> {
        let offset = self.offset?;
        // Messages about damage name the offset themselves.
        if self.message.contains(&format!("offset {offset:#x}")) {
            return self.processor.map(|p| format!("processor {p}"));
        }
        let processor = self
            .processor
            .map_or(String::new(), |p| format!("processor {p}, "));
        let file = self.file.as_deref().filter(|file| *file != report_file);
        let file = file.map_or(String::new(), |file| format!(" of {file}"));
        Some(format!("{processor}offset {offset:#x}{file}"))
    }
}

/// A finding that was just added, to be completed.
pub(crate) struct Found<'f> {
    pub facts: &'f Facts,
    pub finding: &'f mut Finding,
    /// The events that are missing.
    pub missing: EventOrigin,
}

impl Found<'_> {
    /// The finding is about a process, and perhaps about a time.
    pub fn about(self, process: &Process, timestamp: Option<Ticks>) -> Self {
        self.finding.pid = Some(process.pid());
        self.finding.process = index_of(self.facts.machine.processes(), process);
        process.name().clone_into(&mut self.finding.process_name);
        self.finding.process_identity = identity(process);
        self.at(timestamp)
    }

    /// The finding is about so many events, items or addresses.
    pub fn amount(self, amount: u64) -> Self {
        self.finding.amount = amount;
        self
    }

    /// The finding has a time.
    pub fn at(self, timestamp: Option<Ticks>) -> Self {
        let clock = self.facts.machine.clock();
        self.finding.time = timestamp.map(|timestamp| clock.time(timestamp));
        self.finding.timestamp = timestamp;
        self
    }

    /// The finding has a location in a file.
    pub fn in_file(self, file: &str, offset: u64, processor: Option<u16>) -> Self {
        self.finding.file = Some(file.to_owned());
        self.finding.offset = Some(offset);
        self.finding.processor = processor;
        self
    }

    /// The finding has another severity than its rule.
    pub fn severity(self, severity: Severity) -> Self {
        self.finding.severity = severity;
        self.finding.own_severity = severity;
        self
    }

    /// The finding is undecided, if it was decided.
    pub fn undecided(self, because: impl Into<String>) -> Self {
        if self.finding.is_decided() {
            self.finding.outcome = Outcome::Undecided;
            self.finding.because = Some(because.into());
        }
        self
    }

    /// The finding is undecided if something was lost from `from` to `to`, when the missing events
    /// would have come.
    pub fn unless_lost(self, from: Option<Ticks>, to: Option<Ticks>) -> Self {
        match self.facts.first_loss(self.missing, from, to) {
            Some(loss) => {
                let because = loss_message(self.facts.machine.clock(), loss);
                self.undecided(because)
            }
            None => self,
        }
    }
}

/// What a process is, in another recording as well: its file name, or the runtime of its CLRs and
/// the first of its own modules by name.
fn identity(process: &Process) -> String {
    if !process.name().is_empty() {
        return process.name().to_owned();
    }
    let mut parts = BTreeSet::new();
    for clr in process.clrs().values() {
        let sku = match clr.sku() {
            Some(1) => "desktop",
            Some(2) => "core",
            _ => "clr",
        };
        let names = clr.module_facts().values().map(|module| &*module.name);
        let own = names.filter(|name| !is_of_framework(name));
        let module = own.min().unwrap_or_default();
        parts.insert(format!("{sku} {module}"));
    }
    Vec::from_iter(parts).join("; ")
}

/// Whether a module comes with the runtime: every process has some of these.
fn is_of_framework(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let prefixes = [
        "system.",
        "microsoft.",
        "mscorlib",
        "netstandard",
        "windowsbase",
    ];
    lower.is_empty() || prefixes.iter().any(|prefix| lower.starts_with(prefix))
}

/// What was lost, where and when.
pub(crate) fn loss_message(clock: &Clock, loss: &Loss) -> String {
    let what = loss.what.message();
    let processor = loss
        .processor
        .map_or(String::new(), |p| format!(" on processor {p}"));
    let from = loss.from.map(|from| clock.time(from));
    let to = loss.to.map(|to| clock.time(to));
    let when = match (from, to) {
        (Some(from), Some(to)) => format!(" between {from} and {to}"),
        (Some(from), None) => format!(" after {from}"),
        (None, Some(to)) => format!(" before {to}"),
        (None, None) => ", at an unknown time".to_owned(),
    };
    format!("{what}{processor}{when}")
}

/// The index of a process that is an element of a list, by its address.
fn index_of(processes: &[Process], process: &Process) -> Option<ProcessIndex> {
    let first = processes.as_ptr().addr();
    let bytes = std::ptr::from_ref(process).addr().checked_sub(first)?;
    let index = bytes / size_of::<Process>();
    Some(ProcessIndex::new(index)).filter(|index| index.get() < processes.len())
}
