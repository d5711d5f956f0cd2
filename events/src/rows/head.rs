//! What all rows of one event have in common.

use std::sync::{Arc, OnceLock};

use etl_format::Guid;
use etl_format::read::Record;
use etl_schema::render::hexadecimal;
use etl_schema::{EventSchema, Named, SchemaSource, Text, providers};

use super::columns::{Cell, Column, key, number, quoted, text_member};
use crate::head_key::HeadKey;
use crate::header_fields::HeaderFields;

/// What all rows of one event have in common: its names and numbers, and what shows them in JSON
/// and in CSV.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    key: HeadKey,
    pub(super) schema: Option<Arc<EventSchema>>,
    pub(super) header: HeaderFields,
    pub(super) provider: Option<Guid>,
    /// The provider's name, where one is known without the trace.
    pub(super) provider_name: Option<&'static str>,
    /// The name of the event, or what its number is called.
    pub(super) event_name: String,
    /// The provider's own names; "" for those that every provider has, where the record has another
    /// value, and for an opcode by which the event itself is called.
    pub(super) opcode_name: String,
    pub(super) task_name: String,
    pub(super) level_name: String,
    pub(super) members: Members,
    /// Those of CSV, once they are written.
    pub(super) values: OnceLock<Box<SharedValues>>,
}

impl Head {
    fn new(key: HeadKey, record: &Record<'_>, schema: Option<&Arc<EventSchema>>) -> Self {
        let header = HeaderFields::of(record);
        let mut event_name = String::new();
        let described = schema.map(|schema| &**schema);
        let event_name = header.event_name(described, record, &mut event_name).to_owned();
        let names = schema.map_or([""; 3], |schema| own_names(schema, &header));
        let [opcode_name, task_name, level_name] = names.map(str::to_owned);
        let mut head = Head {
            key,
            provider: record.provider(),
            provider_name: record.provider().and_then(providers::name),
            event_name,
            opcode_name,
            task_name,
            level_name,
            schema: schema.cloned(),
            header,
            members: Members::default(),
            values: OnceLock::new(),
        };
        head.members = Members::of(&head, &record.kind().to_string());
        head
    }

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

    /// The names of its keywords.
    pub(super) fn keywords(&self) -> &[Text] {
        self.schema.as_ref().map_or(&[], |schema| &schema.keyword_names)
    }

    /// The names of its keywords, joined.
    pub(super) fn keyword_names(&self) -> String {
        self.keywords().join("|")
    }

    /// Whether it is that of records with this key and schema.
    #[inline]
    fn is_of(&self, key: Option<HeadKey>, schema: Option<&Arc<EventSchema>>) -> bool {
        let is_same = match (&self.schema, schema) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        is_same && key == Some(self.key)
    }
}

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

/// Whether all rows of an event have the same value in a column. A provider whose name only the
/// trace knows may get it later.
pub(super) const fn is_shared(column: Column) -> bool {
    use Column::{
        Channel, Event, Hook, Id, Keyword, Keywords, Kind, Level, LevelName, Opcode, OpcodeName,
        Provider, ProviderGuid, Task, TaskName, Version,
    };
    matches!(
        column,
        Kind | ProviderGuid
            | Provider
            | Hook
            | Id
            | Version
            | Opcode
            | Task
            | Level
            | Keyword
            | Event
            | Channel
            | OpcodeName
            | TaskName
            | LevelName
            | Keywords
    )
}

/// The values that all rows of an event have in common, as CSV.
#[derive(Clone, Debug)]
pub(super) struct SharedValues {
    /// With a comma after each.
    text: Vec<u8>,
    /// Where each column begins and ends.
    spans: [(usize, usize); Column::ALL.len()],
}

impl SharedValues {
    /// `write` writes the value of a column.
    pub(super) fn new(mut write: impl FnMut(&mut Vec<u8>, Column)) -> Self {
        let (mut text, mut spans) = (Vec::new(), [(0, 0); Column::ALL.len()]);
        for (column, span) in Column::ALL.iter().zip(&mut spans).filter(|(c, _)| is_shared(**c)) {
            let start = text.len();
            write(&mut text, *column);
            *span = (start, text.len());
            text.push(b',');
        }
        SharedValues { text, spans }
    }

    /// Where a column begins and ends.
    pub(super) fn span(&self, column: Column) -> (usize, usize) {
        self.spans.get(column as usize).copied().unwrap_or_default()
    }

    /// The bytes between two places.
    pub(super) fn slice(&self, from: usize, to: usize) -> &[u8] {
        self.text.get(from..to).unwrap_or_default()
    }
}

/// The provider's own names for the opcode, the task and the level of an event; "" for those that
/// every provider has, where the record has another value, and for an opcode by which the event
/// itself is called.
#[must_use]
pub fn own_names<'s>(schema: &'s EventSchema, header: &HeaderFields) -> [&'s str; 3] {
    let opcode = own_name(schema, header.opcode, &schema.opcode);
    [
        if opcode == &*schema.name { "" } else { opcode },
        own_name(schema, header.task, &schema.task),
        own_name(schema, header.level, &schema.level),
    ]
}

fn own_name<'s, T: PartialEq + Default>(
    schema: &EventSchema,
    value: Option<T>,
    named: &'s Named<T>,
) -> &'s str {
    // The tables of Windows' providers have names whose numbers are not known.
    let any = schema.source == SchemaSource::Windows && named.value == T::default();
    let is_it = value.is_some_and(|value| named.value == value || any);
    if is_it { own(&named.name).trim_end() } else { "" }
}

/// A name, unless it is one of those that every provider has: they start with `win:`.
pub(super) fn own(name: &str) -> &str {
    if name.starts_with("win:") { "" } else { name }
}

/// What the last events have in common. A slot holds two of them, the later one first.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    slots: Vec<[Option<Box<Head>>; 2]>,
}

impl Default for Heads {
    fn default() -> Self {
        // The last slot is for records without a key.
        Heads { slots: vec![[None, None]; HeadKey::SLOTS + 1] }
    }
}

impl Heads {
    /// The head of a record with this schema.
    #[inline]
    pub(super) fn of(
        &mut self,
        record: &Record<'_>,
        schema: Option<&Arc<EventSchema>>,
    ) -> Option<&Head> {
        let key = HeadKey::of(record);
        // Events that describe themselves may differ by nothing else.
        let is_own = schema.is_some_and(|s| s.source == SchemaSource::TraceLogging);
        let address = schema.filter(|_| is_own).map_or(0, |schema| Arc::as_ptr(schema).addr() >> 4);
        let at = key.map_or(HeadKey::SLOTS, |key| (key.slot() ^ address) % HeadKey::SLOTS);
        let slot = self.slots.get_mut(at)?;
        let [first, second] = &mut *slot;
        if !first.as_ref().is_some_and(|head| head.is_of(key, schema)) {
            core::mem::swap(first, second);
            if !first.as_ref().is_some_and(|head| head.is_of(key, schema)) {
                let head = Head::new(key.unwrap_or_default(), record, schema);
                *first = Some(Box::new(head));
            }
        }
        first.as_deref()
    }
}
