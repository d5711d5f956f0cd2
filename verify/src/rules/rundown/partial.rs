//! What the rundowns of a CLR leave out altogether: methods or modules, methods that were compiled
//! at run time or before, and code that came later.

use etl_analysis::machine::{Bracket, Clr, Counts, Process};
use etl_control::clr::{Code, Method, Rundown};
use etl_control::enable::CombinedEnablement;
use etl_format::Ticks;
use etl_schema::clr::Enumeration;
use etl_schema::providers::CLR_RUNDOWN;

use super::by_clr;
use super::jit_loads::{JitLoads, Loads, unnamed_precompiled};
use super::lifetime::ended;
use super::promised;
use crate::checks::Facts;
use crate::finding::Severity;
use crate::rules::commands::END_RUNDOWN;
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const PARTIAL: Rule = Rule {
    id: "rundown.partial",
    statement: "The rundowns of a CLR, taken together, list modules, and methods that were compiled \
                at run time as well as before; code that comes after a start rundown has load \
                events. What a declared enablement requests is there: each kind of rundown, and \
                precompiled methods.",
    severity: Severity::Error,
    source: "the CLR's rundown protocol",
    protocol: &["E2", "R2", "R3", "S5"],
    meaning: "The rundown had the Loader keyword without Jit and NGen, or the reverse: addresses \
              have no method, or methods have no module. Precompiled methods may be left out on \
              purpose, which is a note: PDBs of native images name them. If the enablement is \
              declared and requests them, they are missing, which is an error.",
    remedy: "Enable the rundown provider with EndRundown, NGen, Jit and Loader, which is 0x138:",
    commands: END_RUNDOWN,
    check: partial,
};

/// The rundowns of one CLR.
struct ClrRundowns<'a> {
    facts: &'a Facts,
    process: &'a Process,
    instance: u16,
    clr: &'a Clr,
    jit_loads: &'a JitLoads,
    brackets: Vec<&'a Bracket>,
}

/// The rundowns of one kind of a CLR.
struct RundownsOfKind<'a> {
    kind: Enumeration,
    brackets: Vec<&'a Bracket>,
}

impl RundownsOfKind<'_> {
    /// The largest number of items that a rundown lists. Repeated rundowns list the same items.
    fn max(&self, count: fn(&Bracket) -> u64) -> u64 {
        self.brackets.iter().map(|b| count(b)).max().unwrap_or(0)
    }
}

fn partial(check: &mut Check<'_>) {
    let facts = check.facts;
    let jit_loads = &check.rundowns.jit_loads;
    for process in facts.machine.processes() {
        for (instance, brackets) in by_clr(process) {
            let Some(clr) = process.clrs().get(&instance) else {
                continue;
            };
            let rundowns = ClrRundowns {
                facts,
                process,
                instance,
                clr,
                jit_loads,
                brackets,
            };
            if !rundowns.check_listed(check) {
                rundowns.check_later(check);
            }
        }
    }
    promised::missing_kinds(check);
}

