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

/// The number of a provider's events.
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

/// The number of events of a kind.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EventSource {
    /// The provider, or the class of a group.
    provider: Guid,
    /// The group; `None` for a provider.
    group: Option<u8>,
}

impl EventSource {
    /// The name of the group or of the provider.
    fn name(self, facts: &Facts) -> String {
        let Some(group) = self.group else {
            return facts.provider_name(self.provider);
        };
        match group_name(group).or_else(|| providers::name(self.provider)) {
            Some(name) => name.to_owned(),
            None => format!("kernel group {group:#04x}"),
        }
    }
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EventKind {
    source: EventSource,
    id: u16,
}

/// The number of events of each kind.
pub(super) struct EventCounts(BTreeMap<EventKind, u64>);

impl EventCounts {
    pub fn new(facts: &Facts) -> Self {
        let mut counts = BTreeMap::new();
        for (provider, kinds) in facts.admission.providers() {
            let source = EventSource {
                provider,
                group: None,
            };
            for (event, counted) in kinds {
                let id = event.id;
                *counts.entry(EventKind { source, id }).or_default() += counted.count;
            }
        }
        for kind in facts.classic.list() {
            let source = EventSource {
                provider: kind.class,
                group: kind.group,
            };
            let id = kind.id;
            *counts.entry(EventKind { source, id }).or_default() += kind.count;
        }
        EventCounts(counts)
    }

    /// The providers with the most events.
    pub fn top_providers(&self, facts: &Facts) -> Vec<ProviderCount> {
        let mut counts: BTreeMap<EventSource, u64> = BTreeMap::new();
        for (kind, count) in &self.0 {
            *counts.entry(kind.source).or_default() += count;
        }
        let top = most_frequent(&counts).into_iter();
        let reports = top.map(|(source, count)| ProviderCount {
            provider: source.name(facts),
            provider_guid: source.provider.to_string(),
            is_kernel: source.group.is_some(),
            count,
        });
        reports.collect()
    }

    /// The most frequent events.
    pub fn top_events(&self, facts: &Facts) -> Vec<EventCount> {
        let top = most_frequent(&self.0).into_iter();
        let reports = top.map(|(kind, count)| EventCount {
            provider: kind.source.name(facts),
            provider_guid: kind.source.provider.to_string(),
            event: event_name(facts, kind.source.provider, kind.id),
            id: kind.id,
            count,
        });
        reports.collect()
    }
}

/// The keys with the highest counts. Keys with equal counts are in their own order.
fn most_frequent<K: Copy + Ord>(counts: &BTreeMap<K, u64>) -> Vec<(K, u64)> {
    let mut counts: Vec<_> = counts.iter().map(|(key, count)| (*key, *count)).collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts.truncate(Report::MAX_TOP);
    counts
}

/// The name of an event of any version, from the tables or from the trace.
fn event_name(facts: &Facts, provider: Guid, id: u16) -> Option<String> {
    for registry in [Registry::builtin(), Registry::classic()] {
        let Some(table) = registry.provider(provider) else {
            continue;
        };
        for event in &table.events {
            if is_named_event(&event.schema, provider, id) {
                return Some(event.schema.name.to_string());
            }
        }
    }
    let mut learned = facts.payloads.store().learned();
    let schema = learned.find(|schema| is_named_event(schema, provider, id))?;
    Some(schema.name.to_string())
}

/// Whether a schema has a name and is about an event with this id or type.
fn is_named_event(schema: &EventSchema, provider: Guid, wanted: u16) -> bool {
    let has_id = match schema.identity {
        Identity::Modern { id, .. } => id == wanted,
        Identity::Classic { opcode, .. } => u16::from(opcode) == wanted,
        _ => false,
    };
    has_id && schema.provider == provider && !schema.name.is_empty()
}
