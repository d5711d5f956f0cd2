//! Providers of the script's own, and events that are raised of them.

use std::collections::BTreeSet;

use etl_format::constants::PointerSize;
use etl_schema::encode::{OwnedValue, encode_into};
use etl_schema::sources::provider_guid;
use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource};
use kdl::KdlNode;

use super::args::{Args, unknown};
use super::reader::Reader;
use super::value::value;
use crate::file_system::file_name_problem;
use crate::model::{ActivityWork, ProviderKind, ProviderPlan, RaisePlan, Work};
use crate::provider_text::tmf_item;

const KINDS: [(&str, ProviderKind); 5] = [
    ("manifest", ProviderKind::Manifest),
    ("tracelogging", ProviderKind::TraceLogging),
    ("eventsource", ProviderKind::EventSource),
    ("classic", ProviderKind::Classic),
    ("wpp", ProviderKind::Wpp),
];

/// `provider "Contoso-Orders" kind="tracelogging" { event "Placed" level=4 { field "Id" "UInt32" }
/// }`
pub(super) fn provider(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<ProviderPlan> {
    let node = args.node;
    let name = args.text(reader, "a name")?;
    let kind = args.opt_choice(reader, "kind", &KINDS).unwrap_or_default();
    let mut guid = provider_guid(&name);
    if let Some(text) = args.opt_text(reader, "guid") {
        match text.parse() {
            Ok(given) => guid = given,
            Err(_) => reader.error(args.span(), "guid: not a GUID", text, None),
        }
    }
    let at = args.span();
    if !reader.taken.insert(name.to_lowercase()) {
        reader.error(at, format!("two providers are called \"{name}\""), "the second", None);
    } else if !reader.taken.insert(guid.to_string()) {
        reader.error(at, "two providers have one GUID", guid.to_string(), None);
    }
    if kind == ProviderKind::Wpp
        && let Some(why) = file_name_problem(&format!("{name}.tmf"))
    {
        let help = Some("the texts of its messages are written into NAME.tmf".to_owned());
        reader.error(at, format!("\"{name}.tmf\" cannot be a file here"), why, help);
    }
    args.finish(reader);
    reader.providers.push((name.clone(), guid));
    let mut plan = ProviderPlan { name, guid, kind, events: Vec::new() };
    let mut seen = BTreeSet::new();
    reader.below(node, &mut |reader, node| {
        let args = Args::new(node);
        match args.name() {
            "event" => {
                let at = args.span();
                if let Some(event) = event(reader, args, &plan) {
                    let distinct = plan.kind == ProviderKind::TraceLogging
                        || seen.insert(format!("{:?}", event.identity));
                    if !seen.insert(format!("\"{}\"", event.name)) {
                        let message = format!("two events are called \"{}\"", event.name);
                        reader.error(at, message, "the second", None);
                    } else if !distinct {
                        let help = match plan.kind {
                            ProviderKind::Classic => "opcode and version tell classic events apart",
                            ProviderKind::Wpp => "id is the number of the message",
                            _ => "id and version tell events apart",
                        };
                        let message = "nothing tells it from an event before it";
                        reader.error(at, message, "the second", Some(help.to_owned()));
                    }
                    plan.events.push(event);
                }
            }
            _ => unknown(reader, node, "a provider", "event"),
        }
    });
    Some(plan)
}

fn event(reader: &mut Reader<'_>, mut args: Args<'_>, plan: &ProviderPlan) -> Option<EventSchema> {
    let node = args.node;
    let name = args.text(reader, "a name")?;
    let next = u16::try_from(plan.events.len()).unwrap_or(u16::MAX).saturating_add(1);
    let id = args.opt_small(reader, "id").unwrap_or(next);
    let version: u8 = args.opt_small(reader, "version").unwrap_or(0);
    let opcode = args.opt_small(reader, "opcode").unwrap_or(0);
    let (identity, source) = match plan.kind {
        ProviderKind::Manifest => (Identity::Modern { id, version }, SchemaSource::Manifest),
        ProviderKind::EventSource => (Identity::Modern { id, version }, SchemaSource::EventSource),
        ProviderKind::TraceLogging => (Identity::SelfDescribing, SchemaSource::TraceLogging),
        ProviderKind::Classic => {
            (Identity::Classic { opcode, version: version.into() }, SchemaSource::Manifest)
        }
        // Numbers of messages begin at 10.
        ProviderKind::Wpp => (Identity::Message { number: id.max(next + 9) }, SchemaSource::Tmf),
    };
    // The messages of a source file have a GUID of their own beside that of their control.
    let guid = match plan.kind {
        ProviderKind::Wpp => provider_guid(&format!("{} messages", plan.name)),
        _ => plan.guid,
    };
    let mut schema = EventSchema::new(guid, identity, source);
    schema.provider_name = plan.name.clone().into();
    schema.name = name.into();
    schema.opcode.value = opcode;
    schema.level.value = args.opt_small(reader, "level").unwrap_or(4);
    schema.task.value = args.opt_small(reader, "task").unwrap_or(0);
    schema.keywords = args.opt_number(reader, "keywords").unwrap_or(0);
    schema.message = args.opt_text(reader, "message").map(Into::into);
    if plan.kind == ProviderKind::Wpp && schema.message.is_none() {
        let help = Some("message=\"read %10!d! bytes\": %10 is the first field".to_owned());
        reader.error(args.span(), "a WPP event is a message", "message is missing", help);
    }
    args.finish(reader);
    reader.below(node, &mut |reader, node| {
        let mut args = Args::new(node);
        if args.name() != "field" {
            unknown(reader, node, "an event", "field");
            return;
        }
        args.leaf();
        let at = args.span();
        let (name, ty) = (args.text(reader, "a name"), args.text(reader, "a type"));
        args.finish(reader);
        let (Some(name), Some(ty)) = (name, ty) else { return };
        match InType::from_name(&ty) {
            Some(ty) if plan.kind == ProviderKind::Wpp && tmf_item(ty).is_none() => {
                let help =
                    Some("integers, Double, Pointer, GUID, AnsiString, UnicodeString".into());
                reader.error(
                    at,
                    format!("a message has no field of type \"{}\"", ty.name()),
                    "here",
                    help,
                );
            }
            Some(ty) => schema.fields.push(Field::new(name, ty)),
            None => {
                let names: Vec<&str> = InType::ALL.iter().map(|t| t.name()).collect();
                let help = Some(names.join(", "));
                reader.error(at, format!("there is no type \"{ty}\""), "unknown", help);
            }
        }
    });
    Some(schema)
}

/// `raise "Contoso-Orders" "Placed" activity="start" thread=0 { Id 7 }`
pub(super) fn raise(
    reader: &mut Reader<'_>,
    node: &KdlNode,
    providers: &[ProviderPlan],
) -> Option<Work> {
    let mut args = Args::new(node);
    let at = args.span();
    let provider_name = args.text(reader, "a provider")?;
    let event_name = args.text(reader, "an event")?;
    let kinds = [
        ("none", ActivityWork::None),
        ("start", ActivityWork::Start),
        ("stop", ActivityWork::Stop),
    ];
    let activity = args.opt_choice(reader, "activity", &kinds).unwrap_or_default();
    let thread = args.opt_small(reader, "thread").unwrap_or(0);
    args.finish(reader);
    let Some(provider) = providers.iter().position(|p| p.name == provider_name) else {
        let names: Vec<&str> = providers.iter().map(|p| p.name.as_str()).collect();
        let help = Some(format!("providers declared so far: {}", names.join(", ")));
        reader.error(at, format!("no provider \"{provider_name}\" is declared"), "here", help);
        return None;
    };
    let plan = providers.get(provider)?;
    let Some(event) = plan.events.iter().position(|e| e.name == event_name) else {
        let names: Vec<&str> = plan.events.iter().map(|e| &*e.name).collect();
        let help = Some(format!("its events: {}", names.join(", ")));
        reader.error(at, format!("the provider has no event \"{event_name}\""), "here", help);
        return None;
    };
    let fields = plan.events.get(event).map(|e| e.fields.clone()).unwrap_or_default();
    let mut values = Vec::new();
    reader.below(node, &mut |reader, node| {
        let name = node.name().value();
        let Some(field) = fields.iter().find(|f| f.name == name) else {
            let names: Vec<&str> = fields.iter().map(|f| &*f.name).collect();
            unknown(reader, node, "the event", &names.join(", "));
            return;
        };
        let mut args = Args::new(node);
        args.leaf();
        let given = args.text(reader, "a value").unwrap_or_default();
        args.finish(reader);
        let given_value = node.entries().first().map(kdl::KdlEntry::value);
        let value = given_value.map_or(OwnedValue::Auto, |v| value(field.in_type(), v, given));
        let tried = encode_into(
            std::slice::from_ref(field),
            std::slice::from_ref(&value),
            PointerSize::P8,
            &mut Vec::new(),
        );
        if let Err(error) = tried {
            let of = field.in_type().map_or("a structure", InType::name);
            let help = Some(format!("{name} is of type {of}"));
            let message = format!("{name} cannot have this value");
            reader.error(node.name().span(), message, error.problem.to_string(), help);
        }
        values.push((name.to_owned(), value));
    });
    Some(Work::Raise(Box::new(RaisePlan { provider, event, values, activity, thread })))
}
