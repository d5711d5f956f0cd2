//! Filtering: events that no enablement explains, and loads that were not recorded.

use std::collections::{BTreeMap, BTreeSet};

use etl_analysis::address::{Range, Tag};
use etl_analysis::machine::{Bracket, Clr, Process};
use etl_control::enable::{Enablement, EventKey};
use etl_format::Ticks;
use etl_schema::clr::keyword::{END_RUNDOWN, IL_MAP, JIT, LOADER, START_RUNDOWN};
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::views::clr::ClrProvider;

use super::commands::RUNTIME_LARGE;
use super::{Check, Rule, plural, recorded_start};
use crate::checks::Facts;
use crate::checks::enablement::{self, EnablementSource, On};
use crate::checks::losses::EventOrigin;
use crate::checks::raised::Raised;
use crate::checks::times::TimeSpan;
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
    for kind in facts.admission.not_admitted() {
        let known: Vec<_> = facts
            .admission
            .enablements(kind.provider)
            .map(|(_, with)| enablement::words(with))
            .collect();
        let message = format!(
            "{} of {} (id {}, level {}, keywords {:#x}) that no {} enablement requests: {}",
            plural(kind.counted.count, "event", "events"),
            facts.provider_name(kind.provider),
            kind.event.id,
            kind.event.level,
            kind.event.keyword,
            kind.source.name(),
            known.join(", "),
        );
        let found = check.report(message).at(kind.counted.first);
        // Only a declared enablement is certainly the only one.
        match kind.source {
            EnablementSource::Declared => found.severity(Severity::Error),
            _ => found.undecided(OTHER_SESSION),
        };
    }
    not_raised(check, ClrProvider::Runtime);
    // A session of EventPipe does not enable the rundown provider: the runtime writes its only
    // rundown when the session stops, whatever the mask requests.
    if facts.is_event_pipe() {
        return;
    }
    not_raised(check, ClrProvider::Rundown);
    for process in facts.machine.processes() {
        for bracket in process.brackets() {
            not_requested(check, process, bracket);
        }
    }
}

/// Compares a rundown with the last enablement that was recorded before it. [`not_raised`] compares
/// with all enablements together.
fn not_requested(check: &mut Check<'_>, process: &Process, bracket: &Bracket) {
    let facts = check.facts;
    let Some(opened) = bracket.opened else { return };
    if facts.admission.source(CLR_RUNDOWN) != Some(EnablementSource::Recorded) {
        return;
    }
    // The record is written just before the call, or just after it.
    let latest = opened.saturating_add(facts.ticks_per_10_ms());
    let before = facts
        .admission
        .enablements(CLR_RUNDOWN)
        .filter(|(enabled, _)| enabled.from.is_some_and(|from| from <= latest));
    let Some((enabled, with)) = before.max_by_key(|(enabled, _)| enabled.from) else {
        return;
    };
    if let Some(requested) = enabled.from {
        late_rundown(check, process, bracket, opened, requested);
    }
    let not_requested = listed_without_request(bracket, with);
    if not_requested.is_empty() {
        return;
    }
    let message = format!(
        "the {} rundown of CLR {} holds what the enablement recorded last before it, {}, does not \
         request: {}",
        bracket.kind.name(),
        bracket.instance,
        enablement::words(with),
        not_requested.join(", "),
    );
    check
        .report(message)
        .about(process, Some(opened))
        .undecided(OTHER_SESSION);
}

/// Adds a finding for a rundown long after its request: a CLR enumerates at once.
fn late_rundown(
    check: &mut Check<'_>,
    process: &Process,
    bracket: &Bracket,
    opened: Ticks,
    requested: Ticks,
) {
    // A CLR that started after the request enumerates when it starts.
    let existed = process
        .clr_span()
        .is_some_and(|span| span.first < requested);
    let facts = check.facts;
    let wait = opened.saturating_since(requested);
    if !existed || wait <= LONG_WAIT.saturating_mul(facts.ticks_per_10_ms()) {
        return;
    }
    let message = format!(
        "the {} rundown of CLR {} began {:.1} s after the enablement recorded last before it",
        bracket.kind.name(),
        bracket.instance,
        wait as f64 / facts.machine.clock().frequency as f64,
    );
    let found = check
        .report(message)
        .about(process, Some(opened))
        .severity(Severity::Note);
    found.undecided(OTHER_SESSION);
}

