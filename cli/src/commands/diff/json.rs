//! The JSON of `etlkit diff`, described in docs/diff.md.

use std::collections::BTreeMap;

use etl_tools::diff::{Change, Event, EventIdentity, ProviderIdentity, Summary};
use serde::Serialize;

use super::{Kind, ListedDifference};
use crate::output;

/// Incremented when a field changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Report<'a> {
    schema_version: u32,
    first: &'a str,
    second: &'a str,
    differs: bool,
    #[serde(flatten)]
    summary: &'a Summary,
    differences: Vec<EventDifference<'a>>,
    differences_left_out: u64,
    damaged: [bool; 2],
}

#[derive(Serialize)]
struct EventDifference<'a> {
    kind: &'static str,
    time: String,
    #[serde(flatten)]
    provider: &'a ProviderIdentity,
    event: &'a EventIdentity,
    /// The changes of a changed event.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<&'a [Change]>,
    /// All parts of a missing or extra event.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<BTreeMap<&'a str, &'a str>>,
}

impl<'a> From<&'a ListedDifference> for EventDifference<'a> {
    fn from(difference: &'a ListedDifference) -> Self {
        let event = &difference.event;
        let mut json = EventDifference {
            kind: "changed",
            time: event.time().to_string(),
            provider: event.provider(),
            event: event.identity(),
            changes: None,
            parts: None,
        };
        match &difference.kind {
            Kind::Changed(changes) => json.changes = Some(changes),
            Kind::Missing => {
                json.kind = "missing";
                json.parts = Some(parts(event));
            }
            Kind::Extra => {
                json.kind = "extra";
                json.parts = Some(parts(event));
            }
        }
        json
    }
}

/// The parts of an event, by name.
fn parts(event: &Event) -> BTreeMap<&str, &str> {
    let parts = event.parts().iter();
    parts
        .map(|part| (&*part.name, part.value.as_str()))
        .collect()
}

pub(super) fn render(
    [first, second]: [&str; 2],
    summary: &Summary,
    listed: &[ListedDifference],
) -> String {
    let all = summary.changed + summary.missing + summary.extra;
    output::json(&Report {
        schema_version: SCHEMA_VERSION,
        first,
        second,
        differs: summary.differs(),
        summary,
        differences: listed.iter().map(EventDifference::from).collect(),
        differences_left_out: all.saturating_sub(listed.len() as u64),
        damaged: summary.damage.each_ref().map(|d| !d.is_empty()),
    })
}
