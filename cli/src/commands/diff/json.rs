//! The JSON of `etlkit diff`, described in docs/json-diff.md.

use std::collections::BTreeMap;

use etl_format::clock::iso_utc;
use etl_tools::diff::{Change, Difference, Event, EventIdentity, ProviderIdentity, Summary};
use serde::Serialize;

use crate::output;

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
    #[serde(flatten)]
    summary: &'a Summary,
    differences: &'a [EventDifference],
    differences_left_out: u64,
    damaged: [bool; 2],
}

#[derive(Debug, Serialize)]
struct EventDifference {
    kind: &'static str,
    time: String,
    #[serde(flatten)]
    provider: ProviderIdentity,
    event: EventIdentity,
    /// For a changed event: what differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<Change>>,
    /// For a missing or extra event: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<BTreeMap<String, String>>,
}

impl EventDifference {
    fn new(kind: &'static str, event: &Event, changes: Option<Vec<Change>>) -> Self {
        let parts = event.parts().iter().map(|p| (p.name.to_string(), p.value.clone()));
        EventDifference {
            kind,
            time: iso_utc(event.filetime()),
            provider: event.provider().clone(),
            event: event.identity().clone(),
            parts: changes.is_none().then(|| parts.collect()),
            changes,
        }
    }
}

impl Json {
    pub fn difference(&mut self, difference: &Difference<'_>) {
        self.differences.push(match difference {
            Difference::Missing(event) => EventDifference::new("missing", event, None),
            Difference::Extra(event) => EventDifference::new("extra", event, None),
            Difference::Changed { before, changes, .. } => {
                EventDifference::new("changed", before, Some(changes.to_vec()))
            }
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
            summary,
            differences: &self.differences,
            differences_left_out: all.saturating_sub(self.differences.len() as u64),
            damaged: summary.damage.each_ref().map(|d| !d.is_empty()),
        })
    }
}
