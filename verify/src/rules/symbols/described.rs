//! What a CLR states about itself and its code: its version, maps of IL to native code.

use etl_analysis::machine::{Bracket, Process};
use etl_control::enable::EventKey;
use etl_format::{Guid, Ticks};
use etl_schema::clr::keyword::IL_MAP;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use crate::checks::{ClrCollections, Facts};
use crate::finding::Severity;
use crate::rules::commands::{END_RUNDOWN, RECORDING};
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const RUNTIME_UNKNOWN: Rule = Rule {
    id: "symbols.runtime-unknown",
    statement: "A CLR states what it is: when it starts, and at the beginning of each rundown.",
    severity: Severity::Note,
    source: "what the CLR logs",
    protocol: &["E7", "R2"],
    meaning: "RuntimeInformation events are missing, or other events state a CLR that does not \
              exist: the version of the runtime is unknown.",
    remedy: "Do not filter this event by its id, and start the runtime session before the process:",
    commands: RECORDING,
    check: runtime_unknown,
};

/// RuntimeInformation: without keyword, so that every session of its level gets it.
const RUNTIME_INFORMATION: EventKey = EventKey {
    id: 187,
    level: 4,
    keyword: 0,
};

/// Whether a provider's sessions get the events that state what a CLR is.
fn states_runtimes(facts: &Facts, provider: Guid) -> bool {
    let mut enablements = facts.admission.enablements(provider).peekable();
    if enablements.peek().is_some() {
        return enablements
            .all(|(enabled, with)| !enabled.is_limited && with.admits(&RUNTIME_INFORMATION));
    }
    let mut providers = facts.admission.providers();
    let kinds = providers.remove(&provider).unwrap_or_default();
    kinds
        .iter()
        .any(|(event, _)| event.level >= RUNTIME_INFORMATION.level)
}

fn runtime_unknown(check: &mut Check<'_>) {
    let facts = check.facts;
    if states_runtimes(facts, CLR_RUNTIME) {
        let recorded = runtime_recorded(facts);
        for clr in facts.collections() {
            start_of_heap_unknown(check, &clr, recorded);
        }
        for process in facts.machine.processes() {
            start_unknown(check, process, recorded);
        }
    }
    if states_runtimes(facts, CLR_RUNDOWN) {
        for process in facts.machine.processes() {
            listed_unknown(check, process);
        }
    }
}

/// When the runtime provider was first enabled, or logged its first event if that is earlier.
fn runtime_recorded(facts: &Facts) -> Option<Ticks> {
    let enablements = facts.admission.enablements(CLR_RUNTIME);
    let enabled = enablements.filter_map(|(enabled, _)| enabled.from).min();
    let first_event = facts.machine.runtime_span().map(|span| span.first);
    enabled.into_iter().chain(first_event).min()
}

/// When a process started, if that is after a time.
fn started_after(process: &Process, time: Option<Ticks>) -> Option<Ticks> {
    let started = process.started()?;
    (time? < started).then_some(started)
}

/// A CLR that only events of its heap show, in a process with other CLRs.
fn start_of_heap_unknown(check: &mut Check<'_>, clr: &ClrCollections<'_>, recorded: Option<Ticks>) {
    let Some(process) = clr.process else { return };
    let Some(started) = started_after(process, recorded) else {
        return;
    };
    let clrs = process.clrs();
    if clrs.is_empty() || clrs.contains_key(&clr.instance) {
        return;
    }
    let message = format!(
        "CLR {} has events of its heap, and none that it started",
        clr.instance
    );
    check
        .report(message)
        .about(process, Some(started))
        .unless_lost(Some(started), None);
}

/// The CLRs of a process that started during the recording, without the event of their start.
fn start_unknown(check: &mut Check<'_>, process: &Process, recorded: Option<Ticks>) {
    let Some(started) = started_after(process, recorded) else {
        return;
    };
    for (instance, clr) in process.clrs() {
        if clr.runtime_events() == 0 || clr.started().is_some() {
            continue;
        }
        let message = format!(
            "CLR {instance} has {}, but none that states that it started, although the process \
             started during the recording",
            plural(clr.runtime_events(), "event", "events")
        );
        check
            .report(message)
            .about(process, Some(started))
            .unless_lost(Some(started), None);
    }
}

