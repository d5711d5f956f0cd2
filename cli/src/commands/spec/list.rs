//! Lists of providers, keywords and events.

use std::fmt::{self, Write};

use etl_format::Guid;
use etl_schema::tables::{Keyword, Provider, Registry, TableEvent, TableSet, errata};
use etl_schema::{Count, Field, FieldKind, FieldRef, Identity, Length};
use serde_json::json;

use super::{Printed, Search, rows, without_keywords};
use crate::error::Failure;
use crate::output::text;

pub(super) fn providers(profile: TableSet, search: &Search) -> Result<Printed, Failure> {
    let mut listed = Vec::new();
    for provider in Registry::of(profile).providers() {
        listed.push(Listed::of(provider, "provider"));
    }
    for class in Registry::classic().providers() {
        listed.push(Listed::of(class, "class"));
    }
    for provider in etl_providers::all() {
        let guid = Guid::from_bytes(provider.guid());
        if !Registry::of(profile).has(guid) {
            listed.push(Listed {
                name: provider.name(),
                guid,
                kind: "windows",
                events: provider.event_count() as usize,
            });
        }
    }
    listed
        .retain(|provider| search.is_in(provider.name) || search.is_in(&provider.guid.to_string()));
    if listed.is_empty() {
        return Err(search.no_match("no provider or class matches"));
    }
    Ok(rows(listed.iter().map(Listed::row)))
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

    fn row(&self) -> Printed {
        let Listed {
            name,
            guid,
            kind,
            events,
        } = self;
        let guid = guid.to_string();
        let json = json!({
            "provider": name, "provider_guid": guid, "kind": kind, "event_count": events,
        });
        Printed {
            text: format!("{guid}  {kind:8}  {name} ({events} events)\n"),
            json,
        }
    }
}

pub(super) fn keywords(provider: &Provider, search: &Search) -> Result<Printed, Failure> {
    if provider.keywords.is_empty() {
        let why = without_keywords(provider)
            .unwrap_or("it has no keywords: a session with any mask gets its events");
        stderr_line!("note: {}: {why}", provider.name);
        return Ok(rows([]));
    }
    let mask = match search.text() {
        Some(text) => crate::filter::number::<u64>(text).ok(),
        None => None,
    };
    let mut listed = Vec::new();
    for keyword in &provider.keywords {
        let is_listed = match mask {
            Some(mask) => keyword.mask & mask != 0,
            None => search.is_in(&keyword.name),
        };
        if is_listed {
            listed.push(keyword_row(provider, keyword));
        }
    }
    if listed.is_empty() {
        return Err(search.no_match(&format!("no keyword of {} matches", provider.name)));
    }
    Ok(rows(listed))
}

fn keyword_row(provider: &Provider, keyword: &Keyword) -> Printed {
    let Keyword { mask, name } = keyword;
    let errata = errata().iter().filter(|e| e.is_of_keyword(provider, *mask));
    let errata: Vec<_> = errata.map(|e| e.id.as_str()).collect();
    let json = json!({
        "name": name, "mask": mask, "mask_hex": format!("{mask:#x}"), "errata": errata,
    });
    Printed {
        text: format!("{mask:#18x}  {name}{}\n", in_brackets(&errata)),
        json,
    }
}

/// ` [X01 X02]`, or nothing.
pub(super) fn in_brackets<T: AsRef<str>>(ids: &[T]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
    format!("  [{}]", ids.join(" "))
}

pub(super) fn events(provider: &Provider, search: &Search) -> Result<Printed, Failure> {
    let mut listed = Vec::new();
    for event in &provider.events {
        let has_id = search
            .text()
            .is_some_and(|text| text == id(event).number.to_string());
        if has_id || search.is_in(&event.schema.name) {
            listed.push(event_row(provider, event));
        }
    }
    if listed.is_empty() {
        return Err(search.no_match(&format!("no event of {} matches", provider.name)));
    }
    Ok(rows(listed))
}

/// The name of a field that another field of its level refers to.
fn name_at(level: &[Field], field: FieldRef) -> &str {
    let (FieldRef::Here(index) | FieldRef::Top(index)) = field;
    match level.get(usize::from(index)) {
        Some(field) => &field.name,
        None => "?",
    }
}

/// A field as text: `Values Struct[Count] { Address Pointer, Size UInt64 }`.
fn describe(out: &mut String, field: &Field, level: &[Field]) -> fmt::Result {
    match &field.kind {
        FieldKind::Struct(_) => write!(out, "{} Struct", field.name)?,
        FieldKind::Value(kind) => write!(out, "{} {}", field.name, kind.name())?,
    }
    match field.length {
        Length::Fixed(n) => write!(out, "({n})")?,
        Length::Field(field) => write!(out, "({})", name_at(level, field))?,
        _ => {}
    }
    match field.count {
        Count::One => {}
        Count::Const(n) => write!(out, "[{n}]")?,
        Count::Field(field) => write!(out, "[{}]", name_at(level, field))?,
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

/// The numbers of an event.
pub(super) struct EventId {
    /// The id, or the type of a kernel event.
    pub number: u16,
    pub version: u16,
}

pub(super) fn id(event: &TableEvent) -> EventId {
    match event.schema.identity {
        Identity::Modern { id, version } => EventId {
            number: id,
            version: version.into(),
        },
        Identity::Classic { opcode, version } => EventId {
            number: opcode.into(),
            version,
        },
        Identity::Message { number } => EventId { number, version: 0 },
        Identity::SelfDescribing => EventId {
            number: 0,
            version: 0,
        },
    }
}

/// An event on one line.
pub(super) fn headline(out: &mut String, provider: &Provider, event: &TableEvent) -> fmt::Result {
    let schema = &event.schema;
    let EventId { number, version } = id(event);
    if let Identity::Classic { .. } = schema.identity {
        return writeln!(out, "type {number:>3} v{version} {}", schema.name);
    }
    let names = provider.keyword_names(schema.keywords).names;
    write!(out, "{number:>5} v{version} {}", schema.name)?;
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
fn event_row(provider: &Provider, event: &TableEvent) -> Printed {
    let EventId { number, version } = id(event);
    let schema = &event.schema;
    let mut lines = text(|out| headline(out, provider, event));
    let mut fields = Vec::new();
    for field in &schema.fields {
        let description = text(|out| describe(out, field, &schema.fields));
        lines += &format!("      {description}\n");
        fields.push(json!({
            "name": field.name,
            "type": description.split_once(' ').map(|(_, kind)| kind),
            "map": field.map.as_ref().map(|map| map.name()),
            "align": field.aligned.then_some("c"),
        }));
    }
    let json = json!({
        "id": number,
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
        "fields": fields,
    });
    Printed { text: lines, json }
}
