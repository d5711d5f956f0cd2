//! Code over code, and loads and unloads that do not match.

use etl_analysis::machine::{Counted, Process};
use etl_control::enable::EventKey;
use etl_format::Ticks;
use etl_format::constants::FILETIME_PER_SECOND;
use etl_schema::clr::keyword::JIT;
use etl_schema::providers::CLR_RUNTIME;

use crate::finding::Severity;
use crate::rules::commands::{RECORDING, RUNTIME_LARGE, START_RUNDOWN};
use crate::rules::kernel::is_selection;
use crate::rules::{Check, Rule, plural, recorded_start};

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
    for process in check.facts.machine.processes() {
        let Some(overlap) = process.overlap() else {
            continue;
        };
        let message = format!(
            "{} a method was loaded over the code of another: first at {:#x}, over the one at {:#x}",
            plural(process.code().overlaps, "time", "times"),
            overlap.start,
            overlap.other
        );
        check
            .find(message)
            .of(process, Some(overlap.time))
            .unless_lost(None, Some(overlap.time));
    }
}

pub(in crate::rules) const IMPLAUSIBLE: Rule = Rule {
    id: "symbols.implausible",
    statement: "The code of a method is in the address space of its process and has at most \
                64 MiB, and a method has a token exactly if it has metadata.",
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
            format!(
                "{events} code that cannot be: at address 0 or beyond those of the process, of no \
                 bytes or too large, or with a token that does not fit its method"
            )
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
    statement: "What is unloaded was loaded or listed before, and under the same id.",
    severity: Severity::Note,
    source: "symbol resolution",
    protocol: &["S1"],
    meaning: "The method was there since before the recording, and no start rundown lists it. Its \
              addresses resolve all the same. If its CLR started during the recording, the load \
              event is missing, which is a warning.",
    remedy: "If the order of loads matters, request a start rundown (0x40), too:",
    commands: START_RUNDOWN,
    check: unload_unknown,
};

fn unload_unknown(check: &mut Check<'_>) {
    code_unload_unknown(check);
    check.each(Process::unloads_as_other, |count| {
        let pieces = plural(count, "piece of code was", "pieces of code were");
        format!("{pieces} unloaded under the id of another method than loaded")
    });
    let facts = check.facts;
    for process in facts.machine.processes() {
        for (instance, clr) in process.clrs() {
            // What was there before the recording has no load.
            let Some(started) = recorded_start(process, clr) else {
                continue;
            };
            let (item, items) = (
                "module, assembly or domain",
                "modules, assemblies or domains",
            );
            let unloads = [
                (clr.unloads_unknown(), item, items, &facts.runtime_on.loader),
                (
                    clr.method_unloads_unknown(),
                    "compiled method",
                    "compiled methods",
                    &facts.runtime_on.jit,
                ),
            ];
            for (unknown, one, many, on) in unloads {
                let Some(first) = unknown.first else { continue };
                let message = format!(
                    "CLR {instance} started during the recording, and unloaded {} that it never \
                     loaded",
                    plural(unknown.count, one, many),
                );
                let found = check.find(message).of(process, Some(first));
                let found = found.unless_lost(Some(started), Some(first));
                // Without known enablements, what is logged of unloads was logged of loads.
                let known = on.known.knowledge.is_some();
                if !known || on.since(first).is_some_and(|on| on <= started) {
                    found.severity(Severity::Warning);
                }
            }
        }
    }
}

/// One finding for the whole trace: without a start rundown most traces have such methods.
fn code_unload_unknown(check: &mut Check<'_>) {
    let unknown = check.facts.machine.processes().iter().map(|process| {
        // Those of a CLR that started during the recording have a finding of their own.
        let clrs = process.clrs().values();
        let started = clrs.filter(|clr| recorded_start(process, clr).is_some());
        let reported = started.map(|clr| clr.method_unloads_unknown().count).sum();
        let all = process.unloads_unknown();
        (
            process,
            Counted {
                count: all.count.saturating_sub(reported),
                ..all
            },
        )
    });
    let unknown: Vec<_> = unknown.filter(|(_, counted)| counted.count > 0).collect();
    let Some(&(process, Counted { first, .. })) = unknown.iter().min_by_key(|(_, c)| c.first)
    else {
        return;
    };
    let count = unknown.iter().map(|(_, counted)| counted.count).sum();
    let several = unknown.len() > 1;
    let spread = if several {
        format!(", in {} processes", unknown.len())
    } else {
        String::new()
    };
    let message = format!(
        "{} unloaded without being loaded or listed before{spread}",
        plural(count, "piece of code was", "pieces of code were")
    );
    let found = check.find(message);
    let found = if several {
        found.at(first)
    } else {
        found.of(process, first)
    };
    found.unless_lost(None, first);
}