/// What a rundown lists although an enablement does not request it.
fn listed_without_request(bracket: &Bracket, with: &Enablement) -> Vec<&'static str> {
    let which = match bracket.kind {
        Enumeration::Start => START_RUNDOWN,
        Enumeration::End => END_RUNDOWN,
    };
    let mut out = Vec::new();
    if with.any != 0 && with.any & which == 0 {
        out.push("a rundown of this kind");
    }
    if bracket.listed.modules > 0 && !admits(with, 4, LOADER) {
        out.push("modules");
    }
    if bracket.compiled > 0 && !admits(with, 4, JIT) {
        out.push("compiled methods");
    }
    if bracket.maps > 0 && !admits(with, 5, IL_MAP) {
        out.push("maps of IL to native code");
    }
    out
}

fn admits(with: &Enablement, level: u8, keyword: u64) -> bool {
    with.admits(&EventKey {
        id: 0,
        level,
        keyword,
    })
}

/// How long a rundown may wait for its process to run, in hundredths of a second.
const LONG_WAIT: i64 = 500;

/// Why events that no known enablement explains prove nothing.
const OTHER_SESSION: &str =
    "another session, whose enablement is not known, may have requested them";

/// Kinds of events that a message lists.
const MAX_LISTED: usize = 4;

/// Events that pass the enable rule, but that the CLR does not raise for the masks.
fn not_raised(check: &mut Check<'_>, provider: ClrProvider) {
    let facts = check.facts;
    let guid = provider.guid();
    let Some(source) = facts.admission.source(guid) else {
        return;
    };
    let masks = facts.admission.raising(guid);
    let Some(mut raised) = Raised::of(provider, masks.clone()) else {
        return;
    };
    // The CLR logs the same events when it starts and when its state is requested.
    let mut clrs = facts
        .machine
        .processes()
        .iter()
        .flat_map(|process| process.clrs().values());
    if clrs.any(|clr| clr.started().is_some()) {
        raised = raised.with_capture(masks.clone());
    }
    let mut kinds = facts
        .admission
        .providers()
        .remove(&guid)
        .unwrap_or_default();
    // Other events are reported already.
    kinds.retain(|(event, counted)| facts.admission.explains(guid, event, counted.first));
    let signs = facts
        .machine
        .processes()
        .iter()
        .flat_map(Process::signs)
        .copied();
    let contradictions = raised.contradictions(kinds.into_iter(), signs);
    if contradictions.is_empty() {
        return;
    }
    let count = contradictions.iter().map(|c| c.counted.count).sum();
    let first = contradictions.iter().filter_map(|c| c.counted.first).min();
    let mut listed: Vec<_> = contradictions
        .iter()
        .take(MAX_LISTED)
        .map(|c| c.what.clone())
        .collect();
    if contradictions.len() > MAX_LISTED {
        listed.push(format!("{} more", contradictions.len() - MAX_LISTED));
    }
    let masks: Vec<_> = masks.map(enablement::words).collect();
    let message = format!(
        "{} of {} that the CLR does not raise for the {} enablement {}: {}",
        plural(count, "event", "events"),
        facts.provider_name(guid),
        source.name(),
        masks.join(", "),
        listed.join("; "),
    );
    // They pass the filter of their session: another session may have made the CLR raise them (F4).
    check.report(message).at(first).undecided(OTHER_SESSION);
}

pub(super) const MISSING_LOADS: Rule = Rule {
    id: "filter.missing-loads",
    statement: "Everything that an end rundown lists, and that was loaded or compiled during the \
                recording, has a load event.",
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
        }
    }
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
        .unless_lost(Some(proof.from), None);
    if has_stopped {
        found.severity(Severity::Warning).undecided(
            "the runtime session may have ended before the rundown: it has no later event",
        );
    }
}

