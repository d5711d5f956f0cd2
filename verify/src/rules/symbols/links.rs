//! Methods to modules to assemblies to domains.

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
    for process in check.facts.processes() {
        let unknown = process.unknown_modules() as u64;
        let first = process.clrs().values().flat_map(|clr| clr.unknown_modules()).min();
        let first = first.map_or(String::new(), |id| format!(" (first: {id:#x})"));
        let message = format!(
            "methods or domains refer to {} without an event{first}: the Loader keyword was not \
             enabled, or events were lost",
            plural(unknown, "module", "modules")
        );
        if unknown > 0 {
            check.find(message).of(process, None).unless_lost(None, None);
        }
    }
}

pub(in crate::rules) const ASSEMBLY_UNKNOWN: Rule = Rule {
    id: "symbols.assembly-unknown",
    statement: "Every assembly that a module refers to, and every domain that an assembly refers \
                to, has an event.",
    severity: Severity::Warning,
    source: "symbol resolution",
    protocol: &["S4"],
    meaning: "Modules cannot be assigned to their assembly or domain.",
    remedy: "Enable LoaderKeyword (0x8) in both sessions:",
    commands: RECORDING,
    check: assembly_unknown,
};

fn assembly_unknown(check: &mut Check<'_>) {
    for process in check.facts.processes() {
        let clrs = || process.clrs().values();
        let assemblies = clrs().map(|clr| clr.unknown_assemblies().count() as u64).sum();
        let domains = clrs().map(|clr| clr.unknown_domains().count() as u64).sum();
        let assemblies = (assemblies > 0)
            .then(|| format!("modules refer to {}", plural(assemblies, "assembly", "assemblies")));
        let domains = (domains > 0)
            .then(|| format!("assemblies refer to {}", plural(domains, "domain", "domains")));
        let what: Vec<_> = assemblies.into_iter().chain(domains).collect();
        let first = clrs().flat_map(|clr| clr.unknown_assemblies()).min();
        let first = first.or_else(|| clrs().flat_map(|clr| clr.unknown_domains()).min());
        let first = first.map_or(String::new(), |id| format!(" (first: {id:#x})"));
        let message = format!("{} without an event{first}", what.join(", "));
        if !what.is_empty() {
            check.find(message).of(process, None).unless_lost(None, None);
        }
    }
}
