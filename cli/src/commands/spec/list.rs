//! Lists of providers, keywords and events.

use std::fmt::{self, Write};
use std::iter;

use etl_format::Guid;
use etl_schema::tables::{Keyword, Provider, Registry, TableEvent, TableSet, errata};
use etl_schema::{Count, Field, FieldKind, FieldRef, Identity, Length};
use serde_json::{Value, json};

use super::{Printed, rows, without_keywords};
use crate::error::Failure;
use crate::output::text;

pub(super) fn providers(profile: TableSet, search: Option<&str>) -> Result<Printed, Failure> {
    let all = Registry::of(profile)
        .providers()
        .map(|p| Listed::of(p, "provider"));
    let classes = Registry::classic()
        .providers()
        .map(|p| Listed::of(p, "class"));
    let known = |guid: Guid| Registry::of(profile).has(guid);
    let of_windows = etl_providers::all().iter().map(|p| Listed {
        name: p.name(),
        guid: Guid::from_bytes(p.guid()),
        kind: "windows",
        events: p.event_count() as usize,
    });
    let wanted = |p: &Listed<'_>| {
        search.is_none_or(|s| {
            p.name.to_ascii_lowercase().contains(s) || p.guid.to_string().contains(s)
        })
    };
    let others = of_windows.filter(|p| !known(p.guid));
    let found: Vec<_> = all.chain(classes).chain(others).filter(wanted).collect();
    if found.is_empty() {
        return Err(no_match(search, "no provider or class matches"));
    }
    Ok(rows(found.into_iter().map(|p| {
        let guid = p.guid.to_string();
        let count = p.events;
        let kind = p.kind;
        let line = format!("{guid}  {kind:8}  {} ({count} events)\n", p.name);
        let json = json!({
            "provider": p.name, "provider_guid": guid, "kind": kind, "event_count": count,
        });
        (line, json)
    })))
}

/// A row of the list of providers.
struct Listed<'a> {
    name: &'a str,
    guid: Guid,
    kind: &'static str,
    events: usize,
}

impl<'a> Listed<'a> {
    fn of(provider: &'a Provider, kind: &'static str) -> Self {
        Listed {
            name: &provider.name,
            guid: provider.guid,
            kind,
            events: provider.events.len(),
        }
    }
}

fn no_match(search: Option<&str>, message: &str) -> Failure {
    Failure::new(search.unwrap_or_default(), message).hint("omit the search text to list all")
}

pub(super) fn keywords(provider: &Provider, search: Option<&str>) -> Result<Printed, Failure> {
    let none = || "it has no keywords: a session with any mask gets its events";
    if provider.keywords.is_empty() {
        let why = without_keywords(provider).unwrap_or_else(none);
        stderr_line!("note: {}: {why}", provider.name);
        return Ok(rows(iter::empty()));
    }
    let mask = search.and_then(|s| crate::filter::number::<u64>(s).ok());
    let is_wanted = |keyword: &&Keyword| match (search, mask) {
        (None, _) => true,
        (_, Some(mask)) => keyword.mask & mask != 0,
        (Some(text), None) => keyword.name.to_ascii_lowercase().contains(text),
    };
    let found: Vec<_> = provider.keywords.iter().filter(is_wanted).collect();
    if found.is_empty() && search.is_some() {
        return Err(no_match(
            search,
            &format!("no keyword of {} matches", provider.name),
        ));
    }
    Ok(rows(found.into_iter().map(|Keyword { mask, name }| {
        let errata = errata().iter().filter(|e| e.is_of_keyword(provider, *mask));
        let errata: Vec<_> = errata.map(|e| e.id.as_str()).collect();
        let line = format!("{mask:#18x}  {name}{}\n", in_brackets(&errata));
        let json = json!({
            "name": name, "mask": mask, "mask_hex": format!("{mask:#x}"), "errata": errata,
        });
        (line, json)
    })))
}

/// ` [X01 X02]`, or nothing.
pub(super) fn in_brackets<T: AsRef<str>>(ids: &[T]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
    format!("  [{}]", ids.join(" "))
}

pub(super) fn events(provider: &Provider, search: Option<&str>) -> Result<Printed, Failure> {
    let wanted = |e: &&TableEvent| match search {
        None => true,
        Some(text) => {
            let symbol = e.schema.name.to_ascii_lowercase().contains(text);
            symbol || text == id(e).0.to_string()
        }
    };
    let found: Vec<_> = provider.events.iter().filter(wanted).collect();
    if found.is_empty() {
        return Err(no_match(
            search,
            &format!("no event of {} matches", provider.name),
        ));
    }
    Ok(rows(
        found.into_iter().map(|event| event_row(provider, event)),
    ))
}

