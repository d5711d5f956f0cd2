//! What all records of one event have in common: its names and numbers.

use std::sync::{Arc, OnceLock};

use etl_format::Guid;
use etl_format::constants::hook_class_name;
use etl_format::read::Record;
use etl_schema::{EventSchema, Named, SchemaSource, Text, providers};

use super::prepared::{CsvValues, JsonMembers};
use crate::head_key::HeadKey;
use crate::header_fields::HeaderFields;

/// What all records of one event have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    key: HeadKey,
    pub schema: Option<Arc<EventSchema>>,
    pub header: HeaderFields,
    pub provider: Option<Guid>,
    /// The provider's name, if one is known without the trace.
    pub provider_name: Option<&'static str>,
    /// The text for a provider without a name: its GUID, or the group of a kernel event.
    pub provider_text: String,
    /// The name of the event, or its number in words.
    pub event_name: String,
    /// The provider's own names. They are "" for the names that every provider has, if the record
    /// has another value, and for an opcode with the name of the event itself.
    pub opcode_name: String,
    pub task_name: String,
    pub level_name: String,
    pub channel_name: String,
    /// Filled by the writer of JSON when it first writes such an event.
    pub json: OnceLock<Box<JsonMembers>>,
    /// Filled by the writer of CSV.
    pub csv: OnceLock<Box<CsvValues>>,
}

impl Head {
    fn new(key: HeadKey, record: &Record<'_>, schema: Option<&Arc<EventSchema>>) -> Self {
        let header = HeaderFields::of(record);
        let provider = record.provider();
        let mut number = String::new();
        let described = schema.map(|schema| &**schema);
        let event_name = header.event_name(described, record, &mut number).to_owned();
        let names = match described {
            Some(schema) => OwnNames::new(schema, &header),
            None => OwnNames::default(),
        };
        Head {
            key,
            provider,
            provider_name: provider.and_then(providers::name),
            provider_text: provider_text(provider, &header),
            event_name,
            opcode_name: names.opcode.to_owned(),
            task_name: names.task.to_owned(),
            level_name: names.level.to_owned(),
            channel_name: names.channel.to_owned(),
            schema: schema.cloned(),
            header,
            json: OnceLock::new(),
            csv: OnceLock::new(),
        }
    }

    /// The names of its keywords.
    pub fn keyword_names(&self) -> &[Text] {
        match &self.schema {
            Some(schema) => &schema.keyword_names,
            None => &[],
        }
    }

    /// Whether it is the head of records with this key and schema.
    #[inline]
    fn is_of(&self, key: Option<HeadKey>, schema: Option<&Arc<EventSchema>>) -> bool {
        let is_same_schema = match (&self.schema, schema) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        is_same_schema && key == Some(self.key)
    }
}

/// The text for a provider without a name.
fn provider_text(provider: Option<Guid>, header: &HeaderFields) -> String {
    if let Some(guid) = provider {
        return guid.to_string();
    }
    let Some(hook) = header.hook else {
        return String::new();
    };
    hook_class_name(hook).unwrap_or_default().to_owned()
}

/// The provider's own names for the opcode, the task, the level and the channel of an event.
///
/// A name is "" if every provider has it, if the record has another value, and for an opcode with
/// the name of the event itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OwnNames<'s> {
    /// The name of the opcode.
    opcode: &'s str,
    /// The name of the task.
    task: &'s str,
    /// The name of the level.
    level: &'s str,
    /// The name of the channel.
    channel: &'s str,
}

impl<'s> OwnNames<'s> {
    /// The names that a schema has for the values of a header.
    fn new(schema: &'s EventSchema, header: &HeaderFields) -> Self {
        let opcode = own_name(schema, header.opcode, &schema.opcode);
        OwnNames {
            opcode: if opcode == &*schema.name { "" } else { opcode },
            task: own_name(schema, header.task, &schema.task),
            level: own_name(schema, header.level, &schema.level),
            channel: own_name(schema, header.channel, &schema.channel),
        }
    }
}

fn own_name<'s, T: PartialEq + Default>(
    schema: &EventSchema,
    value: Option<T>,
    named: &'s Named<T>,
) -> &'s str {
    // The tables of Windows' providers have names whose numbers are not known.
    let is_any = schema.source == SchemaSource::Windows && named.value == T::default();
    match value {
        Some(value) if named.value == value || is_any => without_common(&named.name).trim_end(),
        _ => "",
    }
}

/// A name, or "" if every provider has it: such names start with `win:`.
pub(crate) fn without_common(name: &str) -> &str {
    if name.starts_with("win:") { "" } else { name }
}

/// The heads of the last events. A slot has two of them, the later one first.
#[derive(Clone, Debug)]
pub(crate) struct Heads {
    slots: Vec<[Option<Arc<Head>>; 2]>,
    /// For the compiler: a slot always has a head after it was filled.
    none: Arc<Head>,
}

impl Default for Heads {
    fn default() -> Self {
        // The last slot is for records without a key.
        let slots = vec![[None, None]; HeadKey::SLOTS + 1];
        Heads {
            slots,
            none: Arc::default(),
        }
    }
}

impl Heads {
    /// The head of a record with this schema.
    #[inline]
    pub fn head(&mut self, record: &Record<'_>, schema: Option<&Arc<EventSchema>>) -> &Arc<Head> {
        let key = HeadKey::of(record);
        let index = slot_index(key, schema);
        let Some([first, second]) = self.slots.get_mut(index) else {
            return &self.none;
        };
        if !first.as_ref().is_some_and(|head| head.is_of(key, schema)) {
            core::mem::swap(first, second);
            if !first.as_ref().is_some_and(|head| head.is_of(key, schema)) {
                let head = Head::new(key.unwrap_or_default(), record, schema);
                *first = Some(Arc::new(head));
            }
        }
        first.as_ref().unwrap_or(&self.none)
    }
}

#[inline]
fn slot_index(key: Option<HeadKey>, schema: Option<&Arc<EventSchema>>) -> usize {
    let Some(key) = key else {
        return HeadKey::SLOTS;
    };
    // Events that describe themselves may differ by nothing but their schema.
    let address = match schema {
        Some(schema) if schema.source == SchemaSource::TraceLogging => {
            Arc::as_ptr(schema).addr() >> 4
        }
        _ => 0,
    };
    (key.slot() ^ address) % HeadKey::SLOTS
}
