//! Events that no enablement explains.

use std::collections::BTreeSet;

use etl_analysis::machine::{Bracket, Process};
use etl_control::enable::{Enablement, EventKey};
use etl_format::Ticks;
use etl_schema::clr::Enumeration;
use etl_schema::clr::keyword::{
    END_ENUMERATION, END_RUNDOWN, IL_MAP, JIT, LOADER, NGEN, START_ENUMERATION, START_RUNDOWN,
};
use etl_schema::providers::CLR_RUNDOWN;
use etl_schema::tables::Registry;
use etl_schema::views::clr::ClrProvider;

use crate::checks::enablement::{self, EnablementSource};
use crate::checks::raised::{Contradiction, Correction, ProcessSign, Raised};
use crate::finding::Severity;
use crate::rules::{Check, Rule, plural, recorded_start};

pub(in crate::rules) const NOT_ENABLED: Rule = Rule {
    id: "filter.not-enabled",
    statement: "Every event passes the level and the keywords that its provider was enabled with, \
                and the CLR raises it for them.",
    severity: Severity::Warning,
    source: "the enable rule, and the CLR's rules of keywords and levels",
    protocol: &["F1", "F2", "F3", "F4", "E1", "E3", "R1"],
    meaning: "The trace holds events that the known enablements do not request: another session's \
              file was merged in, or the stated enablement is not the one that was used. A declared \
              enablement is the only one, so that these events are an error; with \
              --other-sessions, and for recorded enablements, another session may have requested \
              them, which is an undecided warning.",
    remedy: "State the level and the mask of every session that enabled the provider, or state that \
             there were others; `etlkit spec mask` explains masks:",
    commands: &[
        "etlverify --enable runtime:0x1CCBD:5 --enable rundown:0x138:5 trace.etl",
        "etlverify --enable rundown:0x138:5 --other-sessions trace.etl",
    ],
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
        let found = found.amount(kind.counted.count);
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

/// Compares a rundown with the enablements before it. [`not_raised`] compares with all enablements
/// together.
fn not_requested(check: &mut Check<'_>, process: &Process, bracket: &Bracket) {
    let Some(opened) = bracket.opened else { return };
    match check.facts.admission.source(CLR_RUNDOWN) {
        Some(EnablementSource::Recorded) => not_recorded(check, process, bracket, opened),
        Some(EnablementSource::Declared) => not_declared(check, process, bracket, opened),
        Some(EnablementSource::Inferred) | None => {}
    }
}

/// Compares a rundown with the declared enablements that began before it, if their times are known.
fn not_declared(check: &mut Check<'_>, process: &Process, bracket: &Bracket, opened: Ticks) {
    let admission = &check.facts.admission;
    if !admission.is_closed(CLR_RUNDOWN) {
        return;
    }
    // Clocks of sessions advance in steps of up to 16 ms.
    let latest = opened.saturating_add(check.facts.ticks_per_10_ms().saturating_mul(10));
    let mut before = Vec::new();
    for (enabled, with) in admission.all_enablements(CLR_RUNDOWN) {
        match enabled.from {
            Some(from) if from <= latest => before.push(with.clone()),
            Some(_) => {}
            None => return,
        }
    }
    let Some((last, earlier)) = before.split_last() else {
        let message = format!(
            "the {} rundown of CLR {} began before any session requested one (R1)",
            bracket.kind.name(),
            bracket.instance
        );
        let found = check.report(message).about(process, Some(opened));
        found.severity(Severity::Error);
        return;
    };
    // What another of them requests is raised for all.
    let mut not_requested = listed_without_request(bracket, last);
    for other in earlier {
        let lacks = listed_without_request(bracket, other);
        not_requested.retain(|what| lacks.contains(what));
    }
    if not_requested.is_empty() {
        return;
    }
    let masks: Vec<_> = before.iter().map(enablement::words).collect();
    let message = format!(
        "the {} rundown of CLR {} holds what the enablements declared before it, {}, do not request: \
         {} (R1)",
        bracket.kind.name(),
        bracket.instance,
        masks.join(", "),
        not_requested.join(", "),
    );
    check
        .report(message)
        .about(process, Some(opened))
        .severity(Severity::Error);
}

/// Compares a rundown with the last enablement that was recorded before it.
fn not_recorded(check: &mut Check<'_>, process: &Process, bracket: &Bracket, opened: Ticks) {
    let facts = check.facts;
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
    let Some(raised) = Raised::of(provider, masks.clone()) else {
        return;
    };
    let raised = raised.with_capture(masks.clone());
    let mut kinds = facts
        .admission
        .providers()
        .remove(&guid)
        .unwrap_or_default();
    // Other events are reported already.
    kinds.retain(|(event, counted)| facts.admission.explains(guid, event, counted.first));
    let mut signs = Vec::new();
    for process in facts.machine.processes() {
        let is_captured = has_requested_state(process);
        signs.extend(
            process
                .signs()
                .iter()
                .map(|&count| ProcessSign { count, is_captured }),
        );
    }
    let contradictions = raised.contradictions(kinds.into_iter(), signs.into_iter());
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
    let needs = needs(provider, masks.clone(), &contradictions);
    let masks: Vec<_> = masks.map(enablement::words).collect();
    let message = format!(
        "{} of {} that the CLR does not raise for the {} enablement {}: {}{needs}",
        plural(count, "event", "events"),
        facts.provider_name(guid),
        source.name(),
        masks.join(", "),
        listed.join("; "),
    );
    let is_closed = facts.admission.is_closed(guid);
    let found = check.report(message).at(first).amount(count);
    if is_closed {
        found.severity(Severity::Error);
    } else {
        // They pass the filter of their session: another session may have made the CLR raise them
        // (F4).
        found.undecided(OTHER_SESSION);
    }
}

/// Whether a session requested the state of a CLR of the process (capture state): it then logs the
/// same events as when it starts, and loads of all that exists.
fn has_requested_state(process: &Process) -> bool {
    process.clrs().values().any(|clr| {
        let is_start_certain = recorded_start(process, clr).is_some() && !clr.is_requested();
        clr.started().is_some() && !is_start_certain
    })
}

/// What the enablements lack to make the CLR raise events, and the rules that say so; empty if that
/// is not known.
fn needs<'a>(
    provider: ClrProvider,
    masks: impl Iterator<Item = &'a Enablement> + Clone,
    contradictions: &[Contradiction],
) -> String {
    let mut parts = BTreeSet::new();
    for contradiction in contradictions {
        if let Some(correction) = Correction::of(provider, masks.clone(), contradiction.raised) {
            parts.insert(correction_words(provider, correction));
        }
    }
    if parts.is_empty() {
        return String::new();
    }
    let parts = Vec::from_iter(parts);
    format!("; that needs {}", parts.join(", and "))
}

