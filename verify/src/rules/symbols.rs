//! Addresses that belong to nothing, methods that belong to no module, modules without identity.

use etl_format::constants::FILETIME_PER_SECOND;

use crate::facts::{Cause, Facts, Origin, Process};
use crate::report::{Finding, Severity};

use super::catalogue::{
    SYMBOLS_ASSEMBLY_UNKNOWN, SYMBOLS_GONE, SYMBOLS_IMAGE_IDENTITY, SYMBOLS_JIT_WITHOUT_LOAD,
    SYMBOLS_LOADED_TWICE, SYMBOLS_MODULE_UNKNOWN, SYMBOLS_NO_IDENTITY, SYMBOLS_OVERLAP,
    SYMBOLS_PRECOMPILED, SYMBOLS_UNLOAD_UNKNOWN, SYMBOLS_UNNAMED, SYMBOLS_UNRESOLVED,
};
use super::plural;

/// Up to this share of a process's addresses, what resolves to nothing is what no trace tells of: stubs of the runtime,
/// pages of the hardware abstraction layer, code that a rasterizer or a script engine makes.
const USUAL_SHARE: f64 = 0.02;
/// Above this share the trace is not usable for the process.
const GRAVE_SHARE: f64 = 0.05;
/// Fewer addresses than this say nothing by their share, unless they are most of what the process has.
const FEW: u64 = 10;

/// How grave it is that of so many addresses of a process some resolve to nothing.
fn weight(unresolved: u64, addresses: u64) -> Severity {
    let share = unresolved as f64 / addresses.max(1) as f64;
    let few = unresolved < FEW && share <= 0.5;
    match share {
        _ if few => Severity::Note,
        s if s > GRAVE_SHARE => Severity::Error,
        s if s > USUAL_SHARE => Severity::Warning,
        _ => Severity::Note,
    }
}

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    for process in &facts.processes {
        unresolved(facts, process, findings);
        unnamed(facts, process, findings);
        links(facts, process, findings);
        ranges(facts, process, findings);
        identities(facts, process, findings);
        jitting(facts, process, findings);
    }
    image_identities(facts, findings);
}

fn unresolved(facts: &Facts, process: &Process, findings: &mut Vec<Finding>) {
    let frames: u64 = process.tallies.iter().map(|t| t.frames).sum();
    let unresolved: u64 = process.tallies.iter().map(|t| t.unresolved).sum();
    if unresolved == 0 {
        return;
    }
    let share = unresolved as f64 / frames.max(1) as f64;
    let gone: u64 = Cause::ALL
        .into_iter()
        .zip(process.causes)
        .filter(|(cause, _)| matches!(cause, Cause::MethodGone | Cause::ImageGone))
        .map(|(_, n)| n)
        .sum();
    let causes = Cause::ALL.into_iter().zip(process.causes).filter(|(_, n)| *n > 0);
    let causes: Vec<_> = causes.map(|(cause, n)| format!("{n} {}", cause.name())).collect();
    let message = format!(
        "{unresolved} of {frames} addresses ({:.2} %) lie in no managed method and no image: {}",
        share * 100.0,
        causes.join(", ")
    );
    let weight = weight(unresolved, frames);
    // What would have told of them came at their time or, as a rundown, later; or it was there before.
    let last = process.unresolved_span.map(|(_, last)| last);
    let until = facts.rundown_span.map(|(_, end)| end).max(last);
    // What the trace knows, but not at that time, is told of by itself.
    if unresolved > gone {
        let timestamp = process.unresolved_span.map(|(first, _)| first);
        let mut finding = Finding::new(&SYMBOLS_UNRESOLVED, message).of(facts, process, timestamp);
        finding.severity = weight;
        findings.push(finding.unless_lost(facts, None, until));
    }
    if gone > 0 {
        let message = format!(
            "{} where a method or an image was at another time",
            plural(gone, "address lies", "addresses lie")
        );
        let timestamp = process.unresolved_span.map(|(first, _)| first);
        let finding = Finding::new(&SYMBOLS_GONE, message).of(facts, process, timestamp);
        let mut finding = finding;
        if unresolved == gone {
            finding.severity = weight;
        }
        findings.push(finding.unless_lost(facts, None, until));
    }
}

