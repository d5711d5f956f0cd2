//! The rules. Each is a value with its texts, followed by its check.
//!
//! `docs/rules.md` is generated from these values ([`page`]), and `etlverify --explain` prints
//! them.

mod activity;
mod commands;
mod event_pipe;
mod file;
mod filter;
mod gc;
mod kernel;
mod merge;
mod page;
mod payload;
mod rundown;
mod stacks;
mod subject;
mod symbols;

use etl_analysis::machine::{Clr, Counted, Process};
use etl_format::{FileHeader, Ticks};

use crate::checks::Facts;
use crate::finding::{Finding, Found, Severity};
use crate::gates::Gates;

use rundown::coverage::Rundowns;

pub(crate) use commands::{EXAMPLE_FILE, more_buffers};
pub use page::rules_page;
pub(crate) use subject::{Subject, loss_of, reports_loss};

/// The check of a rule, with all findings so far.
pub(crate) struct Check<'a> {
    pub facts: &'a Facts,
    pub gates: &'a Gates,
    rundowns: &'a Rundowns,
    rule: &'static Rule,
    findings: Vec<Finding>,
}

impl<'a> Check<'a> {
    /// Returns all findings, in the order of the rules. `between` is called after each rule.
    pub fn all<E>(
        facts: &'a Facts,
        gates: &'a Gates,
        between: impl Fn() -> Result<(), E>,
    ) -> Result<Vec<Finding>, E> {
        let mut findings = Vec::new();
        let rundowns = &Rundowns::of(facts);
        for rule in RULES {
            if rule.absence(facts.origin()).is_some() {
                continue;
            }
            let mut check = Check {
                facts,
                gates,
                rundowns,
                rule,
                findings,
            };
            (rule.check)(&mut check);
            findings = check.findings;
            between()?;
        }
        Ok(findings)
    }

    /// Adds a finding.
    fn report(&mut self, message: String) -> Found<'_> {
        let finding = Finding::new(self.rule.id, self.rule.severity, message);
        Found {
            facts: self.facts,
            finding: self.findings.push_mut(finding),
            missing: Subject::of(self.rule.id).event_origin(),
        }
    }

    /// Adds a finding for each process with a count other than zero. It is undecided if something
    /// was lost before the first counted event.
    fn each(&mut self, counted: fn(&Process) -> Counted, message: impl Fn(u64) -> String) {
        for process in self.facts.machine.processes() {
            let Counted { count, first } = counted(process);
            if count > 0 {
                self.report(message(count))
                    .about(process, first)
                    .amount(count)
                    .unless_lost(None, first);
            }
        }
    }
}

/// A rule: what holds in a good trace, and what to do if it does not.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Rule {
    /// `family.name`; never changes.
    pub id: &'static str,
    /// What holds in a good trace.
    pub statement: &'static str,
    /// The usual severity of its findings.
    pub severity: Severity,
    /// Where the rule comes from.
    pub source: &'static str,
    /// Ids of facts in `docs/protocol.md` that prove it.
    pub protocol: &'static [&'static str],
    /// What a broken rule means for the user.
    pub meaning: &'static str,
    /// What to do; ends in a colon if command lines follow.
    pub remedy: &'static str,
    /// Command lines that repair the trace or record a better one.
    pub commands: &'static [&'static str],
    /// Finds what breaks the rule.
    pub(crate) check: fn(&mut Check<'_>),
}

