//! A record as one JSON object. Members that it does not have are left out.

use etl_schema::decode::Sid;
use etl_schema::render::{self, Names, Renderer, decimal, escape_json, hex_bytes, hexadecimal};

use super::members::{key, quoted, text_member};
use super::row::Row;
use super::shared::json_members;
use crate::columns::{Cell, Column};
use crate::context::EventNames;
use crate::event::{Event, Items};

pub(super) fn write(
    out: &mut Vec<u8>,
    row: &Row<'_>,
    values: Renderer<'_>,
    payload_bytes: bool,
    scratch: &mut Vec<u8>,
) {
    let event = row.event;
    let common = json_members(event);
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(row.time);
    out.push(b'"');
    if let Some(seconds) = row.seconds {
        out.extend(b",\"seconds\":");
        out.extend(seconds);
    }
    member(out, event, Column::File);
    member(out, event, Column::Timestamp);
    member(out, event, Column::Cpu);
    out.extend_from_slice(&common.kind);
    member(out, event, Column::Pid);
    member(out, event, Column::Process);
    member(out, event, Column::Tid);
    member(out, event, Column::Thread);
    if event.head.provider.is_some() && event.head.provider_name.is_none() {
        // A later record of the trace may define the name of the provider.
        let (provider, numbers) = common
            .numbers
            .split_at_checked(common.provider)
            .unwrap_or_default();
        out.extend_from_slice(provider);
        text_member(
            out,
            Column::Provider,
            event.provider_name().unwrap_or_default(),
        );
        out.extend_from_slice(numbers);
    } else {
        out.extend_from_slice(&common.numbers);
    }
    member(out, event, Column::Activity);
    write_items(out, event, Items::of(&event.record));
    out.extend_from_slice(&common.event);
    if let Some(fields) = &event.fields {
        key(out, Column::Fields);
        let mut fields = fields.clone();
        let names = event.names();
        let names = names.as_ref().map(|names| names as &dyn Names);
        values.names(names).json_fields(out, &mut fields);
        let note = fields.note();
        if note.is_short() {
            out.extend(b",\"payload_short\":true");
        }
        if !note.trailing.is_empty() {
            out.extend(b",\"payload_left\":");
            decimal(out, note.trailing.len() as u64);
        }
        if let Some(message) = event.write_message(scratch) {
            key(out, Column::Message);
            escape_json(out, message);
        }
    }
    member(out, event, Column::PayloadSize);
    member(out, event, Column::PayloadText);
    if payload_bytes {
        key(out, Column::Payload);
        quoted(out, |out| hex_bytes(out, event.payload()));
    }
    out.push(b'}');
}

/// A column as a member, if the record has a value for it.
#[inline(always)]
fn member(out: &mut Vec<u8>, event: &Event<'_>, column: Column) {
    let cell = event.cell(column);
    if matches!(cell, Cell::None) {
        return;
    }
    key(out, column);
    cell.write(out, b"\"", escape_json);
}

fn write_items(out: &mut Vec<u8>, event: &Event<'_>, items: Items<'_>) {
    if let Some(id) = items.related_activity {
        key(out, Column::RelatedActivity);
        quoted(out, |out| out.extend(id.to_ascii()));
    }
    if let Some(sid) = items.sid {
        out.extend(b",\"user\":");
        quoted(out, |out| render::sid(out, Sid(sid)));
    }
    if let Some(id) = items.terminal_session {
        out.extend(b",\"session_id\":");
        decimal(out, id.into());
    }
    if let Some(instance) = items.instance {
        out.extend(b",\"instance_id\":");
        decimal(out, instance.id.into());
        out.extend(b",\"parent_instance_id\":");
        decimal(out, instance.parent_id.into());
        out.extend(b",\"parent_class\":");
        quoted(out, |out| out.extend(instance.parent_class.to_ascii()));
    }
    for (name, id) in [
        ("process_start_key", items.process_start_key),
        ("stack_match_id", items.stack_match_id),
        ("stack_key", items.stack_key),
    ] {
        if let Some(id) = id {
            out.extend(b",\"");
            out.extend(name.as_bytes());
            out.extend(b"\":");
            quoted(out, |out| hexadecimal(out, id));
        }
    }
    if items.has_stack {
        write_stack(out, event);
    }
}

/// Writes the addresses of all stacks of the record.
fn write_stack(out: &mut Vec<u8>, event: &Event<'_>) {
    out.extend(b",\"stack\":[");
    for (i, address) in event.stack().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        quoted(out, |out| hexadecimal(out, address));
    }
    out.push(b']');
    let Some(names) = event.names().filter(EventNames::resolves) else {
        return;
    };
    out.extend(b",\"stack_name\":[");
    for (i, address) in event.stack().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match names.symbol(address) {
            Some(name) => escape_json(out, &name),
            None => out.extend(b"null"),
        }
    }
    out.push(b']');
}