fn unnamed(facts: &Facts, process: &Process, findings: &mut Vec<Finding>) {
    let unnamed: u64 = process.tallies.iter().map(|t| t.managed - t.named.min(t.managed)).sum();
    let without_pdb: usize = process
        .clrs
        .values()
        .map(|clr| {
            let no_pdb = |id: &&u64| {
                clr.module_facts.get(id).is_none_or(|m| m.il_pdb.is_none() && !m.is_dynamic())
            };
            clr.unnamed_modules.iter().filter(no_pdb).count()
        })
        .sum();
    if unnamed > 0 && without_pdb > 0 {
        let message = format!(
            "{} lie in methods told without a name; of their modules {without_pdb} have no PDB identity",
            plural(unnamed, "address", "addresses")
        );
        findings.push(Finding::new(&SYMBOLS_UNNAMED, message).of(facts, process, None));
    }
    if process.precompiled_unidentified > 0 {
        let message = format!(
            "{} of {} addresses in precompiled code have neither a method nor an image whose PDB is known",
            process.precompiled_unidentified, process.precompiled
        );
        findings.push(Finding::new(&SYMBOLS_PRECOMPILED, message).of(facts, process, None));
    }
}

/// Methods to modules to assemblies to domains.
fn links(facts: &Facts, process: &Process, findings: &mut Vec<Finding>) {
    let unknown = process.unknown_modules();
    if unknown > 0 {
        let example = process.clrs.values().flat_map(|clr| clr.unknown_modules()).min();
        let example = example.map_or(String::new(), |id| format!(", {id:#x} for one"));
        let message = format!(
            "nothing tells of {}{example} (Loader keyword missing, or their events lost): methods without a module name",
            plural(
                unknown as u64,
                "module that methods or domains name",
                "modules that methods or domains name"
            )
        );
        let finding = Finding::new(&SYMBOLS_MODULE_UNKNOWN, message).of(facts, process, None);
        findings.push(finding.unless_lost(facts, None, None));
    }
    let assemblies: usize = process.clrs.values().map(|c| c.unknown_assemblies().count()).sum();
    let domains: usize = process.clrs.values().map(|c| c.unknown_domains().count()).sum();
    if assemblies + domains > 0 {
        let assemblies = (assemblies > 0).then(|| {
            plural(assemblies as u64, "assembly that modules name", "assemblies that modules name")
        });
        let domains = (domains > 0).then(|| {
            plural(domains as u64, "domain that assemblies name", "domains that assemblies name")
        });
        let what: Vec<_> = assemblies.into_iter().chain(domains).collect();
        let clrs = || process.clrs.values();
        let example = clrs().flat_map(|clr| clr.unknown_assemblies()).min();
        let example = example.or_else(|| clrs().flat_map(|clr| clr.unknown_domains()).min());
        let example = example.map_or(String::new(), |id| format!("; the first is {id:#x}"));
        let message = format!("nothing tells of {}{example}", what.join(" and "));
        let finding = Finding::new(&SYMBOLS_ASSEMBLY_UNKNOWN, message).of(facts, process, None);
        findings.push(finding.unless_lost(facts, None, None));
    }
}

/// Code over code.
fn ranges(facts: &Facts, process: &Process, findings: &mut Vec<Finding>) {
    if let Some((timestamp, start, other)) = process.overlap {
        let message = format!(
            "{} a method's code was told of where another's still was: first at {start:#x}, over the one at {other:#x}",
            plural(process.code.overlaps, "time", "times")
        );
        let finding = Finding::new(&SYMBOLS_OVERLAP, message).of(facts, process, Some(timestamp));
        findings.push(finding.unless_lost(facts, None, Some(timestamp)));
    }
    let twice = process.loaded_twice;
    if twice.count > 0 {
        let message = format!(
            "{} loaded that had been loaded already",
            plural(twice.count, "thing was", "things were")
        );
        let finding = Finding::new(&SYMBOLS_LOADED_TWICE, message).of(facts, process, twice.first);
        findings.push(finding.unless_lost(facts, None, twice.first));
    }
    let unknown = process.unloads_unknown;
    if unknown.count > 0 {
        let message = format!(
            "{} unloaded that nothing had told of",
            plural(unknown.count, "piece of code was", "pieces of code were")
        );
        let finding =
            Finding::new(&SYMBOLS_UNLOAD_UNKNOWN, message).of(facts, process, unknown.first);
        findings.push(finding.unless_lost(facts, None, unknown.first));
    }
}

