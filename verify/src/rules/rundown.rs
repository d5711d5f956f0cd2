//! The rundown protocol (rules R1 to R7 of the CLR): brackets, what is in them, and who has none.

use std::collections::BTreeMap;

use etl_schema::clr::keyword::{END_ENUMERATION, END_RUNDOWN, LOADER, START_RUNDOWN};
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use crate::facts::clr::Rundown;
use crate::facts::{Bracket, Facts, Known, Process, Tag};
use crate::report::{Finding, Severity};

use super::catalogue::{
    RUNDOWN_CONFUSED, RUNDOWN_EMPTY, RUNDOWN_EXITED, RUNDOWN_INCOMPLETE, RUNDOWN_MISSING,
    RUNDOWN_NESTED, RUNDOWN_NO_INIT, RUNDOWN_NONE, RUNDOWN_ORDER, RUNDOWN_OUTSIDE, RUNDOWN_RUNAWAY,
    RUNDOWN_THREADS, RUNDOWN_TWICE, RUNDOWN_UNCLOSED, RUNDOWN_WRONG_PROVIDER,
};
use super::plural;

/// Brackets of one kind and CLR beyond which a rundown has run away. Collectors ask for two or three.
const MANY_BRACKETS: usize = 16;

/// How often what a process has must be listed for a rundown to have run away, and from how many
/// events on.
const MANY_TIMES: u64 = 8;
const MANY_EVENTS: u64 = 10_000;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    let strangers = super::merge::are_strangers(facts);
    for process in &facts.processes {
        // The last bracket of each kind that began inside another one: it says that those before it were
        // not complete.
        let mut nested = BTreeMap::new();
        for (at, bracket) in process.brackets.iter().enumerate().filter(|(_, b)| b.nested) {
            nested.insert((bracket.kind, bracket.instance), at);
        }
        for (at, bracket) in process.brackets.iter().enumerate() {
            let last = nested.get(&(bracket.kind, bracket.instance));
            let interrupted = last.is_some_and(|&last| last > at);
            ends(facts, process, bracket, interrupted, findings);
            content(facts, process, bracket, findings);
        }
        strays(facts, process, findings);
        let brackets = by_clr(process);
        runaway(facts, process, &brackets, findings);
        if process.is_managed() {
            coverage(facts, process, strangers, &brackets, findings);
        }
        incomplete(facts, process, &brackets, findings);
        for (&instance, brackets) in &brackets {
            if process.clrs.contains_key(&instance) {
                empty(facts, process, instance, brackets, findings);
            }
        }
    }
}

/// The brackets of each CLR.
type ByClr<'a> = BTreeMap<u16, Vec<&'a Bracket>>;

fn by_clr(process: &Process) -> ByClr<'_> {
    let mut out = ByClr::new();
    for bracket in &process.brackets {
        out.entry(bracket.instance).or_default().push(bracket);
    }
    out
}

/// Init and Complete.
fn ends(
    facts: &Facts,
    process: &Process,
    bracket: &Bracket,
    interrupted: bool,
    findings: &mut Vec<Finding>,
) {
    let (kind, instance) = (bracket.kind.name(), bracket.instance);
    let timestamp = bracket.opened.or(bracket.closed);
    if bracket.nested {
        let message = format!(
            "a second {kind} rundown of CLR {instance} began before the first was complete"
        );
        let finding = Finding::new(&RUNDOWN_NESTED, message).of(facts, process, timestamp);
        findings.push(finding.unless_lost(facts, None, timestamp));
    }
    match (bracket.opened, bracket.closed) {
        (Some(_), Some(_)) => {}
        (Some(_), None) if interrupted => {}
        (Some(opened), None) => {
            let ended = process.ended.is_some_and(|at| at >= opened);
            let why = if ended {
                "the process ended meanwhile"
            } else {
                "the rundown session was stopped too early, or the process was"
            };
            let message = format!(
                "the {kind} rundown of CLR {instance} began and was never complete: {why}; {} came",
                plural(listed(bracket), "item", "items")
            );
            let finding = Finding::new(&RUNDOWN_UNCLOSED, message).of(facts, process, timestamp);
            findings.push(finding.unless_lost(facts, Some(bracket.last), None));
        }
        (None, _) => {
            let message = format!(
                "the {kind} rundown of CLR {instance} is complete but never began: its first events are missing"
            );
            let finding = Finding::new(&RUNDOWN_NO_INIT, message).of(facts, process, timestamp);
            findings.push(finding.unless_lost(facts, None, bracket.closed));
        }
    }
}

