//! Init and Complete, which enclose a rundown, and events on the wrong side of them.

use std::collections::BTreeMap;

use crate::facts::{Bracket, Facts, Process};
use crate::finding::{Finding, Severity};
use crate::rules::commands::{END_RUNDOWN, LARGE_END_RUNDOWN, RECORDING};
use crate::rules::{Context, Rule, each_counted, each_process, plural};
use etl_schema::clr::Enumeration;

/// A finding for each rundown that `check` has one for.
fn each_bracket(
    context: &Context<'_>,
    check: impl Fn(&Facts, &Process, &Bracket) -> Option<Finding>,
) -> Vec<Finding> {
    let facts = context.facts;
    let of = |process| {
        let check = &check;
        move |bracket| check(facts, process, bracket)
    };
    facts.processes().iter().flat_map(|p| p.brackets().iter().filter_map(of(p))).collect()
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

fn unclosed(context: &Context<'_>) -> Vec<Finding> {
    let facts = context.facts;
    let mut findings = Vec::new();
    for process in facts.processes() {
        // The last rundown of each kind that began inside another one: `rundown.overlapping`
        // reports that those before it have no Complete.
        let nested = process.brackets().iter().enumerate().filter(|(_, b)| b.nested);
        let nested: BTreeMap<_, _> = nested.map(|(at, b)| ((b.kind, b.instance), at)).collect();
        for (at, bracket) in process.brackets().iter().enumerate() {
            let (Some(opened), None) = (bracket.opened, bracket.closed) else { continue };
            if nested.get(&(bracket.kind, bracket.instance)).is_some_and(|&last| last > at) {
                continue;
            }
            let why = if process.ended().is_some_and(|ended| ended >= opened) {
                "the process ended during it"
            } else {
                "the rundown session was stopped too early, or the process ended"
            };
            let l = bracket.listed;
            let message = format!(
                "the {} rundown of CLR {} has no Complete event: {why}; it lists {}",
                bracket.kind.name(),
                bracket.instance,
                plural(l.methods + l.modules + l.assemblies + l.domains, "item", "items")
            );
            let finding = UNCLOSED.finding(message).of(facts, process, Some(opened));
            findings.push(finding.unless_lost(facts, Some(bracket.last), None));
        }
    }
    findings
}

pub(in crate::rules) const NO_INIT: Rule = Rule {
    id: "rundown.no-init",
    statement: "A rundown that is completed has a beginning.",
    severity: Severity::Warning,
    source: "the CLR's rundown protocol",
    protocol: &["R5"],
    meaning: "The first events of the rundown are missing, perhaps with items that they list.",
    remedy: "Use more buffers for the rundown session:",
    commands: LARGE_END_RUNDOWN,
    check: no_init,
};

fn no_init(context: &Context<'_>) -> Vec<Finding> {
    each_bracket(context, |facts, process, bracket| {
        if bracket.opened.is_some() {
            return None;
        }
        let message = format!(
            "the {} rundown of CLR {} has a Complete event but no Init event: its first events are \
             missing",
            bracket.kind.name(),
            bracket.instance
        );
        let finding = NO_INIT.finding(message).of(facts, process, bracket.closed);
        Some(finding.unless_lost(facts, None, bracket.closed))
    })
}

pub(in crate::rules) const OVERLAPPING: Rule = Rule {
    id: "rundown.overlapping",
    statement: "Rundowns of one kind and one CLR follow each other.",
    severity: Severity::Warning,
    source: "the CLR's rundown protocol",
    protocol: &["R5"],
    meaning: "A second rundown began before the first was complete: the first one's Complete event \
              is missing.",
    remedy: "Request a rundown once, and wait until it is complete:",
    commands: LARGE_END_RUNDOWN,
    check: overlapping,
};

fn overlapping(context: &Context<'_>) -> Vec<Finding> {
    each_bracket(context, |facts, process, bracket| {
        if !bracket.nested {
            return None;
        }
        let message = format!(
            "a second {} rundown of CLR {} began before the first was complete",
            bracket.kind.name(),
            bracket.instance
        );
        let timestamp = bracket.opened.or(bracket.closed);
        let finding = OVERLAPPING.finding(message).of(facts, process, timestamp);
        Some(finding.unless_lost(facts, None, timestamp))
    })
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
    check: |context| {
        each_counted(context, &OUTSIDE_BRACKET, Process::outside, |count| {
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
    check: |context| {
        each_counted(context, &MIXED, Process::mixed, |count| {
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

fn wrong_provider(context: &Context<'_>) -> Vec<Finding> {
    each_process(context, |facts, process| {
        let wrong = process.wrong_provider();
        let message = format!(
            "{} logged by the other of the CLR's two providers",
            plural(wrong.count, "rundown or load event was", "rundown or load events were")
        );
        let finding = WRONG_PROVIDER.finding(message).of(facts, process, wrong.first);
        (wrong.count > 0).then_some(finding)
    })
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

fn endless(context: &Context<'_>) -> Vec<Finding> {
    each_process(context, |facts, process| {
        let mut counts: BTreeMap<(u16, Enumeration), usize> = BTreeMap::new();
        for bracket in process.brackets() {
            *counts.entry((bracket.instance, bracket.kind)).or_default() += 1;
        }
        let most = counts.into_values().max().unwrap_or(0);
        let (listed, methods) = (process.methods_enumerated(), process.methods());
        let repeated = listed > MIN_EVENTS && listed / methods.max(1) >= MIN_REPEATS;
        if most <= MAX_BRACKETS && !repeated {
            return None;
        }
        let message = format!(
            "{most} rundowns of one CLR list methods {listed} times, and there are {methods}"
        );
        let first = process.brackets().first();
        let timestamp = first.and_then(|b| b.opened.or(b.closed));
        Some(ENDLESS.finding(message).of(facts, process, timestamp))
    })
}