/// Every rule, by family.
pub const RULES: &[Rule] = &[
    file::content::DAMAGED,
    file::header::UNCLOSED,
    file::losses::EVENTS_LOST,
    file::losses::BUFFERS_LOST,
    file::losses::SEQUENCE_GAP,
    file::header::BUFFER_COUNT,
    file::content::DUPLICATE_SEQUENCE,
    file::placement::MISNUMBERED,
    file::placement::OVERLAPPING,
    file::content::OUT_OF_ORDER,
    file::header::OUTSIDE_SESSION,
    file::header::PROCESSOR_COUNT,
    file::header::POINTER_SIZE,
    file::losses::OVERWRITTEN,
    file::header::CLOCK,
    filter::not_enabled::NOT_ENABLED,
    filter::missing_loads::MISSING_LOADS,
    filter::silent_process::SILENT_PROCESS,
    rundown::coverage::NONE,
    rundown::coverage::MISSING,
    rundown::brackets::UNCLOSED,
    rundown::brackets::NO_INIT,
    rundown::brackets::OVERLAPPING,
    rundown::brackets::OUTSIDE_BRACKET,
    rundown::coverage::PROCESS_EXITED,
    rundown::brackets::MIXED,
    rundown::content::OUT_OF_ORDER,
    rundown::content::DUPLICATE_ITEMS,
    rundown::content::INCOMPLETE,
    rundown::partial::PARTIAL,
    rundown::brackets::WRONG_PROVIDER,
    rundown::brackets::ENDLESS,
    rundown::content::SEVERAL_THREADS,
    symbols::addresses::UNRESOLVED,
    symbols::addresses::COVERAGE,
    symbols::links::MODULE_UNKNOWN,
    symbols::links::ASSEMBLY_UNKNOWN,
    symbols::identity::NO_MODULE_PDB,
    symbols::addresses::UNNAMED,
    symbols::addresses::UNNAMED_PRECOMPILED,
    symbols::identity::NO_IMAGE_PDB,
    symbols::ranges::OVERLAPPING,
    symbols::ranges::IMPLAUSIBLE,
    symbols::ranges::LOADED_TWICE,
    symbols::ranges::UNLOAD_UNKNOWN,
    symbols::ranges::JIT_WITHOUT_LOAD,
    symbols::lifetime::NOT_UNLOADED,
    symbols::described::RUNTIME_UNKNOWN,
    symbols::described::NO_IL_MAP,
    symbols::addresses::WRONG_TIME,
    merge::DIFFERENT_CLOCKS,
    merge::DIFFERENT_MACHINES,
    merge::GAP,
    merge::ONE_SIDED,
    merge::NO_COMMON_PROCESS,
    merge::NO_IMAGE_IDS,
    kernel::lives::NO_START,
    kernel::lives::NOT_LISTED,
    kernel::lives::OUTSIDE_LIFE,
    kernel::samples::SAMPLES_MISSING,
    kernel::samples::SAMPLE_INTERVAL,
    stacks::UNDEFINED_KEY,
    stacks::UNUSED_DEFINITION,
    stacks::KERNEL_WITHOUT_EVENT,
    stacks::KERNEL_MISSING,
    stacks::WITHOUT_EVENT,
    stacks::MISSING,
    stacks::FRAME_COUNT,
    stacks::BEFORE_EVENT,
    gc::INCOMPLETE,
    activity::NO_STOP,
    activity::NO_START,
    activity::UNKNOWN_PARENT,
    payload::SHORT,
    payload::LONG,
    payload::WRONG_DESCRIPTOR,
    payload::UNKNOWN_VERSION,
];

