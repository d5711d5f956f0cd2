//! Loads that were not recorded.

use std::collections::{BTreeMap, BTreeSet};

use etl_analysis::address::Tag;
use etl_analysis::files::FileFacts;
use etl_analysis::machine::{Bracket, Clr, Process};
use etl_format::Ticks;
use etl_schema::clr::Enumeration;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::clr::Change;

use crate::checks::Facts;
use crate::checks::enablement::{self, EnablementSource, On};
use crate::checks::losses::EventOrigin;
use crate::finding::Severity;
use crate::rules::commands::RUNTIME_LARGE;
use crate::rules::{Check, Rule, plural, recorded_start};

pub(in crate::rules) const MISSING_LOADS: Rule = Rule {
    id: "filter.missing-loads",
    statement: "Everything that an end rundown lists, and that was loaded or compiled during the \
                recording, has a load event; so have precompiled methods, if they are declared to \
                be enabled.",
    severity: Severity::Error,
    source: "what the CLR logs, compared with its rundown",
    protocol: &["E1", "E2", "R3"],
    meaning: "Load events are missing although their keyword was enabled: they were lost, or \
              removed by a filter.",
    remedy: "Do not filter load events by event id. Stop the runtime session after the rundown, so \
             that there is no gap between them, and use more buffers:",
    commands: &[RUNTIME_LARGE],
    check: missing_loads,
};

fn missing_loads(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        // Computed only if needed: processes have many methods.
        let mut code = None;
        for (&instance, clr) in process.clrs() {
            let mut listed = ListedItems {
                process,
                instance,
                clr,
                code: &mut code,
            };
            for kind in ItemKind::ALL {
                missing_loads_of(check, &mut listed, kind);
            }
            missing_precompiled(check, process, instance, clr);
        }
    }
}

/// Adds a finding for a CLR whose precompiled methods have no load event, although the declared
/// enablement makes the CLR log them: a CLR that starts prepares some of them at once.
fn missing_precompiled(check: &mut Check<'_>, process: &Process, instance: u16, clr: &Clr) {
    let facts = check.facts;
    let loads = &facts.runtime_on.precompiled;
    if !facts.admission.is_closed(CLR_RUNTIME) || loads.has_limited {
        return;
    }
    let Some(started) = recorded_start(process, clr) else {
        return;
    };
    let Some(enabled) = loads.times.around(started) else {
        return;
    };
    // .NET Core raises no loads of precompiled methods, whatever the mask.
    if clr.sku().is_none_or(|sku| sku == enablement::CORE_SKU) {
        return;
    }
    let mut signs = process.signs().iter();
    if signs.any(|count| count.sign.change == Change::Load && count.sign.is_precompiled()) {
        return;
    }
    let mut modules = 0;
    for (id, module) in clr.module_facts() {
        let Some(item) = clr.modules().get(*id) else {
            continue;
        };
        // Without LoaderKeyword the time of the load is not known.
        let is_covered = match item.from {
            Some(from) => enabled.from <= from && from <= enabled.to,
            None => item.has(Tag::AT_END) && enabled.to == Ticks::MAX,
        };
        modules += u64::from(module.is_precompiled() && is_covered);
    }
    if modules == 0 {
        return;
    }
    let message = format!(
        "CLR {instance} started during the recording and loaded {} with precompiled code, and no \
         precompiled method has a load event, although NGen and StartEnumeration were enabled (E3)",
        plural(modules, "module", "modules")
    );
    check
        .report(message)
        .about(process, Some(started))
        .amount(modules)
        .unless_lost(Some(started), None);
}

/// What an end rundown lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Method,
    Module,
    Assembly,
    Domain,
}

impl ItemKind {
    const ALL: [Self; 4] = [
        ItemKind::Method,
        ItemKind::Module,
        ItemKind::Assembly,
        ItemKind::Domain,
    ];

