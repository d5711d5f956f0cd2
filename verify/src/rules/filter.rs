//! Filtering: events that no enablement explains, and loads that were not recorded.

use std::collections::{BTreeMap, BTreeSet};

use etl_analysis::address::{Range, Tag};
use etl_analysis::machine::{Bracket, Clr, Item, Process};
use etl_control::enable::{Enablement, EventKey};
use etl_format::{Guid, Ticks};
use etl_schema::clr::keyword::{END_RUNDOWN, IL_MAP, JIT, LOADER, START_RUNDOWN};
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use super::commands::RUNTIME_LARGE;
use super::{Check, Found, Rule, plural, recorded_start};
use crate::checks::Facts;
use crate::checks::carried::Carried;
use crate::checks::enablement::{self, Enabled, EnablementSource};
use crate::checks::raised::Raised;
use crate::finding::Severity;
use etl_schema::clr::Enumeration;

pub(super) const NOT_ENABLED: Rule = Rule {
    id: "filter.not-enabled",
    statement: "Every event passes the level and the keywords that its provider was enabled with, \
                and the CLR raises it for them.",
    severity: Severity::Warning,
    source: "the enable rule, and the CLR's rules of keywords and levels",
    protocol: &["F1", "F2", "F3", "F4", "E1", "E3", "R1"],
    meaning: "The trace holds events that the known enablements do not request: another session's \
              file was merged in, or the stated enablement is not the one that was used.",
    remedy: "State the level and the mask of every session that enabled the provider; `etlkit spec \
             mask` explains masks:",
    commands: &["etlverify --enable runtime:0x1CCBD:5 --enable rundown:0x138:5 trace.etl"],
    check: not_enabled,
};

fn not_enabled(check: &mut Check<'_>) {
    let facts = check.facts;
    for (provider, event, counted, knowledge) in facts.admission.not_admitted() {
        let known: Vec<_> = facts
            .admission
            .of(provider)
            .map(|(_, with)| enablement::words(with))
            .collect();
        let message = format!(
            "{} of {} (id {}, level {}, keywords {:#x}) that no {} enablement requests: {}",
            plural(counted.count, "event", "events"),
            facts.provider_name(provider),
            event.id,
            event.level,
            event.keyword,
            knowledge.name(),
            known.join(", "),
        );
        judge(check.find(message).at(counted.first), knowledge);
    }
    for provider in [CLR_RUNTIME, CLR_RUNDOWN] {
        not_raised(check, provider);
    }
    for process in facts.machine.processes() {
        for bracket in process.brackets() {
            not_requested(check, process, bracket);
        }
    }
}

/// A rundown with more than the enablement requested that was recorded last before it. What several
/// enablements explain together is [`not_raised`]'s.
fn not_requested(check: &mut Check<'_>, process: &Process, bracket: &Bracket) {
    let facts = check.facts;
    let Some(opened) = bracket.opened else { return };
    let mut known = facts.admission.of(CLR_RUNDOWN).peekable();
    if known
        .peek()
        .is_none_or(|(e, _)| e.knowledge != EnablementSource::Recorded)
    {
        return;
    }
    // The record is written just before the call, or just after it.
    let soon = i64::try_from(facts.machine.clock().frequency / 100).unwrap_or(i64::MAX);
    let before = |e: &Enabled| e.at.is_some_and(|at| at <= opened.saturating_add(soon));
    let Some((enabled, with)) = known.filter(|(e, _)| before(e)).max_by_key(|(e, _)| e.at) else {
        return;
    };
    // A CLR that is there enumerates at once.
    let was_there = |at: &Ticks| process.clr_span().is_some_and(|span| span.first < *at);
    let wait = enabled
        .at
        .filter(was_there)
        .map_or(0, |at| opened.saturating_since(at));
    if wait > LONG_WAIT.saturating_mul(soon) {
        let message = format!(
            "the {} rundown of CLR {} began {:.1} s after the enablement recorded last before it",
            bracket.kind.name(),
            bracket.instance,
            wait as f64 / facts.machine.clock().frequency as f64,
        );
        let found = check
            .find(message)
            .of(process, Some(opened))
            .severity(Severity::Note);
        found.undecided(OTHER_SESSION);
    }
    let which = match bracket.kind {
        Enumeration::Start => START_RUNDOWN,
        Enumeration::End => END_RUNDOWN,
    };
    let admits = |level, keyword| {
        with.admits(&EventKey {
            id: 0,
            level,
            keyword,
        })
    };
    let all = with.any == 0;
    let needs = [
        (true, all || with.any & which != 0, "a rundown of this kind"),
        (bracket.listed.modules > 0, admits(4, LOADER), "modules"),
        (bracket.compiled > 0, admits(4, JIT), "compiled methods"),
        (
            bracket.maps > 0,
            admits(5, IL_MAP),
            "maps of IL to native code",
        ),
    ];
    let beyond: Vec<_> = needs
        .iter()
        .filter(|(is, can, _)| *is && !can)
        .map(|(_, _, what)| *what)
        .collect();
    if beyond.is_empty() {
        return;
    }
    let message = format!(
        "the {} rundown of CLR {} holds what the enablement recorded last before it, {}, does not \
         request: {}",
        bracket.kind.name(),
        bracket.instance,
        enablement::words(with),
        beyond.join(", "),
    );
    check
        .find(message)
        .of(process, Some(opened))
        .undecided(OTHER_SESSION);
}