/// PDBs of modules.
fn identities(facts: &Facts, process: &Process, findings: &mut Vec<Finding>) {
    for clr in process.clrs.values() {
        let file = |id: &u64| clr.modules.contains(*id);
        let modules: Vec<_> = clr
            .module_facts
            .iter()
            .filter(|(id, m)| file(id) && !m.is_dynamic() && !m.name.is_empty())
            .map(|(_, m)| m)
            .collect();
        let without: Vec<_> = modules.iter().filter(|m| m.il_pdb.is_none()).collect();
        let Some(example) = without.first() else { continue };
        let old = without.iter().filter(|m| !m.has_identity).count();
        let why = if old > 0 {
            format!("; the events of {old} are of a version that cannot hold it")
        } else {
            String::new()
        };
        let message = format!(
            "{} of {} modules have no PDB identity, {:?} for one{why}",
            without.len(),
            modules.len(),
            example.name
        );
        findings.push(Finding::new(&SYMBOLS_NO_IDENTITY, message).of(facts, process, None));
    }
}

/// Compiling takes milliseconds; what began longer before the process's last word is not under way.
const UNDER_WAY: i64 = FILETIME_PER_SECOND / 2;

fn jitting(facts: &Facts, process: &Process, findings: &mut Vec<Finding>) {
    let Some(last) = process.last_runtime.map(|last| facts.clock.filetime(last)) else { return };
    // A thread that has loaded something since is done with it, or it was nested.
    let stuck = process.jitting.iter().filter(|(_, (timestamp, tid))| {
        let since = last.saturating_sub(facts.clock.filetime(*timestamp));
        let done = process.last_load.get(tid).is_some_and(|load| load > timestamp);
        since > 4 * UNDER_WAY || (done && since > UNDER_WAY)
    });
    let mut stuck: Vec<_> = stuck.map(|(&id, &(timestamp, tid))| (timestamp, id, tid)).collect();
    stuck.sort_unstable();
    let Some((timestamp, id, _)) = stuck.first() else { return };
    let message = format!(
        "{} begun to be compiled and never loaded (the first is {id:#x})",
        plural(stuck.len() as u64, "method was", "methods were")
    );
    let finding =
        Finding::new(&SYMBOLS_JIT_WITHOUT_LOAD, message).of(facts, process, Some(*timestamp));
    findings.push(finding.unless_lost(facts, Some(*timestamp), None));
}

/// Images that addresses lie in, in a trace whose merge told of identities.
fn image_identities(facts: &Facts, findings: &mut Vec<Finding>) {
    if facts.images.identities == 0 {
        return;
    }
    let native = |image: &crate::facts::images::Image| {
        // Native images of managed modules are judged with their modules.
        !facts.processes.iter().any(|p| {
            p.pid == image.pid
                && p.clrs.values().any(|clr| {
                    clr.module_facts.values().any(|m| {
                        !image.name.is_empty()
                            && (m.native_name == image.name || m.name == image.name)
                    })
                })
        })
    };
    let mut without: Vec<(u64, &str)> = Vec::new();
    for (index, image) in facts.images.list.iter().enumerate() {
        let hits: u64 = image.hits.iter().sum();
        if hits > 0 && !facts.images.is_identified(index as u64) && native(image) {
            without.push((hits, &image.name));
        }
    }
    without.sort_unstable_by_key(|&(hits, name)| (std::cmp::Reverse(hits), name));
    let Some((_, example)) = without.first() else { return };
    let addresses: u64 = without.iter().map(|(hits, _)| hits).sum();
    let samples: u64 = facts
        .images
        .list
        .iter()
        .enumerate()
        .filter(|(index, image)| !facts.images.is_identified(*index as u64) && native(image))
        .filter_map(|(_, image)| image.hits.get(Origin::Sample as usize))
        .sum();
    let message = format!(
        "{addresses} addresses, {samples} of them samples, lie in {} without a PDB identity, most in {example:?}",
        plural(without.len() as u64, "image", "images")
    );
    findings.push(Finding::new(&SYMBOLS_IMAGE_IDENTITY, message));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_resolve_weighs_by_its_share() {
        let weighed = |cases: &[(u64, u64)], severity| {
            for &(unresolved, addresses) in cases {
                assert_eq!(weight(unresolved, addresses), severity, "{unresolved} of {addresses}");
            }
        };
        // PerfView's own trace; a few of a process that was seen rarely.
        weighed(&[(26, 1_733), (328, 25_592), (20, 1_000), (9, 20), (1, 3)], Severity::Note);
        weighed(&[(21, 1_000), (50, 1_000), (10, 250)], Severity::Warning);
        weighed(&[(51, 1_000), (10, 20), (9, 17), (1, 1), (u64::MAX, u64::MAX)], Severity::Error);
    }
}
