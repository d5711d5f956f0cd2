//! Code over code, and loads and unloads that do not match.

use etl_format::constants::FILETIME_PER_SECOND;

use crate::facts::{Counted, Process};
use crate::finding::Severity;
use crate::rules::commands::{RECORDING, RUNTIME_LARGE, START_RUNDOWN};
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const OVERLAPPING: Rule = Rule {
    id: "symbols.overlapping",
    statement: "At any time an address belongs to one method.",
    severity: Severity::Note,
    source: "symbol resolution",
    protocol: &["S2"],
    meaning: "Code was loaded where other code still was: an unload event is missing.",
    remedy: "Enable EndEnumerationKeyword (0x80) in the runtime session, which logs unloads:",
    commands: RECORDING,
    check: overlapping,
};

fn overlapping(check: &mut Check<'_>) {
    for process in check.facts.processes() {
        let Some((timestamp, start, other)) = process.overlap() else { continue };
        let message = format!(
            "{} a method was loaded over the code of another: first at {start:#x}, over the one at \
             {other:#x}",
            plural(process.code().overlaps, "time", "times")
        );
        check.find(message).of(process, Some(timestamp)).unless_lost(None, Some(timestamp));
    }
}

pub(in crate::rules) const IMPLAUSIBLE: Rule = Rule {
    id: "symbols.implausible",
    statement: "The code of a method that was compiled has an address, and a size of at most \
                64 MiB.",
    severity: Severity::Warning,
    source: "symbol resolution",
    protocol: &["S1"],
    meaning: "Events of methods were changed or damaged: addresses get the name of another method, \
              or none.",
    remedy: "Use the files that the sessions wrote, or record again:",
    commands: RECORDING,
    check: |check| {
        check.each(Process::implausible, |count| {
            let events = plural(count, "event states", "events state");
            format!("{events} code of a compiled method at address 0, of no bytes, or too large")
        })
    },
};

pub(in crate::rules) const LOADED_TWICE: Rule = Rule {
    id: "symbols.loaded-twice",
    statement: "Nothing is loaded that is loaded already.",
    severity: Severity::Note,
    source: "symbol resolution",
    protocol: &["S2"],
    meaning: "Code, a module, an assembly or a domain was loaded twice without an unload between: \
              the unload event is missing, or the load event was doubled.",
    remedy: "Enable EndEnumerationKeyword (0x80) in the runtime session, which logs unloads:",
    commands: RECORDING,
    check: |check| {
        check.each(Process::loaded_twice, |count| {
            let items = plural(count, "item was", "items were");
            format!("{items} loaded again without an unload")
        })
    },
};

pub(in crate::rules) const UNLOAD_UNKNOWN: Rule = Rule {
    id: "symbols.unload-unknown",
    statement: "Code that is unloaded was loaded or listed before.",
    severity: Severity::Note,
    source: "symbol resolution",
    protocol: &["S1"],
    meaning: "The method was there since before the recording, and no start rundown lists it. Its \
              addresses resolve all the same.",
    remedy: "If the order of loads matters, request a start rundown (0x40), too:",
    commands: START_RUNDOWN,
    check: unload_unknown,
};

/// One finding for the whole trace: without a start rundown most traces have such methods.
fn unload_unknown(check: &mut Check<'_>) {
    let unknown = check.facts.processes().iter().map(|p| (p, p.unloads_unknown()));
    let unknown: Vec<_> = unknown.filter(|(_, counted)| counted.count > 0).collect();
    let Some(&(process, Counted { first, .. })) = unknown.iter().min_by_key(|(_, c)| c.first)
    else {
        return;
    };
    let count = unknown.iter().map(|(_, counted)| counted.count).sum();
    let several = unknown.len() > 1;
    let spread = if several { format!(", in {} processes", unknown.len()) } else { String::new() };
    let message = format!(
        "{} unloaded without being loaded or listed before{spread}",
        plural(count, "piece of code was", "pieces of code were")
    );
    let found = check.find(message);
    let found = if several { found.at(first) } else { found.of(process, first) };
    found.unless_lost(None, first);
}

pub(in crate::rules) const JIT_WITHOUT_LOAD: Rule = Rule {
    id: "symbols.jit-without-load",
    statement: "A method that starts to be compiled is loaded.",
    severity: Severity::Warning,
    source: "what the CLR logs",
    protocol: &["E6"],
    meaning: "Methods were being compiled, and their load events never came: they were lost, or \
              the compilation failed.",
    remedy: "Use more buffers:",
    commands: &[RUNTIME_LARGE],
    check: jit_without_load,
};

/// Compiling takes milliseconds; what started longer before the process's last event is finished.
const LONG: i64 = FILETIME_PER_SECOND / 2;

fn jit_without_load(check: &mut Check<'_>) {
    let facts = check.facts;
    for process in facts.processes() {
        let Some(last) = process.last_runtime() else { continue };
        let last = facts.clock().filetime(last);
        // A thread that has loaded something since is done with it, unless the load was nested.
        let stuck = process.unfinished_jits().filter(|(timestamp, _, last_load)| {
            let since = last.saturating_sub(facts.clock().filetime(*timestamp));
            let is_done = last_load.is_some_and(|load| load > *timestamp);
            since > 4 * LONG || (is_done && since > LONG)
        });
        let stuck: Vec<_> = stuck.map(|(timestamp, id, _)| (timestamp, id)).collect();
        let Some(&(timestamp, id)) = stuck.iter().min() else { continue };
        let message = format!(
            "{} compiled without a later load event (first: {id:#x})",
            plural(stuck.len() as u64, "method was", "methods were")
        );
        let found = check.find(message).of(process, Some(timestamp));
        found.unless_lost(Some(timestamp), None);
    }
}
