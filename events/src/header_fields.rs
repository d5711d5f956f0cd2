//! What the headers of records of all kinds say of their events.

use std::fmt::Write;

use etl_format::Guid;
use etl_format::constants::offset;
use etl_format::cursor::Bytes;
use etl_format::read::{Header, Record};
use etl_schema::EventSchema;
use serde::Serializer;

/// Serializes group and type of a kernel event as `"0x0f2e"`, or null: for the attribute
/// `serialize_with`.
///
/// # Errors
/// Errors of the serializer.
pub fn hook_as_text<S: Serializer>(hook: &Option<u16>, to: S) -> Result<S::Ok, S::Error> {
    match hook {
        Some(hook) => to.collect_str(&format_args!("{hook:#06x}")),
        None => to.serialize_none(),
    }
}

/// What a record's header says of the event, whatever kind of header it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaderFields {
    /// Group and type of a kernel event.
    pub hook: Option<u16>,
    /// Id of a manifest event, or number of a WPP message.
    pub id: Option<u16>,
    /// Version of the payload.
    pub version: Option<u16>,
    /// Opcode, or type of a kernel or classic event.
    pub opcode: Option<u8>,
    /// Task.
    pub task: Option<u16>,
    /// Level.
    pub level: Option<u8>,
    /// Keywords.
    pub keyword: Option<u64>,
    /// Channel.
    pub channel: Option<u8>,
}

impl HeaderFields {
    /// The name of an event in its schema, or what its number is called: `EventID(160)`. Events
    /// that describe themselves may have an empty name. `number` is memory for that name.
    pub fn event_name<'n>(
        &self,
        schema: Option<&'n EventSchema>,
        record: &Record<'_>,
        number: &'n mut String,
    ) -> &'n str {
        match schema {
            Some(schema) if !schema.name.is_empty() => &schema.name,
            _ => {
                number.clear();
                self.write_number_name(number, record);
                number
            }
        }
    }

    /// Writes what an event is called if only its numbers are known: `EventID(160)`.
    fn write_number_name(&self, out: &mut String, record: &Record<'_>) {
        let (word, number) = match (self.id, self.opcode) {
            (Some(number), _) if !record.is_event() => ("Message", number),
            (Some(id), _) => ("EventID", id),
            (None, Some(opcode)) => ("Opcode", opcode.into()),
            (None, None) => ("Unknown", 0),
        };
        // Writing to a string does not fail.
        let _ = write!(out, "{word}({number})");
    }

    /// The activity of an event; `None` for the one of all zeros.
    #[must_use]
    #[inline]
    pub fn activity(record: &Record<'_>) -> Option<Guid> {
        let activity = record.bytes().guid_at(offset::event::ACTIVITY);
        activity.filter(|activity| record.is_event() && !activity.is_zero())
    }

    /// The fields of a record's header.
    #[must_use]
    #[inline]
    pub fn of(record: &Record<'_>) -> Self {
        let classic = |opcode: u8, version: u16, level: u8| HeaderFields {
            opcode: Some(opcode),
            version: Some(version),
            level: Some(level),
            ..HeaderFields::default()
        };
        let kernel = |hook: u16, version: u16| HeaderFields {
            hook: Some(hook),
            opcode: Some(hook as u8),
            version: Some(version),
            ..HeaderFields::default()
        };
        match record.header() {
            Header::Event(h) => {
                let d = h.descriptor;
                HeaderFields {
                    hook: None,
                    id: Some(d.id),
                    version: Some(d.version.into()),
                    opcode: Some(d.opcode),
                    task: Some(d.task),
                    level: Some(d.level),
                    keyword: Some(d.keyword),
                    channel: Some(d.channel),
                }
            }
            Header::Full(h) => classic(h.opcode, h.version, h.level),
            Header::Instance(h) => classic(h.full.opcode, h.full.version, h.full.level),
            Header::Message(h) => HeaderFields {
                id: Some(h.number),
                ..HeaderFields::default()
            },
            Header::System(h) => kernel(h.hook, h.version & 0xff),
            Header::PerfInfo(h) => kernel(h.hook, h.version().into()),
            _ => HeaderFields::default(),
        }
    }
}
