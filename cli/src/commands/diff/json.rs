//! The JSON of `etlkit diff`, described in docs/json-diff.md.

use std::collections::BTreeMap;

use etl_format::clock::iso_utc;
use etl_tools::diff::{self, CountDifference, Difference, Event, Summary};
use serde::Serialize;

use crate::output;
use etl_schema::providers;

/// Incremented when a field changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Default)]
pub(super) struct Json {
    differences: Vec<EventDifference>,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    schema_version: u32,
    first: &'a str,
    second: &'a str,
    differs: bool,
    same: u64,
    changed: u64,
    missing: u64,
    extra: u64,
    header: Vec<Change>,
    providers: Vec<Count>,
    counts: Vec<Count>,
    differences: &'a [EventDifference],
    differences_left_out: u64,
    damaged: [bool; 2],
}

#[derive(Debug, Serialize)]
struct Change {
    name: String,
    before: Option<String>,
    after: Option<String>,
}

#[derive(Debug, Serialize)]
struct Count {
    provider_guid: String,
    provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<EventIdentity>,
    before: u64,
    after: u64,
}

/// An event of a provider.
#[derive(Debug, Serialize)]
struct EventIdentity {
    name: Option<String>,
    hook: Option<u16>,
    id: u16,
    opcode: u8,
}

#[derive(Debug, Serialize)]
struct EventDifference {
    kind: &'static str,
    time: String,
    provider_guid: String,
    provider: Option<String>,
    event: EventIdentity,
    /// For a changed event: what differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<Change>>,
    /// For a missing or extra event: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<BTreeMap<String, String>>,
}

impl Json {
    pub fn difference(&mut self, difference: &Difference<'_>) {
        let parts = |event: &Event| {
            let parts = event.parts().iter();
            Some(parts.map(|p| (p.name.to_string(), p.value.clone())).collect())
        };
        self.differences.push(match difference {
            Difference::Missing(event) => {
                EventDifference { parts: parts(event), ..event_difference("missing", event) }
            }
            Difference::Extra(event) => {
                EventDifference { parts: parts(event), ..event_difference("extra", event) }
            }
            Difference::Changed { before, changes: all, .. } => EventDifference {
                changes: Some(changes(all)),
                ..event_difference("changed", before)
            },
            _ => return,
        });
    }

    pub fn finish(self, names: &[String; 2], summary: &Summary) -> String {
        let all = summary.changed + summary.missing + summary.extra;
        let [first, second] = names;
        output::json(&Report {
            schema_version: SCHEMA_VERSION,
            first,
            second,
            differs: summary.differs(),
            same: summary.same,
            changed: summary.changed,
            missing: summary.missing,
            extra: summary.extra,
            header: changes(&summary.header),
            providers: summary.providers.iter().map(|c| count(c, false)).collect(),
            counts: summary.counts.iter().map(|c| count(c, true)).collect(),
            differences: &self.differences,
            differences_left_out: all.saturating_sub(self.differences.len() as u64),
            damaged: summary.damage.each_ref().map(|d| !d.is_empty()),
        })
    }
}

fn event_difference(kind: &'static str, event: &Event) -> EventDifference {
    EventDifference {
        kind,
        time: iso_utc(event.filetime()),
        provider_guid: event.provider().to_string(),
        provider: super::provider_name(event).map(str::to_owned),
        event: EventIdentity {
            name: event.name().map(str::to_owned),
            hook: event.hook(),
            id: event.id(),
            opcode: event.opcode(),
        },
        changes: None,
        parts: None,
    }
}

fn changes(all: &[diff::Change]) -> Vec<Change> {
    let change = |c: &diff::Change| Change {
        name: c.name.clone(),
        before: c.before.clone(),
        after: c.after.clone(),
    };
    all.iter().map(change).collect()
}

fn count(c: &CountDifference, with_event: bool) -> Count {
    let known = || providers::name(c.provider).map(str::to_owned);
    Count {
        provider_guid: c.provider.to_string(),
        provider: c.provider_name.clone().or_else(known),
        event: with_event.then(|| EventIdentity {
            name: c.name.clone(),
            hook: c.hook,
            id: c.id,
            opcode: c.opcode,
        }),
        before: c.before,
        after: c.after,
    }
}
