//! Code over code, and loads and unloads that do not match.

use etl_analysis::machine::{Counted, Process, UnfinishedJit};
use etl_control::enable::EventKey;
use etl_format::constants::FILETIME_PER_SECOND;
use etl_format::{Clock, Ticks};
use etl_schema::clr::keyword::JIT;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::clr::Change;

use crate::checks::enablement::{On, is_core};
use crate::checks::{Facts, merge};
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
            .report(message)
            .about(process, Some(overlap.time))
            .unless_lost(None, Some(overlap.time));
    }
}

pub(in crate::rules) const IMPLAUSIBLE: Rule = Rule {
    id: "symbols.implausible",
    statement: "The code of a method is in the address space of its process and has at most \
                64 MiB, and a method has a token exactly if it has metadata. All events of a CLR \
                state the same kind of runtime, and all events of a method, a module, an assembly \
                or a domain the same flags.",
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
                "{events} implausible code: at address 0 or outside of the process's address \
                 space, with no bytes or too large, or with a token that does not fit its method"
            )
        });
        check.each(Process::contradictions, |count| {
            let events = plural(count, "event states", "events state");
            format!("{events} another kind of runtime (Sku) than earlier events of the same CLR")
        });
        check.each(Process::flag_contradictions, |count| {
            let events = plural(count, "event has", "events have");
            format!(
                "{events} other flags than earlier events of the same method, module, assembly \
                 or domain"
            )
        });
    },
};

pub(in crate::rules) const LOADED_TWICE: Rule = Rule {
    id: "symbols.loaded-twice",
    statement: "Nothing is loaded that is loaded already, or unloaded that is unloaded already.",
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
        });
        check.each(Process::unloaded_twice, |count| {
            let items = plural(
                count,
                "module, assembly or domain was",
                "modules, assemblies or domains were",
            );
            format!("{items} unloaded again without a load")
        });
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
    remedy: "If the order of loads matters, also request a start rundown (0x40):",
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
            // What existed before the recording has no load.
            let Some(started) = recorded_start(process, clr) else {
                continue;
            };
            let items = clr.unloads_unknown();
            // At level 4 .NET Core raises the unloads of compiled methods only.
            let methods = if is_core(process) && !has_jit_loads(process) {
                Counted::default()
            } else {
                clr.method_unloads_unknown()
            };
            let unloads = [
                UnknownUnloads {
                    counted: items,
                    words: plural(
                        items.count,
                        "module, assembly or domain",
                        "modules, assemblies or domains",
                    ),
                    loads: &facts.runtime_on.loader,
                },
                UnknownUnloads {
                    counted: methods,
                    words: plural(methods.count, "compiled method", "compiled methods"),
                    loads: facts.runtime_on.jit(process),
                },
            ];
            for unknown in unloads {
                let Some(first) = unknown.counted.first else {
                    continue;
                };
                let message = format!(
                    "CLR {instance} started during the recording, and unloaded {} that it never \
                     loaded",
                    unknown.words
                );
                let found = check.report(message).about(process, Some(first));
                let found = found.unless_lost(Some(started), Some(first));
                if unknown.has_loads(started, first) {
                    found.severity(Severity::Warning);
                }
            }
        }
    }
}

/// Whether a process has a load event of a compiled method.
fn has_jit_loads(process: &Process) -> bool {
    let mut signs = process.signs().iter();
    signs.any(|count| count.sign.change == Change::Load && count.sign.is_compiled())
}

/// Unloads of a CLR without a load.
struct UnknownUnloads<'f> {
    counted: Counted,
    /// The number of unloads, in words.
    words: String,
    /// When loads of such items were enabled.
    loads: &'f On,
}

impl UnknownUnloads<'_> {
    /// Whether loads were enabled from the start of the CLR. Without known enablements, a session
    /// that got unloads also got loads.
    fn has_loads(&self, started: Ticks, first_unload: Ticks) -> bool {
        if self.loads.known.source.is_none() {
            return true;
        }
        let since = self.loads.since(first_unload);
        since.is_some_and(|since| since <= started)
    }
}