/// Whether the last event of the runtime provider is before the last rundown of a process.
fn has_runtime_stopped(facts: &Facts, process: &Process) -> bool {
    let rundowns = process.brackets().iter();
    let last_rundown = rundowns.filter_map(|bracket| bracket.opened).max();
    match (facts.machine.runtime_span(), last_rundown) {
        (Some(runtime), Some(last_rundown)) => runtime.last < last_rundown,
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

/// The images of a CLR that logs events.
const RUNTIMES: [&str; 2] = ["clr.dll", "coreclr.dll"];
/// The compiler of these CLRs.
const COMPILER: &str = "clrjit.dll";

fn silent_process(check: &mut Check<'_>) {
    let enablements = || check.facts.admission.enablements(CLR_RUNTIME);
    // Sessions of a low level get none of the events that every CLR logs.
    let gets_starts = enablements().next().is_some()
        && enablements().all(|(enabled, with)| {
            !enabled.is_limited && with.admits_level(RUNTIME_INFORMATION_LEVEL)
        });
    let rundowns = end_rundowns(check.facts);
    for process in check.facts.machine.processes() {
        if process.is_managed() || gets_starts && silent_start(check, process) {
            continue;
        }
        if let Some(rundowns) = rundowns {
            silent_rundown(check, process, rundowns);
        }
    }
}

/// The level of the events that every CLR logs when it starts.
const RUNTIME_INFORMATION_LEVEL: u8 = 4;

/// From the first beginning to the last end of the whole end rundowns, if the kernel's events show
/// which processes lived then.
fn end_rundowns(facts: &Facts) -> Option<TimeSpan> {
    if facts.admission.is_limited(CLR_RUNDOWN) {
        return None;
    }
    let brackets = facts.machine.processes().iter().flat_map(Process::brackets);
    let whole = brackets.filter(|b| b.is_whole() && b.kind == Enumeration::End);
    let span = TimeSpan {
        from: whole.clone().filter_map(|b| b.opened).min()?,
        to: whole.filter_map(|b| b.closed).max()?,
    };
    let kernel = facts.machine.kernel_span()?;
    if span.from > span.to || kernel.last < span.to {
        return None;
    }
    Some(span)
}

/// Adds a finding if a process had a CLR from before the rundowns of others until after them, and
/// logged no event of it.
fn silent_rundown(check: &mut Check<'_>, process: &Process, rundowns: TimeSpan) {
    let TimeSpan { from, to } = rundowns;
    let has_lived = process.started().is_none_or(|started| started < from)
        && process.ended().is_none_or(|ended| ended > to);
    if !has_lived {
        return;
    }
    let images = images_of(check.facts, process).filter(|image| {
        image.range.from.is_none_or(|loaded| loaded < from)
            && image.range.to.is_none_or(|unloaded| unloaded > to)
    });
    let Some(runtime) = runtime_of(images) else {
        return;
    };
    let message = format!(
        "the process had {runtime} loaded during the rundowns of others, but logged no event of it"
    );
    check
        .report(message)
        .about(process, Some(from))
        .unless_lost(Some(from), Some(to));
}

/// An image that a process has or had.
struct LoadedImage<'f> {
    range: Range,
    name: &'f str,
}

/// The images that a process has or had.
fn images_of<'f>(facts: &'f Facts, process: &'f Process) -> impl Iterator<Item = LoadedImage<'f>> {
    let past = process.images().past().iter().copied();
    let ranges = past.chain(process.images().alive());
    ranges.filter_map(|range| {
        let image = facts.machine.images().get(range.tag.id)?;
        Some(LoadedImage {
            range,
            name: &image.name,
        })
    })
}

/// The runtime among the images of a process, if its compiler is also loaded.
fn runtime_of<'f>(images: impl Iterator<Item = LoadedImage<'f>>) -> Option<&'static str> {
    let names: Vec<&str> = images.map(|image| image.name).collect();
    if !names.contains(&COMPILER) {
        return None;
    }
    RUNTIMES.into_iter().find(|name| names.contains(name))
}

/// Adds a finding, and returns true, if a process loaded a CLR while its provider was enabled, and
/// logged no event of it.
fn silent_start(check: &mut Check<'_>, process: &Process) -> bool {
    let facts = check.facts;
    let Some(started) = process.started() else {
        return false;
    };
    let enabled = facts.runtime_on.loader.since(started);
    if enabled.is_none_or(|enabled| enabled >= started) {
        return false;
    }
    let last_event = facts.machine.runtime_span().map(|span| span.last);
    if last_event.is_none_or(|last| last <= started) {
        return false;
    }
    let Some(runtime) = runtime_of(images_of(facts, process)) else {
        return false;
    };
    let message = format!(
        "the process loaded {runtime} while the provider of the CLR was enabled, but logged no \
         event of it"
    );
    check
        .report(message)
        .about(process, Some(started))
        .unless_lost(Some(started), None);
    true
}
