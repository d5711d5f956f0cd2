//! The most frequent providers and events in the report.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_format::Guid;
use etl_format::constants::group_name;
use etl_schema::EventSchema;
use etl_schema::Identity;
use etl_schema::providers;
use etl_schema::tables::Registry;
use serde::Serialize;

use super::Report;
use crate::checks::Facts;

/// How many records are events of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProviderCount {
    /// Name of the provider, or of a class of the kernel's events; its GUID if the name is unknown.
    pub provider: String,
    /// GUID of the provider or class.
    pub provider_guid: String,
    /// Whether the kernel writes its events.
    pub is_kernel: bool,
    /// Number of events.
    pub count: u64,
}

/// How often an event occurs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct EventCount {
    /// Name of the provider, or of a class of the kernel's events; its GUID if the name is unknown.
    pub provider: String,
    /// GUID of the provider or class.
    pub provider_guid: String,
    /// Name of the event, if it is known.
    pub event: Option<String>,
    /// Id; the type of a kernel or classic event; the number of a message.
    pub id: u16,
    /// Number of events.
    pub count: u64,
}

/// A provider, or a group of the kernel's events.
type Source = (Guid, Option<u8>);

/// The most frequent providers, then the most frequent events.
pub(super) fn counts(facts: &Facts) -> (Vec<ProviderCount>, Vec<EventCount>) {
    let mut events: BTreeMap<(Source, u16), u64> = BTreeMap::new();
    for (provider, kinds) in facts.admission.providers() {
        for (event, counted) in kinds {
            *events.entry(((provider, None), event.id)).or_default() += counted.count;
        }
    }
    for kind in facts.classic.iter() {
        *events
            .entry(((kind.class, kind.group), kind.id))
            .or_default() += kind.count;
    }
    let mut sources: BTreeMap<Source, u64> = BTreeMap::new();
    for ((source, _), count) in &events {
        *sources.entry(*source).or_default() += count;
    }
    let sources = most_frequent(sources).map(|(source, count)| ProviderCount {
        provider: name(facts, source),
        provider_guid: source.0.to_string(),
        is_kernel: source.1.is_some(),
        count,
    });
    let sources = sources.collect();
    let events = most_frequent(events).map(|((source, id), count)| EventCount {
        provider: name(facts, source),
        provider_guid: source.0.to_string(),
        event: event_name(facts, source.0, id),
        id,
        count,
    });
    (sources, events.collect())
}

/// The first ones by count; those of the same count by their keys.
fn most_frequent<K: Ord>(counts: BTreeMap<K, u64>) -> impl Iterator<Item = (K, u64)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts.into_iter().take(Report::MAX_TOP)
}

fn name(facts: &Facts, (provider, group): Source) -> String {
    match group {
        Some(group) => {
            let known = group_name(group).or_else(|| providers::name(provider));
            known.map_or_else(|| format!("kernel group {group:#04x}"), str::to_owned)
        }
        None => facts.provider_name(provider),
    }
}

/// The name of an event, whatever its version.
fn event_name(facts: &Facts, provider: Guid, id: u16) -> Option<String> {
    let is_it = |schema: &&EventSchema| {
        schema.provider == provider && !schema.name.is_empty() && is_id(schema.identity, id)
    };
    let tables = [Registry::builtin(), Registry::classic()];
    let tables = tables
        .into_iter()
        .filter_map(|registry| registry.provider(provider));
    let mut tables = tables
        .flat_map(|table| &table.events)
        .map(|event| &event.schema);
    let name = |schema: &EventSchema| schema.name.to_string();
    let learned = || {
        facts
            .payloads
            .store()
            .learned()
            .map(AsRef::as_ref)
            .find(is_it)
            .map(name)
    };
    tables
        .find(|schema| is_it(schema))
        .map(name)
        .or_else(learned)
}

/// Whether an event has this id or type.
fn is_id(identity: Identity, wanted: u16) -> bool {
    match identity {
        Identity::Modern { id, .. } => id == wanted,
        Identity::Classic { opcode, .. } => u16::from(opcode) == wanted,
        _ => false,
    }
}