impl ClrRundowns<'_> {
    /// The end rundowns, or the start rundowns if there is no end rundown.
    fn of_last_kind(&self) -> RundownsOfKind<'_> {
        let ends = self.of_kind(Enumeration::End);
        if ends.brackets.is_empty() {
            self.of_kind(Enumeration::Start)
        } else {
            ends
        }
    }

    fn of_kind(&self, kind: Enumeration) -> RundownsOfKind<'_> {
        let brackets = self.brackets.iter().copied();
        RundownsOfKind {
            kind,
            brackets: brackets.filter(|b| b.kind == kind).collect(),
        }
    }

    /// Checks what the rundowns list together. Returns whether more than precompiled methods is
    /// missing.
    fn check_listed(&self, check: &mut Check<'_>) -> bool {
        let rundowns = self.of_last_kind();
        let kind = rundowns.kind;
        let Some(first) = rundowns.brackets.iter().find(|b| b.is_whole()) else {
            return false;
        };
        let methods = rundowns.max(|b| b.listed.methods);
        let modules = rundowns.max(|b| b.listed.modules);
        let is_half = methods == 0 || modules == 0;
        if is_half && self.is_of_start(first) {
            return false;
        }
        let lacks_jitted = rundowns.max(Bracket::jitted) == 0 && self.may_lack_jitted(kind, first);
        let listed = match (methods, modules) {
            (0, 0) => "neither methods nor modules".to_owned(),
            (0, n) => format!("{} and no method", plural(n, "module", "modules")),
            (n, 0) => format!("{} and no module", plural(n, "method", "methods")),
            (n, _) if lacks_jitted => {
                format!(
                    "{}, none of them compiled at run time",
                    plural(n, "method", "methods")
                )
            }
            _ => {
                self.check_precompiled(check, kind, first);
                return false;
            }
        };
        let message = format!(
            "the {} rundown of CLR {} lists {listed}",
            kind.name(),
            self.instance
        );
        let found = check.report(message).about(self.process, first.opened);
        // A CLR compiles something in practice, although it need not.
        let is_certain = is_half || self.requests(kind, Code::Jitted) == Some(false);
        let severity = if is_certain {
            PARTIAL.severity
        } else {
            Severity::Warning
        };
        let found = found
            .severity(severity)
            .unless_lost(first.opened, first.closed);
        if self.process.outside().count > 0 {
            found.undecided("more is listed outside of it, after an Init or Complete was lost");
        }
        true
    }

    /// Whether a rundown belongs to the start of the CLR. A CLR that starts while a session
    /// requests rundowns enumerates at once: nothing exists yet, and what comes later has a load.
    fn is_of_start(&self, bracket: &Bracket) -> bool {
        let Some(opened) = bracket.opened else {
            return false;
        };
        if !self.is_soon_after_start(opened) {
            return false;
        }
        let mut modules = self.clr.modules().iter();
        let has_module = modules.any(|(_, module)| module.from.is_some_and(|from| from < opened));
        let is_empty = bracket.listed == Counts::default() && !has_module;
        is_empty || self.jit_loads.since_start(self.process, opened) == Loads::Whole
    }

    /// Whether the CLR started less than a second before a time.
    fn is_soon_after_start(&self, time: Ticks) -> bool {
        let Some(started) = self.clr.started() else {
            return false;
        };
        (0..self.jit_loads.second).contains(&time.saturating_since(started))
    }

    /// Whether the known enablements request methods of a kind in rundowns; `None` if none is
    /// known.
    fn requests(&self, kind: Enumeration, code: Code) -> Option<bool> {
        let admission = &self.facts.admission;
        admission.source(CLR_RUNDOWN)?;
        let mut enablements = admission.enablements(CLR_RUNDOWN);
        Some(enablements.any(|(_, with)| {
            let rundown = Rundown::from(CombinedEnablement::of([with]));
            rundown.method(kind, Method::new(code)).is_some()
        }))
    }

    /// Whether methods may have been compiled at run time that neither a rundown nor a load shows.
    fn may_lack_jitted(&self, kind: Enumeration, first: &Bracket) -> bool {
        if self.requests(kind, Code::Jitted) == Some(true) {
            return false;
        }
        let until = first.opened.unwrap_or(first.last);
        let with_jitted = self
            .brackets
            .iter()
            .filter(|b| b.is_whole() && b.jitted() > 0);
        if let Some(opened) = with_jitted.filter_map(|b| b.opened).max()
            && self.jit_loads.over(self.process, opened, until) == Loads::Whole
        {
            return false;
        }
        self.jit_loads.since_start(self.process, until) != Loads::Whole
    }

    /// Adds a finding if no event names precompiled methods.
    fn check_precompiled(&self, check: &mut Check<'_>, kind: Enumeration, first: &Bracket) {
        let modules = unnamed_precompiled(self.process, self.clr);
        if modules == 0 {
            return;
        }
        let is_promised = match self.requests(kind, Code::Precompiled) {
            Some(true) if self.facts.admission.is_closed(CLR_RUNDOWN) => true,
            Some(true) => return,
            Some(false) => false,
            // Without addresses there is nothing to name, and the rundown may be about other items.
            None if self.process.tallies().iter().all(|tally| tally.frames == 0) => return,
            None => false,
        };
        if is_promised {
            self.precompiled_missing(check, kind, first, modules);
            return;
        }
        let message = format!(
            "the {} rundown of CLR {} lists no precompiled method, and {} precompiled code, which \
             only symbols of their images name",
            kind.name(),
            self.instance,
            plural(modules as u64, "module has", "modules have"),
        );
        check
            .report(message)
            .about(self.process, first.opened)
            .severity(Severity::Note);
    }

    /// Adds a finding for precompiled methods that the declared enablement requests.
    fn precompiled_missing(
        &self,
        check: &mut Check<'_>,
        kind: Enumeration,
        first: &Bracket,
        modules: usize,
    ) {
        let message = format!(
            "the {} rundown of CLR {} lists no precompiled method, although the declared enablement \
             requests them (NGen, 0x20; R3), and {} precompiled code",
            kind.name(),
            self.instance,
            plural(modules as u64, "module has", "modules have"),
        );
        check
            .report(message)
            .about(self.process, first.opened)
            .unless_lost(first.opened, first.closed);
    }

    /// Whether code may be compiled after a rundown: it is a start rundown, or belongs to the start
    /// of the CLR.
    fn is_early(&self, bracket: &Bracket) -> bool {
        if bracket.kind == Enumeration::Start {
            return true;
        }
        match bracket.opened {
            Some(opened) => self.is_soon_after_start(opened),
            None => false,
        }
    }

    /// Adds a finding if code was compiled after the last rundown, and its loads are missing.
    fn check_later(&self, check: &mut Check<'_>) {
        if !self.brackets.iter().all(|b| self.is_early(b)) {
            return;
        }
        let Some(last) = self.brackets.iter().rfind(|b| b.is_whole()) else {
            return;
        };
        let Some(opened) = last.opened else { return };
        let until = ended(self.process).unwrap_or(self.jit_loads.last());
        let loads = self.jit_loads.over(self.process, opened, until);
        let what = match loads {
            Loads::Whole => return,
            Loads::Never => "are not logged by the runtime provider",
            Loads::Later(_) => "have load events only after a while",
            Loads::Interrupted(_) => "have no load events for a while",
            Loads::Unknown if self.jit_loads.seen.is_some() => return,
            Loads::Unknown => "have no load event",
        };
        let has_runtime_events = self.facts.machine.runtime_span().is_some();
        let severity = match loads {
            Loads::Never => PARTIAL.severity,
            Loads::Unknown if !has_runtime_events => Severity::Note,
            _ => Severity::Warning,
        };
        let which = if last.kind == Enumeration::Start {
            "only a start rundown"
        } else {
            "no rundown since it started"
        };
        let message = format!(
            "CLR {} has {which}, and methods that were compiled later {what}",
            self.instance
        );
        let found = check
            .report(message)
            .about(self.process, last.closed)
            .severity(severity);
        if loads == Loads::Unknown {
            found.undecided(
                "nothing may have been compiled, or the runtime provider had no Jit keyword (0x10)",
            );
        }
    }
}