fn listed(bracket: &Bracket) -> u64 {
    let l = bracket.listed;
    l.methods + l.modules + l.assemblies + l.domains
}

/// What stands between them.
fn content(facts: &Facts, process: &Process, bracket: &Bracket, findings: &mut Vec<Finding>) {
    let (kind, instance) = (bracket.kind.name(), bracket.instance);
    if bracket.disordered > 0 {
        let message = format!(
            "in the {kind} rundown of CLR {instance} {} out of order to what they belong to",
            plural(bracket.disordered, "item is", "items are")
        );
        findings.push(Finding::new(&RUNDOWN_ORDER, message).of(
            facts,
            process,
            bracket.first_disordered,
        ));
    }
    if bracket.twice > 0 {
        let message = format!(
            "the {kind} rundown of CLR {instance} lists {} more than once",
            plural(bracket.twice, "item", "items")
        );
        findings.push(Finding::new(&RUNDOWN_TWICE, message).of(facts, process, bracket.opened));
    }
    if bracket.other_threads > 0 {
        let message = format!(
            "{} of the {kind} rundown of CLR {instance} come from other threads than its first",
            plural(bracket.other_threads, "event", "events")
        );
        findings.push(Finding::new(&RUNDOWN_THREADS, message).of(facts, process, bracket.opened));
    }
}

/// What stands where it should not.
fn strays(facts: &Facts, process: &Process, findings: &mut Vec<Finding>) {
    let outside = process.outside;
    if outside.count > 0 {
        let message = format!(
            "{} outside every rundown bracket of their CLR",
            plural(outside.count, "enumerated item stands", "enumerated items stand")
        );
        let finding = Finding::new(&RUNDOWN_OUTSIDE, message).of(facts, process, outside.first);
        findings.push(finding.unless_lost(facts, None, outside.first));
    }
    let confused = process.confused;
    if confused.count > 0 {
        let message = format!(
            "{} of one enumeration inside the bracket of the other",
            plural(confused.count, "event stands", "events stand")
        );
        let finding = Finding::new(&RUNDOWN_CONFUSED, message).of(facts, process, confused.first);
        findings.push(finding.unless_lost(facts, None, confused.first));
    }
    let wrong = process.wrong_provider;
    if wrong.count > 0 {
        let message = format!(
            "{} under the provider of the other kind",
            plural(
                wrong.count,
                "event of a rundown or load stands",
                "events of rundowns or loads stand"
            )
        );
        findings.push(Finding::new(&RUNDOWN_WRONG_PROVIDER, message).of(
            facts,
            process,
            wrong.first,
        ));
    }
}

fn runaway(facts: &Facts, process: &Process, brackets: &ByClr<'_>, findings: &mut Vec<Finding>) {
    let first = process.brackets.first();
    let timestamp = first.and_then(|b| b.opened.or(b.closed));
    let of_kind = |own: &[&Bracket], kind| own.iter().filter(|b| b.kind == kind).count();
    let most = brackets
        .values()
        .map(|own| of_kind(own, Rundown::Start).max(of_kind(own, Rundown::End)))
        .max()
        .unwrap_or(0);
    let again = process.methods_enumerated > MANY_EVENTS
        && process.methods_enumerated / process.methods.max(1) >= MANY_TIMES;
    if most <= MANY_BRACKETS && !again {
        return;
    }
    let message = format!(
        "{most} rundowns of one CLR tell {} times of {} methods",
        process.methods_enumerated, process.methods
    );
    findings.push(Finding::new(&RUNDOWN_RUNAWAY, message).of(facts, process, timestamp));
}

/// Why a process whose CLRs tell of their start needs no rundown. Asked for its state a CLR tells the same as at its
/// start; which of the two it was, shows by what else is known.
fn told_by(process: &Process) -> &'static str {
    let starts = || process.clrs.values().filter_map(|clr| clr.started);
    let before = process.clr_span.is_some_and(|(first, _)| starts().any(|start| first < start));
    if process.started.is_some() {
        "it started inside the recording and its loads were told of"
    } else if before {
        "a session asked its CLR for its state, and loads were told of from then on"
    } else {
        "its CLR started inside the recording, or was asked for its state (capture state), and loads were told \
         of from then on"
    }
}

