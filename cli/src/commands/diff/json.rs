//! The JSON of `etlkit diff`, described in docs/diff.md.

use std::collections::BTreeMap;

use etl_tools::diff::{Change, EventIdentity, ProviderIdentity, Summary};
use serde::Serialize;

use super::{Found, Kind};
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
    /// For a changed event: what differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<&'a [Change]>,
    /// For a missing or extra event: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<BTreeMap<&'a str, &'a str>>,
}

impl<'a> From<&'a Found> for EventDifference<'a> {
    fn from(Found { event, kind }: &'a Found) -> Self {
        let (kind, changes) = match kind {
            Kind::Missing => ("missing", None),
            Kind::Extra => ("extra", None),
            Kind::Changed(changes) => ("changed", Some(changes.as_slice())),
        };
        let parts = event
            .parts()
            .iter()
            .map(|part| (&*part.name, part.value.as_str()));
        EventDifference {
            kind,
            time: event.time().to_string(),
            provider: event.provider(),
            event: event.identity(),
            parts: changes.is_none().then(|| parts.collect()),
            changes,
        }
    }
}

pub(super) fn render([first, second]: [&str; 2], summary: &Summary, found: &[Found]) -> String {
    let all = summary.changed + summary.missing + summary.extra;
    output::json(&Report {
        schema_version: SCHEMA_VERSION,
        first,
        second,
        differs: summary.differs(),
        summary,
        differences: found.iter().map(EventDifference::from).collect(),
        differences_left_out: all.saturating_sub(found.len() as u64),
        damaged: summary.damage.each_ref().map(|d| !d.is_empty()),
    })
}
