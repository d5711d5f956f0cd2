//! Processes without a rundown.

use etl_analysis::machine::{Bracket, Process};
use etl_format::Ticks;
use etl_schema::clr::keyword::{END_RUNDOWN, JIT, LOADER, NGEN, START_RUNDOWN};
use etl_schema::providers::CLR_RUNDOWN;

use super::by_clr;
use super::jit_loads::{JitLoads, Loads, first_method, unnamed_precompiled};
use super::lifetime::{Lifetime, Unlisted, ended};
use super::listings::Listings;
use crate::checks::Facts;
use crate::finding::Severity;
use crate::rules::commands::{END_RUNDOWN as END_RUNDOWN_COMMANDS, RECORDING};
use crate::rules::{Check, Rule, plural};

/// What rules need of the rundowns of a trace, and of the processes without one.
pub(in crate::rules) struct Rundowns {
    listings: Listings,
    pub(super) jit_loads: JitLoads,
    /// Why each process has no rundown.
    absences: Vec<Option<Absence>>,
}

impl Rundowns {
    pub fn of(facts: &Facts) -> Self {
        let (listings, jit_loads) = (Listings::of(facts), JitLoads::of(facts));
        let has_rundown = facts.has_rundown();
        let absence = |process| absence(facts, process, has_rundown, &listings, &jit_loads);
        let absences = facts.machine.processes().iter().map(absence).collect();
        Rundowns {
            listings,
            jit_loads,
            absences,
        }
    }
}

/// Every process, with the reason why it has no rundown.
fn absences<'a>(
    check: &Check<'a>,
) -> impl Iterator<Item = (&'a Process, Option<Absence>)> + use<'a> {
    let absences = check.rundowns.absences.iter().copied();
    check.facts.machine.processes().iter().zip(absences)
}

/// Why a process with managed code has no rundown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    /// The trace holds no rundown, but the recorded loads are complete, or may be.
    NotNeeded(Loads),
    /// The trace holds no rundown, and not all loads.
    NoRundown(Loads),
    /// The process ended at this timestamp, before the first rundown.
    Exited(Ticks),
    /// Other processes have a rundown.
    OnlyOthers,
    /// It has a rundown, and only others have the one that began at this timestamp.
    LaterOnlyOthers(Ticks),
}

/// Why a process has no rundown, where that can matter.
fn absence(
    facts: &Facts,
    process: &Process,
    has_rundown: bool,
    listings: &Listings,
    jit_loads: &JitLoads,
) -> Option<Absence> {
    if !process.is_managed() {
        return None;
    }
    if let Some(last) = process.brackets().iter().max_by_key(|bracket| bracket.last) {
        return later_absence(facts, process, listings, jit_loads, last);
    }
    if process.methods_enumerated() > 0 {
        return None;
    }
    if has_rundown {
        return match Lifetime::of(facts, process, listings, jit_loads).unlisted(listings) {
            Unlisted::Missing => Some(Absence::OnlyOthers),
            Unlisted::Exited(ended) => Some(Absence::Exited(ended)),
            Unlisted::Sound => None,
        };
    }
    if facts.has_nothing_to_name(process) {
        return None;
    }
    Some(
        match jit_loads.since_start(process, needed_until(process, jit_loads)) {
            loads @ (Loads::Whole | Loads::Unknown) => Absence::NotNeeded(loads),
            loads => Absence::NoRundown(loads),
        },
    )
}

/// Until when the loads of a process without a rundown have to be recorded.
fn needed_until(process: &Process, jit_loads: &JitLoads) -> Ticks {
    ended(process).unwrap_or(jit_loads.last())
}

/// Whether a process with a rundown should be in a later one as well: its loads in between are not
/// recorded.
fn later_absence(
    facts: &Facts,
    process: &Process,
    listings: &Listings,
    jit_loads: &JitLoads,
    last: &Bracket,
) -> Option<Absence> {
    let first = listings
        .first_after(Some(last.last))
        .map(|(first, _)| first)
        .min()?;
    let is_known = match jit_loads.over(last.opened.unwrap_or(last.last), first) {
        Loads::Whole => true,
        Loads::Unknown => jit_loads.seen.is_some(),
        Loads::Later(_) | Loads::Interrupted(..) | Loads::Never => false,
    };
    let lifetime = Lifetime::of(facts, process, listings, jit_loads);
    // Only the later ones matter.
    let began = lifetime.began.max(Some(last.last));
    let lifetime = Lifetime {
        began,
        has_all_loads: is_known,
        ..lifetime
    };
    let is_missing = !is_known && lifetime.unlisted(listings) == Unlisted::Missing;
    is_missing.then_some(Absence::LaterOnlyOthers(first))
}

/// The timestamp of the first event of the process's CLRs.
fn first_event(process: &Process) -> Option<Ticks> {
    process.clr_span().map(|span| span.first)
}

