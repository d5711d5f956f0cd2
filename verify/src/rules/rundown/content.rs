//! What a rundown lists.

use etl_format::Ticks;
use std::collections::{BTreeMap, BTreeSet};

use etl_analysis::address::Tag;
use etl_analysis::machine::{Bracket, Clr, Item, Process};
use etl_format::constants::ClockType;
use etl_schema::providers::CLR_RUNDOWN;

use super::{ByClr, by_clr};
use crate::checks::Facts;
use crate::checks::enablement::{EnablementSource, On};
use crate::finding::Severity;
use crate::rules::commands::{END_RUNDOWN, LARGE_END_RUNDOWN, RECORDING};
use crate::rules::{Check, Rule, plural};
use etl_schema::clr::Enumeration;

/// A finding for each rundown with a `count` of something other than zero.
fn each_count(
    check: &mut Check<'_>,
    count: fn(&Bracket) -> u64,
    message: impl Fn(u64, &str) -> String,
    timestamp: fn(&Bracket) -> Option<Ticks>,
) {
    let facts = check.facts;
    for process in facts.machine.processes() {
        for bracket in process.brackets().iter().filter(|b| count(b) > 0) {
            let which = format!(
                "the {} rundown of CLR {}",
                bracket.kind.name(),
                bracket.instance
            );
            check
                .find(message(count(bracket), &which))
                .of(process, timestamp(bracket));
        }
    }
}

pub(in crate::rules) const OUT_OF_ORDER: Rule = Rule {
    id: "rundown.out-of-order",
    statement: "A start rundown lists domains before their assemblies, and assemblies before their \
                modules; an end rundown lists them in the reverse order.",
    severity: Severity::Warning,
    source: "the CLR's rundown protocol",
    protocol: &["R3"],
    meaning: "The order of the events was changed after they were written.",
    remedy: "Use the files that the sessions wrote, or record again:",
    commands: RECORDING,
    check: out_of_order,
};

fn out_of_order(check: &mut Check<'_>) {
    let message = |count, which: &str| {
        let items = plural(count, "item", "items");
        format!("{which} lists {items} on the wrong side of what they belong to")
    };
    each_count(check, |b| b.disordered, message, |b| b.first_disordered)
}

pub(in crate::rules) const DUPLICATE_ITEMS: Rule = Rule {
    id: "rundown.duplicate-items",
    statement: "A rundown lists each item once, and there is one rundown for each request.",
    severity: Severity::Note,
    source: "the CLR's rundown protocol",
    protocol: &["R3"],
    meaning: "Items are listed more than once between one Init and its Complete, or CLRs have more \
              rundowns than were requested: two rundowns ran, or events were doubled.",
    remedy: "Enable the rundown provider once per recording:",
    commands: END_RUNDOWN,
    check: duplicate_items,
};

fn duplicate_items(check: &mut Check<'_>) {
    let message = |count, which: &str| {
        format!(
            "{which} lists {} more than once",
            plural(count, "item", "items")
        )
    };
    each_count(check, |b| b.twice, message, |b| b.opened);
    let message = |count, which: &str| {
        let maps = plural(count, "map", "maps");
        format!(
            "{which} lists {maps} of IL to native code more than compiled methods: maps are doubled, \
             or methods are missing"
        )
    };
    let beyond = |b: &Bracket| {
        if b.is_whole() {
            b.maps.saturating_sub(b.compiled)
        } else {
            0
        }
    };
    each_count(check, beyond, message, |b| b.opened);
    copied(check);
    for kind in Enumeration::ALL {
        repeated(check, kind);
    }
}

/// Ticks that a rundown takes at least, and items that it lists, so that no other one takes exactly
/// as long by accident.
const MIN_TICKS: i64 = 1_000;
const MIN_ITEMS: u64 = 10;

/// Rundowns that list as much as another one in exactly as many ticks: copies.
fn copied(check: &mut Check<'_>) {
    let facts = check.facts;
    // Ticks of a clock that stands still for milliseconds are equal by accident.
    if facts.machine.clock().kind == ClockType::SYSTEM_TIME {
        return;
    }
    for process in facts.machine.processes() {
        let mut known = BTreeSet::new();
        for bracket in process.brackets() {
            let (Some(opened), Some(closed)) = (bracket.opened, bracket.closed) else {
                continue;
            };
            let (ticks, l) = (closed.saturating_since(opened), bracket.listed);
            let items = [
                l.methods,
                l.modules,
                l.assemblies,
                l.app_domains,
                bracket.maps,
            ];
            let is_long = ticks >= MIN_TICKS && items.iter().sum::<u64>() >= MIN_ITEMS;
            let key = (bracket.kind.name(), bracket.instance, ticks, items);
            if is_long && !known.insert(key) {
                let message = format!(
                    "the {} rundown of CLR {} is a copy of an earlier one: it lists as much in \
                     exactly as many ticks of the clock",
                    bracket.kind.name(),
                    bracket.instance,
                );
                check.find(message).of(process, Some(opened));
            }
        }
    }
}