/// A field as text: `Values Struct[Count] { Address Pointer, Size UInt64 }`.
fn describe(out: &mut String, field: &Field, level: &[Field]) -> fmt::Result {
    let name_at = |field: FieldRef| match field {
        FieldRef::Here(at) | FieldRef::Top(at) => {
            level.get(usize::from(at)).map_or("?", |f| &*f.name)
        }
    };
    match &field.kind {
        FieldKind::Struct(_) => write!(out, "{} Struct", field.name)?,
        FieldKind::Value(kind) => write!(out, "{} {}", field.name, kind.name())?,
    }
    match field.length {
        Length::Fixed(n) => write!(out, "({n})")?,
        Length::Field(at) => write!(out, "({})", name_at(at))?,
        _ => {}
    }
    match field.count {
        Count::One => {}
        Count::Const(n) => write!(out, "[{n}]")?,
        Count::Field(at) => write!(out, "[{}]", name_at(at))?,
        Count::Prefixed => write!(out, "[counted]")?,
        Count::Rest => write!(out, "[to the end]")?,
    }
    if let Some(map) = &field.map {
        write!(out, " ({})", map.name())?;
    }
    if let FieldKind::Struct(members) = &field.kind {
        write!(out, " {{")?;
        for (i, member) in members.iter().enumerate() {
            write!(out, "{} ", if i > 0 { "," } else { "" })?;
            describe(out, member, members)?;
        }
        write!(out, " }}")?;
    }
    Ok(())
}

/// Id or type, and version.
pub(super) fn id(event: &TableEvent) -> (u16, u16) {
    match event.schema.identity {
        Identity::Modern { id, version } => (id, version.into()),
        Identity::Classic { opcode, version } => (opcode.into(), version),
        Identity::Message { number } => (number, 0),
        Identity::SelfDescribing => (0, 0),
    }
}

/// An event on one line.
pub(super) fn headline(out: &mut String, provider: &Provider, event: &TableEvent) -> fmt::Result {
    let schema = &event.schema;
    let (id, version) = id(event);
    if let Identity::Classic { .. } = schema.identity {
        return writeln!(out, "type {id:>3} v{version} {}", schema.name);
    }
    let names = provider.keyword_names(schema.keywords).names;
    write!(out, "{id:>5} v{version} {}", schema.name)?;
    // The reference pages define no tasks and opcodes.
    if schema.task.value != 0 || !schema.task.name.is_empty() || schema.opcode.value != 0 {
        write!(
            out,
            "  task {} {}  opcode {} {}",
            schema.task.value, schema.task.name, schema.opcode.value, schema.opcode.name,
        )?;
    }
    writeln!(
        out,
        "  level {}  {}{}{}",
        schema.level.value,
        if names.is_empty() {
            "no keyword".to_owned()
        } else {
            names.join("|")
        },
        if event.stack { "  +stack" } else { "" },
        in_brackets(&event.errata()),
    )
}

/// An event with its fields, as text and as JSON.
fn event_row(provider: &Provider, event: &TableEvent) -> (String, Value) {
    let (id, version) = id(event);
    let schema = &event.schema;
    let described = |field| text(|out| describe(out, field, &schema.fields));
    let lines = text(|out| {
        headline(out, provider, event)?;
        schema
            .fields
            .iter()
            .try_for_each(|f| writeln!(out, "      {}", described(f)))
    });
    let json = json!({
        "id": id,
        "version": version,
        "event": schema.name,
        "task": schema.task.value,
        "task_name": schema.task.name,
        "opcode": schema.opcode.value,
        "opcode_name": schema.opcode.name,
        "level": schema.level.value,
        "keyword": schema.keywords,
        "keywords": provider.keyword_names(schema.keywords).names,
        "stack": event.stack,
        "source": event.origin,
        "errata": event.errata(),
        "fields": schema.fields.iter().map(|f| json!({
            "name": f.name,
            "type": described(f).split_once(' ').map(|(_, kind)| kind),
            "map": f.map.as_ref().map(|m| m.name()),
        })).collect::<Vec<_>>(),
    });
    (lines, json)
}