/// How long a rundown may wait for its process to run, in hundredths of a second.
const LONG_WAIT: i64 = 500;

/// Why events that an enablement does not explain are no proof.
const OTHER_SESSION: &str =
    "another session, whose enablement is not known, may have requested them";

/// Kinds of events that a message lists.
const MAX_LISTED: usize = 4;

/// Events that pass the enable rule, but that the CLR does not raise for the masks.
fn not_raised(check: &mut Check<'_>, provider: Guid) {
    let facts = check.facts;
    let own = || facts.admission.of(provider);
    let Some(knowledge) = own().map(|(e, _)| e.knowledge).min() else {
        return;
    };
    let masks = facts.admission.raising(provider);
    let Some(raised) = Raised::of(provider == CLR_RUNDOWN, masks.clone()) else {
        return;
    };
    // The CLR logs the same when it starts and when its state is requested.
    let states = facts
        .machine
        .processes()
        .iter()
        .flat_map(|process| process.clrs().values());
    let raised = match states.filter_map(Clr::started).next() {
        Some(_) => raised.with_capture(masks.clone()),
        None => raised,
    };
    let kinds = facts
        .admission
        .providers()
        .remove(&provider)
        .unwrap_or_default();
    // The others are reported already.
    let admitted = |event: &EventKey| own().any(|(_, with)| with.admits(event));
    let kinds = kinds.into_iter().filter(|(event, _)| admitted(event));
    let signs = facts
        .machine
        .processes()
        .iter()
        .flat_map(Process::signs)
        .copied();
    let found = raised.contradictions(kinds, signs);
    if found.is_empty() {
        return;
    }
    let sum = found.iter().map(|(_, counted)| counted.count).sum();
    let mut listed: Vec<_> = found
        .iter()
        .take(MAX_LISTED)
        .map(|(what, _)| what.clone())
        .collect();
    if found.len() > MAX_LISTED {
        listed.push(format!("{} more", found.len() - MAX_LISTED));
    }
    let masks: Vec<_> = masks.map(enablement::words).collect();
    let message = format!(
        "{} of {} that the CLR does not raise for the {} enablement {}: {}",
        plural(sum, "event", "events"),
        facts.provider_name(provider),
        knowledge.name(),
        masks.join(", "),
        listed.join("; "),
    );
    let first = found.iter().filter_map(|(_, counted)| counted.first).min();
    // They pass the filter of their session: another one may have made the CLR raise them (F4).
    check.find(message).at(first).undecided(OTHER_SESSION);
}

/// A declared enablement was not obeyed. A recorded one does not decide.
fn judge(found: Found<'_>, knowledge: EnablementSource) {
    match knowledge {
        EnablementSource::Declared => found.severity(Severity::Error),
        _ => found.undecided(OTHER_SESSION),
    };
}

pub(super) const MISSING_LOADS: Rule = Rule {
    id: "filter.missing-loads",
    statement: "Everything that an end rundown lists, and that came to be during the recording, \
                has a load event.",
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
        missing_loads_of(check, process);
    }
}