/// One finding for the whole trace: without a start rundown most traces have such methods.
fn code_unload_unknown(check: &mut Check<'_>) {
    let mut processes = Vec::new();
    let mut sum = Counted::default();
    for process in check.facts.machine.processes() {
        // Unloads of a CLR that started during the recording have a finding of their own.
        let clrs = process.clrs().values();
        let started = clrs.filter(|clr| recorded_start(process, clr).is_some());
        let reported: u64 = started.map(|clr| clr.method_unloads_unknown().count).sum();
        let mut unknown = process.unloads_unknown();
        unknown.count = unknown.count.saturating_sub(reported);
        if unknown.count > 0 {
            processes.push(process);
            merge(&mut sum, unknown);
        }
    }
    let unloaded = plural(sum.count, "piece of code was", "pieces of code were");
    let found = match processes[..] {
        [] => return,
        [process] => check
            .report(format!(
                "{unloaded} unloaded without being loaded or listed before"
            ))
            .about(process, sum.first),
        _ => check
            .report(format!(
                "{unloaded} unloaded without being loaded or listed before, in {} processes",
                processes.len()
            ))
            .at(sum.first),
    };
    found.unless_lost(None, sum.first);
}

pub(in crate::rules) const JIT_WITHOUT_LOAD: Rule = Rule {
    id: "symbols.jit-without-load",
    statement: "A method that starts to be compiled is loaded, by the same thread; and if both \
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

/// Compiling takes milliseconds: after this time in 100 ns a compilation is finished.
const LONG: i64 = FILETIME_PER_SECOND / 2;

/// MethodJittingStarted.
const JITTING: EventKey = EventKey {
    id: 145,
    level: 5,
    keyword: JIT,
};

/// When the starts of compilations were enabled for all processes, by all enablements: while
/// another enablement was the only one, loads came alone. `None` if that is not known.
fn jitting_enabled(facts: &Facts) -> Option<Ticks> {
    let admission = &facts.admission;
    let mut enablements = admission.enablements(CLR_RUNTIME);
    if enablements.all(|(enabled, with)| !enabled.is_limited && with.admits(&JITTING)) {
        admission.first_enabled(CLR_RUNTIME)
    } else {
        None
    }
}

/// Adds findings for loads without a start of their compilation, and for loads by another thread.
fn load_without_jit(check: &mut Check<'_>) {
    let facts = check.facts;
    let enabled = jitting_enabled(facts);
    for process in facts.machine.processes() {
        let without = process.loads_without_jit();
        if let Some(enabled) = enabled
            && let Some(first) = without.first
            && enabled < first
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
                .report(message)
                .about(process, without.first)
                .unless_lost(None, without.first);
        }
    }
    for process in facts.machine.processes() {
        let compiled = process.compiled();
        let maps = process.maps();
        // The load of the first method may be before the recording.
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
                .report(message)
                .about(process, maps.first)
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
        let Some(last_event) = process.last_runtime() else {
            continue;
        };
        let ends = RuntimeEnds {
            clock: facts.machine.clock(),
            process: last_event,
            trace: facts
                .machine
                .runtime_span()
                .map_or(last_event, |span| span.last),
        };
        let stuck: Vec<_> = process
            .unfinished_jits()
            .filter(|jit| ends.has_finished(jit))
            .map(|jit| (jit.since, jit.id))
            .collect();
        let Some(&(timestamp, id)) = stuck.iter().min() else {
            continue;
        };
        let message = format!(
            "{} compiled without a later load event (first: {id:#x})",
            plural(stuck.len() as u64, "method was", "methods were")
        );
        let found = check.report(message).about(process, Some(timestamp));
        found.unless_lost(Some(timestamp), None);
    }
}

/// Times of the last events of the runtime provider.
struct RuntimeEnds<'f> {
    clock: &'f Clock,
    /// Of the process.
    process: Ticks,
    /// Of all processes.
    trace: Ticks,
}

impl RuntimeEnds<'_> {
    /// Whether a compilation must have finished, although there is no load of its method.
    fn has_finished(&self, jit: &UnfinishedJit) -> bool {
        // What a rundown lists was compiled by then, perhaps after the runtime session ended.
        if jit.is_listed && self.duration(jit, self.trace) > LONG / 2 {
            return true;
        }
        if let Some(unloaded) = jit.unloaded
            && self.duration(jit, unloaded) > LONG / 2
        {
            return true;
        }
        // A thread that has loaded another method since is done, unless that load was nested.
        let has_loaded = jit.last_load.is_some_and(|load| load > jit.since);
        let duration = self.duration(jit, self.process);
        duration > 4 * LONG || has_loaded && duration > LONG
    }

    /// The time from the start of a compilation to `end`, in 100 ns.
    fn duration(&self, jit: &UnfinishedJit, end: Ticks) -> i64 {
        let began = self.clock.time(jit.since).get();
        self.clock.time(end).get().saturating_sub(began)
    }
}
