//! Events as packets of link type ETW: the header as Windows hands it to programs (`EVENT_HEADER`),
//! the payload, and what is shown of it as text.

use etl_format::constants::EventFlags;
use etl_format::read::Record;
use etl_format::{Clock, Guid};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, SchemaSource, render};

/// Link type ETW.
pub(super) const LINK: u16 = 290;

/// Size of `EVENT_HEADER`, and where its time is.
const HEADER: usize = 80;
const TIME: usize = 16;

/// Appends the event of a record.
pub(super) fn put(out: &mut Vec<u8>, store: &SchemaStore, clock: &Clock, record: &Record<'_>) {
    let time = clock.filetime(record.timestamp());
    match record.event().and_then(|_| record.bytes().get(..HEADER)) {
        Some(header) => out.extend_from_slice(header),
        None => put_header(out, record),
    }
    if let Some(field) = out.get_mut(TIME..TIME + 8) {
        field.copy_from_slice(&time.to_le_bytes());
    }
    // ETW_BUFFER_CONTEXT: the processor, alignment, and the session.
    out.extend([record.processor() as u8, 8, 0, 0]);
    let schema = store.decoder(record).map(|decoder| &**decoder.schema());
    let message = utf16(&text(store, schema, record));
    let provider = utf16(&provider_name(store, schema, record));
    let payload = record.payload();
    for part in [payload, &message, &provider] {
        out.extend((part.len() as u32).to_le_bytes());
    }
    for part in [payload, &message, &provider] {
        out.extend_from_slice(part);
        out.resize(out.len().next_multiple_of(4), 0);
    }
}

/// The header of an event that is recorded with another one.
fn put_header(out: &mut Vec<u8>, record: &Record<'_>) {
    let payload = record.payload().len();
    out.extend(u16::try_from(HEADER + payload).unwrap_or(u16::MAX).to_le_bytes());
    // Header type, and flags: a classic event.
    out.extend(0u16.to_le_bytes());
    out.extend(EventFlags::CLASSIC_HEADER.0.to_le_bytes());
    out.extend(0u16.to_le_bytes());
    out.extend(record.thread_id().unwrap_or(u32::MAX).to_le_bytes());
    out.extend(record.process_id().unwrap_or(u32::MAX).to_le_bytes());
    out.extend(0i64.to_le_bytes());
    out.extend(record.provider().unwrap_or(Guid::ZERO).to_bytes());
    let identity = record.identity();
    out.extend(identity.id.to_le_bytes());
    // Version, channel, level, opcode.
    out.extend([identity.version as u8, 0, identity.level, identity.opcode]);
    out.extend(identity.task.to_le_bytes());
    out.extend(identity.keyword.to_le_bytes());
    // Processor time, activity.
    out.extend([0; 24]);
}

/// What is shown of an event: its message, or its name and fields.
fn text(store: &SchemaStore, schema: Option<&EventSchema>, record: &Record<'_>) -> String {
    let mut out = Vec::new();
    let (Some(schema), Some((_, mut fields))) = (schema, store.fields(record)) else {
        return String::new();
    };
    match schema.message.as_deref().filter(|text| !text.is_empty()) {
        Some(message) if schema.source != SchemaSource::Tmf => {
            render::plain_message(&mut out, message, schema.source, &fields);
        }
        _ => {
            out.extend_from_slice(schema.name.as_bytes());
            out.push(b' ');
            render::text_fields(&mut out, &mut fields);
        }
    }
    // One line, as lists of packets show it.
    String::from_utf8_lossy(&out).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn provider_name(store: &SchemaStore, schema: Option<&EventSchema>, record: &Record<'_>) -> String {
    let known = schema.map(|schema| &*schema.provider_name).filter(|name| !name.is_empty());
    let known = known.or_else(|| store.provider_name(record.provider()?));
    known.map_or_else(
        || record.provider().map_or_else(String::new, |guid| format!("{{{guid}}}")),
        str::to_owned,
    )
}

/// Text as UTF-16 with a zero at the end.
fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}
