//! A record as a row, whatever its format.

use etl_format::read::{ExtendedItem, Record};
use etl_format::{Clock, Guid};
use etl_schema::decode::Fields;
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, providers};

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
}
