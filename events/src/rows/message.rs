//! The message of an event with its fields in place.

use etl_format::read::{Header, Record};
use etl_schema::decode::Fields;
use etl_schema::{EventSchema, render};

/// The message of an event with its fields in place, written to `scratch`; nothing in it is
/// escaped. `None` where its schema has no message. `time` is its time as text, which messages of
/// WPP may show.
#[must_use]
pub fn message<'s>(
    scratch: &'s mut Vec<u8>,
    record: &Record<'_>,
    schema: &EventSchema,
    fields: &Fields<'_>,
    time: &str,
) -> Option<&'s str> {
    let text = schema.message.as_deref()?;
    scratch.clear();
    if let Header::Message(header) = record.header() {
        let prefix = render::Prefix {
            component: &schema.provider_name,
            source: &schema.name,
            thread: header.thread_id,
            time,
            sequence: header.sequence,
            process: header.process_id,
            processor: Some(record.processor().into()),
            ..render::Prefix::default()
        };
        render::Renderer::new().wpp_message(scratch, text, &prefix, fields);
    } else {
        render::Renderer::new().plain_message(scratch, text, fields);
    }
    let message = core::str::from_utf8(scratch).ok()?.trim();
    (!message.is_empty()).then_some(message)
}