impl Rule {
    /// The rule with this id.
    ///
    /// ```
    /// use etl_verify::{Rule, Severity};
    ///
    /// let rule = Rule::find("file.events-lost").ok_or("no such rule")?;
    /// assert_eq!(rule.family(), "file");
    /// assert!(rule.severity >= Severity::Warning);
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn find(id: &str) -> Option<&'static Rule> {
        RULES.iter().find(|rule| rule.id == id)
    }

    /// The part of the id before the dot.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.id
            .split_once('.')
            .map_or(self.id, |(family, _)| family)
    }

    /// Where the rule comes from, with the ids of the facts in `docs/protocol.md`.
    #[must_use]
    pub fn citation(&self) -> String {
        match self.protocol {
            [] => self.source.to_owned(),
            ids => format!("{}: {} in docs/protocol.md", self.source, ids.join(", ")),
        }
    }

    /// The texts for traces of an origin.
    ///
    /// ```
    /// use etl_verify::{Rule, TraceOrigin};
    ///
    /// let rule = Rule::find("rundown.none").ok_or("no such rule")?;
    /// let texts = rule.texts(TraceOrigin::EventPipe);
    /// assert!(texts.commands[0].starts_with("dotnet-trace collect"));
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn texts(&self, origin: TraceOrigin) -> RuleTexts {
        let texts = RuleTexts {
            statement: self.statement,
            meaning: self.meaning,
            remedy: self.remedy,
            commands: self.commands,
        };
        match origin {
            TraceOrigin::Etw => texts,
            TraceOrigin::EventPipe => event_pipe::texts(self.id, texts),
        }
    }

    /// Why the rule is not applicable to any trace of an origin; `None` if it is applicable.
    #[must_use]
    pub fn absence(&self, origin: TraceOrigin) -> Option<&'static str> {
        match origin {
            TraceOrigin::Etw => None,
            TraceOrigin::EventPipe => event_pipe::absence(self),
        }
    }
}

/// The texts of a rule for traces of one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleTexts {
    /// What holds in a good trace.
    pub statement: &'static str,
    /// What a broken rule means for the user.
    pub meaning: &'static str,
    /// What to do; ends in a colon if command lines follow.
    pub remedy: &'static str,
    /// Command lines that repair the trace or record a better one.
    pub commands: &'static [&'static str],
}

impl RuleTexts {
    /// What to do, followed by the command lines, each on a line of its own.
    #[must_use]
    pub fn remedy_lines(&self) -> String {
        [&[self.remedy], self.commands].concat().join("\n")
    }
}

etl_schema::named! {
    /// What recorded a trace. Some rules have other texts for EventPipe, and others are not
    /// applicable.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[derive(Default)]
    TraceOrigin {
        /// Event Tracing for Windows.
        #[default]
        Etw "etw",
        /// An EventPipe session of .NET (`dotnet-trace`, `dotnet-monitor`).
        EventPipe "event_pipe",
    }
}

/// When a CLR started. `None` if earlier events show that its event is the answer to a session that
/// requested its state, which is the same event.
fn recorded_start(process: &Process, clr: &Clr) -> Option<Ticks> {
    let first_event = process.clr_span()?.first;
    let started = clr.started()?;
    (first_event >= started).then_some(started)
}

/// `1 module is`, `2 modules are`.
fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl TraceOrigin {
    /// What recorded files with these headers. A recording with a file of ETW is a recording of
    /// ETW.
    pub(crate) fn of<'h>(headers: impl Iterator<Item = &'h FileHeader>) -> Self {
        let mut origin = TraceOrigin::Etw;
        for header in headers {
            if !header.is_event_pipe() {
                return TraceOrigin::Etw;
            }
            origin = TraceOrigin::EventPipe;
        }
        origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rules_have_unique_ids_and_whole_sentences() {
        let ids: BTreeSet<_> = RULES.iter().map(|r| r.id).collect();
        assert_eq!(ids.len(), RULES.len());
        for rule in RULES {
            assert!(
                rule.id.contains('.') && rule.statement.ends_with('.'),
                "{}",
                rule.id
            );
            assert_eq!(
                rule.remedy.ends_with(':'),
                !rule.commands.is_empty(),
                "{}",
                rule.id
            );
        }
        assert!(Rule::find("rundown.none").is_some());
        assert!(Rule::find("rundown").is_none());
    }

    #[test]
    fn rules_of_a_family_stand_together() {
        let mut families: Vec<_> = RULES.iter().map(Rule::family).collect();
        families.dedup();
        assert_eq!(
            families.len(),
            families.iter().collect::<BTreeSet<_>>().len()
        );
    }
}
