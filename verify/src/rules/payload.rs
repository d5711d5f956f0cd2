//! Payloads and descriptors that do not fit the schemas of their events.

use std::collections::BTreeMap;

use etl_analysis::machine::Counted;

use super::{Check, Rule, plural};
use crate::checks::payload::EventId;
use crate::finding::Severity;

/// Adds a finding for each kind of event.
fn each_event(check: &mut Check<'_>, events: &BTreeMap<EventId, Counted>, what: &str) {
    for (event, counted) in events {
        let message = message(check, event, counted.count, what);
        check.report(message).at(counted.first);
    }
}

fn message(check: &Check<'_>, event: &EventId, count: u64, what: &str) -> String {
    let id = if event.is_classic { "type" } else { "id" };
    format!(
        "{} of {} ({id} {}, version {}): {what}",
        plural(count, "event", "events"),
        check.facts.provider_name(event.provider),
        event.id,
        event.version
    )
}

/// Payloads that contain other records, and payloads that are only too long.
fn long(check: &mut Check<'_>) {
    let payloads = &check.facts.payloads;
    for (event, counted) in &payloads.hiding {
        let what = "the payload contains other records: the size of the event is wrong, and the \
                    other events are lost";
        let message = message(check, event, counted.count, what);
        check
            .report(message)
            .at(counted.first)
            .severity(Severity::Error);
    }
    for (event, counted) in &payloads.long {
        let hiding = payloads.hiding.get(event).map_or(0, |hiding| hiding.count);
        if counted.count > hiding {
            let what = "the payload has bytes after its last field";
            let message = message(check, event, counted.count - hiding, what);
            check.report(message).at(counted.first);
        }
    }
}

pub(super) const SHORT: Rule = Rule {
    id: "payload.short",
    statement: "A payload holds all fields of its event.",
    severity: Severity::Warning,
    source: "the schemas of the built-in tables and of the trace",
    protocol: &[],
    meaning: "Payloads end before their last field: they were cut, or the event is not the one \
              that its id and version state.",
    remedy: "Use the file that the session wrote. If you supplied a manifest, check that it is the \
             right one.",
    commands: &[],
    check: |check| {
        let events = &check.facts.payloads.short;
        each_event(check, events, "the payload ends before its last field")
    },
};

pub(super) const LONG: Rule = Rule {
    id: "payload.long",
    statement: "A payload ends with the last field of its event.",
    severity: Severity::Note,
    source: "the schemas of the built-in tables and of the trace",
    protocol: &[],
    meaning: "Payloads have bytes after the last known field: a newer provider added fields \
              without a new version. If the bytes are other records, the size of the event was \
              changed, and the other records are lost; this is an error.",
    remedy: "Nothing, unless records are lost: then copy the trace again from where it was \
             recorded. The known fields are read.",
    commands: &[],
    check: long,
};

pub(super) const WRONG_DESCRIPTOR: Rule = Rule {
    id: "payload.wrong-descriptor",
    statement: "A CLR event has the level, the opcode and the keywords of its manifest.",
    severity: Severity::Note,
    source: "the built-in tables, and what real traces hold",
    protocol: &["E4", "R6"],
    meaning: "The event's header was changed, or an unknown runtime uses other levels and \
              keywords: filters by level and keyword treat the event differently.",
    remedy: "Nothing if the runtime is new.",
    commands: &[],
    check: |check| {
        let events = &check.facts.payloads.descriptor;
        let what = "level, opcode or keywords differ from its manifest";
        each_event(check, events, what)
    },
};

pub(super) const UNKNOWN_VERSION: Rule = Rule {
    id: "payload.unknown-version",
    statement: "The version of a CLR event is known.",
    severity: Severity::Note,
    source: "the built-in tables",
    protocol: &[],
    meaning: "A newer runtime logs versions of events that the tables do not have; their payloads \
              were not checked.",
    remedy: "Nothing.",
    commands: &[],
    check: |check| {
        let events = &check.facts.payloads.unknown_version;
        each_event(check, events, "the version is unknown")
    },
};
