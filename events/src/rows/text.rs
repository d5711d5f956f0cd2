//! A record as one line for people.

use std::io::Write;

use etl_format::constants::group_name;
use etl_schema::render::{Names, Renderer, decimal, escape_line, hex_bytes};

use super::columns::{Cell, Column};
use super::items::Instance;
use super::row::Row;

pub(super) fn write(out: &mut Vec<u8>, row: &Row<'_>, payload_bytes: bool, scratch: &mut Vec<u8>) {
    let record = row.record;
    if let Some(file) = row.file {
        escape_line(out, file);
        out.extend(b"  ");
    }
    out.extend(row.seconds.unwrap_or(row.time));
    labelled(out, "  cpu ", row.cell(Column::Cpu));
    if row.process_id.is_some() && row.thread_id.is_some() {
        identified(out, "  pid ", row.process_name(), row.process_id);
        identified(out, " tid ", row.thread_name(), row.thread_id);
    }
    out.extend(b"  ");
    row.write_kind(out);
    out.push(b' ');
    if let Some(provider) = row.head.provider {
        match row.provider_name() {
            Some(name) => escape_line(out, name),
            None => out.extend(provider.to_ascii()),
        }
    } else if let Some(name) = row.head.header.hook.and_then(|hook| group_name((hook >> 8) as u8)) {
        out.extend(name.as_bytes());
    }
    labelled(out, " id ", row.cell(Column::Id));
    labelled(out, " v", row.cell(Column::Version));
    labelled(out, " opcode ", row.cell(Column::Opcode));
    labelled(out, " ", row.cell(Column::OpcodeName));
    labelled(out, " task ", row.cell(Column::Task));
    labelled(out, " ", row.cell(Column::TaskName));
    labelled(out, " level ", row.cell(Column::Level));
    labelled(out, " ", row.cell(Column::LevelName));
    labelled(out, " hook ", row.cell(Column::Hook));
    labelled(out, " keyword ", row.cell(Column::Keyword));
    labelled(out, " activity ", row.cell(Column::Activity));
    if let Some(instance) = Instance::of(record) {
        labelled(out, " instance ", Cell::Number(instance.id.into()));
        labelled(out, " parent ", Cell::Number(instance.parent_id.into()));
    }
    labelled(out, " ", row.cell(Column::Event));
    if payload_bytes {
        out.extend(b"  ");
        hex_bytes(out, record.payload());
    } else if let Some(fields) = &row.fields {
        let mut fields = fields.clone();
        let names = row.names();
        let names = names.as_ref().map(|names| names as &dyn Names);
        Renderer::new().names(names).text_fields(out, &mut fields);
        let note = fields.note();
        if note.is_short() {
            out.extend(b" (cut short)");
        } else if !note.trailing.is_empty() {
            // Writing to a vector does not fail.
            let _ = write!(out, " (and {} bytes more)", note.trailing.len());
        }
        if let Some(message) = row.message(scratch) {
            out.extend(b"  ");
            escape_line(out, &message.replace(['\r', '\n', '\t'], " "));
        }
    } else {
        out.extend(b"  ");
        decimal(out, record.payload().len() as u64);
        out.extend(b" bytes");
        labelled(out, ": ", row.cell(Column::PayloadText));
    }
}

/// An id after its label, in parentheses after its name if it has one: `Orders.exe (4312)`.
fn identified(out: &mut Vec<u8>, label: &str, name: &str, id: Option<u32>) {
    out.extend(label.as_bytes());
    if !name.is_empty() {
        escape_line(out, name);
        out.extend(b" (");
    }
    decimal(out, id.unwrap_or(0).into());
    if !name.is_empty() {
        out.push(b')');
    }
}

/// A value after its label; nothing where there is no value.
#[inline(always)]
fn labelled(out: &mut Vec<u8>, label: &str, cell: Cell<'_>) {
    if matches!(cell, Cell::None) {
        return;
    }
    out.extend(label.as_bytes());
    cell.write(out, b"", escape_line);
}
