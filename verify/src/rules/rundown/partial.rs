//! What the rundowns of a CLR leave out altogether: methods or modules, those that were compiled at
//! run time or before, and those that came later.

use etl_analysis::machine::{Bracket, Clr, Item, Process};
use etl_control::clr::{Code, Method, Rundown};
use etl_control::enable::CombinedEnablement;
use etl_format::Ticks;
use etl_schema::clr::Enumeration;
use etl_schema::providers::CLR_RUNDOWN;

use super::by_clr;
use super::jit_loads::{JitLoads, Loads, unnamed_precompiled};
use super::lifetime::ended;
use crate::checks::Facts;
use crate::finding::Severity;
use crate::rules::commands::END_RUNDOWN;
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const PARTIAL: Rule = Rule {
    id: "rundown.partial",
    statement: "The rundowns of a CLR, taken together, list modules, and methods that were compiled \
                at run time as well as before; code that comes after a start rundown has load \
                events.",
    severity: Severity::Error,
    source: "the CLR's rundown protocol",
    protocol: &["E2", "R2", "R3", "S5"],
    meaning: "The rundown had the Loader keyword without Jit and NGen, or the reverse: addresses \
              have no method, or methods have no module. Precompiled methods may be left out on \
              purpose, which is a note: PDBs of native images name them.",
    remedy: "Enable the rundown provider with EndRundown, NGen, Jit and Loader, which is 0x138:",
    commands: END_RUNDOWN,
    check: partial,
};

/// The rundowns of one CLR, and what is known of it.
struct Own<'a> {
    facts: &'a Facts,
    process: &'a Process,
    instance: u16,
    clr: &'a Clr,
    jit_loads: &'a JitLoads,
    brackets: Vec<&'a Bracket>,
}

fn partial(check: &mut Check<'_>) {
    let facts = check.facts;
    let jit_loads = &check.rundowns.jit_loads;
    for process in facts.machine.processes() {
        for (instance, brackets) in by_clr(process) {
            let Some(clr) = process.clrs().get(&instance) else {
                continue;
            };
            let own = Own {
                facts,
                process,
                instance,
                clr,
                jit_loads,
                brackets,
            };
            own.check(check);
        }
    }
}

