//! What a CLR says of itself and of its code: its version, maps of IL to native code.

use etl_analysis::machine::Process;
use etl_control::enable::EventKey;
use etl_format::{Guid, Ticks};
use etl_schema::clr::keyword::IL_MAP;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use crate::checks::Facts;
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
    let known = || facts.admission.of(provider);
    if known().next().is_some() {
        return known().all(|(e, with)| !e.limited && with.admits(&RUNTIME_INFORMATION));
    }
    let kinds = facts
        .admission
        .providers()
        .remove(&provider)
        .unwrap_or_default();
    kinds
        .iter()
        .any(|(event, _)| event.level >= RUNTIME_INFORMATION.level)
}

fn runtime_unknown(check: &mut Check<'_>) {
    let facts = check.facts;
    let [starts, listings] = [CLR_RUNTIME, CLR_RUNDOWN].map(|p| states_runtimes(facts, p));
    let enabled = facts
        .admission
        .of(CLR_RUNTIME)
        .filter_map(|(e, _)| e.at)
        .min();
    let recorded = facts
        .machine
        .runtime_span()
        .map(|span| span.first)
        .into_iter()
        .chain(enabled)
        .min();
    for (process, instance, _) in facts.collections().filter(|_| starts) {
        let is_other = |p: &&Process| !p.clrs().is_empty() && !p.clrs().contains_key(&instance);
        let Some(process) = process.filter(is_other) else {
            continue;
        };
        let from = process
            .started()
            .filter(|start| recorded.is_some_and(|at| at < *start));
        if from.is_some() {
            let message =
                format!("CLR {instance} has events of its heap, and none that it started");
            check
                .find(message)
                .of(process, from)
                .unless_lost(from, None);
        }
    }
    for process in facts.machine.processes() {
        for (&instance, clr) in process.clrs() {
            let from = process
                .started()
                .filter(|start| recorded.is_some_and(|at| at < *start));
            if starts && from.is_some() && clr.runtime_events() > 0 && clr.started().is_none() {
                let message = format!(
                    "CLR {instance} has {}, but none that states that it started, although the \
                     process started during the recording",
                    plural(clr.runtime_events(), "event", "events")
                );
                check
                    .find(message)
                    .of(process, from)
                    .unless_lost(from, None);
            }
            let mut whole = process
                .brackets()
                .iter()
                .filter(|b| b.instance == instance && b.is_whole());
            if let Some(bracket) = whole.next()
                && listings
                && !clr.is_listed()
            {
                let message = format!("the rundowns of CLR {instance} do not state what it is");
                let found = check.find(message).of(process, bracket.opened);
                found.unless_lost(None, bracket.opened);
            }
        }
    }
}

pub(in crate::rules) const NO_IL_MAP: Rule = Rule {
    id: "symbols.no-il-map",
    statement: "Where maps of IL to native code are enabled, each method that was compiled has one.",
    severity: Severity::Note,
    source: "what the CLR logs",
    protocol: &["E6", "R3"],
    meaning: "Addresses in these methods have no source lines.",
    remedy: "Use more buffers, or enable JittedMethodILToNativeMapKeyword (0x20000) at level 5 for \
             the whole recording:",
    commands: END_RUNDOWN,
    check: no_il_map,
};

/// Methods whose map may still come, or comes without its load, when a session begins or ends.
const UNDER_WAY: u64 = 4;

const MAP: EventKey = EventKey {
    id: 190,
    level: 5,
    keyword: IL_MAP,
};

fn no_il_map(check: &mut Check<'_>) {
    let facts = check.facts;
    let known = |provider| facts.admission.of(provider);
    let limited = known(CLR_RUNTIME).any(|(e, _)| e.limited);
    let asks = known(CLR_RUNTIME).filter(|(_, with)| with.admits(&MAP));
    let enabled = asks
        .map(|(e, _)| e.at.unwrap_or(Ticks::MIN))
        .min()
        .filter(|_| !limited);
    for process in facts.machine.processes() {
        let (compiled, maps) = (process.compiled(), process.maps());
        let since = compiled
            .first
            .filter(|first| enabled.is_some_and(|on| on < *first));
        if since.is_some() && maps.count + UNDER_WAY < compiled.count {
            let message = format!(
                "{} of {} that were loaded have a map of IL to native code",
                maps.count,
                plural(compiled.count, "compiled method", "compiled methods"),
            );
            check
                .find(message)
                .of(process, since)
                .unless_lost(since, None);
        }
        listed_maps(check, process);
    }
}

/// Rundowns that lack maps.
fn listed_maps(check: &mut Check<'_>, process: &Process) {
    let facts = check.facts;
    for bracket in process.brackets().iter().filter(|b| b.is_whole()) {
        // The last enablement before it requested it.
        let before = |e: Option<Ticks>| e.is_none_or(|at| bracket.opened.is_some_and(|o| at <= o));
        let last = facts
            .admission
            .of(CLR_RUNDOWN)
            .filter(|(e, _)| before(e.at))
            .last();
        let is_enabled = last.is_some_and(|(e, with)| !e.limited && with.admits(&MAP));
        if bracket.maps >= bracket.compiled || (bracket.maps == 0 && !is_enabled) {
            continue;
        }
        let message = format!(
            "the {} rundown of CLR {} has maps of IL to native code for {} of {}",
            bracket.kind.name(),
            bracket.instance,
            bracket.maps,
            plural(bracket.compiled, "compiled method", "compiled methods"),
        );
        let found = check.find(message).of(process, bracket.opened);
        found.unless_lost(None, bracket.closed);
    }
}