/// The mask that the rundown provider is known to have been enabled with, if it asks for no rundown.
fn asked_in_vain(facts: &Facts) -> Option<u64> {
    let mut masks = facts.admission.of(CLR_RUNDOWN).map(|(_, with)| with.any).peekable();
    let first = masks.peek().copied()?;
    // A mask of 0 is all of them.
    masks.all(|mask| mask != 0 && mask & (START_RUNDOWN | END_RUNDOWN) == 0).then_some(first)
}

/// Processes, and CLRs in them, without a rundown.
fn coverage(
    facts: &Facts,
    process: &Process,
    strangers: bool,
    brackets: &ByClr<'_>,
    findings: &mut Vec<Finding>,
) {
    let from = process.clr_span.map(|(first, _)| first);
    if process.brackets.is_empty() && process.methods_enumerated == 0 {
        if facts.rundown_span.is_none() && process.is_told_from_the_beginning() {
            let message = format!(
                "the trace holds no rundown; nothing of this process is missing by that, since {}",
                told_by(process)
            );
            let mut finding = Finding::new(&RUNDOWN_NONE, message).of(facts, process, from);
            finding.severity = Severity::Note;
            findings.push(finding.unless_lost(facts, from, None));
            return;
        }
        let (rule, message) = match (facts.rundown_span, process.ended) {
            (None, _) => (
                &RUNDOWN_NONE,
                match asked_in_vain(facts) {
                    Some(mask) => format!(
                        "the process ran managed code, and the trace holds no rundown at all: the rundown provider \
                         was enabled with {mask:#x}, which asks for none; EndRundown is 0x100, StartRundown 0x40"
                    ),
                    None => "the process ran managed code, and the trace holds no rundown at all".to_owned(),
                },
            ),
            (Some((first, _)), Some(ended)) if ended < first => (
                &RUNDOWN_EXITED,
                "the process ended before the rundown: only methods whose load was seen are known".to_owned(),
            ),
            // No process of the one session is in the other: the rule of merges says so.
            (Some(_), _) if strangers => return,
            (Some(_), _) => (
                &RUNDOWN_MISSING,
                "the process ran managed code while others were run down, and has no rundown itself".to_owned(),
            ),
        };
        let exited = process.ended.filter(|_| rule.id == RUNDOWN_EXITED.id);
        let finding = Finding::new(rule, message).of(facts, process, exited.or(from));
        findings.push(finding.unless_lost(facts, from, None));
        return;
    }
    // Some of its CLRs may have been run down and others not.
    for (&instance, clr) in &process.clrs {
        if brackets.contains_key(&instance) || clr.runtime_events == 0 || process.clrs.len() == 1 {
            continue;
        }
        let message = format!(
            "CLR {instance} ran managed code, and only other CLRs of the process were run down"
        );
        let finding = Finding::new(&RUNDOWN_MISSING, message).of(facts, process, None);
        findings.push(finding.unless_lost(facts, from, None));
    }
}

/// Things that an end rundown should list: how many, and the first of them.
#[derive(Clone, Copy, Default)]
struct LeftOut {
    count: u64,
    example: u64,
}

impl LeftOut {
    fn of(ids: impl Iterator<Item = u64>) -> Self {
        let mut out = LeftOut::default();
        ids.for_each(|id| out.add(id));
        out
    }

    fn add(&mut self, id: u64) {
        if self.count == 0 {
            self.example = id;
        }
        self.count += 1;
    }
}

/// The last whole end rundown that lists things of a kind: methods, or what comes with them.
fn last_listing<'a>(brackets: &[&'a Bracket], methods: bool) -> Option<(&'a Bracket, i64)> {
    let lists = |b: &Bracket| {
        let l = b.listed;
        // Modules, assemblies and domains come with one keyword, methods with others.
        let lists = if methods { l.methods > 0 } else { l.modules + l.assemblies + l.domains > 0 };
        b.kind == Rundown::End && b.is_whole() && lists
    };
    let bracket = brackets.iter().copied().rfind(|b| lists(b))?;
    Some((bracket, bracket.opened?))
}