pub(in crate::rules) const NONE: Rule = Rule {
    id: "rundown.none",
    statement: "A trace in which managed code ran holds a rundown.",
    severity: Severity::Error,
    source: "the CLR's rundown protocol",
    protocol: &["R1", "R7"],
    meaning: "Methods that were compiled or loaded before the recording are unknown; their \
              addresses stay numbers.",
    remedy: "Before you stop the runtime session, request an end rundown, wait until it is \
             complete, and merge both files:",
    commands: END_RUNDOWN_COMMANDS,
    check: none,
};

fn none(check: &mut Check<'_>) {
    let facts = check.facts;
    for (process, absence) in absences(check) {
        let from = first_event(process);
        let (message, severity) = match absence {
            Some(Absence::NotNeeded(Loads::Unknown)) => {
                let message = format!("the trace holds no rundown, and {}", wait(facts, process));
                let found = check
                    .find(message)
                    .of(process, from)
                    .severity(Severity::Warning);
                found.unless_lost(from, None).undecided(
                    "the keyword of compiled methods (Jit, 0x10) may have been enabled later than \
                     the CLR started",
                );
                continue;
            }
            Some(Absence::NotNeeded(_)) => (not_needed(process), Severity::Note),
            Some(Absence::NoRundown(Loads::Interrupted(begin, end))) => {
                interrupted(check, process, (begin, end));
                continue;
            }
            Some(Absence::NoRundown(loads)) => {
                let why = match loads {
                    Loads::Later(_) => ", and its methods have load events only later than its CLR \
                                        started"
                        .to_owned(),
                    _ => mask_without_rundown(facts).map_or(String::new(), |(mask, why)| {
                        format!(
                            ": the rundown provider was enabled with {mask:#x}, which requests {why}"
                        )
                    }),
                };
                let message =
                    format!("the process ran managed code, but the trace holds no rundown{why}");
                (message, NONE.severity)
            }
            _ => continue,
        };
        check
            .find(message)
            .severity(severity)
            .of(process, from)
            .unless_lost(from, None);
    }
}

/// A process without a rundown whose loads were not recorded for a while.
fn interrupted(check: &mut Check<'_>, process: &Process, (begin, end): (Ticks, Ticks)) {
    let clock = check.facts.machine.clock();
    let is_over = end < needed_until(process, &check.rundowns.jit_loads);
    let seen = ended(process).max(process.last_runtime());
    let until = if is_over {
        format!("until {}", clock.time(end))
    } else {
        "on".to_owned()
    };
    let message = format!(
        "the process ran managed code, but the trace holds no rundown, and loads of compiled \
         methods (Jit, 0x10) were not enabled from {} {until}",
        clock.time(begin),
    );
    let found = check.find(message).of(process, Some(begin));
    let found = found.unless_lost(first_event(process), None);
    // A process that is seen afterwards ran meanwhile.
    if !(is_over && seen > Some(end)) {
        found
            .severity(Severity::Warning)
            .undecided("nothing may have been compiled then");
    }
}

/// How long after the start of its CLR the first method of a process was loaded.
fn wait(facts: &Facts, process: &Process) -> String {
    let start = process
        .clrs()
        .values()
        .filter_map(|clr| clr.started())
        .min();
    let ticks = start
        .zip(first_method(process))
        .map_or(0, |(start, at)| at.saturating_since(start));
    let seconds = ticks as f64 / facts.machine.clock().frequency as f64;
    format!("the first load of a method came {seconds:.1} s after its CLR started")
}

/// What a trace without a rundown has of a process whose compiled methods are all known.
fn not_needed(process: &Process) -> String {
    let why = why_not_needed(process);
    let precompiled: usize = process
        .clrs()
        .values()
        .map(|clr| unnamed_precompiled(process, clr))
        .sum();
    if precompiled == 0 {
        return format!(
            "the trace holds no rundown, but nothing of this process is missing: {why}"
        );
    }
    format!(
        "the trace holds no rundown, but no compiled method of this process is missing: {why}; \
         precompiled methods of {} have no events",
        plural(precompiled as u64, "module", "modules")
    )
}

/// Why a process needs no rundown. A CLR logs the same when it starts and when its state is
/// requested (capture state); other events show which of the two it was.
fn why_not_needed(process: &Process) -> &'static str {
    let mut starts = process.clrs().values().filter_map(|clr| clr.started());
    let before = process
        .clr_span()
        .is_some_and(|span| starts.any(|start| span.first < start));
    if before {
        "a session requested the state of its CLR (capture state), and later loads were recorded"
    } else if process.started().is_some() {
        "it started during the recording, and its loads were recorded"
    } else {
        "its CLR started during the recording, or a session requested its state (capture state), \
         and later loads were recorded"
    }
}