    /// A number of items in words.
    fn count(self, count: u64) -> String {
        match self {
            ItemKind::Method => plural(count, "method", "methods"),
            ItemKind::Module => plural(count, "module", "modules"),
            ItemKind::Assembly => plural(count, "assembly", "assemblies"),
            ItemKind::Domain => plural(count, "application domain", "application domains"),
        }
    }

    /// When the runtime provider logged loads of these items.
    fn loads<'f>(self, facts: &'f Facts, process: &Process) -> &'f On {
        match self {
            ItemKind::Method => facts.runtime_on.jit(process),
            _ => &facts.runtime_on.loader,
        }
    }

    /// Whether a rundown lists items of this kind, or of another kind with the same keyword.
    fn is_in(self, bracket: &Bracket) -> bool {
        let listed = bracket.listed;
        match self {
            ItemKind::Method => listed.methods > 0,
            _ => listed.modules + listed.assemblies + listed.app_domains > 0,
        }
    }
}

/// The items of a CLR that its end rundown lists.
struct ListedItems<'a> {
    process: &'a Process,
    instance: u16,
    clr: &'a Clr,
    /// The result of [`unseen_code`], for all CLRs of the process.
    code: &'a mut Option<BTreeMap<u16, Vec<u64>>>,
}

impl ListedItems<'_> {
    /// The ids of items without a load event, which no start rundown lists.
    fn unseen(&mut self, kind: ItemKind) -> Vec<u64> {
        let items = match kind {
            ItemKind::Method => {
                let code = self.code.get_or_insert_with(|| unseen_code(self.process));
                return code.remove(&self.instance).unwrap_or_default();
            }
            ItemKind::Module => self.clr.modules(),
            ItemKind::Assembly => self.clr.assemblies(),
            ItemKind::Domain => self.clr.domains(),
        };
        let is_unseen = items.iter().filter(|(_, item)| {
            item.has(Tag::AT_END) && item.bits & (Tag::LOADED | Tag::AT_START) == 0
        });
        is_unseen.map(|(id, _)| id).collect()
    }

    /// The first whole start rundown that lists items of a kind.
    fn start_rundown(&self, kind: ItemKind) -> Option<&Bracket> {
        self.process.brackets().iter().find(|bracket| {
            bracket.instance == self.instance
                && bracket.kind == Enumeration::Start
                && bracket.is_whole()
                && kind.is_in(bracket)
        })
    }

    /// When the last end rundown began.
    fn end_rundown(&self) -> Option<Ticks> {
        let ends = self.process.brackets().iter().filter(|bracket| {
            bracket.instance == self.instance && bracket.kind == Enumeration::End
        });
        ends.filter_map(|bracket| bracket.opened).max()
    }

    /// Why items that the end rundown lists must have been loaded during the recording; `None` if
    /// nothing proves it.
    fn proof(&self, facts: &Facts, start_rundown: Option<&Bracket>) -> Option<LoadProof> {
        if let Some(from) = self.process.started() {
            return Some(LoadProof {
                from,
                reason: "the process started during the recording",
            });
        }
        let Some(bracket) = start_rundown else {
            return Some(LoadProof {
                from: recorded_start(self.process, self.clr)?,
                reason: "their CLR started during the recording",
            });
        };
        let from = bracket.opened?;
        // Lost events of the start rundown may have listed them.
        if facts
            .first_loss(EventOrigin::Clr, Some(from), bracket.closed)
            .is_some()
        {
            return None;
        }
        Some(LoadProof {
            from,
            reason: "the start rundown does not list them",
        })
    }
}

/// Why items must have been loaded during the recording.
struct LoadProof {
    /// The earliest time of their loads.
    from: Ticks,
    reason: &'static str,
}

