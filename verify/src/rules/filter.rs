//! Filtering: events that nothing admitted, and silence where there was something to tell.

use std::collections::BTreeMap;

use etl_schema::clr::keyword::{JIT, LOADER};
use etl_schema::providers::CLR_RUNTIME;

use crate::facts::clr::Rundown;
use crate::facts::enable::Knowledge;
use crate::facts::{Bracket, Facts, Known, Process, Tag};
use crate::report::Finding;

use super::catalogue::{FILTER_NOT_ADMITTED, FILTER_SILENT};
use super::plural;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    not_admitted(facts, findings);
    for process in &facts.processes {
        silent(facts, process, findings);
    }
}

fn not_admitted(facts: &Facts, findings: &mut Vec<Finding>) {
    for (provider, event, counted, knowledge) in facts.admission.not_admitted() {
        let name = facts.provider_name(provider);
        let known: Vec<_> = facts
            .admission
            .of(provider)
            .map(|(_, with)| format!("{:#x} at level {}", with.any, with.level))
            .collect();
        let message = format!(
            "{} of {name} (id {}, level {}, keywords {:#x}): enabled with {} as {}",
            plural(counted.count, "event", "events"),
            event.id,
            event.level,
            event.keyword,
            known.join(" and "),
            knowledge.name(),
        );
        let finding = Finding::new(&FILTER_NOT_ADMITTED, message).at(facts, counted.first);
        findings.push(if knowledge == Knowledge::Recorded {
            finding.undecided(
                "a session whose enablement the trace does not record may have asked for it",
            )
        } else {
            finding
        });
    }
}

/// A span in which something came to be, as far as the trace proves it.
struct Window {
    from: i64,
    /// What proves it.
    proof: String,
}

/// Things that an end rundown lists, that were not there before a moment, and whose load was not told.
fn silent(facts: &Facts, process: &Process, findings: &mut Vec<Finding>) {
    // The code once, for all CLRs.
    let mut code: Option<BTreeMap<u16, Vec<u64>>> = None;
    let starts = start_rundowns(process);
    for (&instance, clr) in &process.clrs {
        let kinds = [
            ("method", "methods", JIT, None),
            ("module", "modules", LOADER, Some(&clr.modules)),
            ("assembly", "assemblies", LOADER, Some(&clr.assemblies)),
            ("application domain", "application domains", LOADER, Some(&clr.domains)),
        ];
        for (one, many, keyword, things) in kinds {
            let own = starts.get(&(instance, things.is_none())).copied();
            let Some(window) = window(facts, process, own) else { continue };
            // What was on only later, or is not known to have been on, had nothing to tell.
            if facts.admission.on_since(CLR_RUNTIME, keyword).is_none_or(|on| on > window.from) {
                continue;
            }
            let unseen = |known: &Known| {
                known.has(Tag::AT_END) && known.bits & (Tag::LOADED | Tag::AT_START) == 0
            };
            let missing: Vec<u64> = match things {
                Some(things) => {
                    things.iter().filter(|(_, k)| unseen(k)).map(|(id, _)| id).collect()
                }
                None => {
                    let code = code.get_or_insert_with(|| unseen_code(process));
                    code.remove(&instance).unwrap_or_default()
                }
            };
            let Some(example) = missing.first() else { continue };
            let message = format!(
                "{} listed by the end rundown, {}; no load was told of (the first is {example:#x})",
                plural(missing.len() as u64, &format!("{one} is"), &format!("{many} are")),
                window.proof,
            );
            let finding =
                Finding::new(&FILTER_SILENT, message).of(facts, process, Some(window.from));
            let finding = finding.unless_lost(facts, Some(window.from), None);
            // A runtime session that was stopped before the rundown could not tell of what came between.
            let ended = process.brackets.iter().filter_map(|b| b.opened).max();
            let stopped = facts.runtime_span.zip(ended).is_some_and(|((_, last), at)| last < at);
            findings.push(if stopped && finding.is_decided() {
                finding.undecided(
                    "the runtime session may have been stopped before the rundown: no event of it comes later",
                )
            } else {
                finding
            });
        }
    }
}

/// Code that an end rundown lists and whose coming nothing told of, by CLR.
fn unseen_code(process: &Process) -> BTreeMap<u16, Vec<u64>> {
    let mut out: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    for range in process.code.alive() {
        let tag = range.tag;
        if tag.has(Tag::AT_END | Tag::JITTED)
            && tag.bits & (Tag::LOADED | Tag::AT_START | Tag::DYNAMIC) == 0
        {
            out.entry(tag.instance).or_default().push(range.start);
        }
    }
    out
}

/// The first whole start rundown of each CLR that lists methods, and the first that lists what comes with them.
fn start_rundowns(process: &Process) -> BTreeMap<(u16, bool), &Bracket> {
    let mut out = BTreeMap::new();
    for bracket in process.brackets.iter().filter(|b| b.kind == Rundown::Start && b.is_whole()) {
        let l = bracket.listed;
        // Modules, assemblies and domains come with one keyword, methods with others.
        let lists = [(true, l.methods), (false, l.modules + l.assemblies + l.domains)];
        for (methods, _) in lists.into_iter().filter(|(_, count)| *count > 0) {
            out.entry((bracket.instance, methods)).or_insert(bracket);
        }
    }
    out
}

/// Since when things that the end rundown lists must have been loaded: since the process started, or since
/// a whole start rundown did not list them.
fn window(facts: &Facts, process: &Process, start: Option<&Bracket>) -> Option<Window> {
    if let Some(from) = process.started {
        return Some(Window {
            from,
            proof: "of a process that started inside the recording".to_owned(),
        });
    }
    let bracket = start?;
    let from = bracket.opened?;
    // What is lost of the start rundown may be what it did not list.
    facts
        .lost_in(Some(from), bracket.closed)
        .is_none()
        .then(|| Window { from, proof: "not there at the start rundown".to_owned() })
}