fn missing_loads_of(check: &mut Check<'_>, process: &Process) {
    let facts = check.facts;
    let mut code: Option<BTreeMap<u16, Vec<u64>>> = None;
    let starts = start_rundowns(process);
    let rundown = process.brackets().iter().filter_map(|b| b.opened).max();
    let stopped = facts
        .machine
        .runtime_span()
        .zip(rundown)
        .is_some_and(|(span, at)| span.last < at);
    let runtime = &facts.runtime_on;
    for (&instance, clr) in process.clrs() {
        let kinds = [
            ("method", "methods", &runtime.jit, None),
            ("module", "modules", &runtime.loader, Some(clr.modules())),
            (
                "assembly",
                "assemblies",
                &runtime.loader,
                Some(clr.assemblies()),
            ),
            (
                "application domain",
                "application domains",
                &runtime.loader,
                Some(clr.domains()),
            ),
        ];
        for (one, many, on, items) in kinds {
            let own = starts.get(&(instance, items.is_none())).copied();
            let Some((from, proof)) = created_since(facts, process, clr, own) else {
                continue;
            };
            // A keyword that was enabled later, or perhaps never, proves nothing. It had most
            // likely been enabled before the start rundown, and when the start of the CLR was
            // recorded.
            let listed = process
                .brackets()
                .iter()
                .filter(|b| b.instance == instance && b.kind == Enumeration::End);
            let until = listed.filter_map(|b| b.opened).max().unwrap_or(Ticks::MAX);
            let Some(on) = on.since(until) else { continue };
            let is_likely = own.is_some() || recorded_start(process, clr).is_some();
            if on > from && !(stopped && is_likely) {
                continue;
            }
            let unseen = |known: &Item| {
                known.has(Tag::AT_END) && known.bits & (Tag::LOADED | Tag::AT_START) == 0
            };
            let missing: Vec<u64> = match items {
                Some(items) => items
                    .iter()
                    .filter(|(_, known)| unseen(known))
                    .map(|(id, _)| id)
                    .collect(),
                None => {
                    let code = code.get_or_insert_with(|| unseen_code(process));
                    code.remove(&instance).unwrap_or_default()
                }
            };
            let Some(first) = missing.first() else {
                continue;
            };
            let message = format!(
                "the end rundown lists {} without a load event, although {proof} (first: {first:#x})",
                plural(missing.len() as u64, one, many),
            );
            let found = check
                .find(message)
                .of(process, Some(from))
                .unless_lost(Some(from), None);
            if stopped {
                found.severity(Severity::Warning).undecided(
                    "the runtime session may have ended before the rundown: it has no later event",
                );
            }
        }
    }
}

/// Code that an end rundown lists and that has no load event, by CLR.
fn unseen_code(process: &Process) -> BTreeMap<u16, Vec<u64>> {
    let mut out: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    for range in process.code().alive() {
        let tag = range.tag;
        if tag.has(Tag::AT_END | Tag::JITTED)
            && tag.bits & (Tag::LOADED | Tag::AT_START | Tag::DYNAMIC) == 0
        {
            out.entry(tag.instance).or_default().push(range.start);
        }
    }
    out
}

/// The first whole start rundown of each CLR that lists methods (`true`), and the first that lists
/// modules, assemblies or domains (`false`): the keywords of both differ.
fn start_rundowns(process: &Process) -> BTreeMap<(u16, bool), &Bracket> {
    let mut out = BTreeMap::new();
    for bracket in process
        .brackets()
        .iter()
        .filter(|b| b.kind == Enumeration::Start && b.is_whole())
    {
        let l = bracket.listed;
        let lists = [
            (true, l.methods),
            (false, l.modules + l.assemblies + l.app_domains),
        ];
        for (methods, _) in lists.into_iter().filter(|(_, count)| *count > 0) {
            out.entry((bracket.instance, methods)).or_insert(bracket);
        }
    }
    out
}

/// Since when the items of the end rundown must have been loaded, and why.
fn created_since(
    facts: &Facts,
    process: &Process,
    clr: &Clr,
    start: Option<&Bracket>,
) -> Option<(Ticks, &'static str)> {
    if let Some(from) = process.started() {
        return Some((from, "the process started during the recording"));
    }
    let Some(bracket) = start else {
        let from = recorded_start(process, clr)?;
        return Some((from, "their CLR started during the recording"));
    };
    let from = bracket.opened?;
    // Lost events of the start rundown may have listed them.
    let lost = facts
        .lost(Carried::Clr, Some(from), bracket.closed)
        .is_some();
    (!lost).then_some((from, "the start rundown does not list them"))
}

pub(super) const SILENT_PROCESS: Rule = Rule {
    id: "filter.silent-process",
    statement: "A process that loads a CLR while its provider is enabled logs events of it, and one \
                that has a CLR during a rundown of others is in it.",
    severity: Severity::Warning,
    source: "what the CLR logs, compared with the kernel's events",
    protocol: &["E7"],
    meaning: "The process ran managed code, and no event of its CLR is in the trace: they were \
              lost, or removed by a filter. A process that is suspended, or whose CLR is set to log \
              nothing, is not in a rundown either.",
    remedy: "Do not filter by process, and use more buffers:",
    commands: &[RUNTIME_LARGE],
    check: silent_process,
};