fn missing_loads_of(check: &mut Check<'_>, listed: &mut ListedItems<'_>, kind: ItemKind) {
    let facts = check.facts;
    let process = listed.process;
    let start_rundown = listed.start_rundown(kind);
    let has_start_rundown = start_rundown.is_some();
    let Some(proof) = listed.proof(facts, start_rundown) else {
        return;
    };
    // A keyword that was enabled later, or perhaps never, proves nothing. It was most likely
    // enabled before a start rundown, and if the start of the CLR was recorded.
    let until = listed.end_rundown().unwrap_or(Ticks::MAX);
    let Some(enabled) = kind.loads(facts, process).since(until) else {
        return;
    };
    let is_likely = has_start_rundown || recorded_start(process, listed.clr).is_some();
    let has_stopped = has_runtime_stopped(facts, process);
    if enabled > proof.from && !(has_stopped && is_likely) {
        return;
    }
    let missing = listed.unseen(kind);
    let Some(first) = missing.first() else {
        return;
    };
    let message = format!(
        "the end rundown lists {} without a load event, although {} (first: {first:#x})",
        kind.count(missing.len() as u64),
        proof.reason,
    );
    let found = check
        .report(message)
        .about(process, Some(proof.from))
        .amount(missing.len() as u64)
        .unless_lost(Some(proof.from), None);
    if has_stopped {
        found.severity(Severity::Warning).undecided(
            "the runtime session may have ended before the rundown: it has no later event",
        );
    }
}

/// Whether the session of the runtime provider may have ended before the last rundown of a process:
/// it has no later event, and neither the user nor a header states that it ended later.
pub(in crate::rules) fn has_runtime_stopped(facts: &Facts, process: &Process) -> bool {
    let rundowns = process.brackets().iter();
    let last_rundown = rundowns.filter_map(|bracket| bracket.opened).max();
    match (facts.machine.runtime_span(), last_rundown) {
        (Some(runtime), Some(last_rundown)) if runtime.last < last_rundown => {
            !is_enabled_at(facts, process, last_rundown)
        }
        _ => false,
    }
}

/// Whether the runtime provider was certainly enabled at a time after its last event.
fn is_enabled_at(facts: &Facts, process: &Process, time: Ticks) -> bool {
    let known = &facts.runtime_on.jit(process).known;
    let is_known_on = known.times.around(time).is_some();
    let clock = facts.machine.clock();
    if known.source == Some(EnablementSource::Declared) {
        let stopped = facts.admission.stopped(CLR_RUNTIME, clock);
        if known.has_ends || stopped.is_some() {
            return is_known_on && stopped.is_none_or(|stopped| stopped >= time);
        }
    }
    // The header of a session has the time at which it ended. Several sessions in which the last
    // event of the runtime may have been tell nothing about the session of the runtime provider.
    let Some(runtime) = facts.machine.runtime_span() else {
        return false;
    };
    if facts.machine.files().iter().any(FileFacts::hides_sessions) {
        return false;
    }
    let mut candidates = facts.clr_sessions();
    candidates.retain(|session| {
        session.from <= runtime.last && session.to.is_none_or(|to| to >= runtime.last)
    });
    match candidates[..] {
        [session] => session.to.is_some_and(|to| to >= time),
        _ => false,
    }
}

/// Code that an end rundown lists and that has no load event, by CLR.
fn unseen_code(process: &Process) -> BTreeMap<u16, Vec<u64>> {
    let mut out: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    // A runtime with an EventPipe session unloads its code when it ends, and lists it afterwards.
    let past = process.code().past().iter();
    let loaded_before: BTreeSet<u64> = past
        .filter(|range| range.tag.has(Tag::LOADED))
        .map(|range| range.start)
        .collect();
    for range in process.code().alive() {
        if loaded_before.contains(&range.start) {
            continue;
        }
        let tag = range.tag;
        if tag.has(Tag::AT_END | Tag::JITTED)
            && tag.bits & (Tag::LOADED | Tag::AT_START | Tag::DYNAMIC) == 0
        {
            out.entry(tag.instance).or_default().push(range.start);
        }
    }
    out
}
