//! `provider` nodes, and `raise`, which raises an event of a declared provider.

use std::collections::BTreeSet;

use etl_format::constants::PointerSize;
use etl_schema::encode::{OwnedValue, encode_into};
use etl_schema::sources::provider_guid;
use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource};

use super::args::Args;
use super::value::value;
use crate::file_system::file_name_problem;
use crate::model::{ActivityWork, ProviderKind, ProviderPlan, RaisePlan, Work};
use crate::provider_text::{file_extension, tmf_item};

const KINDS: [(&str, ProviderKind); 5] = [
    ("manifest", ProviderKind::Manifest),
    ("tracelogging", ProviderKind::TraceLogging),
    ("eventsource", ProviderKind::EventSource),
    ("classic", ProviderKind::Classic),
    ("wpp", ProviderKind::Wpp),
];

const ACTIVITIES: [(&str, ActivityWork); 3] =
    [("none", ActivityWork::None), ("start", ActivityWork::Start), ("stop", ActivityWork::Stop)];

/// `provider "Contoso-Orders" kind="tracelogging" { event "Placed" level=4 { field "Id" "UInt32" }
/// }`
pub(super) fn provider(mut args: Args<'_, '_>) -> Option<ProviderPlan> {
    let name: String = args.next("a name")?;
    let kind = args.choice("kind", &KINDS).unwrap_or_default();
    let guid = args.parsed("guid", |text| text.parse().ok(), "guid: not a GUID", None);
    let guid = guid.unwrap_or_else(|| provider_guid(&name));
    let keys = &mut args.reader.declared.provider_keys;
    if !keys.insert(name.to_lowercase()) {
        args.error(format!("two providers are called \"{name}\""), "the second", None);
    } else if !keys.insert(guid.to_string()) {
        args.error("two providers have one GUID", guid.to_string(), None);
    }
    if let Some(file) = file_extension(kind).map(|extension| format!("{name}.{extension}"))
        && let Some(problem) = file_name_problem(&file)
    {
        let help = Some("the description of its events is written into this file");
        args.error(format!("\"{file}\" cannot be a file here"), problem, help);
    }
    args.reader.declared.providers.push((name.clone(), guid));
    let mut plan = ProviderPlan { name, guid, kind, events: Vec::new() };
    let (mut names, mut identities) = (BTreeSet::new(), BTreeSet::new());
    args.children(&mut |mut args| {
        if args.name() != "event" {
            return args.unknown("a provider", "event");
        }
        let at = args.location();
        let Some((event, reader)) = event(args, &plan) else { return };
        let distinct = kind == ProviderKind::TraceLogging
            || identities.insert(format!("{:?}", event.identity));
        if !names.insert(event.name.to_string()) {
            let message = format!("two events are called \"{}\"", event.name);
            reader.error_at(&at, message, "the second", None);
        } else if !distinct {
            let help = match kind {
                ProviderKind::Classic => "opcode and version identify classic events",
                ProviderKind::Wpp => "id is the number of the message",
                _ => "id and version identify events",
            };
            let message = "an earlier event has the same identity";
            reader.error_at(&at, message, "the second", Some(help));
        }
        plan.events.push(event);
    });
    Some(plan)
}

fn event<'r, 's>(
    mut args: Args<'r, 's>,
    plan: &ProviderPlan,
) -> Option<(EventSchema, &'r mut super::reader::Reader<'s>)> {
    let name: String = args.next("a name")?;
    let next = u16::try_from(plan.events.len()).unwrap_or(u16::MAX).saturating_add(1);
    let id = args.get("id").unwrap_or(next);
    let version: u8 = args.get("version").unwrap_or(0);
    let opcode = args.get("opcode").unwrap_or(0);
    let modern = Identity::Modern { id, version };
    let (identity, source) = match plan.kind {
        ProviderKind::Manifest => (modern, SchemaSource::Manifest),
        ProviderKind::EventSource => (modern, SchemaSource::EventSource),
        ProviderKind::TraceLogging => (Identity::SelfDescribing, SchemaSource::TraceLogging),
        ProviderKind::Classic => {
            (Identity::Classic { opcode, version: version.into() }, SchemaSource::Manifest)
        }
        // Message numbers begin at 10.
        ProviderKind::Wpp => (Identity::Message { number: id.max(next + 9) }, SchemaSource::Tmf),
    };
    // The messages of a source file have another GUID than their provider.
    let guid = match plan.kind {
        ProviderKind::Wpp => provider_guid(&format!("{} messages", plan.name)),
        _ => plan.guid,
    };
    let mut schema = EventSchema::new(guid, identity, source);
    schema.provider_name = plan.name.clone().into();
    schema.name = name.into();
    schema.opcode.value = opcode;
    schema.level.value = args.get("level").unwrap_or(4);
    schema.task.value = args.get("task").unwrap_or(0);
    schema.keywords = args.get("keywords").unwrap_or(0);
    schema.message = args.get("message").map(String::into);
    if plan.kind == ProviderKind::Wpp && schema.message.is_none() {
        let help = Some("message=\"read %10!d! bytes\": %10 is the first field");
        args.error("a WPP event is a message", "message is missing", help);
    }
    let reader = args.children(&mut |mut args| match args.name() {
        "field" => schema.fields.extend(field(args, plan.kind)),
        _ => args.unknown("an event", "field"),
    });
    Some((schema, reader))
}

