//! MESSAGE records: WPP messages.

use byteorder::{LE, WriteBytesExt};

use super::Record;
use crate::constants::offset::message;
use crate::constants::{
    MARKER_EVENT_TRACE, MARKER_MESSAGE, MARKER_TRACE, MessageFlags, RecordKind,
};
use crate::error::Result;
use crate::write::put::{marker, overwrite, sized};
use crate::{Guid, ProcessId, ThreadId, Ticks};

/// The marker at the beginning of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageMarker {
    /// `0x90` in the fourth byte, 0 in the third: what `TraceMessage` writes.
    #[default]
    Wpp,
    /// The kind in the third byte, as in other records.
    Kind,
}

/// `MESSAGE_TRACE_HEADER`, the fields that the flags announce, and the arguments.
///
/// Only the fields that `flags` announce are written, in the order SEQUENCE, COMPONENT_ID or else
/// GUID, TIMESTAMP or PERFORMANCE_TIMESTAMP, SYSTEMINFO.
///
/// ```
/// use etl_format::Guid;
/// use etl_format::write::record::{Message, Record};
///
/// let guid = Guid::new(1, 2, 3, [4; 8]);
/// let message = Message::new(guid, 10, 2_000).process(4, 8).payload(b"text");
/// let mut bytes = Vec::new();
/// message.encode(&mut bytes)?;
/// assert_eq!(bytes.len(), 8 + 16 + 8 + 8 + 4, "head, GUID, timestamp, ids, payload");
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The form of the marker.
    marker: MessageMarker,
    /// Number of the message within its GUID.
    number: u16,
    /// The optional fields that are written.
    flags: MessageFlags,
    sequence: u32,
    component_id: u32,
    /// GUID of the message's source file; not written if there is a component.
    guid: Guid,
    timestamp: Ticks,
    thread_id: ThreadId,
    process_id: ProcessId,
    /// The arguments.
    payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// A message of a source file, with its number and a raw timestamp.
    #[must_use]
    pub fn new(guid: Guid, number: u16, timestamp: impl Into<Ticks>) -> Self {
        Message {
            marker: MessageMarker::Wpp,
            number,
            flags: MessageFlags::GUID | MessageFlags::TIMESTAMP,
            sequence: 0,
            component_id: 0,
            guid,
            timestamp: timestamp.into(),
            thread_id: ThreadId::default(),
            process_id: ProcessId::default(),
            payload: &[],
        }
    }

    /// Sets the form of the marker.
    #[must_use]
    pub fn marker(mut self, marker: MessageMarker) -> Self {
        self.marker = marker;
        self
    }

    /// Adds a sequence number.
    #[must_use]
    pub fn sequence(mut self, sequence: u32) -> Self {
        self.flags = self.flags | MessageFlags::SEQUENCE;
        self.sequence = sequence;
        self
    }

    /// Adds a component, which is written instead of the GUID.
    #[must_use]
    pub fn component(mut self, component_id: u32) -> Self {
        self.flags = self.flags | MessageFlags::COMPONENT_ID;
        self.component_id = component_id;
        self
    }

    /// Adds process and thread.
    #[must_use]
    pub fn process(
        mut self,
        process_id: impl Into<ProcessId>,
        thread_id: impl Into<ThreadId>,
    ) -> Self {
        self.flags = self.flags | MessageFlags::SYSTEMINFO;
        self.process_id = process_id.into();
        self.thread_id = thread_id.into();
        self
    }

    /// Replaces the flags, which the other methods set: only fields that these flags announce are
    /// written.
    #[must_use]
    pub fn flags(mut self, flags: MessageFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Sets the arguments.
    #[must_use]
    pub fn payload(mut self, payload: &'a [u8]) -> Self {
        self.payload = payload;
        self
    }
}

impl Record for Message<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        sized(out, 0, |out| {
            out.write_u16::<LE>(0)?;
            out.extend(match self.marker {
                MessageMarker::Wpp => [0, MARKER_TRACE | MARKER_MESSAGE],
                MessageMarker::Kind => marker(RecordKind::MESSAGE),
            });
            out.write_u16::<LE>(self.number)?;
            out.write_u16::<LE>(self.flags.0)?;
            if self.flags.has(MessageFlags::SEQUENCE) {
                out.write_u32::<LE>(self.sequence)?;
            }
            if self.flags.has(MessageFlags::COMPONENT_ID) {
                out.write_u32::<LE>(self.component_id)?;
            } else if self.flags.has(MessageFlags::GUID) {
                out.extend(self.guid.to_bytes());
            }
            if self.flags.has_timestamp() {
                out.write_i64::<LE>(self.timestamp.get())?;
            }
            if self.flags.has(MessageFlags::SYSTEMINFO) {
                out.write_u32::<LE>(self.thread_id.get())?;
                out.write_u32::<LE>(self.process_id.get())?;
            }
            out.extend_from_slice(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<Ticks> {
        self.flags.has_timestamp().then_some(self.timestamp)
    }
}

/// Inserts a timestamp and its flag into a message that has no timestamp. Returns `false` and
/// changes nothing if the record is not such a message, or is too long.
pub(crate) fn insert_timestamp(record: &mut Vec<u8>, timestamp: i64) -> bool {
    let &[_, _, kind, mark, _, _, low, high, ..] = record.as_slice() else {
        return false;
    };
    let flags = MessageFlags(u16::from_le_bytes([low, high]));
    if !is_message(kind, mark) || flags.has_timestamp() {
        return false;
    }
    let offset = flags.timestamp_offset();
    let Ok(size) = u16::try_from(record.len().saturating_add(8)) else {
        return false;
    };
    if offset > record.len() {
        return false;
    }
    let flags = flags | MessageFlags::TIMESTAMP;
    record.splice(offset..offset, timestamp.to_le_bytes());
    overwrite(record, 0, &size.to_le_bytes());
    overwrite(record, message::FLAGS, &flags.0.to_le_bytes());
    true
}

/// Whether the last two bytes of the first word are the marker of a message.
fn is_message(kind: u8, mark: u8) -> bool {
    const BOTH: u8 = MARKER_TRACE | MARKER_EVENT_TRACE;
    match mark & BOTH {
        MARKER_TRACE => mark & 0x30 == MARKER_MESSAGE,
        BOTH => RecordKind(kind) == RecordKind::MESSAGE,
        _ => false,
    }
}
