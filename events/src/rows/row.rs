//! A record as a row, whatever its format.

use etl_format::read::{ExtendedItem, Record};
use etl_format::{Clock, Guid};
use etl_schema::decode::Fields;
use etl_schema::render::{Names, Renderer};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, providers};

use super::columns::{Cell, Column};
use super::head::Head;
use super::message::message;
use crate::context::{Context, EventNames};

/// A record with everything that a row of it may show.
pub(super) struct Row<'a> {
    pub(super) record: &'a Record<'a>,
    /// Those of the header, but of samples and stacks those that ran.
    pub(super) process_id: Option<u32>,
    pub(super) thread_id: Option<u32>,
    pub(super) context: Option<&'a Context<'a>>,
    pub(super) clock: &'a Clock,
    /// What seconds count from, as FILETIME.
    pub(super) start: i64,
    /// UTC, ISO 8601 with 100 ns.
    pub(super) time: &'a [u8],
    /// Seconds since the start of the session, where they were asked for.
    pub(super) seconds: Option<&'a [u8]>,
    pub(super) file: Option<&'a str>,
    pub(super) store: &'a SchemaStore,
    /// What the row has in common with others of its event.
    pub(super) head: &'a Head,
    pub(super) activity: Option<Guid>,
    pub(super) schema: Option<&'a EventSchema>,
    /// The fields of the payload, where anything is known of them.
    pub(super) fields: Option<Fields<'a>>,
    pub(super) payload_text: &'a str,
}

impl<'a> Row<'a> {
    /// The provider's name: of the tables, of the record's traits, or learned from the trace.
    pub(super) fn provider_name(&self) -> Option<&'a str> {
        let provider = self.head.provider?;
        self.head
            .provider_name
            .or_else(|| providers::name_in_traits(self.record))
            .or_else(|| self.store.provider_name(provider))
    }

    /// The names that the trace has for the values of the event.
    pub(super) fn names(&self) -> Option<EventNames<'a>> {
        let names = self.context?.names(self.process_id, self.record.timestamp());
        // What a merge says of volumes is where the drives in other paths are from.
        Some(names.raw_paths(self.head.provider == Some(providers::SYSTEM_CONFIG_EX)))
    }

    pub(super) fn process_name(&self) -> &'a str {
        let named = self.context.zip(self.process_id);
        named.map_or("", |(context, pid)| context.process_name(pid, self.record.timestamp()))
    }

    pub(super) fn thread_name(&self) -> &'a str {
        let (named, pid) = (self.context.zip(self.thread_id), self.process_id);
        named.map_or("", |(context, tid)| context.thread_name(pid, tid, self.record.timestamp()))
    }

    /// The message of the event with its fields in place; nothing in it is escaped.
    pub(super) fn message<'s>(&self, scratch: &'s mut Vec<u8>) -> Option<&'s str> {
        let time = core::str::from_utf8(self.time).unwrap_or_default();
        message(scratch, self.record, self.schema?, self.fields.as_ref()?, time)
    }

    pub(super) fn write_kind(&self, out: &mut Vec<u8>) {
        let kind = self.record.kind();
        match kind.name() {
            Some(name) => out.extend(name.as_bytes()),
            None => out.extend(kind.to_string().as_bytes()),
        }
    }

    pub(super) fn related_activity(&self) -> Option<Guid> {
        self.record.extended().find_map(|item| match item {
            ExtendedItem::RelatedActivity(id) => Some(id),
            _ => None,
        })
    }

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
