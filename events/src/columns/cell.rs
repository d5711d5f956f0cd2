//! The values of an event by column.

use std::io::Write;

use etl_format::constants::RecordKind;
use etl_format::{Guid, ProcessId, ThreadId};
use etl_schema::render::{Names, Renderer, decimal, hexadecimal, signed};

use super::Column;
use crate::event::{Event, Head};

/// A value of a column.
pub(crate) enum Cell<'a> {
    None,
    Number(u64),
    Signed(i64),
    Hex(u64),
    /// Group and type of a kernel event, in four digits.
    Hook(u16),
    Guid(Guid),
    Text(&'a str),
}

impl<'a> Cell<'a> {
    #[inline(always)]
    pub(crate) fn number<T: Into<u64>>(value: Option<T>) -> Self {
        value.map_or(Cell::None, |value| Cell::Number(value.into()))
    }

    #[inline(always)]
    pub(crate) fn text(text: &'a str) -> Self {
        if text.is_empty() {
            Cell::None
        } else {
            Cell::Text(text)
        }
    }

    #[inline(always)]
    fn optional_text(text: Option<&'a str>) -> Self {
        match text {
            Some(text) => Cell::Text(text),
            None => Cell::None,
        }
    }

    #[inline(always)]
    fn guid(guid: Option<Guid>) -> Self {
        match guid {
            Some(guid) => Cell::Guid(guid),
            None => Cell::None,
        }
    }

    /// Writes the value, with `quote` around values that are neither a number nor text.
    #[inline(always)]
    pub(crate) fn write(
        self,
        out: &mut Vec<u8>,
        quote: &[u8],
        text: impl FnOnce(&mut Vec<u8>, &str),
    ) {
        match self {
            Cell::None => {}
            Cell::Number(n) => decimal(out, n),
            Cell::Signed(n) => signed(out, n),
            Cell::Hex(n) => {
                out.extend(quote);
                hexadecimal(out, n);
                out.extend(quote);
            }
            Cell::Hook(hook) => {
                out.extend(quote);
                // Writing to a vector does not fail.
                let _ = write!(out, "{hook:#06x}");
                out.extend(quote);
            }
            Cell::Guid(guid) => {
                out.extend(quote);
                out.extend(guid.to_ascii());
                out.extend(quote);
            }
            Cell::Text(value) => text(out, value),
        }
    }
}

impl<'a> Event<'a> {
    /// The value of a column. [`Cell::None`] for lists and for columns that writers compose.
    #[inline(always)]
    pub(crate) fn cell(&self, column: Column) -> Cell<'a> {
        match column {
            Column::File => Cell::optional_text(self.file()),
            Column::Timestamp => Cell::Signed(self.record.timestamp().get()),
            Column::Cpu => Cell::Number(self.record.processor().into()),
            Column::Pid => Cell::number(self.pid.map(ProcessId::get)),
            Column::Process => Cell::optional_text(self.process()),
            Column::Tid => Cell::number(self.tid.map(ThreadId::get)),
            Column::Thread => Cell::optional_text(self.thread()),
            Column::Provider => Cell::optional_text(self.provider_name()),
            Column::Activity => Cell::guid(self.activity()),
            Column::RelatedActivity => Cell::guid(self.related_activity()),
            Column::PayloadText => Cell::text(self.payload_text),
            Column::PayloadSize => Cell::Number(self.record.payload().len() as u64),
            column => self.head.cell(column),
        }
    }
}

impl Head {
    /// The value of a column that all events of the head share; [`Cell::None`] for other columns.
    #[inline(always)]
    pub(crate) fn cell(&self, column: Column) -> Cell<'_> {
        let header = &self.header;
        match column {
            Column::ProviderGuid => Cell::guid(self.provider),
            Column::Provider => Cell::optional_text(self.provider_name),
            Column::Hook => match header.hook {
                Some(hook) => Cell::Hook(hook),
                None => Cell::None,
            },
            Column::Id => Cell::number(header.id),
            Column::Version => Cell::number(header.version),
            Column::Opcode => Cell::number(header.opcode),
            Column::OpcodeName => Cell::text(&self.opcode_name),
            Column::Task => Cell::number(header.task),
            Column::TaskName => Cell::text(&self.task_name),
            Column::Level => Cell::number(header.level),
            Column::LevelName => Cell::text(&self.level_name),
            Column::Keyword => match header.keyword {
                Some(keyword) => Cell::Hex(keyword),
                None => Cell::None,
            },
            Column::Channel => Cell::number(header.channel),
            Column::ChannelName => Cell::text(&self.channel_name),
            Column::Event => Cell::text(&self.event_name),
            _ => Cell::None,
        }
    }
}

/// Writes the value of a column, text with `escape`. Times are not written: their form is a choice
/// of the writer.
#[inline]
pub(crate) fn write_column(
    out: &mut Vec<u8>,
    event: &Event<'_>,
    column: Column,
    scratch: &mut Vec<u8>,
    escape: fn(&mut Vec<u8>, &str),
) {
    match column {
        Column::Kind => write_kind(out, event.record.kind()),
        Column::Fields => {
            if let Some(mut fields) = event.fields() {
                scratch.clear();
                let names = event.names();
                let names = names.as_ref().map(|names| names as &dyn Names);
                Renderer::new()
                    .names(names)
                    .hex()
                    .json_fields(scratch, &mut fields);
                escape(out, core::str::from_utf8(scratch).unwrap_or_default());
            }
        }
        Column::Message => escape(out, event.write_message(scratch).unwrap_or_default()),
        Column::Keywords => escape(out, &event.keyword_names().join("|")),
        column => event.cell(column).write(out, b"", escape),
    }
}

/// Writes the name of a kind of records, or its number.
pub(crate) fn write_kind(out: &mut Vec<u8>, kind: RecordKind) {
    match kind.name() {
        Some(name) => out.extend(name.as_bytes()),
        None => out.extend(kind.to_string().as_bytes()),
    }
}