impl Own<'_> {
    fn check(&self, check: &mut Check<'_>) {
        if !self.parts(check) {
            self.later(check);
        }
    }

    /// The rundowns of one kind, of the end if there are any.
    fn of_kind(&self) -> (Enumeration, Vec<&Bracket>) {
        let of = |kind| {
            self.brackets
                .iter()
                .copied()
                .filter(|b| b.kind == kind)
                .collect::<Vec<_>>()
        };
        match of(Enumeration::End) {
            none if none.is_empty() => (Enumeration::Start, of(Enumeration::Start)),
            ends => (Enumeration::End, ends),
        }
    }

    /// What is left out of all rundowns: returns whether that is more than precompiled methods.
    fn parts(&self, check: &mut Check<'_>) -> bool {
        let (kind, own) = self.of_kind();
        let Some(first) = own.iter().find(|b| b.is_whole()) else {
            return false;
        };
        // Rundowns that are repeated list the same items.
        let most = |count: fn(&Bracket) -> u64| own.iter().map(|b| count(b)).max().unwrap_or(0);
        let (methods, modules) = (most(|b| b.listed.methods), most(|b| b.listed.modules));
        let is_half = methods == 0 || modules == 0;
        let lacks_jitted = most(Bracket::jitted) == 0 && self.may_lack_jitted(kind, first);
        let what = match (methods, modules) {
            _ if is_half && self.is_of_start(first) => return false,
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
                self.precompiled(check, kind, first);
                return false;
            }
        };
        let message = format!(
            "the {} rundown of CLR {} lists {what}",
            kind.name(),
            self.instance
        );
        let found = check.find(message).of(self.process, first.opened);
        // A CLR compiles something in practice, if not by necessity.
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

    /// Whether a rundown came with the start of the CLR: a CLR that starts while a session asks for
    /// rundowns enumerates at once. Nothing is there yet, and what comes is loaded.
    fn is_of_start(&self, bracket: &Bracket) -> bool {
        let Some((start, opened)) = self.clr.started().zip(bracket.opened) else {
            return false;
        };
        let is_loaded = |item: &Item| item.from.is_some_and(|from| from < opened);
        let is_empty = bracket.listed == Default::default()
            && !self
                .clr
                .modules()
                .iter()
                .any(|(_, module)| is_loaded(module));
        self.is_soon(Ticks::new(start.get()), opened)
            && (is_empty || self.jit_loads.since_start(self.process, opened) == Loads::Whole)
    }

    fn is_soon(&self, start: Ticks, opened: Ticks) -> bool {
        (0..self.jit_loads.second).contains(&opened.saturating_since(start))
    }

    /// Whether the known enablements request methods of a kind in rundowns; `None` where none is
    /// known.
    fn requests(&self, kind: Enumeration, code: Code) -> Option<bool> {
        let mut known = self
            .facts
            .admission
            .of(CLR_RUNDOWN)
            .map(|(_, with)| {
                let rundown = Rundown::from(CombinedEnablement::of([with]));
                rundown.method(kind, Method::new(code)).is_some()
            })
            .peekable();
        known.peek()?;
        Some(known.any(|requested| requested))
    }

    /// Whether methods may have been compiled at run time that neither a rundown nor a load shows.
    fn may_lack_jitted(&self, kind: Enumeration, first: &Bracket) -> bool {
        if self.requests(kind, Code::Jitted) == Some(true) {
            return false;
        }
        let is_listed = |b: &&&Bracket| b.is_whole() && b.jitted() > 0;
        let listed = self
            .brackets
            .iter()
            .filter(is_listed)
            .filter_map(|b| b.opened)
            .max();
        let until = first.opened.unwrap_or(first.last);
        listed.is_none_or(|opened| self.jit_loads.over(opened, until) != Loads::Whole)
            && self.jit_loads.since_start(self.process, until) != Loads::Whole
    }

    /// Precompiled methods that no event names.
    fn precompiled(&self, check: &mut Check<'_>, kind: Enumeration, first: &Bracket) {
        let modules = unnamed_precompiled(self.process, self.clr);
        // Without addresses there is nothing to name, and the rundown may have been of the rest.
        let is_asked = self
            .requests(kind, Code::Precompiled)
            .unwrap_or_else(|| self.process.tallies().iter().all(|tally| tally.frames == 0));
        if modules == 0 || is_asked {
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
            .find(message)
            .of(self.process, first.opened)
            .severity(Severity::Note);
    }

    /// Code that was compiled after the last rundown, where that one came early.
    fn later(&self, check: &mut Check<'_>) {
        let is_start = |b: &Bracket| b.kind == Enumeration::Start;
        let is_early = |b: &&Bracket| {
            let times = self.clr.started().zip(b.opened);
            is_start(b)
                || times
                    .is_some_and(|(start, opened)| self.is_soon(Ticks::new(start.get()), opened))
        };
        if !self.brackets.iter().all(is_early) {
            return;
        }
        let Some(last) = self.brackets.iter().rfind(|b| b.is_whole()) else {
            return;
        };
        let Some(opened) = last.opened else { return };
        let until = ended(self.process).unwrap_or(self.jit_loads.last());
        let loads = self.jit_loads.over(opened, until);
        let (what, severity) = match loads {
            Loads::Whole => return,
            Loads::Never => ("are not logged by the runtime provider", PARTIAL.severity),
            Loads::Later(_) => ("have load events only after a while", Severity::Warning),
            Loads::Interrupted(..) => ("have no load events for a while", Severity::Warning),
            Loads::Unknown if self.jit_loads.seen.is_some() => return,
            Loads::Unknown => {
                let is_recorded = self.facts.machine.runtime_span().is_some();
                let severity = if is_recorded {
                    Severity::Warning
                } else {
                    Severity::Note
                };
                ("have no load event", severity)
            }
        };
        let which = if is_start(last) {
            "only a start rundown"
        } else {
            "no rundown since it started"
        };
        let message = format!(
            "CLR {} has {which}, and methods that were compiled later {what}",
            self.instance
        );
        let found = check
            .find(message)
            .of(self.process, last.closed)
            .severity(severity);
        if loads == Loads::Unknown {
            found.undecided(
                "nothing may have been compiled, or the runtime provider had no Jit keyword (0x10)",
            );
        }
    }
}
