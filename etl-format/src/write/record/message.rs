//! MESSAGE records: WPP messages.

use super::Record;
use crate::Guid;
use crate::constants::{
    MARKER_EVENT_TRACE, MARKER_MESSAGE, MARKER_TRACE, MessageFlags, RecordKind,
};
use crate::error::Result;
use crate::write::put::{Put, marker, overwrite, sized};

/// Which of its two markers a message begins with.
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
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The form of the marker.
    pub marker: MessageMarker,
    /// Number of the message within its GUID.
    pub number: u16,
    /// Which optional fields there are.
    pub flags: MessageFlags,
    /// Sequence number.
    pub sequence: u32,
    /// Component.
    pub component_id: u32,
    /// GUID of the message's source file; not written beside a component.
    pub guid: Guid,
    /// Raw timestamp.
    pub timestamp: i64,
    /// Thread.
    pub thread_id: u32,
    /// Process.
    pub process_id: u32,
    /// The arguments.
    pub payload: &'a [u8],
}

impl Message<'_> {
    fn has_timestamp(&self) -> bool {
        self.flags.has(MessageFlags::TIMESTAMP)
            || self.flags.has(MessageFlags::PERFORMANCE_TIMESTAMP)
    }
}

impl Record for Message<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        sized(out, 0, |out| {
            out.put_u16(0);
            out.bytes(&match self.marker {
                MessageMarker::Wpp => [0, MARKER_TRACE | MARKER_MESSAGE],
                MessageMarker::Kind => marker(RecordKind::MESSAGE),
            });
            out.put_u16(self.number);
            out.put_u16(self.flags.0);
            if self.flags.has(MessageFlags::SEQUENCE) {
                out.put_u32(self.sequence);
            }
            if self.flags.has(MessageFlags::COMPONENT_ID) {
                out.put_u32(self.component_id);
            } else if self.flags.has(MessageFlags::GUID) {
                out.put_guid(self.guid);
            }
            if self.has_timestamp() {
                out.put_i64(self.timestamp);
            }
            if self.flags.has(MessageFlags::SYSTEMINFO) {
                out.put_u32(self.thread_id);
                out.put_u32(self.process_id);
            }
            out.bytes(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<i64> {
        self.has_timestamp().then_some(self.timestamp)
    }
}

/// Inserts a timestamp and its flag into a message without one. Returns `false` and changes nothing
/// if `record` is no such message, or is too long.
pub(crate) fn give_timestamp(record: &mut Vec<u8>, timestamp: i64) -> bool {
    let &[_, _, kind, mark, _, _, low, high, ..] = record.as_slice() else { return false };
    let message = match mark & (MARKER_TRACE | MARKER_EVENT_TRACE) {
        MARKER_TRACE => mark & 0x30 == MARKER_MESSAGE,
        bits => {
            bits == MARKER_TRACE | MARKER_EVENT_TRACE && RecordKind(kind) == RecordKind::MESSAGE
        }
    };
    let flags = MessageFlags(u16::from_le_bytes([low, high]));
    let timestamped =
        flags.has(MessageFlags::TIMESTAMP) || flags.has(MessageFlags::PERFORMANCE_TIMESTAMP);
    if !message || timestamped {
        return false;
    }
    let mut place = 8;
    if flags.has(MessageFlags::SEQUENCE) {
        place += 4;
    }
    if flags.has(MessageFlags::COMPONENT_ID) {
        place += 4;
    } else if flags.has(MessageFlags::GUID) {
        place += 16;
    }
    let Ok(size) = u16::try_from(record.len().saturating_add(8)) else { return false };
    if place > record.len() {
        return false;
    }
    record.splice(place..place, timestamp.to_le_bytes());
    overwrite(record, 0, &size.to_le_bytes());
    overwrite(record, 6, &(flags.0 | MessageFlags::TIMESTAMP.0).to_le_bytes());
    true
}
