//! The items that a rundown lists.

use std::collections::{BTreeMap, BTreeSet};

use etl_analysis::address::Tag;
use etl_analysis::machine::{Bracket, Clr, Counted, Item, Items, Process};
use etl_format::Ticks;
use etl_format::constants::ClockType;
use etl_schema::providers::CLR_RUNDOWN;

use super::{ByClr, by_clr};
use crate::checks::Facts;
use crate::checks::enablement::{EnablementSource, On};
use crate::finding::Severity;
use crate::rules::commands::{END_RUNDOWN, LARGE_END_RUNDOWN, RECORDING};
use crate::rules::filter::missing_loads::has_runtime_stopped;
use crate::rules::{Check, Rule, plural};
use etl_schema::clr::Enumeration;

/// Adds a finding for each rundown with a count other than zero. Its message is the name of the
/// rundown, followed by `predicate`.
fn each_count(
    check: &mut Check<'_>,
    count: fn(&Bracket) -> u64,
    predicate: fn(count: u64) -> String,
    timestamp: fn(&Bracket) -> Option<Ticks>,
) {
    for process in check.facts.machine.processes() {
        for bracket in process.brackets().iter().filter(|b| count(b) > 0) {
            let message = format!(
                "the {} rundown of CLR {} {}",
                bracket.kind.name(),
                bracket.instance,
                predicate(count(bracket))
            );
            let found = check.report(message).about(process, timestamp(bracket));
            found.amount(count(bracket));
        }
    }
}

pub(in crate::rules) const OUT_OF_ORDER: Rule = Rule {
    id: "rundown.out-of-order",
    statement: "A start rundown lists domains before their assemblies, and assemblies before their \
                modules; an end rundown lists them in the reverse order. What a rundown lists is not \
                loaded later.",
    severity: Severity::Warning,
    source: "the CLR's rundown protocol",
    protocol: &["R3"],
    meaning: "The order of the events was changed after they were written. If something is loaded \
              only after a rundown listed it, times are wrong, which is an error.",
    remedy: "Use the files that the sessions wrote, or record again:",
    commands: RECORDING,
    check: out_of_order,
};

fn out_of_order(check: &mut Check<'_>) {
    loaded_after_listing(check);
    each_count(
        check,
        |bracket| bracket.disordered,
        |count| {
            let items = plural(count, "item", "items");
            format!("lists {items} on the wrong side of what they belong to")
        },
        |bracket| bracket.first_disordered,
    );
}

/// Adds findings for what a rundown lists and is loaded only later, without an unload between: the
/// times of the rundown or of the loads are wrong, and so is the time of all that it lists.
fn loaded_after_listing(check: &mut Check<'_>) {
    let runtime_on = &check.facts.runtime_on;
    let loader = runtime_on.loader.known.source;
    let end_enumeration = runtime_on.end_enumeration.since(Ticks::MAX);
    for process in check.facts.machine.processes() {
        let Counted { count, first } = process.loaded_after_listing();
        if count == 0 {
            continue;
        }
        let message = format!(
            "{} listed by a rundown, and loaded only later",
            plural(count, "item was", "items were")
        );
        let found = check
            .report(message)
            .about(process, first)
            .amount(count)
            .severity(Severity::Error)
            .unless_lost(None, first);
        if end_enumeration.is_none() && loader.is_none() && process.methods_unloaded() == 0 {
            found.undecided(
                "unloads were perhaps not logged: the same ids may have been used again",
            );
        }
    }
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
    each_count(
        check,
        |bracket| bracket.twice,
        |count| format!("lists {} more than once", plural(count, "item", "items")),
        |bracket| bracket.opened,
    );
    each_count(
        check,
        surplus_maps,
        |count| {
            format!(
                "lists {} of IL to native code more than compiled methods: maps are doubled, or \
                 methods are missing",
                plural(count, "map", "maps")
            )
        },
        |bracket| bracket.opened,
    );
    copied(check);
    for kind in Enumeration::ALL {
        repeated(check, kind);
    }
}

/// The number of maps of IL to native code for which a whole rundown lists no method.
fn surplus_maps(bracket: &Bracket) -> u64 {
    if bracket.is_whole() {
        bracket.maps.saturating_sub(bracket.compiled)
    } else {
        0
    }
}

/// A rundown that takes at least this time does not take exactly as long as another by accident...
const MIN_TICKS: i64 = 1_000;
/// ...if it lists at least this number of items.
const MIN_ITEMS: u64 = 10;

/// Adds a finding for rundowns that list as much as another in exactly as many ticks: copies.
fn copied(check: &mut Check<'_>) {
    let facts = check.facts;
    // The system time advances in steps of milliseconds, so times are equal by accident.
    if facts.machine.clock().kind == ClockType::SYSTEM_TIME {
        return;
    }
    for process in facts.machine.processes() {
        let mut seen = BTreeSet::new();
        for bracket in process.brackets() {
            let (Some(opened), Some(closed)) = (bracket.opened, bracket.closed) else {
                continue;
            };
            let ticks = closed.saturating_since(opened);
            let listed = bracket.listed;
            let items = [
                listed.methods,
                listed.modules,
                listed.assemblies,
                listed.app_domains,
                bracket.maps,
            ];
            let is_long = ticks >= MIN_TICKS && items.iter().sum::<u64>() >= MIN_ITEMS;
            let key = (bracket.kind.name(), bracket.instance, ticks, items);
            if is_long && !seen.insert(key) {
                let message = format!(
                    "the {} rundown of CLR {} is a copy of an earlier one: it lists as much in \
                     exactly as many ticks of the clock",
                    bracket.kind.name(),
                    bracket.instance,
                );
                check.report(message).about(process, Some(opened));
            }
        }
    }
}

