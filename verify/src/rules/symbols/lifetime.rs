//! What a CLR unloads when it ends, and when.

use etl_analysis::address::Tag;
use etl_analysis::machine::{Clr, Items, MethodUnloads, Process, Span};
use etl_format::Ticks;
use etl_schema::views::clr::Change;

use crate::checks::Facts;
use crate::checks::enablement::On;
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

/// What an ended CLR did not unload.
fn left_over(check: &mut Check<'_>, process: &Process, instance: u16, clr: &Clr) {
    let facts = check.facts;
    // Its default domain has a load where loads were recorded from the beginning.
    let Some(started) = clr.started().filter(|_| clr.domains().loaded() > 0) else {
        return;
    };
    let all = [clr.modules(), clr.assemblies(), clr.domains()];
    let is_over = |items: &&Items| items.iter().all(|(_, item)| item.to.is_some());
    // A CLR keeps the first assembly, its module and its domain until it ends.
    if !all.iter().any(|items| !items.is_empty() && is_over(items)) {
        silent_end(check, process, instance, all);
        return;
    }
    let loaded = |items: &Items| {
        items
            .iter()
            .filter(|(_, item)| item.has(Tag::LOADED) && item.to.is_none())
            .count() as u64
    };
    let [modules, assemblies, domains] = all.map(loaded);
    let kinds = [
        (methods_left(facts, process, started), "method", "methods"),
        (modules, "module", "modules"),
        (assemblies, "assembly", "assemblies"),
        (domains, "application domain", "application domains"),
    ];
    let left: Vec<_> = kinds
        .into_iter()
        .filter(|k| k.0 > 0)
        .map(|(n, one, many)| plural(n, one, many))
        .collect();
    if left.is_empty() {
        return;
    }
    let message = format!(
        "CLR {instance} ended, and did not unload {}",
        left.join(", ")
    );
    check
        .find(message)
        .of(process, process.ended())
        .unless_lost(Some(started), None);
}

/// Compiled methods that were loaded and not unloaded, where unloads of methods were logged.
fn methods_left(facts: &Facts, process: &Process, started: Ticks) -> u64 {
    let mut signs = process.signs().iter();
    let unloads =
        signs.any(|count| count.sign.change == Change::Unload && count.sign.is_compiled());
    let until = process.ended().unwrap_or(Ticks::MAX);
    let on = |keyword: &On| keyword.since(until).is_some_and(|since| since <= started);
    let runtime = &facts.runtime_on;
    let is_logged = unloads || (on(&runtime.end_enumeration) && on(&runtime.jit));
    if process.clrs().len() == 1 && is_logged {
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
        .find(message)
        .of(process, process.ended())
        .severity(Severity::Note);
    found
        .unless_lost(None, None)
        .undecided("a process that is terminated ends without the events of its CLR");
}

/// Code that was unloaded long before or after its module.
fn apart_from_module(check: &mut Check<'_>, process: &Process, instance: u16, clr: &Clr) {
    let second = i64::try_from(check.facts.machine.clock().frequency).unwrap_or(i64::MAX);
    let is_apart = |unloads: &MethodUnloads| {
        let Span { first, last } = unloads.span;
        unloads.module_unloaded.is_some_and(|to| {
            to.saturating_since(first) > second || last.saturating_since(to) > second
        })
    };
    let apart: Vec<_> = clr.method_unloads().filter(is_apart).collect();
    if let Some(&MethodUnloads { module, span, .. }) = apart.first() {
        let message = format!(
            "CLR {instance} unloaded methods of {} seconds before or after the module itself \
             (first: {module:#x})",
            plural(apart.len() as u64, "module", "modules")
        );
        check
            .find(message)
            .of(process, Some(span.first))
            .unless_lost(Some(span.first), None);
    }
    let gone = process.of_unloaded_module();
    // Once for the process.
    if gone.count > 0 && process.clrs().keys().next() == Some(&instance) {
        let message = format!(
            "{} of a module that had been unloaded",
            plural(gone.count, "run of methods is", "runs of methods are")
        );
        check
            .find(message)
            .of(process, gone.first)
            .unless_lost(None, gone.first);
    }
}
