//! Methods to modules to assemblies to domains.

use etl_analysis::address::Tag;
use etl_analysis::machine::{Clr, Process};
use etl_format::Ticks;
use etl_schema::clr::Enumeration;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use crate::checks::Facts;
use crate::finding::Severity;
use crate::rules::commands::RECORDING;
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const MODULE_UNKNOWN: Rule = Rule {
    id: "symbols.module-unknown",
    statement: "Every module that a method or a domain refers to has an event.",
    severity: Severity::Warning,
    source: "symbol resolution",
    protocol: &["S4"],
    meaning: "Methods of these modules have no module name, and their PDBs cannot be found. If a \
              whole rundown lists the other modules, the Loader keyword was enabled: then the event \
              is missing, which is an error.",
    remedy: "Enable LoaderKeyword (0x8) in both sessions:",
    commands: RECORDING,
    check: module_unknown,
};

fn module_unknown(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        let unknown = process.unknown_modules() as u64;
        if unknown == 0 {
            continue;
        }
        let clrs = process.clrs().values();
        let first = clrs.flat_map(|clr| clr.unknown_modules()).min();
        let is_certain = are_modules_logged(check.facts, process);
        let reason = if is_certain {
            "a rundown lists the other modules"
        } else {
            "the Loader keyword was not enabled, or events were lost"
        };
        let message = format!(
            "methods or domains refer to {} without an event{}: {reason}",
            plural(unknown, "module", "modules"),
            first_id(first)
        );
        let found = check
            .report(message)
            .about(process, None)
            .amount(unknown)
            .unless_lost(None, None);
        if is_certain {
            found.severity(Severity::Error);
        }
    }
}

/// Whether a module should have an event: a whole end rundown of its CLR lists the other modules,
/// and its methods, or the runtime provider logged what was unloaded before.
fn are_modules_logged(facts: &Facts, process: &Process) -> bool {
    let mut is_listed = false;
    for (&instance, clr) in process.clrs() {
        let mut unknown = clr.unknown_modules().peekable();
        if unknown.peek().is_none() {
            continue;
        }
        if !lists_modules(process, instance, Enumeration::End) {
            return false;
        }
        let listed = clr.listed_method_modules();
        is_listed |= unknown.any(|module| listed.contains(&module));
    }
    if is_listed {
        return true;
    }
    let Some(first) = process.first_runtime() else {
        return true;
    };
    let loader = facts.runtime_on.loader.since(Ticks::MAX);
    loader.is_some_and(|since| since <= first)
}

/// The remark with the first id; empty if there is none.
fn first_id(id: Option<u64>) -> String {
    match id {
        Some(id) => format!(" (first: {id:#x})"),
        None => String::new(),
    }
}

pub(in crate::rules) const ASSEMBLY_UNKNOWN: Rule = Rule {
    id: "symbols.assembly-unknown",
    statement: "Every assembly that a module refers to, and every domain that an assembly refers \
                to, has an event; and every module that is not shared states its domain.",
    severity: Severity::Warning,
    source: "symbol resolution",
    protocol: &["S4"],
    meaning: "Modules cannot be assigned to their assembly or domain.",
    remedy: "Enable LoaderKeyword (0x8) in both sessions:",
    commands: RECORDING,
    check: assembly_unknown,
};

fn assembly_unknown(check: &mut Check<'_>) {
    domain_of_module_unknown(check);
    for process in check.facts.machine.processes() {
        let clrs = process.clrs().values();
        let assemblies: Vec<u64> = clrs.flat_map(|clr| clr.unknown_assemblies()).collect();
        let clrs = process.clrs().values();
        let domains: Vec<u64> = clrs.flat_map(|clr| clr.unknown_domains()).collect();
        let mut what = Vec::new();
        if !assemblies.is_empty() {
            let assemblies = plural(assemblies.len() as u64, "assembly", "assemblies");
            what.push(format!("modules refer to {assemblies}"));
        }
        if !domains.is_empty() {
            let domains = plural(domains.len() as u64, "domain", "domains");
            what.push(format!("assemblies refer to {domains}"));
        }
        if what.is_empty() {
            continue;
        }
        let first = assemblies.iter().min().or(domains.iter().min());
        let message = format!(
            "{} without an event{}",
            what.join(", "),
            first_id(first.copied())
        );
        check
            .report(message)
            .about(process, None)
            .unless_lost(None, None);
    }
}

/// Modules whose domain no event names, although the events about them come together.
fn domain_of_module_unknown(check: &mut Check<'_>) {
    let admission = &check.facts.admission;
    let checks_loads = !admission.is_limited(CLR_RUNTIME);
    let checks_rundowns = !admission.is_limited(CLR_RUNDOWN);
    for process in check.facts.machine.processes() {
        for (&instance, clr) in process.clrs() {
            if checks_loads {
                modules_without_domain(check, process, clr, Tag::LOADED, "loaded");
            }
            if checks_rundowns && lists_modules(process, instance, Enumeration::Start) {
                modules_without_domain(check, process, clr, Tag::AT_START, "listed");
            }
            if checks_rundowns && lists_modules(process, instance, Enumeration::End) {
                modules_without_domain(check, process, clr, Tag::AT_END, "listed");
            }
        }
    }
}

/// Whether a whole rundown of a CLR lists modules.
fn lists_modules(process: &Process, instance: u16, kind: Enumeration) -> bool {
    process.brackets().iter().any(|bracket| {
        bracket.instance == instance
            && bracket.kind == kind
            && bracket.is_whole()
            && bracket.listed.modules > 0
    })
}

/// Adds a finding for modules whose events with a tag do not state their domain.
fn modules_without_domain(
    check: &mut Check<'_>,
    process: &Process,
    clr: &Clr,
    tag: u8,
    verb: &str,
) {
    let mut without = Vec::new();
    for (id, item) in clr.modules().iter() {
        let module = clr.module_facts().get(&id);
        let has_domain = item.in_domain & tag != 0 || module.is_none_or(|m| m.is_shared());
        if item.has(tag) && !has_domain {
            without.push(id);
        }
    }
    let Some(first) = without.first() else {
        return;
    };
    let message = format!(
        "{} {verb} without an event that states its domain (first: {first:#x})",
        plural(without.len() as u64, "module is", "modules are")
    );
    let found = check
        .report(message)
        .about(process, None)
        .severity(Severity::Note);
    found.unless_lost(None, None);
}