/// More rundowns of one kind and CLR than were requested. Only the user can state that there were
/// no other requests.
fn repeated(check: &mut Check<'_>, kind: Enumeration) {
    let facts = check.facts;
    let enablements = facts.admission.enablements(CLR_RUNDOWN).count();
    if enablements == 0 {
        return;
    }
    let is_certain = facts.admission.source(CLR_RUNDOWN) == Some(EnablementSource::Declared);
    // The CLR looks at all masks when a session enables the provider, and when a session disables
    // it while another is enabled.
    let requests = 2 * enablements - 1;
    for process in facts.machine.processes() {
        for (instance, brackets) in by_clr(process) {
            let whole = brackets.iter().filter(|b| b.kind == kind && b.is_whole());
            let opened: Vec<_> = whole.filter_map(|b| b.opened).collect();
            // The first rundown that no request explains.
            let Some(&beyond) = opened.get(requests) else {
                continue;
            };
            let message = format!(
                "CLR {instance} has {} {} rundowns, and the enablements request at most {requests}",
                opened.len(),
                kind.name(),
            );
            let found = check.report(message).about(process, Some(beyond));
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
    each_count(
        check,
        |bracket| bracket.other_threads,
        |count| {
            let events = plural(count, "event", "events");
            format!("has {events} of other threads than its first event's")
        },
        |bracket| bracket.opened,
    );
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

/// Items that an end rundown should list.
#[derive(Clone, Copy, Default)]
struct Missing {
    count: u64,
    /// Id of the first item, or the first address of the first method.
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
        let by_clr = by_clr(process);
        let methods = missing_methods(check.facts, process, &by_clr);
        for (&instance, brackets) in &by_clr {
            let Some(clr) = process.clrs().get(&instance) else {
                continue;
            };
            let mut rundowns = ClrRundowns {
                check,
                process,
                instance,
                clr,
                brackets,
            };
            rundowns.check_methods(methods.get(&instance).copied().unwrap_or_default());
            rundowns.check_items(clr.modules(), |count| {
                plural(count, "module was", "modules were")
            });
            rundowns.check_items(clr.assemblies(), |count| {
                plural(count, "assembly was", "assemblies were")
            });
            rundowns.check_items(clr.domains(), |count| {
                plural(count, "application domain was", "application domains were")
            });
        }
    }
}

/// The rundowns of a CLR, and the check that they are complete.
struct ClrRundowns<'a, 'c> {
    check: &'a mut Check<'c>,
    process: &'a Process,
    instance: u16,
    clr: &'a Clr,
    brackets: &'a [&'a Bracket],
}

impl ClrRundowns<'_, '_> {
    /// Checks that the end rundown lists modules, assemblies or domains.
    fn check_items(&mut self, items: &Items, words: fn(count: u64) -> String) {
        let Some(rundown) = last_listing(self.brackets, lists_items) else {
            return;
        };
        // Items of the start rundown may have been unloaded without an event, unless unloads were
        // enabled.
        let loader = &self.check.facts.runtime_on.loader;
        let logs_unloads = is_enabled_before(loader, rundown.opened);
        let mut missing = Missing::default();
        for (id, item) in items.iter() {
            if is_missing(item, rundown.opened, logs_unloads) {
                missing.add(id);
            }
        }
        if missing.count > 0 {
            let message = self.message(&words(missing.count), missing);
            let found = self.check.report(message);
            let found = found.about(self.process, Some(rundown.opened));
            let found = found.amount(missing.count);
            found.unless_lost(None, rundown.bracket.closed);
        }
    }

    /// Checks that the end rundown lists methods.
    fn check_methods(&mut self, missing: Missing) {
        let Some(rundown) = last_listing(self.brackets, |bracket| bracket.listed.methods > 0)
        else {
            return;
        };
        let runtime_on = &self.check.facts.runtime_on;
        // Methods are unloaded with their assembly, and only EndEnumeration logs that.
        let logs_unloads = is_enabled_before(&runtime_on.end_enumeration, rundown.opened);
        let staying = if logs_unloads {
            missing.count
        } else {
            self.staying_methods(rundown.bracket, missing.count)
        };
        if missing.count == 0 || staying == 0 && has_unloads(self.clr) {
            return;
        }
        let message = if staying > 0 && staying < missing.count {
            // Which methods were unloaded is not known.
            let methods = plural(staying, "method was", "methods were");
            let it = if staying == 1 { "it" } else { "them" };
            format!(
                "at least {methods} there before the end rundown of CLR {} and not unloaded, but it \
                 does not list {it}",
                self.instance
            )
        } else {
            let methods = plural(missing.count, "method was", "methods were");
            self.message(&methods, missing)
        };
        let logs_all_unloads = match self.clr.started() {
            Some(started) => is_enabled_before(&runtime_on.loader, started),
            None => false,
        };
        let found = self.check.report(message);
        let found = found.about(self.process, Some(rundown.opened));
        let found = found.amount(missing.count);
        let found = found.unless_lost(None, rundown.bracket.closed);
        if staying == 0 && !logs_all_unloads {
            found.severity(Severity::Warning).undecided(
                "unloads of methods are logged only with EndEnumeration (0x80), which is not known \
                 to have been enabled",
            );
        }
    }

    fn message(&self, items: &str, missing: Missing) -> String {
        let it = if missing.count == 1 { "it" } else { "them" };
        format!(
            "{items} there before the end rundown of CLR {} and not unloaded, but it does not list \
             {it} (first: {:#x})",
            self.instance, missing.first
        )
    }

    /// The number of missing methods that cannot have been unloaded with their module, because the
    /// end rundown lists the module.
    fn staying_methods(&self, bracket: &Bracket, missing: u64) -> u64 {
        // It must be the only rundown that lists modules, and list compiled methods.
        let with_modules = self
            .brackets
            .iter()
            .filter(|b| b.kind == Enumeration::End && b.listed.modules > 0)
            .count();
        if with_modules == 1 && bracket.listed.modules > 0 && bracket.compiled > 0 {
            missing.saturating_sub(self.clr.methods_maybe_gone())
        } else {
            0
        }
    }
}

/// Whether an item was there before the end rundown, was not unloaded, and is not listed.
fn is_missing(item: &Item, opened: Ticks, logs_unloads: bool) -> bool {
    let was_loaded = item.has(Tag::LOADED) && item.from.is_some_and(|from| from < opened);
    let was_listed = logs_unloads && item.has(Tag::AT_START);
    (was_loaded || was_listed) && item.to.is_none() && !item.has(Tag::AT_END)
}

/// Whether a module, an assembly or a domain was unloaded, which unloads its methods.
fn has_unloads(clr: &Clr) -> bool {
    [clr.modules(), clr.assemblies(), clr.domains()]
        .iter()
        .any(|items| items.unloaded() > 0)
}

/// A whole end rundown.
#[derive(Clone, Copy)]
struct EndRundown<'a> {
    bracket: &'a Bracket,
    opened: Ticks,
}

