//! A record as one line for people.

use std::io::Write;

use etl_format::{ProcessId, ThreadId};
use etl_schema::render::{Names, Renderer, decimal, escape_line, hex_bytes};

use super::row::Row;
use crate::columns::{Cell, Column, write_kind};
use crate::event::Instance;

pub(super) fn write(out: &mut Vec<u8>, row: &Row<'_>, payload_bytes: bool, scratch: &mut Vec<u8>) {
    let event = row.event;
    if let Some(file) = event.file() {
        escape_line(out, file);
        out.extend(b"  ");
    }
    out.extend(row.seconds.unwrap_or(row.time));
    labelled(out, "  cpu ", event.cell(Column::Cpu));
    if event.pid().is_some() && event.tid().is_some() {
        identified(
            out,
            "  pid ",
            event.process(),
            event.pid().map(ProcessId::get),
        );
        identified(out, " tid ", event.thread(), event.tid().map(ThreadId::get));
    }
    out.extend(b"  ");
    write_kind(out, event.kind());
    out.push(b' ');
    escape_line(out, event.provider());
    labelled(out, " id ", event.cell(Column::Id));
    labelled(out, " v", event.cell(Column::Version));
    labelled(out, " opcode ", event.cell(Column::Opcode));
    labelled(out, " ", event.cell(Column::OpcodeName));
    labelled(out, " task ", event.cell(Column::Task));
    labelled(out, " ", event.cell(Column::TaskName));
    labelled(out, " level ", event.cell(Column::Level));
    labelled(out, " ", event.cell(Column::LevelName));
    labelled(out, " hook ", event.cell(Column::Hook));
    labelled(out, " keyword ", event.cell(Column::Keyword));
    labelled(out, " channel ", event.cell(Column::ChannelName));
    labelled(out, " activity ", event.cell(Column::Activity));
    if let Some(instance) = Instance::of(&event.record) {
        labelled(out, " instance ", Cell::Number(instance.id.into()));
        labelled(out, " parent ", Cell::Number(instance.parent_id.into()));
    }
    labelled(out, " ", event.cell(Column::Event));
    if payload_bytes {
        out.extend(b"  ");
        hex_bytes(out, event.payload());
    } else if let Some(fields) = &event.fields {
        let mut fields = fields.clone();
        let names = event.names();
        let names = names.as_ref().map(|names| names as &dyn Names);
        Renderer::new().names(names).text_fields(out, &mut fields);
        let note = fields.note();
        if note.is_short() {
            out.extend(b" (cut short)");
        } else if !note.trailing.is_empty() {
            // Writing to a vector does not fail.
            let _ = write!(out, " (and {} bytes more)", note.trailing.len());
        }
        if let Some(message) = event.write_message(scratch) {
            out.extend(b"  ");
            escape_line(out, &message.replace(['\r', '\n', '\t'], " "));
        }
    } else {
        out.extend(b"  ");
        decimal(out, event.payload().len() as u64);
        out.extend(b" bytes");
        labelled(out, ": ", event.cell(Column::PayloadText));
    }
}

/// Writes an id after its label; after the name in parentheses, if there is a name:
/// `Orders.exe (4312)`.
fn identified(out: &mut Vec<u8>, label: &str, name: Option<&str>, id: Option<u32>) {
    out.extend(label.as_bytes());
    if let Some(name) = name {
        escape_line(out, name);
        out.extend(b" (");
    }
    decimal(out, id.unwrap_or(0).into());
    if name.is_some() {
        out.push(b')');
    }
}

/// Writes a value after its label, if there is a value.
#[inline(always)]
fn labelled(out: &mut Vec<u8>, label: &str, cell: Cell<'_>) {
    if matches!(cell, Cell::None) {
        return;
    }
    out.extend(label.as_bytes());
    cell.write(out, b"", escape_line);
}
