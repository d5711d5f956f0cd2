//! Members of JSON objects, and those that all rows of an event have in common.

use etl_schema::render::{decimal, escape_json, hexadecimal};

use super::column::Column;
use super::head::Head;

/// The members that all rows of an event have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    pub(super) kind: Vec<u8>,
    /// The provider and the numbers of the event.
    pub(super) numbers: Vec<u8>,
    /// How many bytes of these are about the provider.
    pub(super) provider: usize,
    pub(super) event: Vec<u8>,
}

impl Members {
    /// Those of an event whose records are of this kind.
    pub(super) fn of(head: &Head, kind: &str) -> Self {
        let mut members = Members::default();
        key(&mut members.kind, Column::Kind);
        quoted(&mut members.kind, |out| out.extend(kind.as_bytes()));
        let (out, header) = (&mut members.numbers, &head.header);
        if let Some(guid) = head.provider {
            key(out, Column::ProviderGuid);
            quoted(out, |out| out.extend(guid.to_ascii()));
        }
        text_member(out, Column::Provider, head.provider_name.unwrap_or_default());
        members.provider = out.len();
        if let Some(hook) = header.hook {
            key(out, Column::Hook);
            quoted(out, |out| out.extend(format!("{hook:#06x}").as_bytes()));
        }
        number(out, Column::Id, header.id);
        number(out, Column::Version, header.version);
        number(out, Column::Opcode, header.opcode);
        text_member(out, Column::OpcodeName, &head.opcode_name);
        number(out, Column::Task, header.task);
        text_member(out, Column::TaskName, &head.task_name);
        number(out, Column::Level, header.level);
        text_member(out, Column::LevelName, &head.level_name);
        if let Some(keyword) = header.keyword {
            key(out, Column::Keyword);
            quoted(out, |out| hexadecimal(out, keyword));
        }
        text_member(&mut members.event, Column::Event, &head.event_name);
        members
    }
}

/// The beginning of a member.
#[inline(always)]
pub(super) fn key(out: &mut Vec<u8>, column: Column) {
    out.extend_from_slice(column.json_key().as_bytes());
}

/// Something in quotes.
#[inline(always)]
pub(super) fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

/// A text as a member, unless it is empty.
pub(super) fn text_member(out: &mut Vec<u8>, column: Column, text: &str) {
    if !text.is_empty() {
        key(out, column);
        escape_json(out, text);
    }
}

/// A number as a member, if there is one.
fn number<T: Into<u64>>(out: &mut Vec<u8>, column: Column, value: Option<T>) {
    if let Some(value) = value {
        key(out, column);
        decimal(out, value.into());
    }
}
