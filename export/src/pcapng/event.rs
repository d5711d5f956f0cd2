//! Events as packets of link type ETW: the header as Windows passes it to programs
//! (`EVENT_HEADER`), the payload, and a text for lists of packets.

use etl_events::Event;
use etl_format::constants::EventFlags;
use etl_format::read::Record;
use etl_format::{Guid, ProcessId, ThreadId};
use etl_schema::SchemaSource;

/// Link type ETW.
pub(super) const LINK: u16 = 290;

/// Size of `EVENT_HEADER`.
const HEADER: usize = 80;
/// Offset of its flags.
const FLAGS: usize = 4;
/// Offset of its time.
const TIME: usize = 16;
/// Bytes to which records are aligned.
const ALIGNMENT: u8 = 8;

/// Appends an event.
pub(super) fn put(out: &mut Vec<u8>, event: &Event<'_>) {
    let record = event.record();
    let time = event.time().get();
    match record.event().and_then(|_| record.bytes().get(..HEADER)) {
        Some(header) => out.extend_from_slice(header),
        None => put_header(out, record),
    }
    if let Some(field) = out.get_mut(TIME..TIME + 8) {
        field.copy_from_slice(&time.to_le_bytes());
    }
    put_context(out, record.processor());
    let message = utf16(&text(event));
    let provider = utf16(event.provider());
    let payload = event.payload();
    for part in [payload, &message, &provider] {
        out.extend((part.len() as u32).to_le_bytes());
    }
    for part in [payload, &message, &provider] {
        out.extend_from_slice(part);
        out.resize(out.len().next_multiple_of(4), 0);
    }
}

/// Appends `ETW_BUFFER_CONTEXT` to a header: the processor, the alignment, and the session. If the
/// processor does not fit into a byte, its index replaces the first two, and a flag of the header
/// says so.
fn put_context(out: &mut Vec<u8>, processor: u16) {
    const INDEX: EventFlags = EventFlags::PROCESSOR_INDEX;
    let number = u8::try_from(processor);
    if let Some(field) = out.get_mut(FLAGS..).and_then(<[u8]>::first_chunk_mut) {
        let mut flags = EventFlags(u16::from_le_bytes(*field)).without(INDEX);
        if number.is_err() {
            flags = flags | INDEX;
        }
        *field = flags.0.to_le_bytes();
    }
    match number {
        Ok(number) => out.extend([number, ALIGNMENT]),
        Err(_) => out.extend(processor.to_le_bytes()),
    }
    out.extend([0, 0]);
}

/// The header of an event that is recorded with another header.
fn put_header(out: &mut Vec<u8>, record: &Record<'_>) {
    let payload = record.payload().len();
    let size = u16::try_from(HEADER + payload).unwrap_or(u16::MAX);
    out.extend(size.to_le_bytes());
    // Header type, and flags: a classic event.
    out.extend(0u16.to_le_bytes());
    out.extend(EventFlags::CLASSIC_HEADER.0.to_le_bytes());
    out.extend(0u16.to_le_bytes());
    let thread = record.thread_id().unwrap_or(ThreadId::UNKNOWN);
    out.extend(thread.get().to_le_bytes());
    let process = record.process_id().unwrap_or(ProcessId::UNKNOWN);
    out.extend(process.get().to_le_bytes());
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

/// The text of an event: its message, or its name and fields.
fn text(event: &Event<'_>) -> String {
    // The format string of a WPP message repeats the header.
    let message = match event.source() {
        Some(SchemaSource::Tmf) => None,
        _ => event.message(),
    };
    let text = match (message, event.fields()) {
        (Some(message), _) => message,
        (None, Some(fields)) => format!("{} {fields}", event.name()),
        (None, None) => event.name().to_owned(),
    };
    // One line, as lists of packets show it.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text as UTF-16 with a zero at the end.
fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16()
        .chain([0])
        .flat_map(u16::to_le_bytes)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of the header, and `ETW_BUFFER_CONTEXT`.
    fn context(flags: u16, processor: u16) -> (u16, [u8; 4]) {
        let mut out = vec![0; HEADER];
        out[FLAGS..FLAGS + 2].copy_from_slice(&flags.to_le_bytes());
        put_context(&mut out, processor);
        let flags = u16::from_le_bytes([out[FLAGS], out[FLAGS + 1]]);
        (flags, out[HEADER..].try_into().unwrap())
    }

    /// By evntcons.h: `ProcessorNumber` and `Alignment` are one byte each, and with the flag 0x200
    /// `ProcessorIndex` is there, of two bytes.
    #[test]
    fn processors_above_255_have_an_index_of_two_bytes() {
        assert_eq!(context(0x40, 255), (0x40, [255, 8, 0, 0]));
        assert_eq!(context(0x40, 0x1ff), (0x240, [0xff, 1, 0, 0]));
        assert_eq!(
            context(0x240, 3),
            (0x40, [3, 8, 0, 0]),
            "a flag of the trace does not mislead"
        );
    }
}
