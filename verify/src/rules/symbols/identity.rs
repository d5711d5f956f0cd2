//! PDB identities of modules and of native images.

use etl_analysis::address::Origin;
use etl_analysis::machine::images::Image;

use crate::checks::Facts;
use crate::finding::Severity;
use crate::rules::commands::MERGE_KERNEL;
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const NO_MODULE_PDB: Rule = Rule {
    id: "symbols.no-module-pdb",
    statement: "Every module with a file has a PDB identity.",
    severity: Severity::Note,
    source: "symbol resolution",
    protocol: &["S6"],
    meaning: "Source lines, and names of methods whose events have none, cannot be found for these \
              modules: they were built without debug information, or their runtime is too old to \
              report it.",
    remedy: "Build with debug information (portable or full PDBs):",
    commands: &["dotnet publish -c Release -p:DebugType=portable"],
    check: no_module_pdb,
};

fn no_module_pdb(check: &mut Check<'_>) {
    let facts = check.facts;
    for process in facts.machine.processes() {
        for clr in process.clrs().values() {
            let with_file = clr.module_facts().iter().filter(|(id, module)| {
                clr.modules().contains(**id) && !module.is_dynamic() && !module.name.is_empty()
            });
            let modules: Vec<_> = with_file.map(|(_, module)| module).collect();
            let without: Vec<_> = modules.iter().filter(|m| m.il_pdb.is_none()).collect();
            let Some(first) = without.first() else {
                continue;
            };
            let why = match without.iter().filter(|m| !m.has_identity).count() {
                0 => String::new(),
                old => {
                    format!("; {old} of them have events of an old version, which cannot hold it")
                }
            };
            let message = format!(
                "{} of {} modules have no PDB identity (first: {:?}){why}",
                without.len(),
                modules.len(),
                first.name
            );
            check.report(message).about(process, None);
        }
    }
}

pub(in crate::rules) const NO_IMAGE_PDB: Rule = Rule {
    id: "symbols.no-image-pdb",
    statement: "A merged trace has a PDB identity for every image with addresses in it.",
    severity: Severity::Note,
    source: "symbol resolution; what a merge adds",
    protocol: &["S7", "M1"],
    meaning: "Native addresses in these images have no names: the image has no debug information, \
              or could not be read when the trace was merged.",
    remedy: "Merge on the recorded machine, as an administrator, before files change:",
    commands: &[MERGE_KERNEL],
    check: no_image_pdb,
};

/// Whether an image is a managed module or its native image. Their PDB is known by the module.
fn is_managed_module(facts: &Facts, image: &Image) -> bool {
    if image.name.is_empty() {
        return false;
    }
    let processes = facts.machine.processes().iter();
    processes
        .filter(|process| process.pid() == image.pid)
        .flat_map(|process| process.clrs().values())
        .flat_map(|clr| clr.module_facts().values())
        .any(|module| module.native_name == image.name || module.name == image.name)
}

fn no_image_pdb(check: &mut Check<'_>) {
    let facts = check.facts;
    if facts.machine.images().identities() == 0 {
        return;
    }
    let mut without = Vec::new();
    let mut samples = 0;
    for (index, image) in facts.machine.images().list().iter().enumerate() {
        let hits: u64 = image.hits.iter().sum();
        if hits > 0
            && !facts.machine.images().is_identified(index as u64)
            && !is_managed_module(facts, image)
        {
            without.push((hits, &image.name));
            samples += image
                .hits
                .get(Origin::Sample as usize)
                .copied()
                .unwrap_or_default();
        }
    }
    // The most frequent image; if there are several, the first by name.
    let frequent = without
        .iter()
        .min_by_key(|(hits, name)| (std::cmp::Reverse(*hits), *name));
    let Some((_, name)) = frequent else { return };
    let addresses: u64 = without.iter().map(|(hits, _)| hits).sum();
    let message = format!(
        "{addresses} addresses, {samples} of them samples, are in {} without a PDB identity, most \
         of them in {name:?}",
        plural(without.len() as u64, "image", "images")
    );
    check.report(message);
}
