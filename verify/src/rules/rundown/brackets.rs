//! Init and Complete, which enclose a rundown, and events on the wrong side of them.

use std::collections::BTreeMap;

use super::jit_loads::Loads;
use crate::finding::Severity;
use crate::rules::commands::{END_RUNDOWN, LARGE_END_RUNDOWN, RECORDING};
use crate::rules::{Check, Rule, plural};
use etl_analysis::machine::{Bracket, Process};
use etl_format::Ticks;
use etl_schema::clr::Enumeration;

/// Every rundown, with its process.
fn brackets<'a>(check: &Check<'a>) -> impl Iterator<Item = (&'a Process, &'a Bracket)> + use<'a> {
    let processes = check.facts.machine.processes().iter();
    processes.flat_map(|process| process.brackets().iter().map(move |b| (process, b)))
}

/// The number of items that a rundown lists.
fn listed_items(bracket: &Bracket) -> u64 {
    let listed = bracket.listed;
    listed.methods + listed.modules + listed.assemblies + listed.app_domains
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
    for process in check.facts.machine.processes() {
        // The last rundown of each kind that began inside another: `rundown.overlapping` reports
        // that the rundowns before it have no Complete.
        let mut last_nested = BTreeMap::new();
        for (index, bracket) in process.brackets().iter().enumerate() {
            if bracket.nested {
                last_nested.insert((bracket.kind, bracket.instance), index);
            }
        }
        for (index, bracket) in process.brackets().iter().enumerate() {
            let last_nested = last_nested.get(&(bracket.kind, bracket.instance));
            if last_nested.is_some_and(|&last| last > index) {
                continue;
            }
            if let Some(opened) = bracket.opened
                && bracket.closed.is_none()
            {
                report_unclosed(check, process, bracket, opened);
            }
        }
    }
}

fn report_unclosed(check: &mut Check<'_>, process: &Process, bracket: &Bracket, opened: Ticks) {
    let mut why = "the rundown session was stopped too early, or the process ended";
    let mut severity = UNCLOSED.severity;
    if let Some(ended) = process.ended()
        && ended >= opened
    {
        // All that it would have listed may have a load.
        if check.rundowns.jit_loads.since_start(process, ended) == Loads::Whole {
            why = "the process ended during it, and its loads were recorded";
            severity = Severity::Note;
        } else {
            why = "the process ended during it";
        }
    }
    let message = format!(
        "the {} rundown of CLR {} has no Complete event: {why}; it lists {}",
        bracket.kind.name(),
        bracket.instance,
        plural(listed_items(bracket), "item", "items")
    );
    let found = check
        .report(message)
        .severity(severity)
        .about(process, Some(opened));
    if !found.facts.is_cut_stream() {
        found.unless_lost(Some(bracket.last), None);
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
            .report(message)
            .about(process, bracket.closed)
            .unless_lost(None, bracket.closed);
    }
}

pub(in crate::rules) const OVERLAPPING: Rule = Rule {
    id: "rundown.overlapping",
    statement: "Rundowns of one kind and one CLR follow each other.",
    severity: Severity::Warning,
    source: "the CLR's rundown protocol",
    protocol: &["R5"],
    meaning: "A second rundown began before the first was complete: the Complete event of the first \
              is missing. If the second lists less, this is an error: what the first would have \
              listed last is missing.",
    remedy: "Request a rundown once, and wait until it is complete:",
    commands: LARGE_END_RUNDOWN,
    check: overlapping,
};

fn overlapping(check: &mut Check<'_>) {
    for (process, second) in brackets(check).filter(|(_, bracket)| bracket.nested) {
        let lists_less = process.brackets().iter().any(|first| {
            (first.kind, first.instance) == (second.kind, second.instance)
                && first.closed.is_none()
                && first.opened < second.opened
                && !lists_all_of(second, first)
        });
        let mut severity = OVERLAPPING.severity;
        let mut less = "";
        if lists_less {
            severity = Severity::Error;
            less = ", and lists less";
        }
        let message = format!(
            "a second {} rundown of CLR {} began before the first was complete{less}",
            second.kind.name(),
            second.instance
        );
        let timestamp = second.opened.or(second.closed);
        let found = check
            .report(message)
            .severity(severity)
            .about(process, timestamp);
        found.unless_lost(None, timestamp);
    }
}

/// Whether a rundown is whole and lists at least as much as an earlier one.
fn lists_all_of(second: &Bracket, first: &Bracket) -> bool {
    second.is_whole()
        && first.listed.methods <= second.listed.methods
        && first.listed.modules <= second.listed.modules
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
        if wrong.count == 0 {
            continue;
        }
        let message = format!(
            "{} logged by the other of the CLR's two providers",
            plural(
                wrong.count,
                "rundown or load event was",
                "rundown or load events were"
            )
        );
        check.report(message).about(process, wrong.first);
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

/// With more rundowns of one kind and CLR it is endless. Collectors request two or three.
const MAX_BRACKETS: usize = 16;
/// A rundown is endless if it lists every method this often...
const MIN_REPEATS: u64 = 8;
/// ...with more events than this.
const MIN_EVENTS: u64 = 10_000;

fn endless(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        let mut counts: BTreeMap<(u16, Enumeration), usize> = BTreeMap::new();
        for bracket in process.brackets() {
            *counts.entry((bracket.instance, bracket.kind)).or_default() += 1;
        }
        let rundowns = counts.into_values().max().unwrap_or(0);
        let listed = process.methods_enumerated();
        let methods = process.methods();
        let is_repeated = listed > MIN_EVENTS && listed / methods.max(1) >= MIN_REPEATS;
        if rundowns <= MAX_BRACKETS && !is_repeated {
            continue;
        }
        let message = format!(
            "{rundowns} rundowns of one CLR list methods {listed} times, and there are {methods}"
        );
        let first = process.brackets().first();
        let timestamp = first.and_then(|bracket| bracket.opened.or(bracket.closed));
        check.report(message).about(process, timestamp);
    }
}