/// More rundowns of one kind and CLR than were requested. Only the user can state that there were
/// no other requests.
fn repeated(check: &mut Check<'_>, kind: Enumeration) {
    let facts = check.facts;
    let mut enabled = facts.admission.of(CLR_RUNDOWN);
    let is_certain = !enabled.any(|(e, _)| e.knowledge != EnablementSource::Declared);
    // Each session that comes, and each that goes while another one stays, makes the CLR look at
    // all masks once more.
    let enabled = facts.admission.of(CLR_RUNDOWN).count();
    let requests = (2 * enabled).saturating_sub(1);
    for process in facts.machine.processes() {
        for (instance, own) in by_clr(process) {
            let whole = own.iter().filter(|b| b.kind == kind && b.is_whole());
            let opened: Vec<_> = whole.filter_map(|b| b.opened).collect();
            // The first one that no request explains.
            let Some(&beyond) = opened.get(requests).filter(|_| requests > 0) else {
                continue;
            };
            let message = format!(
                "CLR {instance} has {} {} rundowns, and the enablements request at most {requests}",
                opened.len(),
                kind.name(),
            );
            let found = check.find(message).of(process, Some(beyond));
            if !is_certain {
                found.undecided("another session may have requested rundowns");
            }
        }
    }
}

pub(in crate::rules) const SEVERAL_THREADS: Rule = Rule {
    id: "rundown.several-threads",
    statement: "One thread logs a whole rundown.",
    severity: Severity::Note,
    source: "the CLR's rundown protocol; seen in .NET Framework 4.5 to .NET 8",
    protocol: &["R2", "R3"],
    meaning: "Several threads logged events between one Init and its Complete: which events belong \
              to which rundown is not certain.",
    remedy: "Nothing by itself.",
    commands: &[],
    check: several_threads,
};

fn several_threads(check: &mut Check<'_>) {
    let message = |count, which: &str| {
        let events = plural(count, "event", "events");
        format!("{which} has {events} of other threads than its first event's")
    };
    each_count(check, |b| b.other_threads, message, |b| b.opened)
}

pub(in crate::rules) const INCOMPLETE: Rule = Rule {
    id: "rundown.incomplete",
    statement: "A complete end rundown lists everything that was loaded, or listed at the start, \
                and is still there.",
    severity: Severity::Error,
    source: "the CLR's rundown protocol",
    protocol: &["R3"],
    meaning: "Events inside the rundown are missing, although it has Init and Complete.",
    remedy: "Use more buffers for the rundown session, since it writes everything at once:",
    commands: LARGE_END_RUNDOWN,
    check: incomplete,
};

/// Items that an end rundown should list: how many, and the first of them.
#[derive(Clone, Copy, Default)]
struct Missing {
    count: u64,
    first: u64,
}

impl Missing {
    fn add(&mut self, id: u64) {
        if self.count == 0 {
            self.first = id;
        }
        self.count += 1;
    }
}

fn incomplete(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        incomplete_of(check, process);
    }
}

fn incomplete_of(check: &mut Check<'_>, process: &Process) {
    let facts = check.facts;
    let brackets = by_clr(process);
    let code = missing_methods(facts, process, &brackets);
    for (&instance, own) in &brackets {
        let Some(clr) = process.clrs().get(&instance) else {
            continue;
        };
        let kinds = [
            ("method was", "methods were", None),
            ("module was", "modules were", Some(clr.modules())),
            ("assembly was", "assemblies were", Some(clr.assemblies())),
            (
                "application domain was",
                "application domains were",
                Some(clr.domains()),
            ),
        ];
        for (one, many, items) in kinds {
            let Some((bracket, opened)) = last_listing(own, items.is_none()) else {
                continue;
            };
            // What the start rundown lists may have been unloaded without an event, unless unloads
            // were enabled.
            let loader = enabled_before(&facts.runtime_on.loader, opened);
            let is_missing = |known: &Item| {
                let loaded = known.has(Tag::LOADED) && known.from.is_some_and(|from| from < opened);
                (loaded || (loader && known.has(Tag::AT_START)))
                    && known.to.is_none()
                    && !known.has(Tag::AT_END)
            };
            let mut missing = Missing::default();
            match items {
                Some(items) => {
                    let ids = items.iter().filter(|(_, known)| is_missing(known));
                    ids.for_each(|(id, _)| missing.add(id));
                }
                None => missing = code.get(&instance).copied().unwrap_or_default(),
            }
            // Methods go with their assembly, and only EndEnumeration logs that.
            let may_go =
                items.is_none() && !enabled_before(&facts.runtime_on.end_enumeration, opened);
            let stay = if may_go {
                staying(clr, own, bracket, missing.count)
            } else {
                0
            };
            if missing.count == 0 || (may_go && stay == 0 && unloads(clr)) {
                continue;
            }
            let is_part = stay > 0 && stay < missing.count;
            let count = if is_part { stay } else { missing.count };
            let message = format!(
                "{}{} there before the end rundown of CLR {instance} and not unloaded, but it does \
                 not list {}{}",
                if is_part { "at least " } else { "" },
                plural(count, one, many),
                if count == 1 { "it" } else { "them" },
                // Which of them have gone is not known.
                if is_part {
                    String::new()
                } else {
                    format!(" (first: {:#x})", missing.first)
                },
            );
            let found = check.find(message).of(process, Some(opened));
            let found = found.unless_lost(None, bracket.closed);
            let is_decided = !may_go
                || stay > 0
                || clr
                    .started()
                    .is_some_and(|from| enabled_before(&facts.runtime_on.loader, from));
            if !is_decided {
                found.severity(Severity::Warning).undecided(
                    "unloads of methods are logged only with EndEnumeration (0x80), which is not \
                     known to have been enabled",
                );
            }
        }
    }
}

