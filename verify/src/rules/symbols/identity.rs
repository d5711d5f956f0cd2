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
            let known = clr.module_facts().iter().filter(|(id, m)| {
                clr.modules().contains(**id) && !m.is_dynamic() && !m.name.is_empty()
            });
            let modules: Vec<_> = known.map(|(_, module)| module).collect();
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
            check.find(message).of(process, None);
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

/// Whether an image is not the native image of a managed module, whose PDB is its module's.
fn is_native(facts: &Facts, image: &Image) -> bool {
    !facts.machine.processes().iter().any(|process| {
        process.pid() == image.pid
            && process.clrs().values().any(|clr| {
                clr.module_facts().values().any(|m| {
                    !image.name.is_empty() && (m.native_name == image.name || m.name == image.name)
                })
            })
    })
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
            && is_native(facts, image)
        {
            without.push((hits, &image.name));
            samples += image
                .hits
                .get(Origin::Sample as usize)
                .copied()
                .unwrap_or_default();
        }
    }
    without.sort_unstable_by_key(|&(hits, name)| (std::cmp::Reverse(hits), name));
    let Some((_, most)) = without.first() else {
        return;
    };
    let addresses: u64 = without.iter().map(|(hits, _)| hits).sum();
    let message = format!(
        "{addresses} addresses, {samples} of them samples, are in {} without a PDB identity, most \
         of them in {most:?}",
        plural(without.len() as u64, "image", "images")
    );
    check.find(message);
}
