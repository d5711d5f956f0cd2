//! Init and Complete, which enclose a rundown, and events on the wrong side of them.

use std::collections::BTreeMap;

use super::jit_loads::Loads;
use crate::finding::Severity;
use crate::rules::commands::{END_RUNDOWN, LARGE_END_RUNDOWN, RECORDING};
use crate::rules::{Check, Rule, plural};
use etl_analysis::machine::{Bracket, Process};
use etl_schema::clr::Enumeration;

/// Every rundown, with its process.
fn brackets<'a>(check: &Check<'a>) -> impl Iterator<Item = (&'a Process, &'a Bracket)> + use<'a> {
    check
        .facts
        .machine
        .processes()
        .iter()
        .flat_map(|p| p.brackets().iter().map(move |b| (p, b)))
}

pub(in crate::rules) const UNCLOSED: Rule = Rule {
    id: "rundown.unclosed",
    statement: "A rundown that begins is completed.",
    severity: Severity::Error,
    source: "the CLR's rundown protocol",
    protocol: &["R5"],
    meaning: "The rundown session was stopped too early, the process ended during the rundown, or \
              events were lost: the methods that would have been listed last are missing.",
    remedy: "Wait for DCEndComplete before you stop the rundown session. Large processes need a \
             minute, and more buffers:",
    commands: LARGE_END_RUNDOWN,
    check: unclosed,
};

fn unclosed(check: &mut Check<'_>) {
    let facts = check.facts;
    let jit_loads = &check.rundowns.jit_loads;
    for process in facts.machine.processes() {
        // The last rundown of each kind that began inside another one: `rundown.overlapping`
        // reports that those before it have no Complete.
        let nested = process
            .brackets()
            .iter()
            .enumerate()
            .filter(|(_, b)| b.nested);
        let nested: BTreeMap<_, _> = nested.map(|(at, b)| ((b.kind, b.instance), at)).collect();
        for (at, bracket) in process.brackets().iter().enumerate() {
            let (Some(opened), None) = (bracket.opened, bracket.closed) else {
                continue;
            };
            if nested
                .get(&(bracket.kind, bracket.instance))
                .is_some_and(|&last| last > at)
            {
                continue;
            }
            let ended = process.ended().filter(|&ended| ended >= opened);
            let has_ended = ended.is_some();
            // All that it would have listed has a load.
            let lacks_nothing =
                ended.is_some_and(|at| jit_loads.since_start(process, at) == Loads::Whole);
            let why = match (has_ended, lacks_nothing) {
                (true, true) => "the process ended during it, and its loads were recorded",
                (true, false) => "the process ended during it",
                (false, _) => "the rundown session was stopped too early, or the process ended",
            };
            let l = bracket.listed;
            let message = format!(
                "the {} rundown of CLR {} has no Complete event: {why}; it lists {}",
                bracket.kind.name(),
                bracket.instance,
                plural(
                    l.methods + l.modules + l.assemblies + l.app_domains,
                    "item",
                    "items"
                )
            );
            let severity = if lacks_nothing {
                Severity::Note
            } else {
                UNCLOSED.severity
            };
            let found = check
                .find(message)
                .severity(severity)
                .of(process, Some(opened));
            found.unless_lost(Some(bracket.last), None);
        }
    }
}

pub(in crate::rules) const NO_INIT: Rule = Rule {
    id: "rundown.no-init",
    statement: "A rundown that is completed has a beginning.",
    severity: Severity::Error,
    source: "the CLR's rundown protocol",
    protocol: &["R5"],
    meaning: "The first events of the rundown are missing, perhaps with items that they list.",
    remedy: "Use more buffers for the rundown session:",
    commands: LARGE_END_RUNDOWN,
    check: no_init,
};

fn no_init(check: &mut Check<'_>) {
    for (process, bracket) in brackets(check).filter(|(_, b)| b.opened.is_none()) {
        let message = format!(
            "the {} rundown of CLR {} has a Complete event but no Init event: its first events are \
             missing",
            bracket.kind.name(),
            bracket.instance
        );
        check
            .find(message)
            .of(process, bracket.closed)
            .unless_lost(None, bracket.closed);
    }
}

pub(in crate::rules) const OVERLAPPING: Rule = Rule {
    id: "rundown.overlapping",
    statement: "Rundowns of one kind and one CLR follow each other.",
    severity: Severity::Warning,
    source: "the CLR's rundown protocol",
    protocol: &["R5"],
    meaning: "A second rundown began before the first was complete: the first one's Complete event \
              is missing. Where the second one lists less, it is an error: what the first one would \
              have listed last is missing.",
    remedy: "Request a rundown once, and wait until it is complete:",
    commands: LARGE_END_RUNDOWN,
    check: overlapping,
};