/// How many of so many missing methods cannot have gone with their module, since the end rundown
/// lists it.
fn staying(clr: &Clr, brackets: &[&Bracket], bracket: &Bracket, missing: u64) -> u64 {
    // It must be this one that lists compiled methods and modules.
    let lists = |b: &&&Bracket| b.kind == Enumeration::End && b.listed.modules > 0;
    let is_only = brackets.iter().filter(lists).count() == 1 && bracket.listed.modules > 0;
    if is_only && bracket.compiled > 0 {
        missing.saturating_sub(clr.methods_maybe_gone())
    } else {
        0
    }
}

/// Whether something was unloaded that takes its methods with it.
fn unloads(clr: &Clr) -> bool {
    [clr.modules(), clr.assemblies(), clr.domains()]
        .iter()
        .any(|items| items.unloaded() > 0)
}

/// The last whole end rundown that lists methods, or else what comes with modules.
fn last_listing<'a>(brackets: &[&'a Bracket], methods: bool) -> Option<(&'a Bracket, Ticks)> {
    let lists = |b: &Bracket| {
        let l = b.listed;
        let lists = if methods {
            l.methods > 0
        } else {
            l.modules + l.assemblies + l.app_domains > 0
        };
        b.kind == Enumeration::End && b.is_whole() && lists
    };
    let bracket = brackets.iter().copied().rfind(|b| lists(b))?;
    Some((bracket, Ticks::new(bracket.opened?.get())))
}

/// Whether a keyword of the runtime provider is known to have been enabled before a timestamp.
fn enabled_before(keyword: &On, at: Ticks) -> bool {
    keyword.since(at).is_some_and(|on| on < at)
}

/// Methods that the last end rundown of their CLR does not list, by CLR, in one pass over the code.
fn missing_methods(
    facts: &Facts,
    process: &Process,
    brackets: &ByClr<'_>,
) -> BTreeMap<u16, Missing> {
    let opened: BTreeMap<u16, (Ticks, bool)> = brackets
        .iter()
        .filter_map(|(&instance, own)| {
            let (_, opened) = last_listing(own, true)?;
            Some((
                instance,
                (
                    opened,
                    enabled_before(&facts.runtime_on.end_enumeration, opened),
                ),
            ))
        })
        .collect();
    let mut out: BTreeMap<u16, Missing> = BTreeMap::new();
    if opened.is_empty() {
        return out;
    }
    let mut dynamic: BTreeMap<u16, Missing> = BTreeMap::new();
    let mut lists_dynamic: BTreeSet<u16> = BTreeSet::new();
    for range in process.code().alive() {
        let tag = range.tag;
        if !tag.has(Tag::JITTED) {
            continue;
        }
        let is_dynamic = tag.has(Tag::DYNAMIC);
        if tag.has(Tag::AT_END) {
            if is_dynamic {
                lists_dynamic.insert(tag.instance);
            }
            continue;
        }
        let Some(&(opened, unloads)) = opened.get(&tag.instance) else {
            continue;
        };
        let loaded = tag.has(Tag::LOADED) && range.from.is_some_and(|from| from < opened);
        if is_dynamic && loaded {
            dynamic.entry(tag.instance).or_default().add(range.start);
        } else if !is_dynamic && (loaded || (unloads && tag.has(Tag::AT_START))) {
            out.entry(tag.instance).or_default().add(range.start);
        }
    }
    // A rundown that lists dynamic methods lists all of them.
    for (instance, missing) in dynamic {
        if lists_dynamic.contains(&instance) {
            let sum = out.entry(instance).or_insert(Missing {
                count: 0,
                ..missing
            });
            sum.count += missing.count;
        }
    }
    out
}
