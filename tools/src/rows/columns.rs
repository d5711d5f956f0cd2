//! The columns of rows and their values.

use std::io::Write;

use etl_format::Guid;
use etl_schema::render::{Names, Renderer, decimal, hexadecimal, signed};

pub(super) use super::column::Column;
use super::head::Head;
use super::row::Row;

/// The prefix of a field that has the name of a column.
pub(super) const FIELD_PREFIX: &str = "fields.";

/// A value of a column.
pub(super) enum Cell<'a> {
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
    fn number<T: Into<u64>>(value: Option<T>) -> Self {
        value.map_or(Cell::None, |value| Cell::Number(value.into()))
    }

    #[inline(always)]
    fn text(text: &'a str) -> Self {
        if text.is_empty() { Cell::None } else { Cell::Text(text) }
    }

    /// Writes the value, with `quote` around what is neither a number nor text.
    #[inline(always)]
    pub(super) fn write(
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

impl<'a> Row<'a> {
    /// Writes the value of a column, text with `escape`.
    #[inline]
    pub(super) fn write_column(
        &self,
        out: &mut Vec<u8>,
        column: Column,
        scratch: &mut Vec<u8>,
        escape: fn(&mut Vec<u8>, &str),
    ) {
        match column {
            Column::Time if self.seconds.is_some() => out.extend(self.seconds.unwrap_or_default()),
            // A year before 0 begins as a formula does.
            Column::Time if self.time.starts_with(b"-") => {
                escape(out, core::str::from_utf8(self.time).unwrap_or_default());
            }
            Column::Time => out.extend(self.time),
            Column::Kind => self.write_kind(out),
            Column::Fields => {
                if let Some(fields) = &self.fields {
                    scratch.clear();
                    let names = self.names();
                    let names = names.as_ref().map(|names| names as &dyn Names);
                    let renderer = Renderer::new().names(names).hex();
                    renderer.json_fields(scratch, &mut fields.clone());
                    escape(out, core::str::from_utf8(scratch).unwrap_or_default());
                }
            }
            Column::Message => escape(out, self.message(scratch).unwrap_or_default()),
            Column::Keywords => escape(out, &self.head.keyword_names()),
            column => self.cell(column).write(out, b"", escape),
        }
    }

    /// The value of a column; `None` for those that are lists or are put together elsewhere.
    #[inline(always)]
    pub(super) fn cell(&self, column: Column) -> Cell<'a> {
        let record = self.record;
        let guid = |guid: Option<Guid>| guid.map_or(Cell::None, Cell::Guid);
        match column {
            Column::File => self.file.map_or(Cell::None, Cell::Text),
            Column::Timestamp => Cell::Signed(record.timestamp()),
            Column::Cpu => Cell::Number(record.processor().into()),
            Column::Pid => Cell::number(self.process_id),
            Column::ProcessName => Cell::text(self.process_name()),
            Column::Tid => Cell::number(self.thread_id),
            Column::ThreadName => Cell::text(self.thread_name()),
            Column::Provider => self.provider_name().map_or(Cell::None, Cell::Text),
            Column::Activity => guid(self.activity),
            Column::RelatedActivity => guid(self.related_activity()),
            Column::PayloadText => Cell::text(self.payload_text),
            Column::PayloadSize => Cell::Number(record.payload().len() as u64),
            column => self.head.cell(column),
        }
    }
}

impl Head {
    /// The value of a column that all rows of the event have in common; `None` for others.
    #[inline(always)]
    pub(super) fn cell(&self, column: Column) -> Cell<'_> {
        let header = &self.header;
        match column {
            Column::ProviderGuid => self.provider.map_or(Cell::None, Cell::Guid),
            Column::Provider => self.provider_name.map_or(Cell::None, Cell::Text),
            Column::Hook => header.hook.map_or(Cell::None, Cell::Hook),
            Column::Id => Cell::number(header.id),
            Column::Version => Cell::number(header.version),
            Column::Opcode => Cell::number(header.opcode),
            Column::OpcodeName => Cell::text(&self.opcode_name),
            Column::Task => Cell::number(header.task),
            Column::TaskName => Cell::text(&self.task_name),
            Column::Level => Cell::number(header.level),
            Column::LevelName => Cell::text(&self.level_name),
            Column::Keyword => header.keyword.map_or(Cell::None, Cell::Hex),
            Column::Channel => Cell::number(header.channel),
            Column::Event => Cell::text(&self.event_name),
            _ => Cell::None,
        }
    }
}