/// `field "Id" "UInt32"`
fn field(mut args: Args<'_, '_>, kind: ProviderKind) -> Option<Field> {
    let (name, ty) = (args.next::<String>("a name"), args.next::<String>("a type"));
    let (name, ty) = (name?, ty?);
    let Some(found) = InType::from_name(&ty) else {
        let names: Vec<&str> = InType::ALL.iter().map(|t| t.name()).collect();
        args.error(format!("there is no type \"{ty}\""), "unknown", Some(&names.join(", ")));
        return None;
    };
    if kind == ProviderKind::Wpp && tmf_item(found).is_none() {
        let help = Some("integers, Double, Pointer, GUID, AnsiString, UnicodeString");
        args.error(format!("a message has no field of type \"{ty}\""), "here", help);
        return None;
    }
    args.finish();
    Some(Field::new(name, found))
}

/// The index of a named item, or an error with the known names.
fn index_of<'n>(
    args: &mut Args<'_, '_>,
    names: impl Iterator<Item = &'n str> + Clone,
    name: &str,
    message: String,
    what: &str,
) -> Option<usize> {
    let found = names.clone().position(|n| n == name);
    if found.is_none() {
        let help = format!("{what}: {}", names.collect::<Vec<_>>().join(", "));
        args.error(message, "here", Some(&help));
    }
    found
}

/// `raise "Contoso-Orders" "Placed" activity="start" thread=0 { Id 7 }`
pub(super) fn raise(mut args: Args<'_, '_>, providers: &[ProviderPlan]) -> Option<Work> {
    let (provider, event): (String, String) = (args.next("a provider")?, args.next("an event")?);
    let activity = args.choice("activity", &ACTIVITIES).unwrap_or_default();
    let thread = args.get("thread").unwrap_or(0);
    let names = providers.iter().map(|p| p.name.as_str());
    let message = format!("no provider \"{provider}\" is declared");
    let provider = index_of(&mut args, names, &provider, message, "providers declared so far")?;
    let plan = providers.get(provider)?;
    let names = plan.events.iter().map(|e| &*e.name);
    let message = format!("the provider has no event \"{event}\"");
    let event = index_of(&mut args, names, &event, message, "its events")?;
    let fields = &plan.events.get(event)?.fields;
    let mut values = Vec::new();
    args.children(&mut |args| values.extend(field_value(args, fields)));
    Some(Work::Raise(Box::new(RaisePlan { provider, event, values, activity, thread })))
}

/// `Id 7`: a value that can be encoded as the type of its field.
fn field_value(mut args: Args<'_, '_>, fields: &[Field]) -> Option<(String, OwnedValue)> {
    let name = args.name();
    let Some(field) = fields.iter().find(|f| f.name == name) else {
        let names: Vec<&str> = fields.iter().map(|f| &*f.name).collect();
        args.unknown("the event", &names.join(", "));
        return None;
    };
    let text = args.next("a value").unwrap_or_default();
    let given = args.node.entries().first().map(kdl::KdlEntry::value);
    let value = given.map_or(OwnedValue::Auto, |given| value(field.in_type(), given, text));
    let (fields, values) = (std::slice::from_ref(field), std::slice::from_ref(&value));
    if let Err(error) = encode_into(fields, values, PointerSize::P8, &mut Vec::new()) {
        let of = field.in_type().map_or("a structure", InType::name);
        let help = format!("{name} is of type {of}");
        let message = format!("{name} cannot have this value");
        args.error(message, error.problem.to_string(), Some(&help));
    }
    args.finish();
    Some((name.to_owned(), value))
}