/// A correction of a mask with the rule that demands it: `EndRundownKeyword (0x100; R1)`.
fn correction_words(provider: ClrProvider, correction: Correction) -> String {
    let Correction {
        keywords,
        without,
        level,
    } = correction;
    let mut parts = Vec::new();
    if keywords != 0 {
        let rule = rule_of_keywords(provider, keywords);
        parts.push(format!(
            "{} ({keywords:#x}; {rule})",
            names(provider, keywords)
        ));
    }
    if without != 0 {
        parts.push(format!(
            "no {} ({without:#x}; E3)",
            names(provider, without)
        ));
    }
    if let Some(level) = level {
        parts.push(format!("level {level} (E4)"));
    }
    parts.join(" and ")
}

/// The names of keywords of a provider.
fn names(provider: ClrProvider, keywords: u64) -> String {
    match Registry::builtin().provider(provider.guid()) {
        Some(table) => table.keyword_names(keywords).names.join(" and "),
        None => "keywords".to_owned(),
    }
}

/// The rule of the CLR about keywords, by its id in docs/protocol.md.
fn rule_of_keywords(provider: ClrProvider, keywords: u64) -> &'static str {
    match provider {
        ClrProvider::Rundown if keywords & (START_RUNDOWN | END_RUNDOWN) != 0 => "R1",
        ClrProvider::Rundown => "R2",
        ClrProvider::Runtime if keywords & NGEN != 0 || keywords & START_ENUMERATION != 0 => "E3",
        ClrProvider::Runtime if keywords & (JIT | END_ENUMERATION) != 0 => "E2",
        ClrProvider::Runtime => "E1",
    }
}
