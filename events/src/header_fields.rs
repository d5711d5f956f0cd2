//! The numbers of an event in the header of its record, for all kinds of headers.

use std::fmt::Write;

use etl_format::Guid;
use etl_format::constants::offset;
use etl_format::cursor::Bytes;
use etl_format::read::{FullHeader, Header, Record};
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

/// The numbers of an event in the header of its record, for all kinds of headers. A field is `None`
/// if headers of this kind do not have it.
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
    /// Task: the part of the provider that writes the event.
    pub task: Option<u16>,
    /// Level: 1 is critical, 5 is verbose.
    pub level: Option<u8>,
    /// Keywords, one per bit.
    pub keyword: Option<u64>,
    /// Channel: the event log for which the event is meant.
    pub channel: Option<u8>,
}

impl HeaderFields {
    /// The name of an event in its schema, or its number in words: `EventID(160)`. Events that
    /// describe themselves may have an empty name. `number` is memory for the number in words.
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

    /// Writes the number of an event in words: `EventID(160)`.
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
        match record.header() {
            Header::Event(header) => {
                let descriptor = header.descriptor;
                HeaderFields {
                    hook: None,
                    id: Some(descriptor.id),
                    version: Some(descriptor.version.into()),
                    opcode: Some(descriptor.opcode),
                    task: Some(descriptor.task),
                    level: Some(descriptor.level),
                    keyword: Some(descriptor.keyword),
                    channel: Some(descriptor.channel),
                }
            }
            Header::Full(header) => HeaderFields::classic(&header),
            Header::Instance(header) => HeaderFields::classic(&header.full),
            Header::Message(header) => HeaderFields {
                id: Some(header.number),
                ..HeaderFields::default()
            },
            Header::System(header) => HeaderFields::kernel(header.hook, header.version & 0xff),
            Header::PerfInfo(header) => HeaderFields::kernel(header.hook, header.version().into()),
            _ => HeaderFields::default(),
        }
    }

    #[inline]
    fn classic(header: &FullHeader) -> Self {
        HeaderFields {
            opcode: Some(header.opcode),
            version: Some(header.version),
            level: Some(header.level),
            ..HeaderFields::default()
        }
    }

    #[inline]
    fn kernel(hook: u16, version: u16) -> Self {
        HeaderFields {
            hook: Some(hook),
            opcode: Some(hook as u8),
            version: Some(version),
            ..HeaderFields::default()
        }
    }
}
