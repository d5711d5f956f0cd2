//! The message of an event with its fields in place.

use core::fmt::Write as _;

use etl_format::read::{Header, Record};
use etl_format::{FileTime, ProcessId, ThreadId};
use etl_schema::EventSchema;
use etl_schema::decode::Fields;
use etl_schema::render::{Prefix, Renderer};

/// Writes the message of an event with its fields in place to `scratch`; nothing in it is escaped.
/// Returns `None` if its schema has no message. Messages of WPP may contain the time of the event.
pub(crate) fn message<'s>(
    scratch: &'s mut Vec<u8>,
    record: &Record<'_>,
    schema: &EventSchema,
    fields: &Fields<'_>,
    time: FileTime,
) -> Option<&'s str> {
    let text = schema.message.as_deref()?;
    scratch.clear();
    if let Header::Message(header) = record.header() {
        let time = TimeText::new(time);
        let prefix = Prefix {
            component: &schema.provider_name,
            source: &schema.name,
            thread: header.thread_id.map(ThreadId::get),
            time: time.as_str(),
            sequence: header.sequence,
            process: header.process_id.map(ProcessId::get),
            processor: Some(record.processor().into()),
            ..Prefix::default()
        };
        Renderer::new().wpp_message(scratch, text, &prefix, fields);
    } else {
        Renderer::new().plain_message(scratch, text, fields);
    }
    let message = core::str::from_utf8(scratch).ok()?.trim();
    (!message.is_empty()).then_some(message)
}

/// A time as text, without memory of the heap.
struct TimeText {
    bytes: [u8; TimeText::MAX_LEN],
    len: usize,
}

impl TimeText {
    /// Bytes of a time whose year has the most digits, and more.
    const MAX_LEN: usize = 48;

    fn new(time: FileTime) -> Self {
        let mut text = TimeText {
            bytes: [0; TimeText::MAX_LEN],
            len: 0,
        };
        // What does not fit is left out; every time fits.
        let _ = write!(text, "{time}");
        text
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl core::fmt::Write for TimeText {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.len + text.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(core::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}