fn overlapping(check: &mut Check<'_>) {
    for (process, bracket) in brackets(check).filter(|(_, b)| b.nested) {
        // The one without a Complete, if this one does not list as much.
        let is_cut = |first: &Bracket| {
            let is_first = (first.kind, first.instance) == (bracket.kind, bracket.instance)
                && first.closed.is_none()
                && first.opened < bracket.opened;
            let (before, after) = (first.listed, bracket.listed);
            let is_again = bracket.is_whole()
                && before.methods <= after.methods
                && before.modules <= after.modules;
            is_first && !is_again
        };
        let is_cut = process.brackets().iter().any(is_cut);
        let (severity, less) = match is_cut {
            true => (Severity::Error, ", and lists less"),
            false => (OVERLAPPING.severity, ""),
        };
        let message = format!(
            "a second {} rundown of CLR {} began before the first was complete{less}",
            bracket.kind.name(),
            bracket.instance
        );
        let timestamp = bracket.opened.or(bracket.closed);
        let found = check
            .find(message)
            .severity(severity)
            .of(process, timestamp);
        found.unless_lost(None, timestamp);
    }
}

pub(in crate::rules) const OUTSIDE_BRACKET: Rule = Rule {
    id: "rundown.outside-bracket",
    statement: "Everything that a rundown lists is between its Init and its Complete event.",
    severity: Severity::Warning,
    source: "the CLR's rundown protocol",
    protocol: &["R4", "R6"],
    meaning: "Listed items have no Init before them: it was lost, or the session enabled only the \
              Threading or PerfTrack keyword.",
    remedy: "Enable the rundown provider with EndRundown, Loader, Jit and NGen, which is 0x138:",
    commands: END_RUNDOWN,
    check: |check| {
        check.each(Process::outside, |count| {
            let items = plural(count, "listed item is", "listed items are");
            format!("{items} outside of Init and Complete of their CLR's rundowns")
        })
    },
};

pub(in crate::rules) const MIXED: Rule = Rule {
    id: "rundown.mixed",
    statement: "A start rundown lists what existed at the start, an end rundown what exists at the \
                end.",
    severity: Severity::Error,
    source: "the CLR's rundown protocol",
    protocol: &["R2", "R3"],
    meaning: "Events of one kind of rundown are inside a rundown of the other kind: the file was \
              changed, or its events were read with the wrong ids.",
    remedy: "A tool that wrote this file mixed up the event ids of the runtime and the rundown \
             provider. Use the files that the sessions wrote, or record again:",
    commands: RECORDING,
    check: |check| {
        check.each(Process::mixed, |count| {
            let events = plural(count, "event is", "events are");
            format!("{events} of one kind of rundown inside a rundown of the other kind")
        })
    },
};

pub(in crate::rules) const WRONG_PROVIDER: Rule = Rule {
    id: "rundown.wrong-provider",
    statement: "The rundown provider logs rundowns, the runtime provider logs loads and unloads.",
    severity: Severity::Note,
    source: "the CLR's rundown protocol; capture state and the first release of .NET Framework 4 \
             are exceptions",
    protocol: &["R4", "E8"],
    meaning: "Rundown events have the runtime provider's GUID, or load events the rundown \
              provider's.",
    remedy: "Nothing if the runtime is that old, or if a tool requested capture state. Readers \
             that look at event ids alone misread these events.",
    commands: &[],
    check: wrong_provider,
};

fn wrong_provider(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        let wrong = process.wrong_provider();
        let message = format!(
            "{} logged by the other of the CLR's two providers",
            plural(
                wrong.count,
                "rundown or load event was",
                "rundown or load events were"
            )
        );
        if wrong.count > 0 {
            check.find(message).of(process, wrong.first);
        }
    }
}

pub(in crate::rules) const ENDLESS: Rule = Rule {
    id: "rundown.endless",
    statement: "A rundown ends once it has listed everything.",
    severity: Severity::Warning,
    source: "the CLR's rundown protocol",
    protocol: &["R1"],
    meaning: "The same items are listed again and again: the rundown was requested many times, or \
              does not end. Such traces grow by gigabytes.",
    remedy: "Enable the rundown provider once, wait for DCEndComplete, and stop its session:",
    commands: END_RUNDOWN,
    check: endless,
};

/// Rundowns of one kind and CLR beyond which it is endless. Collectors request two or three.
const MAX_BRACKETS: usize = 16;
/// A rundown is endless if it lists every method this often, with this many events.
const MIN_REPEATS: u64 = 8;
const MIN_EVENTS: u64 = 10_000;

fn endless(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        let mut counts: BTreeMap<(u16, Enumeration), usize> = BTreeMap::new();
        for bracket in process.brackets() {
            *counts.entry((bracket.instance, bracket.kind)).or_default() += 1;
        }
        let most = counts.into_values().max().unwrap_or(0);
        let (listed, methods) = (process.methods_enumerated(), process.methods());
        let repeated = listed > MIN_EVENTS && listed / methods.max(1) >= MIN_REPEATS;
        if most <= MAX_BRACKETS && !repeated {
            continue;
        }
        let message = format!(
            "{most} rundowns of one CLR list methods {listed} times, and there are {methods}"
        );
        let first = process.brackets().first();
        let timestamp = first.and_then(|b| b.opened.or(b.closed));
        check.find(message).of(process, timestamp);
    }
}
