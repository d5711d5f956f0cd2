//! What a CLR unloads when it ends, and at which times.

use etl_analysis::address::Tag;
use etl_analysis::machine::{Clr, Items, MethodUnloads, Process, Span};
use etl_format::Ticks;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::clr::Change;

use crate::checks::Facts;
use crate::checks::enablement::{CORE_SKU, Known};
use crate::finding::Severity;
use crate::rules::commands::RUNTIME_LARGE;
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const NOT_UNLOADED: Rule = Rule {
    id: "symbols.not-unloaded",
    statement: "A CLR that ends unloads all that it loaded, and code together with its module.",
    severity: Severity::Warning,
    source: "what the CLR logs",
    protocol: &["E1", "E2"],
    meaning: "Unload events are missing, or have the wrong time: code seems to be there longer or \
              shorter than it was, and addresses get the names of other methods. If the enablement \
              that requests them is declared, this is an error.",
    remedy: "Enable EndEnumerationKeyword (0x80) for the whole recording, and use more buffers:",
    commands: &[RUNTIME_LARGE],
    check: not_unloaded,
};

fn not_unloaded(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        for (&instance, clr) in process.clrs() {
            left_over(check, process, instance, clr);
            promised_unloads(check, process, instance, clr);
            apart_from_module(check, process, instance, clr);
        }
    }
}

/// Adds a finding for what an ended CLR did not unload.
fn left_over(check: &mut Check<'_>, process: &Process, instance: u16, clr: &Clr) {
    let Some(started) = clr.started() else { return };
    // Its default domain has a load if loads were recorded from the beginning.
    if clr.domains().loaded() == 0 {
        return;
    }
    // A CLR keeps the first assembly, its module and its domain until it ends.
    let all = [clr.modules(), clr.assemblies(), clr.domains()];
    let is_over = all.iter().any(|items| is_all_unloaded(items)) || clr.ended().is_some();
    if !is_over && !unloads_before_exit(check.facts, process, all) {
        silent_end(check, process, instance, all);
        return;
    }
    let kinds = [
        (
            methods_left(check.facts, process, started),
            "method",
            "methods",
        ),
        (items_left(clr.modules()), "module", "modules"),
        (items_left(clr.assemblies()), "assembly", "assemblies"),
        (
            items_left(clr.domains()),
            "application domain",
            "application domains",
        ),
    ];
    let mut left = Vec::new();
    for (count, one, many) in kinds {
        if count > 0 {
            left.push(plural(count, one, many));
        }
    }
    if left.is_empty() {
        return;
    }
    let message = format!(
        "CLR {instance} ended, and did not unload {}",
        left.join(", ")
    );
    let severity = severity(check.facts);
    check
        .report(message)
        .about(process, process.ended())
        .severity(severity)
        .unless_lost(Some(started), None);
}

/// The severity of missing unloads: if the enablements are declared, they are certainly missing.
fn severity(facts: &Facts) -> Severity {
    if facts.admission.is_closed(CLR_RUNTIME) {
        Severity::Error
    } else {
        NOT_UNLOADED.severity
    }
}

/// Adds findings for methods without unload events in a CLR that ended, although the declared
/// enablement requests these events (E2, E3).
fn promised_unloads(check: &mut Check<'_>, process: &Process, instance: u16, clr: &Clr) {
    let facts = check.facts;
    let admission = &facts.admission;
    let is_promised = admission.is_closed(CLR_RUNTIME) && !admission.is_limited(CLR_RUNTIME);
    let Some(ended) = clr.ended() else { return };
    if !is_promised || process.clrs().len() != 1 {
        return;
    }
    let runtime_on = &facts.runtime_on;
    let second = facts.ticks_per_second();
    // What a CLR loaded from its start is left over: that has a finding of its own.
    let is_attached = clr.started().is_none() || clr.domains().loaded() == 0;
    let compiled = process.compiled_left();
    let is_on = [&runtime_on.end_enumeration, runtime_on.jit(process)]
        .iter()
        .all(|keyword| was_on(&keyword.known, ended, second));
    if is_attached && is_on && compiled > 0 {
        let methods = plural(compiled, "compiled method", "compiled methods");
        let message = format!(
            "CLR {instance} ended, and {methods} that it had loaded have no unload event, although \
             EndEnumeration (0x80) was enabled (E2)"
        );
        check
            .report(message)
            .about(process, Some(ended))
            .amount(compiled)
            .severity(Severity::Error)
            .unless_lost(None, None);
    }
    if was_on(&runtime_on.precompiled_unloads, ended, second)
        && lacks_precompiled_unloads(process, clr)
    {
        let message = format!(
            "CLR {instance} ended, and none of its precompiled methods has an unload event, \
             although NGen (0x20) and EndEnumeration (0x80) were enabled (E3)"
        );
        check
            .report(message)
            .about(process, Some(ended))
            .severity(Severity::Error)
            .unless_lost(None, None);
    }
}

