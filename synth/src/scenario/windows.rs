//! Events of the providers that Windows ships, in `raise` nodes.

use etl_format::Guid;
use etl_schema::EventSchema;
use etl_schema::tables::Registry;
use etl_schema::tables::windows::{self, ListedEvent};

use super::args::Args;
use super::nearest::nearest;
use crate::model::{ProviderKind, ProviderPlan, Scenario};

/// Ids in a help text.
const MAX_IDS: usize = 6;

/// The event of a `raise` node: the indices of its provider and of the event in the scenario, to
/// which both are added. Properties change what the tables say of it.
pub(super) fn event(
    args: &mut Args<'_, '_>,
    scenario: &mut Scenario,
    name: &str,
    event: &str,
) -> Option<(usize, usize)> {
    let guid = provider(args, scenario, name)?;
    let listed = listed(args, guid, event)?;
    let build = scenario.machine.os.build;
    args.reader.declared.needs_build = true;
    let event = windows::in_build(guid, listed.id, listed.version, build)?;
    if !event.is_complete {
        let last = event
            .schema
            .fields
            .last()
            .map(|f| format!("the last one known is {}", f.name));
        let message = format!("not all fields of event {} are known", listed.id);
        args.error(message, "cannot be raised", last.as_deref());
    }
    let mut schema = event.schema.clone();
    args.set("level", &mut schema.level.value);
    args.set("opcode", &mut schema.opcode.value);
    args.set("task", &mut schema.task.value);
    args.set("channel", &mut schema.channel.value);
    schema.keywords = args.keywords("keywords", guid).unwrap_or(schema.keywords);
    Some(add(args, scenario, guid, schema))
}

/// The provider of this name or GUID.
fn provider(args: &mut Args<'_, '_>, scenario: &Scenario, name: &str) -> Option<Guid> {
    let Some(guid) = windows::find(name) else {
        let declared: Vec<&str> = scenario.providers.iter().map(|p| p.name.as_str()).collect();
        let near = nearest(name, windows::names());
        let help = match near.as_slice() {
            [] => format!("providers declared so far: {}", declared.join(", ")),
            near => format!("nearest ones of Windows: {}", near.join(", ")),
        };
        args.error(
            format!("no provider is called \"{name}\""),
            "here",
            Some(&help),
        );
        return None;
    };
    if Registry::builtin().has(guid) {
        let help = Some("jit, gc, throw and the like in a process with a clr");
        args.error("a CLR raises its events itself", "here", help);
        return None;
    }
    Some(guid)
}

/// The event with this id or name, and with the version of the node or else the newest one.
fn listed(args: &mut Args<'_, '_>, provider: Guid, event: &str) -> Option<ListedEvent> {
    let events = windows::events(provider);
    let version: Option<u8> = args.get("version");
    let named = events
        .iter()
        .find(|listed| listed.name.eq_ignore_ascii_case(event));
    let id = match (event.parse::<u16>(), named) {
        (Ok(id), _) => id,
        (_, Some(named)) => named.id,
        _ => {
            let near = nearest(event, events.iter().map(|listed| &*listed.name)).join(", ");
            let help = match (events.is_empty(), near.is_empty()) {
                (true, _) => "only the name of this provider is known".to_owned(),
                (_, true) => "the id or the name of an event".to_owned(),
                _ => format!("nearest: {near}"),
            };
            let message = format!("the provider has no event \"{event}\"");
            args.error(message, "here", Some(&help));
            return None;
        }
    };
    let of_id: Vec<&ListedEvent> = events.iter().filter(|listed| listed.id == id).collect();
    if of_id.is_empty() {
        let help = if events.is_empty() {
            "only the name of this provider is known".to_owned()
        } else {
            format!("nearest: {}", nearest_ids(&events, id))
        };
        args.error(
            format!("the provider has no event {id}"),
            "here",
            Some(&help),
        );
        return None;
    }
    let listed_event = match version {
        Some(wanted) => of_id.iter().find(|listed| listed.version == wanted),
        None => of_id.last(),
    };
    if listed_event.is_none() {
        let versions: Vec<String> = of_id.iter().map(|e| e.version.to_string()).collect();
        let help = format!("its versions: {}", versions.join(", "));
        let version = version.unwrap_or_default();
        args.error(
            format!("event {id} has no version {version}"),
            "here",
            Some(&help),
        );
    }
    listed_event.map(|listed| (*listed).clone())
}

/// The known ids that are nearest to a number, in ascending order.
fn nearest_ids(events: &[ListedEvent], id: u16) -> String {
    let mut ids: Vec<u16> = events.iter().map(|listed| listed.id).collect();
    ids.dedup();
    ids.sort_by_key(|other| other.abs_diff(id));
    ids.truncate(MAX_IDS);
    ids.sort_unstable();
    ids.iter()
        .map(u16::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Adds an event and its provider to the scenario unless it has them.
fn add(
    args: &mut Args<'_, '_>,
    scenario: &mut Scenario,
    guid: Guid,
    schema: EventSchema,
) -> (usize, usize) {
    let providers = &mut scenario.providers;
    let declared = providers
        .iter()
        .position(|p| p.kind == ProviderKind::Windows && p.guid == guid);
    let at = declared.unwrap_or_else(|| {
        let name = schema.provider_name.to_string();
        // A later declaration cannot take its name or GUID.
        let keys = &mut args.reader.declared.provider_keys;
        keys.extend([name.to_lowercase(), guid.to_string()]);
        let kind = ProviderKind::Windows;
        providers.push(ProviderPlan {
            name,
            guid,
            kind,
            events: Vec::new(),
        });
        providers.len() - 1
    });
    let Some(plan) = providers.get_mut(at) else {
        return (at, 0);
    };
    let event = plan
        .events
        .iter()
        .position(|known| *known == schema)
        .unwrap_or_else(|| {
            plan.events.push(schema);
            plan.events.len() - 1
        });
    (at, event)
}