/// The images of a CLR that raises events of its own: the runtime and its compiler.
const RUNTIMES: [&str; 2] = ["clr.dll", "coreclr.dll"];
const COMPILER: &str = "clrjit.dll";

fn silent_process(check: &mut Check<'_>) {
    let reported = silent_start(check);
    silent_rundown(check, &reported);
}

/// Processes that had a CLR from before the rundowns of others until after them, without an event
/// of it.
fn silent_rundown(check: &mut Check<'_>, reported: &BTreeSet<(u32, Option<Ticks>)>) {
    let facts = check.facts;
    if facts.admission.of(CLR_RUNDOWN).any(|(e, _)| e.limited) {
        return;
    }
    let brackets = facts.machine.processes().iter().flat_map(Process::brackets);
    let (mut from, mut to) = (Ticks::MAX, Ticks::MIN);
    for bracket in brackets.filter(|b| b.is_whole() && b.kind == Enumeration::End) {
        from = bracket.opened.map_or(from, |at| at.min(from));
        to = bracket.closed.map_or(to, |at| at.max(to));
    }
    // A process that was there when the kernel's events end was there before.
    let known_until = facts
        .machine
        .kernel_span()
        .map_or(Ticks::MIN, |span| span.last);
    if from > to || known_until < to {
        return;
    }
    for process in facts
        .machine
        .processes()
        .iter()
        .filter(|process| !process.is_managed())
    {
        let has_lived = process.started().is_none_or(|at| at < from)
            && process.ended().is_none_or(|at| at > to);
        if !has_lived || reported.contains(&(process.pid().get(), process.started())) {
            continue;
        }
        let there = images_of(facts, process).filter(|(range, _)| {
            range.from.is_none_or(|at| at < from) && range.to.is_none_or(|at| at > to)
        });
        let Some(runtime) = runtime_of(there) else {
            continue;
        };
        let message = format!(
            "the process had {runtime} loaded during the rundowns of others, but logged no event of \
             it"
        );
        check
            .find(message)
            .of(process, Some(from))
            .unless_lost(Some(from), Some(to));
    }
}

/// The images that a process has or had, with their names.
fn images_of<'f>(facts: &'f Facts, process: &'f Process) -> impl Iterator<Item = (Range, &'f str)> {
    let ranges = process
        .images()
        .past()
        .iter()
        .copied()
        .chain(process.images().alive());
    ranges.filter_map(|range| {
        let image = facts
            .machine
            .images()
            .list()
            .get(usize::try_from(range.tag.id).ok()?)?;
        Some((range, &*image.name))
    })
}

/// The runtime among the images of a process, if its compiler is there as well.
fn runtime_of<'f>(images: impl Iterator<Item = (Range, &'f str)>) -> Option<&'static str> {
    let names: Vec<&str> = images.map(|(_, name)| name).collect();
    let runtime = RUNTIMES.iter().find(|name| names.contains(name));
    runtime.filter(|_| names.contains(&COMPILER)).copied()
}

/// Processes that loaded a CLR while its provider was enabled, and logged no event of it; returns
/// their ids and starts.
fn silent_start(check: &mut Check<'_>) -> BTreeSet<(u32, Option<Ticks>)> {
    let mut reported = BTreeSet::new();
    let facts = check.facts;
    let mut enabled = facts.admission.of(CLR_RUNTIME).peekable();
    // Sessions of a low level get none of the events that every CLR logs.
    let is_open = |(e, with): (&Enabled, &Enablement)| !e.limited && with.admits_level(LEVEL);
    if enabled.peek().is_none() || !enabled.all(is_open) {
        return reported;
    }
    let on = |at| facts.runtime_on.loader.since(at);
    let until = facts.machine.runtime_span().map(|span| span.last);
    for process in facts
        .machine
        .processes()
        .iter()
        .filter(|process| !process.is_managed())
    {
        let is_on = |at: &Ticks| on(*at).is_some_and(|since| since < *at) && Some(*at) < until;
        let Some(started) = process.started().filter(is_on) else {
            continue;
        };
        let Some(runtime) = runtime_of(images_of(facts, process)) else {
            continue;
        };
        let message = format!(
            "the process loaded {runtime} while the provider of the CLR was enabled, but logged no \
             event of it"
        );
        check
            .find(message)
            .of(process, Some(started))
            .unless_lost(Some(started), None);
        reported.insert((process.pid().get(), Some(started)));
    }
    reported
}

/// The level of the events that every CLR logs when it starts.
const LEVEL: u8 = 4;
