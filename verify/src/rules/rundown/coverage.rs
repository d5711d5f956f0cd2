//! Processes without a rundown.

use etl_analysis::machine::{Bracket, Process};
use etl_format::Ticks;
use etl_schema::clr::keyword::{END_RUNDOWN, JIT, LOADER, NGEN, START_RUNDOWN};
use etl_schema::providers::CLR_RUNDOWN;

use super::by_clr;
use super::jit_loads::{JitLoads, Loads, first_method, unnamed_precompiled};
use super::lifetime::{Lifetime, Unlisted, ended};
use super::listings::Listings;
use super::promised::is_rundown_promised;
use crate::checks::Facts;
use crate::checks::times::TimeSpan;
use crate::finding::Severity;
use crate::rules::commands::{END_RUNDOWN as END_RUNDOWN_COMMANDS, RECORDING};
use crate::rules::{Check, Rule, plural};

/// The times of the rundowns of a trace, and the processes without one.
pub(in crate::rules) struct Rundowns {
    listings: Listings,
    pub(super) jit_loads: JitLoads,
    /// For each process, why it has no rundown; `None` if it has one or does not need one.
    absences: Vec<Option<Absence>>,
}

impl Rundowns {
    pub fn of(facts: &Facts) -> Self {
        let mut rundowns = Rundowns {
            listings: Listings::of(facts),
            jit_loads: JitLoads::of(facts),
            absences: Vec::new(),
        };
        // An EventPipe session records one process.
        let has_rundown = facts.has_rundown() && !facts.is_event_pipe();
        for process in facts.machine.processes() {
            let absence = rundowns.absence(facts, process, has_rundown);
            rundowns.absences.push(absence);
        }
        rundowns
    }

    /// Why a process has no rundown; `None` if it has one or does not need one.
    fn absence(&self, facts: &Facts, process: &Process, has_rundown: bool) -> Option<Absence> {
        if !process.is_managed() {
            return None;
        }
        if let Some(last) = process.brackets().iter().max_by_key(|bracket| bracket.last) {
            return self.later_absence(facts, process, last);
        }
        if process.methods_enumerated() > 0 {
            return None;
        }
        if has_rundown {
            let lifetime = Lifetime::of(facts, process, &self.listings, &self.jit_loads);
            return match lifetime.unlisted(&self.listings) {
                Unlisted::Missing => Some(Absence::OnlyOthers),
                Unlisted::Perhaps => Some(Absence::PerhapsOnlyOthers),
                Unlisted::Exited(ended) => Some(Absence::Exited(ended)),
                Unlisted::Sound => None,
            };
        }
        if facts.has_nothing_to_name(process) {
            return None;
        }
        let until = needed_until(process, &self.jit_loads);
        match self.jit_loads.since_start(process, until) {
            loads @ (Loads::Whole | Loads::Unknown) => Some(Absence::NotNeeded(loads)),
            loads => Some(Absence::NoRundown(loads)),
        }
    }

