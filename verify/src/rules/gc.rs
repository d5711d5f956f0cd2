//! Garbage collections that are only partly in the trace.

use super::commands::RUNTIME_LARGE;
use super::{Check, Rule, plural};
use crate::checks::Facts;
use crate::finding::{Found, Severity};
use etl_analysis::files::{FileFacts, Session};
use etl_analysis::loss::{Loss, LossKind};
use etl_analysis::machine::{Counted, Process};
use etl_format::Ticks;
use etl_format::constants::LogFileMode;
use etl_schema::providers::CLR_RUNTIME;

pub(super) const INCOMPLETE: Rule = Rule {
    id: "gc.incomplete",
    statement: "Collections have consecutive numbers, each one that starts ends, each suspension \
                ends with a restart, and no kind of event that comes with each is absent.",
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

/// Whether what is missing at a time was never recorded, or newer events replaced it: rings hold
/// the events of each processor from another time on, and a later session begins with a gap.
fn is_replaced(facts: &Facts, at: Ticks) -> bool {
    let overwritten =
        |loss: &Loss| loss.what == LossKind::Overwritten && loss.touches(Some(at), None);
    let is_ring = |file: &FileFacts| file.header.mode.has(LogFileMode::BUFFERING);
    let sessions = || facts.machine.files().iter().flat_map(|file| &file.sessions);
    let is_over = |session: &Session, by: Ticks| session.to.is_some_and(|to| to <= by);
    let begins_again = |next: &Session| {
        next.from > at && sessions().all(|s| s.from >= next.from || is_over(s, next.from))
    };
    facts.machine.losses().iter().any(overwritten)
        || facts.machine.files().iter().any(is_ring)
        || sessions().any(begins_again)
}

/// Starts that are doubled, from which on they are doubled on purpose.
const MAX_UNMATCHED: u64 = 10;

fn incomplete(check: &mut Check<'_>) {
    let facts = check.facts;
    for (process, instance, known) in facts.collections() {
        // Many are those of another session that recorded the same events.
        let is_few = known.unmatched.count <= MAX_UNMATCHED;
        let unmatched = if is_few {
            known.unmatched
        } else {
            Counted::default()
        };
        let kinds = [
            (known.skipped, "number is skipped", "numbers are skipped"),
            (
                known.unended,
                "collection does not end",
                "collections do not end",
            ),
            (
                known.unrestarted,
                "suspension has no restart",
                "suspensions have no restart",
            ),
            (
                known.steps,
                "event of a suspension is missing",
                "events of suspensions are missing",
            ),
            (
                unmatched,
                "start is doubled or halved",
                "starts are doubled or halved",
            ),
        ];
        let uncollected = known.uncollected();
        if let Some(last) = uncollected.first {
            let message = format!(
                "CLR {instance} allocated {} times after its last collection, far more than between \
                 any two before",
                uncollected.count
            );
            let found = find(check, process, last, message).unless_lost(Some(last), None);
            found.undecided("the budget of generation 0 may have grown");
        }
        if let Some((first, absent)) = known.absent()
            && !facts.admission.of(CLR_RUNTIME).any(|(e, _)| e.limited)
        {
            let message = format!(
                "collections of CLR {instance}: no event {}, though others of the same keyword and \
                 level are there",
                absent.join(", ")
            );
            find(check, process, first, message).unless_lost(None, None);
        }
        let missing: Vec<_> = kinds
            .iter()
            .filter(|(counted, ..)| counted.count > 0)
            .collect();
        let Some(first) = missing
            .iter()
            .filter_map(|(counted, ..)| counted.first)
            .min()
        else {
            continue;
        };
        if is_replaced(facts, first) {
            continue;
        }
        let missing: Vec<_> = missing
            .iter()
            .map(|(counted, one, many)| plural(counted.count, one, many))
            .collect();
        let message = format!("collections of CLR {instance}: {}", missing.join(", "));
        find(check, process, first, message).unless_lost(Some(first), None);
    }
}

/// A finding of a process.
fn find<'c>(
    check: &'c mut Check<'_>,
    process: Option<&Process>,
    first: Ticks,
    message: String,
) -> Found<'c> {
    let found = check.find(message);
    match process {
        Some(process) => found.of(process, Some(first)),
        None => found.at(Some(first)),
    }
}