/// The CLRs of a process whose rundowns do not state what they are.
fn listed_unknown(check: &mut Check<'_>, process: &Process) {
    for (&instance, clr) in process.clrs() {
        if clr.is_listed() {
            continue;
        }
        let mut brackets = process.brackets().iter();
        let whole = brackets.find(|b| b.instance == instance && b.is_whole());
        if let Some(bracket) = whole {
            let message = format!("the rundowns of CLR {instance} do not state what it is");
            let found = check.report(message).about(process, bracket.opened);
            found.unless_lost(None, bracket.opened);
        }
    }
}

pub(in crate::rules) const NO_IL_MAP: Rule = Rule {
    id: "symbols.no-il-map",
    statement: "If maps of IL to native code are enabled, each method that was compiled has one.",
    severity: Severity::Note,
    source: "what the CLR logs",
    protocol: &["E6", "R3"],
    meaning: "Addresses in these methods have no source lines. If the enablement that requests the \
              maps is declared, they are missing, which is an error.",
    remedy: "Use more buffers, or enable JittedMethodILToNativeMapKeyword (0x20000) at level 5 for \
             the whole recording:",
    commands: END_RUNDOWN,
    check: no_il_map,
};

/// Methods whose map or load may be outside of the recording when a session begins or ends.
const UNDER_WAY: u64 = 4;

/// MethodILToNativeMap.
const MAP: EventKey = EventKey {
    id: 190,
    level: 5,
    keyword: IL_MAP,
};

fn no_il_map(check: &mut Check<'_>) {
    let facts = check.facts;
    let enabled = maps_enabled(facts);
    for process in facts.machine.processes() {
        let compiled = process.compiled();
        let maps = process.maps();
        if let Some(enabled) = enabled
            && let Some(first) = compiled.first
            && enabled < first
            && maps.count + UNDER_WAY < compiled.count
        {
            let message = format!(
                "{} of {} that were loaded have a map of IL to native code",
                maps.count,
                plural(compiled.count, "compiled method", "compiled methods"),
            );
            let severity = severity_of_maps(facts, CLR_RUNTIME);
            check
                .report(message)
                .about(process, Some(first))
                .amount(compiled.count - maps.count)
                .severity(severity)
                .unless_lost(Some(first), None);
        }
        listed_maps(check, process);
    }
}

/// When maps were enabled for all processes; `None` if that is not known.
fn maps_enabled(facts: &Facts) -> Option<Ticks> {
    if facts.admission.is_limited(CLR_RUNTIME) {
        return None;
    }
    let enablements = facts.admission.enablements(CLR_RUNTIME);
    let with_maps = enablements.filter(|(_, with)| with.admits(&MAP));
    with_maps
        .map(|(enabled, _)| enabled.from.unwrap_or(Ticks::MIN))
        .min()
}

/// Whether the last enablement before a rundown, which requested it, admits maps.
fn requests_maps(facts: &Facts, bracket: &Bracket) -> bool {
    let enablements = facts.admission.enablements(CLR_RUNDOWN);
    let before = enablements.filter(|(enabled, _)| match (enabled.from, bracket.opened) {
        (None, _) => true,
        (Some(from), Some(opened)) => from <= opened,
        (Some(_), None) => false,
    });
    match before.last() {
        Some((enabled, with)) => !enabled.is_limited && with.admits(&MAP),
        None => false,
    }
}

/// Rundowns that lack maps.
fn listed_maps(check: &mut Check<'_>, process: &Process) {
    for bracket in process.brackets().iter().filter(|b| b.is_whole()) {
        let is_enabled = bracket.maps > 0 || requests_maps(check.facts, bracket);
        if bracket.maps >= bracket.compiled || !is_enabled {
            continue;
        }
        let message = format!(
            "the {} rundown of CLR {} has maps of IL to native code for {} of {}",
            bracket.kind.name(),
            bracket.instance,
            bracket.maps,
            plural(bracket.compiled, "compiled method", "compiled methods"),
        );
        let is_requested = requests_maps(check.facts, bracket);
        let found = check.report(message).about(process, bracket.opened);
        let found = found.amount(bracket.compiled - bracket.maps);
        let found = found.unless_lost(None, bracket.closed);
        if is_requested {
            let severity = severity_of_maps(found.facts, CLR_RUNDOWN);
            found.severity(severity);
        }
    }
}

/// The severity of maps that the known enablements of a provider request, and that are missing.
fn severity_of_maps(facts: &Facts, provider: Guid) -> Severity {
    if facts.admission.is_closed(provider) {
        Severity::Error
    } else {
        NO_IL_MAP.severity
    }
}