    /// Whether a process with a rundown should also be in a later one, because its loads in between
    /// are not recorded.
    fn later_absence(&self, facts: &Facts, process: &Process, last: &Bracket) -> Option<Absence> {
        let later = self.listings.first_after(Some(last.last));
        let first = later.into_iter().map(|listing| listing.first).min()?;
        let jit_loads = &self.jit_loads;
        let is_recorded = match jit_loads.over(process, last.opened.unwrap_or(last.last), first) {
            Loads::Whole => true,
            Loads::Unknown => jit_loads.seen.is_some(),
            Loads::Later(_) | Loads::Interrupted(_) | Loads::Never => false,
        };
        if is_recorded {
            return None;
        }
        let mut lifetime = Lifetime::of(facts, process, &self.listings, jit_loads);
        // Only the later rundowns matter.
        lifetime.began = lifetime.began.max(Some(last.last));
        lifetime.has_all_loads = false;
        match lifetime.unlisted(&self.listings) {
            Unlisted::Missing | Unlisted::Perhaps => Some(Absence::LaterOnlyOthers(first)),
            Unlisted::Exited(_) | Unlisted::Sound => None,
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
    /// Other processes have a rundown, and nothing shows that this process lived when it began.
    PerhapsOnlyOthers,
    /// It has a rundown, and only other processes have the one that began at this timestamp.
    LaterOnlyOthers(Ticks),
}

/// The time until which the loads of a process without a rundown have to be recorded.
fn needed_until(process: &Process, jit_loads: &JitLoads) -> Ticks {
    ended(process).unwrap_or(jit_loads.last())
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
    for (process, absence) in absences(check) {
        match absence {
            Some(Absence::NotNeeded(_)) if is_rundown_promised(check.facts, process) => needed(
                check,
                process,
                ", which the declared enablement of the rundown provider requests (R1)",
            ),
            Some(Absence::NotNeeded(Loads::Unknown)) => perhaps_needed(check, process),
            Some(Absence::NotNeeded(_)) => not_needed(check, process),
            Some(Absence::NoRundown(Loads::Interrupted(gap))) => interrupted(check, process, gap),
            Some(Absence::NoRundown(Loads::Later(_))) => needed(
                check,
                process,
                ", and its methods have load events only later than its CLR started",
            ),
            Some(Absence::NoRundown(_)) if check.facts.is_event_pipe() => {
                needed(check, process, stream_remark(check.facts));
            }
            Some(Absence::NoRundown(_)) => needed(check, process, &mask_remark(check.facts)),
            _ => {}
        }
    }
}

/// A process that needs a rundown.
fn needed(check: &mut Check<'_>, process: &Process, remark: &str) {
    let from = first_event(process);
    let message = format!("the process ran managed code, but the trace holds no rundown{remark}");
    let found = check.report(message).about(process, from);
    if !found.facts.is_cut_stream() {
        found.unless_lost(from, None);
    }
}

/// A process that may need a rundown: nothing shows when loads of its methods were enabled.
fn perhaps_needed(check: &mut Check<'_>, process: &Process) {
    let from = first_event(process);
    let clrs = process.clrs().values();
    let mut ticks = 0;
    if let Some(start) = clrs.filter_map(|clr| clr.started()).min()
        && let Some(load) = first_method(process)
    {
        ticks = load.saturating_since(start);
    }
    let seconds = ticks as f64 / check.facts.machine.clock().frequency as f64;
    let message = format!(
        "the trace holds no rundown, and the first load of a method came {seconds:.1} s after its \
         CLR started"
    );
    let found = check
        .report(message)
        .about(process, from)
        .severity(Severity::Warning);
    found.unless_lost(from, None).undecided(
        "the keyword of compiled methods (Jit, 0x10) may have been enabled later than the CLR \
         started",
    );
}

/// A process without a rundown whose loads were not recorded for a while.
fn interrupted(check: &mut Check<'_>, process: &Process, gap: TimeSpan) {
    let clock = check.facts.machine.clock();
    let is_over = gap.to < needed_until(process, &check.rundowns.jit_loads);
    let seen = ended(process).max(process.last_runtime());
    let until = if is_over {
        format!("until {}", clock.time(gap.to))
    } else {
        "on".to_owned()
    };
    let message = format!(
        "the process ran managed code, but the trace holds no rundown, and loads of compiled \
         methods (Jit, 0x10) were not enabled from {} {until}",
        clock.time(gap.from),
    );
    let found = check.report(message).about(process, Some(gap.from));
    let found = found.unless_lost(first_event(process), None);
    // A process that is seen after the gap ran during it.
    if !(is_over && seen > Some(gap.to)) {
        found
            .severity(Severity::Warning)
            .undecided("nothing may have been compiled then");
    }
}

/// A process that needs no rundown, since its compiled methods are all known.
fn not_needed(check: &mut Check<'_>, process: &Process) {
    let from = first_event(process);
    let message = not_needed_message(process);
    check
        .report(message)
        .severity(Severity::Note)
        .about(process, from)
        .unless_lost(from, None);
}

fn not_needed_message(process: &Process) -> String {
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

/// Why a process needs no rundown. A CLR logs the same events when it starts and when its state is
/// requested (capture state); earlier events show that it was requested.
fn why_not_needed(process: &Process) -> &'static str {
    let mut starts = process.clrs().values().filter_map(|clr| clr.started());
    let is_requested = match process.clr_span() {
        Some(span) => starts.any(|start| span.first < start),
        None => false,
    };
    if is_requested {
        "a session requested the state of its CLR (capture state), and later loads were recorded"
    } else if process.started().is_some() {
        "it started during the recording, and its loads were recorded"
    } else {
        "its CLR started during the recording, or a session requested its state (capture state), \
         and later loads were recorded"
    }
}

/// Why a stream of EventPipe has no rundown.
fn stream_remark(facts: &Facts) -> &'static str {
    if facts.is_cut_stream() {
        ", which comes last: the stream has no end"
    } else {
        ": the session was stopped without one"
    }
}

/// The remark that no known mask of the rundown provider requests a rundown of code; empty if one
/// does, or none is known.
fn mask_remark(facts: &Facts) -> String {
    let masks = facts.admission.enablements(CLR_RUNDOWN);
    let masks: Vec<u64> = masks.map(|(_, with)| with.any).collect();
    let Some(mask) = masks.first() else {
        return String::new();
    };
    let requests = if !is_any_on(START_RUNDOWN | END_RUNDOWN, &masks) {
        "none (EndRundown is 0x100, StartRundown is 0x40)"
    } else if !is_any_on(LOADER | JIT | NGEN, &masks) {
        "no code (Loader is 0x8, Jit 0x10, NGen 0x20)"
    } else {
        return String::new();
    };
    format!(": the rundown provider was enabled with {mask:#x}, which requests {requests}")
}

/// Whether a mask has one of the keywords. A mask of 0 enables all keywords.
fn is_any_on(keywords: u64, masks: &[u64]) -> bool {
    masks.iter().any(|&mask| mask == 0 || mask & keywords != 0)
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
            let found = check.report(message.to_owned()).about(process, Some(ended));
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
    let mut is_any_alive = false;
    for process in facts.machine.processes() {
        if process.last_runtime().is_none() {
            continue;
        }
        if !process.brackets().is_empty() {
            return false;
        }
        // Processes that ended before the rundown never have one.
        is_any_alive |= process.ended().is_none();
    }
    is_any_alive
}

/// Whether a process should be in the rundown, and only others are.
pub(in crate::rules) fn is_any_missing(check: &Check<'_>) -> bool {
    check.rundowns.absences.contains(&Some(Absence::OnlyOthers))
}

pub(in crate::rules) const MISSING: Rule = Rule {
    id: "rundown.missing",
    statement: "Every process that ran managed code and was alive when the rundown began is in it.",
    severity: Severity::Error,
    source: "the CLR's rundown protocol",
    protocol: &["R1", "R7"],
    meaning: "This process has no rundown although others have one: it did not respond, was \
              shutting down, or its events were lost. Without an event that shows that it lived \
              when the rundown began, it may have ended before: then this is an undecided note.",
    remedy: "Request the rundown while the process is alive, and wait longer before you stop it:",
    commands: END_RUNDOWN_COMMANDS,
    check: missing,
};

fn missing(check: &mut Check<'_>) {
    let facts = check.facts;
    // Files of different recordings are reported by `merge.no-common-process`.
    let unrelated = are_unrelated(facts);
    for (process, absence) in absences(check).filter(|(process, _)| process.is_managed()) {
        match absence {
            Some(Absence::OnlyOthers) if !unrelated => {
                let from = first_event(process);
                let message = if has_rundown_of_others(facts, process) {
                    "the process ran managed code, but only other processes have a rundown"
                } else {
                    "the process ran managed code, and what its rundown lists is neither between \
                     Init and Complete, nor a method"
                };
                check
                    .report(message.to_owned())
                    .about(process, from)
                    .unless_lost(from, None);
            }
            Some(Absence::PerhapsOnlyOthers) if !unrelated => perhaps_missing(check, process),
            Some(Absence::LaterOnlyOthers(began)) => missing_later(check, process, began),
            Some(_) => {}
            None => missing_clrs(check, process),
        }
    }
}

/// Whether a process other than this one has events of a rundown.
fn has_rundown_of_others(facts: &Facts, process: &Process) -> bool {
    facts.machine.processes().iter().any(|other| {
        let has_rundown = !other.brackets().is_empty()
            || other.methods_enumerated() > 0
            || other.outside().count > 0;
        has_rundown && !std::ptr::eq(other, process)
    })
}

/// A process without a rundown that may have ended before it. Most of them have: the note asks for
/// events that show it.
fn perhaps_missing(check: &mut Check<'_>, process: &Process) {
    let from = first_event(process);
    let message = "the process ran managed code and has no rundown, while other processes have one";
    check
        .report(message.to_owned())
        .about(process, from)
        .severity(Severity::Note)
        .undecided(
            "nothing shows that it lived when the rundown began: its ends are in events of the \
             kernel, or of the loader keyword (0x8) if it ends in the regular way",
        );
}

/// A process with a rundown that is not in a later one, which began at `began`.
fn missing_later(check: &mut Check<'_>, process: &Process, began: Ticks) {
    let message = "the process has an earlier rundown, but only other processes have the later \
                   one, and its loads in between are not recorded";
    let Rundowns {
        listings,
        jit_loads,
        ..
    } = check.rundowns;
    let lifetime = Lifetime::of(check.facts, process, listings, jit_loads);
    let found = check.report(message.to_owned()).about(process, Some(began));
    // Nothing shows the end of a process without events of the kernel or unloads.
    if lifetime.ended.max(lifetime.alive) >= Some(began) {
        found.unless_lost(Some(began), None);
    } else {
        found
            .severity(Severity::Warning)
            .undecided("the process may have ended before");
    }
}

/// The CLRs without a rundown of a process with several CLRs.
fn missing_clrs(check: &mut Check<'_>, process: &Process) {
    if process.brackets().is_empty() || process.clrs().len() < 2 {
        return;
    }
    let listings = &check.rundowns.listings;
    let brackets = by_clr(process);
    for (instance, clr) in process.clrs() {
        if clr.runtime_events() == 0 || brackets.contains_key(instance) {
            continue;
        }
        // A CLR that started after the first event of each rundown is in none.
        let began = clr.started();
        if began.is_some() && listings.first_after(began).is_empty() {
            continue;
        }
        let message = format!(
            "CLR {instance} ran managed code, but only other CLRs of the process have a rundown"
        );
        check
            .report(message)
            .about(process, None)
            .unless_lost(first_event(process), None);
    }
}