/// What was loaded before a whole end rundown, never unloaded, and is not listed.
fn incomplete(facts: &Facts, process: &Process, brackets: &ByClr<'_>, findings: &mut Vec<Finding>) {
    let code = methods_left_out(facts, process, brackets);
    for (&instance, own) in brackets {
        let Some(clr) = process.clrs.get(&instance) else { continue };
        let kinds = [
            ("method", "methods", None),
            ("module", "modules", Some(&clr.modules)),
            ("assembly", "assemblies", Some(&clr.assemblies)),
            ("application domain", "application domains", Some(&clr.domains)),
        ];
        for (one, many, things) in kinds {
            let Some((bracket, opened)) = last_listing(own, things.is_none()) else { continue };
            // What the start rundown lists may have been unloaded in silence, unless unloads were told.
            let loader = told_before(facts, LOADER, opened);
            let left_out = |known: &Known| {
                let loaded = known.has(Tag::LOADED) && known.from.is_some_and(|from| from < opened);
                (loaded || (loader && known.has(Tag::AT_START)))
                    && known.to.is_none()
                    && !known.has(Tag::AT_END)
            };
            let missing = match things {
                Some(things) => {
                    LeftOut::of(things.iter().filter(|(_, k)| left_out(k)).map(|(id, _)| id))
                }
                None => code.get(&instance).copied().unwrap_or_default(),
            };
            let LeftOut { count, example } = missing;
            if count == 0 {
                continue;
            }
            let message = format!(
                "{} there before the end rundown of CLR {instance}, and not unloaded, and it does not list {} \
                 (the first is {example:#x})",
                plural(count, &format!("{one} was"), &format!("{many} were")),
                if count == 1 { "it" } else { "them" },
            );
            let finding =
                Finding::new(&RUNDOWN_INCOMPLETE, message).of(facts, process, Some(opened));
            let finding = finding.unless_lost(facts, None, bracket.closed);
            // Methods go with their assembly, and that is told only with EndEnumeration.
            let unloads = things.is_some() || told_before(facts, END_ENUMERATION, opened);
            findings.push(if !unloads && finding.is_decided() {
                finding.undecided(
                    "unloads of methods are told with EndEnumeration (0x80), which is not known to have been on",
                )
            } else {
                finding
            });
        }
    }
}

/// Whether a keyword of the runtime provider is known to have been on before a moment.
fn told_before(facts: &Facts, keyword: u64, at: i64) -> bool {
    facts.admission.on_since(CLR_RUNTIME, keyword).is_some_and(|on| on < at)
}

/// Methods that the last end rundown of their CLR leaves out, by CLR; one look at the code for all of them.
fn methods_left_out(
    facts: &Facts,
    process: &Process,
    brackets: &ByClr<'_>,
) -> BTreeMap<u16, LeftOut> {
    let opened: BTreeMap<u16, (i64, bool)> = brackets
        .iter()
        .filter_map(|(&instance, own)| {
            let (_, opened) = last_listing(own, true)?;
            Some((instance, (opened, told_before(facts, END_ENUMERATION, opened))))
        })
        .collect();
    let mut out: BTreeMap<u16, LeftOut> = BTreeMap::new();
    if opened.is_empty() {
        return out;
    }
    for range in process.code.alive() {
        let tag = range.tag;
        if !tag.has(Tag::JITTED) || tag.bits & (Tag::AT_END | Tag::DYNAMIC) != 0 {
            continue;
        }
        let Some(&(opened, unloads)) = opened.get(&tag.instance) else { continue };
        let loaded = tag.has(Tag::LOADED) && range.from.is_some_and(|from| from < opened);
        if loaded || (unloads && tag.has(Tag::AT_START)) {
            out.entry(tag.instance).or_default().add(range.start);
        }
    }
    out
}

/// A CLR whose whole end rundowns list one kind of thing and not the other.
fn empty(
    facts: &Facts,
    process: &Process,
    instance: u16,
    brackets: &[&Bracket],
    findings: &mut Vec<Finding>,
) {
    let end = |b: &&&Bracket| b.kind == Rundown::End && b.is_whole();
    let brackets: Vec<_> = brackets.iter().filter(end).collect();
    let Some(first) = brackets.first() else { return };
    let sum = |of: fn(&Bracket) -> u64| brackets.iter().map(|b| of(b)).sum::<u64>();
    let (methods, modules) = (sum(|b| b.listed.methods), sum(|b| b.listed.modules));
    let message = match (methods, modules) {
        (0, 0) => format!("the end rundown of CLR {instance} lists neither methods nor modules"),
        (0, n) => format!("the end rundown of CLR {instance} lists {n} modules and no method"),
        (n, 0) => format!("the end rundown of CLR {instance} lists {n} methods and no module"),
        _ => return,
    };
    let finding = Finding::new(&RUNDOWN_EMPTY, message).of(facts, process, first.opened);
    findings.push(finding.unless_lost(facts, first.opened, first.closed));
}