/// The mask of the rundown provider, where it is known and requests no rundown of code, and what it
/// requests.
fn mask_without_rundown(facts: &Facts) -> Option<(u64, &'static str)> {
    let masks: Vec<u64> = facts
        .admission
        .of(CLR_RUNDOWN)
        .map(|(_, with)| with.any)
        .collect();
    let first = masks.first().copied()?;
    // A mask of 0 enables all keywords.
    let none_has = |keywords| masks.iter().all(|&mask| mask != 0 && mask & keywords == 0);
    if none_has(START_RUNDOWN | END_RUNDOWN) {
        Some((first, "none (EndRundown is 0x100, StartRundown is 0x40)"))
    } else if none_has(LOADER | JIT | NGEN) {
        Some((first, "no code (Loader is 0x8, Jit 0x10, NGen 0x20)"))
    } else {
        None
    }
}

pub(in crate::rules) const PROCESS_EXITED: Rule = Rule {
    id: "rundown.process-exited",
    statement: "A process whose loads were not recorded from its start runs until the rundown.",
    severity: Severity::Note,
    source: "the CLR's rundown protocol",
    protocol: &["R7"],
    meaning: "The process ended before the rundown: only what it loaded and compiled during the \
              recording is known.",
    remedy: "Start the recording before short-lived processes start, with the Loader, Jit and NGen \
             keywords:",
    commands: RECORDING,
    check: process_exited,
};

fn process_exited(check: &mut Check<'_>) {
    for (process, absence) in absences(check) {
        if let Some(Absence::Exited(ended)) = absence {
            let message =
                "the process ended before the rundown: only methods with a load event are known";
            let found = check.find(message.to_owned()).of(process, Some(ended));
            found.unless_lost(first_event(process), None);
        }
    }
}

/// Whether files that are merged or checked together have no process with both events of the
/// runtime and a rundown, although one could have them.
pub(in crate::rules) fn are_unrelated(facts: &Facts) -> bool {
    if !facts.is_joined() || facts.machine.runtime_span().is_none() || !facts.has_rundown() {
        return false;
    }
    let both = facts
        .machine
        .processes()
        .iter()
        .any(|p| p.last_runtime().is_some() && !p.brackets().is_empty());
    // Processes that ended before the rundown have none in any case.
    let alive = facts
        .machine
        .processes()
        .iter()
        .any(|p| p.last_runtime().is_some() && p.ended().is_none());
    !both && alive
}

/// Whether a process should be in the rundown, and only others are.
pub(in crate::rules) fn is_any_missing(check: &Check<'_>) -> bool {
    check.rundowns.absences.contains(&Some(Absence::OnlyOthers))
}

pub(in crate::rules) const MISSING: Rule = Rule {
    id: "rundown.missing",
    statement: "Every process that ran managed code and was alive during the rundown is in it.",
    severity: Severity::Error,
    source: "the CLR's rundown protocol",
    protocol: &["R1", "R7"],
    meaning: "This process has no rundown although others have one: it did not respond, was \
              shutting down, or its events were lost.",
    remedy: "Request the rundown while the process is alive, and wait longer before you stop it:",
    commands: END_RUNDOWN_COMMANDS,
    check: missing,
};

fn missing(check: &mut Check<'_>) {
    let facts = check.facts;
    // Files of different recordings are reported by `merge.no-common-process`.
    let unrelated = are_unrelated(facts);
    let Rundowns {
        listings,
        jit_loads,
        ..
    } = check.rundowns;
    for (process, absence) in absences(check).filter(|(process, _)| process.is_managed()) {
        let from = first_event(process);
        let mut add = |message: String, timestamp| {
            check
                .find(message)
                .of(process, timestamp)
                .unless_lost(from, None);
        };
        match absence {
            Some(Absence::OnlyOthers) if !unrelated => add(
                "the process ran managed code, but only other processes have a rundown".to_owned(),
                from,
            ),
            Some(Absence::LaterOnlyOthers(at)) => {
                let message = "the process has an earlier rundown, but only other processes have \
                               the later one, and its loads in between are not recorded"
                    .to_owned();
                let lifetime = Lifetime::of(facts, process, listings, jit_loads);
                let found = check.find(message).of(process, Some(at));
                // Nothing shows the end of a process without events of the kernel or unloads.
                if lifetime
                    .ended
                    .max(lifetime.alive)
                    .is_none_or(|seen| seen < at)
                {
                    found
                        .severity(Severity::Warning)
                        .undecided("the process may have ended before");
                } else {
                    found.unless_lost(Some(at), None);
                }
            }
            Some(_) => {}
            None if process.brackets().is_empty() => {}
            None => {
                let brackets = by_clr(process);
                for (instance, clr) in process.clrs() {
                    let lacks = clr.runtime_events() > 0 && !brackets.contains_key(instance);
                    // A CLR that started after the first event of each rundown is in none.
                    let began = clr.started();
                    let is_late = began.is_some() && listings.first_after(began).next().is_none();
                    if lacks && !is_late && process.clrs().len() > 1 {
                        let message = format!(
                            "CLR {instance} ran managed code, but only other CLRs of the process \
                             have a rundown"
                        );
                        add(message, None);
                    }
                }
            }
        }
    }
}
