//! Methods to modules to assemblies to domains.

use etl_analysis::address::Tag;
use etl_analysis::machine::Item;
use etl_schema::clr::Enumeration;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use crate::finding::Severity;
use crate::rules::commands::RECORDING;
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const MODULE_UNKNOWN: Rule = Rule {
    id: "symbols.module-unknown",
    statement: "Every module that a method or a domain refers to has an event.",
    severity: Severity::Warning,
    source: "symbol resolution",
    protocol: &["S4"],
    meaning: "Methods of these modules have no module name, and their PDBs cannot be found.",
    remedy: "Enable LoaderKeyword (0x8) in both sessions:",
    commands: RECORDING,
    check: module_unknown,
};

fn module_unknown(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        let unknown = process.unknown_modules() as u64;
        let first = process
            .clrs()
            .values()
            .flat_map(|clr| clr.unknown_modules())
            .min();
        let first = first.map_or(String::new(), |id| format!(" (first: {id:#x})"));
        let message = format!(
            "methods or domains refer to {} without an event{first}: the Loader keyword was not \
             enabled, or events were lost",
            plural(unknown, "module", "modules")
        );
        if unknown > 0 {
            check
                .find(message)
                .of(process, None)
                .unless_lost(None, None);
        }
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
        let clrs = || process.clrs().values();
        let assemblies = clrs()
            .map(|clr| clr.unknown_assemblies().count() as u64)
            .sum();
        let domains = clrs().map(|clr| clr.unknown_domains().count() as u64).sum();
        let assemblies = (assemblies > 0).then(|| {
            format!(
                "modules refer to {}",
                plural(assemblies, "assembly", "assemblies")
            )
        });
        let domains = (domains > 0).then(|| {
            format!(
                "assemblies refer to {}",
                plural(domains, "domain", "domains")
            )
        });
        let what: Vec<_> = assemblies.into_iter().chain(domains).collect();
        let first = clrs().flat_map(|clr| clr.unknown_assemblies()).min();
        let first = first.or_else(|| clrs().flat_map(|clr| clr.unknown_domains()).min());
        let first = first.map_or(String::new(), |id| format!(" (first: {id:#x})"));
        let message = format!("{} without an event{first}", what.join(", "));
        if !what.is_empty() {
            check
                .find(message)
                .of(process, None)
                .unless_lost(None, None);
        }
    }
}

/// Modules whose domain no event names, although the events about them come together.
fn domain_of_module_unknown(check: &mut Check<'_>) {
    let facts = check.facts;
    let limited = [CLR_RUNTIME, CLR_RUNDOWN].map(|p| facts.admission.of(p).any(|(e, _)| e.limited));
    for process in facts.machine.processes() {
        let whole = |kind: Enumeration, instance: u16| {
            let mut own = process.brackets().iter().filter(|b| b.listed.modules > 0);
            own.any(|b| b.kind == kind && b.instance == instance && b.is_whole())
        };
        for (&instance, clr) in process.clrs() {
            let ways = [
                (Tag::LOADED, !limited[0], "loaded"),
                (
                    Tag::AT_START,
                    !limited[1] && whole(Enumeration::Start, instance),
                    "listed",
                ),
                (
                    Tag::AT_END,
                    !limited[1] && whole(Enumeration::End, instance),
                    "listed",
                ),
            ];
            for (way, _, word) in ways.into_iter().filter(|(_, is_checked, _)| *is_checked) {
                let lacks = |(id, item): &(u64, &Item)| {
                    let facts = clr.module_facts().get(id);
                    item.has(way)
                        && item.in_domain & way == 0
                        && facts.is_some_and(|m| !m.is_shared())
                };
                let without: Vec<u64> = clr
                    .modules()
                    .iter()
                    .filter(lacks)
                    .map(|(id, _)| id)
                    .collect();
                let Some(first) = without.first() else {
                    continue;
                };
                let message = format!(
                    "{} {word} without an event that states its domain (first: {first:#x})",
                    plural(without.len() as u64, "module is", "modules are")
                );
                let found = check
                    .find(message)
                    .of(process, None)
                    .severity(Severity::Note);
                found.unless_lost(None, None);
            }
        }
    }
}
