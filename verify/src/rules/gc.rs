//! Garbage collections that are only partly in the trace.

use super::commands::RUNTIME_LARGE;
use super::{Check, Rule, plural};
use crate::checks::collections::Collections;
use crate::checks::{ClrCollections, Facts};
use crate::finding::{Found, Severity};
use etl_analysis::files::{FileFacts, Session};
use etl_analysis::loss::LossKind;
use etl_analysis::machine::Counted;
use etl_format::Ticks;
use etl_format::constants::LogFileMode;
use etl_schema::providers::CLR_RUNTIME;

pub(super) const INCOMPLETE: Rule = Rule {
    id: "gc.incomplete",
    statement: "Collections have consecutive numbers, each one that starts ends and has heap \
                statistics, each suspension has its four events, each run of finalizers has both, \
                and no kind of event that comes with each is absent.",
    severity: Severity::Warning,
    source: "what the CLR logs",
    protocol: &[],
    meaning: "Events of garbage collections are missing: their number, their pauses and what \
              depends on them cannot be computed.",
    remedy: "Enable the GC keyword (1) for the whole recording, at level 4 or higher, and use more \
             buffers:",
    commands: &[RUNTIME_LARGE],
    check: incomplete,
};

fn incomplete(check: &mut Check<'_>) {
    for clr in check.facts.collections() {
        uncollected(check, &clr);
        absent_kinds(check, &clr);
        missing_events(check, &clr);
    }
}

/// Many allocations without another collection.
fn uncollected(check: &mut Check<'_>, clr: &ClrCollections<'_>) {
    let uncollected = clr.collections.uncollected();
    let Some(last) = uncollected.first else {
        return;
    };
    let message = format!(
        "CLR {} allocated {} times after its last collection, far more than between any two before",
        clr.instance, uncollected.count
    );
    let found = report(check, clr, last, message).unless_lost(Some(last), None);
    found.undecided("the budget of generation 0 may have grown");
}

/// Kinds of events that every collection logs, and that are absent.
fn absent_kinds(check: &mut Check<'_>, clr: &ClrCollections<'_>) {
    let Some(absent) = clr.collections.absent() else {
        return;
    };
    if check.facts.admission.is_limited(CLR_RUNTIME) {
        return;
    }
    let message = format!(
        "collections of CLR {}: no event {}, though others of the same keyword and level are there",
        clr.instance,
        absent.names.join(", ")
    );
    report(check, clr, absent.first, message).unless_lost(None, None);
}

/// More doubled starts than this come from another session that recorded the same events.
const MAX_UNMATCHED: u64 = 10;

/// Collections and suspensions with missing events.
fn missing_events(check: &mut Check<'_>, clr: &ClrCollections<'_>) {
    let collections = clr.collections;
    let unmatched = if collections.unmatched.count <= MAX_UNMATCHED {
        collections.unmatched
    } else {
        Counted::default()
    };
    let kinds = [
        (
            collections.skipped,
            "number is skipped",
            "numbers are skipped",
        ),
        (
            collections.unended,
            "collection does not end",
            "collections do not end",
        ),
        (
            collections.unrestarted,
            "suspension has no restart",
            "suspensions have no restart",
        ),
        (
            collections.steps,
            "event of a suspension is missing",
            "events of suspensions are missing",
        ),
        (
            paired(collections, collections.without_stats),
            "collection has no heap statistics",
            "collections have no heap statistics",
        ),
        (
            paired(collections, collections.finalizers),
            "run of finalizers is halved",
            "runs of finalizers are halved",
        ),
        (
            unmatched,
            "start is doubled or halved",
            "starts are doubled or halved",
        ),
    ];
    let mut missing = Vec::new();
    let mut first: Option<Ticks> = None;
    for (counted, one, many) in kinds {
        if counted.count > 0 {
            missing.push(plural(counted.count, one, many));
            first = first.into_iter().chain(counted.first).min();
        }
    }
    let Some(first) = first else { return };
    if is_replaced(check.facts, first) {
        return;
    }
    let message = format!(
        "collections of CLR {}: {}",
        clr.instance,
        missing.join(", ")
    );
    report(check, clr, first, message).unless_lost(Some(first), None);
}

/// Events that come in pairs; none if several sessions recorded them, since pairs are then mixed.
fn paired(collections: &Collections, counted: Counted) -> Counted {
    if collections.is_doubled() {
        Counted::default()
    } else {
        counted
    }
}

/// Whether events at a time were never recorded, or were overwritten: a ring has the events of each
/// processor from another time on, and a later session begins with a gap.
fn is_replaced(facts: &Facts, time: Ticks) -> bool {
    let machine = &facts.machine;
    let is_overwritten = machine
        .losses()
        .iter()
        .any(|loss| loss.what == LossKind::Overwritten && loss.touches(Some(time), None));
    let is_ring = machine
        .files()
        .iter()
        .any(|file| file.header.mode.has(LogFileMode::BUFFERING));
    is_overwritten || is_ring || has_gap_after(facts, time)
}

/// Whether all sessions ended after a time before another session began.
fn has_gap_after(facts: &Facts, time: Ticks) -> bool {
    let files = facts.machine.files().iter();
    let sessions: Vec<&Session> = files.flat_map(FileFacts::recorded_sessions).collect();
    sessions.iter().any(|next| {
        next.from > time
            && sessions.iter().all(|session| {
                session.from >= next.from || session.to.is_some_and(|to| to <= next.from)
            })
    })
}

/// Adds a finding about a CLR.
fn report<'c>(
    check: &'c mut Check<'_>,
    clr: &ClrCollections<'_>,
    time: Ticks,
    message: String,
) -> Found<'c> {
    let found = check.report(message);
    match clr.process {
        Some(process) => found.about(process, Some(time)),
        None => found.at(Some(time)),
    }
}
