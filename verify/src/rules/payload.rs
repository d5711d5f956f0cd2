//! Payloads that do not fit what is known of their events.

use std::collections::BTreeMap;

use crate::facts::payload::EventId;
use crate::facts::{Counted, Facts};
use crate::report::Finding;

use super::catalogue::{PAYLOAD_DESCRIPTOR, PAYLOAD_LONG, PAYLOAD_SHORT, PAYLOAD_VERSION, Rule};
use super::plural;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    let mut tell = |rule: &Rule, of: &BTreeMap<EventId, Counted>, what: &str| {
        for (&(provider, id, version), counted) in of {
            let name = facts.provider_name(provider);
            let events = plural(counted.count, "event", "events");
            let message = format!("{events} of {name} (id {id}, version {version}): {what}");
            findings.push(Finding::new(rule, message).at(facts, counted.first));
        }
    };
    let payloads = &facts.payloads;
    tell(&PAYLOAD_SHORT, &payloads.short, "the payload ends before its last field");
    tell(&PAYLOAD_LONG, &payloads.long, "the payload goes on behind its last field");
    let what = "level and keywords are not those of its manifest";
    tell(&PAYLOAD_DESCRIPTOR, &payloads.descriptor, what);
    tell(&PAYLOAD_VERSION, &payloads.unknown_version, "the version is not known");
}