/// Whether the enablements requested something from a second before a time until then.
fn was_on(known: &Known, time: Ticks, second: i64) -> bool {
    let around = known.times.around(time);
    around.is_some_and(|span| span.from <= time.saturating_add(-second))
}

/// Whether a process has precompiled methods, or a CLR of .NET Framework with precompiled modules,
/// and no unload of a precompiled method.
fn lacks_precompiled_unloads(process: &Process, clr: &Clr) -> bool {
    let is_framework = clr.sku().is_some_and(|sku| sku != CORE_SKU);
    let mut modules = clr.module_facts().values();
    let mut has_any = is_framework && modules.any(|module| module.is_precompiled());
    for count in process.signs() {
        if count.sign.is_precompiled() {
            if count.sign.change == Change::Unload {
                return false;
            }
            has_any = true;
        }
    }
    has_any
}

/// Whether a process ended in the regular way, and items were unloaded in the last second before: a
/// CLR that begins to unload everything does so to the end.
fn unloads_before_exit(facts: &Facts, process: &Process, all: [&Items; 3]) -> bool {
    let Some(ended) = process.ended() else {
        return false;
    };
    let from = ended.saturating_add(-facts.ticks_per_second());
    let mut unloads = all.iter().flat_map(|items| items.iter());
    let is_unloading = unloads.any(|(_, item)| item.to.is_some_and(|to| from <= to && to <= ended));
    process.exit_status() == Some(0) && is_unloading
}

/// Whether there are items, and all of them were unloaded.
fn is_all_unloaded(items: &Items) -> bool {
    !items.is_empty() && items.iter().all(|(_, item)| item.to.is_some())
}

/// The number of items that were loaded and not unloaded.
fn items_left(items: &Items) -> u64 {
    let left = items
        .iter()
        .filter(|(_, item)| item.has(Tag::LOADED) && item.to.is_none());
    left.count() as u64
}

/// The number of compiled methods that were loaded and not unloaded, if unloads of methods were
/// logged.
fn methods_left(facts: &Facts, process: &Process, started: Ticks) -> u64 {
    if process.clrs().len() != 1 {
        return 0;
    }
    let mut signs = process.signs().iter();
    let has_unloads =
        signs.any(|count| count.sign.change == Change::Unload && count.sign.is_compiled());
    let until = process.ended().unwrap_or(Ticks::MAX);
    let runtime_on = &facts.runtime_on;
    let are_enabled = [&runtime_on.end_enumeration, runtime_on.jit(process)]
        .iter()
        .all(|keyword| keyword.since(until).is_some_and(|since| since <= started));
    if has_unloads || are_enabled {
        process.compiled_left()
    } else {
        0
    }
}

/// A process that ended in the regular way, and whose CLR unloaded nothing.
fn silent_end(check: &mut Check<'_>, process: &Process, instance: u16, all: [&Items; 3]) {
    let is_regular = process.ended().is_some() && process.exit_status() == Some(0);
    if !is_regular || all.iter().any(|items| items.unloaded() > 0) {
        return;
    }
    let message = format!(
        "CLR {instance} unloaded nothing, although the process ended with exit status 0: the events \
         of its end are missing"
    );
    let found = check
        .report(message)
        .about(process, process.ended())
        .severity(Severity::Note);
    found
        .unless_lost(None, None)
        .undecided("a process that is terminated ends without the events of its CLR");
}

/// Code that was unloaded long before or after its module.
fn apart_from_module(check: &mut Check<'_>, process: &Process, instance: u16, clr: &Clr) {
    let second = check.facts.ticks_per_second();
    let apart: Vec<_> = clr
        .method_unloads()
        .filter(|unloads| is_apart(unloads, second))
        .collect();
    if let Some(unloads) = apart.first() {
        let first = unloads.span.first;
        let message = format!(
            "CLR {instance} unloaded methods of {} seconds before or after the module itself \
             (first: {:#x})",
            plural(apart.len() as u64, "module", "modules"),
            unloads.module
        );
        check
            .report(message)
            .about(process, Some(first))
            .unless_lost(Some(first), None);
    }
    let gone = process.of_unloaded_module();
    // A runtime with an EventPipe session unloads everything when it ends, and lists it afterwards.
    let is_listed_late = check.facts.is_event_pipe();
    // Once for the process.
    if gone.count > 0 && !is_listed_late && process.clrs().keys().next() == Some(&instance) {
        let message = format!(
            "{} of a module that had been unloaded",
            plural(gone.count, "run of methods is", "runs of methods are")
        );
        check
            .report(message)
            .about(process, gone.first)
            .unless_lost(None, gone.first);
    }
}

/// Whether methods were unloaded more than a second before or after their module.
fn is_apart(unloads: &MethodUnloads, second: i64) -> bool {
    let Span { first, last } = unloads.span;
    let Some(unloaded) = unloads.module_unloaded else {
        return false;
    };
    unloaded.saturating_since(first) > second || last.saturating_since(unloaded) > second
}