/// Whether a rundown lists modules, assemblies or domains, which have one keyword.
fn lists_items(bracket: &Bracket) -> bool {
    let listed = bracket.listed;
    listed.modules + listed.assemblies + listed.app_domains > 0
}

/// The last whole end rundown for which `lists` is true.
fn last_listing<'a>(
    brackets: &[&'a Bracket],
    lists: fn(&Bracket) -> bool,
) -> Option<EndRundown<'a>> {
    let mut brackets = brackets.iter().copied();
    let bracket = brackets.rfind(|b| b.kind == Enumeration::End && b.is_whole() && lists(b))?;
    Some(EndRundown {
        bracket,
        opened: bracket.opened?,
    })
}

/// Whether a keyword of the runtime provider is known to have been enabled before a time.
fn is_enabled_before(keyword: &On, time: Ticks) -> bool {
    keyword.since(time).is_some_and(|since| since < time)
}

/// Methods that the last end rundown of their CLR does not list, by CLR, in one pass over the code.
fn missing_methods(facts: &Facts, process: &Process, by_clr: &ByClr<'_>) -> BTreeMap<u16, Missing> {
    let mut rundowns = BTreeMap::new();
    for (&instance, brackets) in by_clr {
        if let Some(rundown) = last_listing(brackets, |bracket| bracket.listed.methods > 0) {
            let end_enumeration = &facts.runtime_on.end_enumeration;
            let logs_unloads = is_enabled_before(end_enumeration, rundown.opened);
            rundowns.insert(instance, (rundown.opened, logs_unloads));
        }
    }
    let mut out: BTreeMap<u16, Missing> = BTreeMap::new();
    if rundowns.is_empty() {
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
        let Some(&(opened, logs_unloads)) = rundowns.get(&tag.instance) else {
            continue;
        };
        let was_loaded = tag.has(Tag::LOADED) && range.from.is_some_and(|from| from < opened);
        let was_listed = tag.has(Tag::AT_START) && logs_unloads;
        if is_dynamic && was_loaded {
            dynamic.entry(tag.instance).or_default().add(range.start);
        } else if !is_dynamic && (was_loaded || was_listed) {
            out.entry(tag.instance).or_default().add(range.start);
        }
    }
    // A rundown that lists compiled methods lists dynamic ones as well (table 2 of the documents).
    let runs_until_rundown = !has_runtime_stopped(facts, process);
    for (instance, missing) in dynamic {
        if lists_dynamic.contains(&instance) || runs_until_rundown {
            let sum = out.entry(instance).or_insert(Missing {
                count: 0,
                ..missing
            });
            sum.count += missing.count;
        }
    }
    out
}
