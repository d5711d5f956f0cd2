//! `provider` nodes.

use std::collections::BTreeSet;

use etl_schema::sources::{provider_guid, tracelogging};
use etl_schema::{EventSchema, Field, Identity, InType, Length, SchemaSource};

use super::args::Args;
use crate::file_system::file_name_problem;
use crate::model::{ProviderKind, ProviderPlan};
use crate::provider_text::{file_extension, tmf_item};

const KINDS: [(&str, ProviderKind); 5] = [
    ("manifest", ProviderKind::Manifest),
    ("tracelogging", ProviderKind::TraceLogging),
    ("eventsource", ProviderKind::EventSource),
    ("classic", ProviderKind::Classic),
    ("wpp", ProviderKind::Wpp),
];

/// `provider "Contoso-Orders" kind="tracelogging" { event "Placed" level=4 { field "Id" "UInt32" }
/// }`
pub(super) fn provider(mut args: Args<'_, '_>) -> Option<ProviderPlan> {
    let name: String = args.next("a name")?;
    let kind = args.choice("kind", &KINDS).unwrap_or_default();
    let guid = args.parsed("guid", |text| text.parse().ok(), "guid: not a GUID", None);
    let guid = guid.unwrap_or_else(|| provider_guid(&name));
    let keys = &mut args.reader.declared.provider_keys;
    if !keys.insert(name.to_lowercase()) {
        args.error(
            format!("two providers are called \"{name}\""),
            "the second",
            None,
        );
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
    let mut plan = ProviderPlan {
        name,
        guid,
        kind,
        events: Vec::new(),
    };
    let mut names = BTreeSet::new();
    let mut identities = BTreeSet::new();
    args.children(&mut |mut args| {
        if args.name() != "event" {
            return args.unknown("a provider", "event");
        }
        let at = args.location();
        let Some((event, reader)) = event(args, &plan) else {
            return;
        };
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
        } else if kind == ProviderKind::TraceLogging
            && let Err(error) = tracelogging::build(&event)
        {
            reader.error_at(
                &at,
                error.to_string(),
                "cannot be described by its metadata",
                None,
            );
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
    let next = u16::try_from(plan.events.len())
        .unwrap_or(u16::MAX)
        .saturating_add(1);
    let id = args.get("id").unwrap_or(next);
    let version: u8 = args.get("version").unwrap_or(0);
    let opcode = args.get("opcode").unwrap_or(0);
    let modern = Identity::Modern { id, version };
    let (identity, source) = match plan.kind {
        ProviderKind::Manifest | ProviderKind::Windows => (modern, SchemaSource::Manifest),
        ProviderKind::EventSource => (modern, SchemaSource::EventSource),
        ProviderKind::TraceLogging => (Identity::SelfDescribing, SchemaSource::TraceLogging),
        ProviderKind::Classic => (
            Identity::Classic {
                opcode,
                version: version.into(),
            },
            SchemaSource::Manifest,
        ),
        // Message numbers begin at 10.
        ProviderKind::Wpp => (
            Identity::Message {
                number: id.max(next + 9),
            },
            SchemaSource::Tmf,
        ),
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
    let name = args.next::<String>("a name");
    let ty = args.next::<String>("a type");
    let name = name?;
    let ty = ty?;
    let Some(found) = InType::from_name(&ty) else {
        let names: Vec<&str> = InType::ALL.iter().map(|t| t.name()).collect();
        args.error(
            format!("there is no type \"{ty}\""),
            "unknown",
            Some(&names.join(", ")),
        );
        return None;
    };
    if kind == ProviderKind::Wpp && tmf_item(found).is_none() {
        let help = Some("integers, Double, Pointer, GUID, AnsiString, UnicodeString");
        args.error(
            format!("a message has no field of type \"{ty}\""),
            "here",
            help,
        );
        return None;
    }
    args.finish();
    let field = Field::new(name, found);
    Some(match (kind, found) {
        // As .NET writes an array of bytes.
        (ProviderKind::EventSource, InType::Binary) => field.with_length(Length::U32),
        _ => field,
    })
}
