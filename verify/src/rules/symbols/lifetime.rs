//! What a CLR unloads when it ends, and at which times.

use etl_analysis::address::Tag;
use etl_analysis::machine::{Clr, Items, MethodUnloads, Process, Span};
use etl_format::Ticks;
use etl_schema::views::clr::Change;

use crate::checks::Facts;
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
              shorter than it was, and addresses get the names of other methods.",
    remedy: "Enable EndEnumerationKeyword (0x80) for the whole recording, and use more buffers:",
    commands: &[RUNTIME_LARGE],
    check: not_unloaded,
};

fn not_unloaded(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        for (&instance, clr) in process.clrs() {
            left_over(check, process, instance, clr);
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
    if !all.iter().any(|items| is_all_unloaded(items)) {
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
    check
        .report(message)
        .about(process, process.ended())
        .unless_lost(Some(started), None);
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
