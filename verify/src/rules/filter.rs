//! Filtering: events that nothing admitted, and silence where there was something to tell.

use crate::facts::clr::RUNTIME;
use crate::facts::enable::Knowledge;
use crate::facts::{Facts, Known, Process, Tag};
use crate::report::Finding;

use super::catalogue::{FILTER_NOT_ADMITTED, FILTER_SILENT};
use super::plural;

const LOADER: u64 = 0x8;
const JIT: u64 = 0x10;

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
    let kinds: [(&str, &str, u64); 4] = [
        ("method", "methods", JIT),
        ("module", "modules", LOADER),
        ("assembly", "assemblies", LOADER),
        ("application domain", "application domains", LOADER),
    ];
    for (&instance, clr) in &process.clrs {
        for (kind, (one, many, keyword)) in kinds.into_iter().enumerate() {
            let Some(window) = window(facts, process, instance, kind) else { continue };
            // What was on only later, or is not known to have been on, had nothing to tell.
            if facts.admission.on_since(RUNTIME, keyword).is_none_or(|on| on > window.from) {
                continue;
            }
            let unseen = |known: &Known| {
                known.has(Tag::AT_END) && known.bits & (Tag::LOADED | Tag::AT_START) == 0
            };
            let things = [None, Some(&clr.modules), Some(&clr.assemblies), Some(&clr.domains)];
            let missing: Vec<u64> = match things.get(kind).copied().flatten() {
                Some(things) => {
                    things.iter().filter(|(_, k)| unseen(k)).map(|(id, _)| id).collect()
                }
                None => process
                    .code
                    .alive()
                    .filter(|r| {
                        let tag = r.tag;
                        tag.instance == instance
                            && tag.has(Tag::AT_END | Tag::JITTED)
                            && tag.bits & (Tag::LOADED | Tag::AT_START | Tag::DYNAMIC) == 0
                    })
                    .map(|r| r.start)
                    .collect(),
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

/// Since when things of a kind that the end rundown lists must have been loaded: since the process
/// started, or since a whole start rundown did not list them.
fn window(facts: &Facts, process: &Process, instance: u16, kind: usize) -> Option<Window> {
    if let Some(from) = process.started {
        return Some(Window {
            from,
            proof: "of a process that started inside the recording".to_owned(),
        });
    }
    let listed = |b: &&crate::facts::Bracket| {
        let l = b.listed;
        // Modules, assemblies and domains come with one keyword, methods with others.
        let lists =
            if kind == 0 { l.methods > 0 } else { l.modules + l.assemblies + l.domains > 0 };
        b.kind == crate::facts::clr::Rundown::Start
            && b.instance == instance
            && b.is_whole()
            && lists
    };
    let bracket = process.brackets.iter().find(listed)?;
    let from = bracket.opened?;
    // What is lost of the start rundown may be what it did not list.
    facts
        .lost_in(Some(from), bracket.closed)
        .is_none()
        .then(|| Window { from, proof: "not there at the start rundown".to_owned() })
}