pub(in crate::rules) const JIT_WITHOUT_LOAD: Rule = Rule {
    id: "symbols.jit-without-load",
    statement: "A method that starts to be compiled is loaded, by the same thread; and where both \
                are logged, a compiled method that is loaded started to be compiled.",
    severity: Severity::Error,
    source: "what the CLR logs",
    protocol: &["E6"],
    meaning: "Methods were being compiled, and their load events never came: they were lost, or \
              the compilation failed. Or the beginning of a compilation was lost.",
    remedy: "Use more buffers:",
    commands: &[RUNTIME_LARGE],
    check: jit_without_load,
};

/// Compiling takes milliseconds; what started longer before the process's last event is finished.
const LONG: i64 = FILETIME_PER_SECOND / 2;

/// MethodJittingStarted.
const JITTING: EventKey = EventKey {
    id: 145,
    level: 5,
    keyword: JIT,
};

/// Loads without a beginning of the compilation, and of another thread than that.
fn load_without_jit(check: &mut Check<'_>) {
    let facts = check.facts;
    let known = || facts.admission.of(CLR_RUNTIME);
    let limited = known().any(|(e, _)| e.limited);
    // While another enablement was the only one, loads came alone.
    let asks = known().all(|(_, with)| with.admits(&JITTING));
    let enabled = known().map(|(e, _)| e.at.unwrap_or(Ticks::MIN)).min();
    let enabled = enabled.filter(|_| asks && !limited);
    for process in facts.machine.processes() {
        let without = process.loads_without_jit();
        if without
            .first
            .is_some_and(|first| enabled.is_some_and(|on| on < first))
        {
            let message = format!(
                "{} loaded without an event that its compilation began",
                plural(
                    without.count,
                    "compiled method was",
                    "compiled methods were"
                )
            );
            check
                .find(message)
                .of(process, without.first)
                .unless_lost(None, without.first);
        }
    }
    for process in facts.machine.processes() {
        let (compiled, maps) = (process.compiled(), process.maps());
        // The load of the first one may be before the recording.
        if maps.count > compiled.count + 1 {
            let message = format!(
                "{} of IL to native code for {} loaded",
                plural(maps.count, "map", "maps"),
                plural(
                    compiled.count,
                    "compiled method that was",
                    "compiled methods that were"
                )
            );
            check
                .find(message)
                .of(process, maps.first)
                .unless_lost(None, None);
        }
    }
    check.each(Process::loads_by_other_thread, |count| {
        let methods = plural(count, "method was", "methods were");
        format!("{methods} loaded by another thread than the one that began to compile it")
    });
}

fn jit_without_load(check: &mut Check<'_>) {
    if is_selection(check.facts) {
        return;
    }
    load_without_jit(check);
    let facts = check.facts;
    for process in facts.machine.processes() {
        let Some(last) = process.last_runtime() else {
            continue;
        };
        let last = facts.machine.clock().time(last).get();
        // A thread that has loaded something since is done with it, unless the load was nested.
        let end = facts
            .machine
            .runtime_span()
            .map_or(last, |span| facts.machine.clock().time(span.last).get());
        let stuck = process.unfinished_jits().filter(|jit| {
            let began = facts.machine.clock().time(jit.since).get();
            let since = last.saturating_sub(began);
            let is_done = jit.last_load.is_some_and(|load| load > jit.since);
            // What a rundown lists was compiled by then, perhaps after the runtime session ended.
            let is_over = jit.is_listed && end.saturating_sub(began) > LONG / 2;
            let unloaded = jit.unloaded.map(|at| facts.machine.clock().time(at).get());
            let is_over = is_over || unloaded.is_some_and(|at| at.saturating_sub(began) > LONG / 2);
            since > 4 * LONG || (is_done && since > LONG) || is_over
        });
        let stuck: Vec<_> = stuck.map(|jit| (jit.since, jit.id)).collect();
        let Some(&(timestamp, id)) = stuck.iter().min() else {
            continue;
        };
        let message = format!(
            "{} compiled without a later load event (first: {id:#x})",
            plural(stuck.len() as u64, "method was", "methods were")
        );
        let found = check.find(message).of(process, Some(timestamp));
        found.unless_lost(Some(timestamp), None);
    }
}
