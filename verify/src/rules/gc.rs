//! Garbage collections that are only partly in the trace.

use super::commands::RUNTIME_LARGE;
use super::{Check, Rule, plural};
use crate::finding::Severity;

pub(super) const INCOMPLETE: Rule = Rule {
    id: "gc.incomplete",
    statement: "Collections have consecutive numbers, each one that starts ends, and each \
                suspension ends with a restart.",
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
    let facts = check.facts;
    for ((pid, instance), known) in facts.collectors.all() {
        let kinds = [
            (known.skipped, "number is skipped", "numbers are skipped"),
            (known.unended, "collection does not end", "collections do not end"),
            (known.unrestarted, "suspension has no restart", "suspensions have no restart"),
        ];
        let missing: Vec<_> = kinds.iter().filter(|(counted, ..)| counted.count > 0).collect();
        let Some(first) = missing.iter().filter_map(|(counted, ..)| counted.first).min() else {
            continue;
        };
        let missing: Vec<_> =
            missing.iter().map(|(counted, one, many)| plural(counted.count, one, many)).collect();
        let message = format!("collections of CLR {instance}: {}", missing.join(", "));
        let process = facts.process_at(pid, first).and_then(|index| facts.processes().get(index));
        let found = check.find(message);
        let found = match process {
            Some(process) => found.of(process, Some(first)),
            None => found.at(Some(first)),
        };
        found.unless_lost(Some(first), None);
    }
}
