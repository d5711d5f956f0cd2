//! MESSAGE: WPP software tracing; flags determine the fields of the header.

use crate::constants::offset::message;
use crate::constants::{MessageFlags, PointerSize};
use crate::cursor::{Bytes, Cursor};
use crate::{Guid, ProcessId, ThreadId, Ticks};

/// Header of a WPP message: 8 bytes and the optional fields.
///
/// If the record is too short for a field that the flags announce, this and all later fields are
/// `None`, and the payload is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// Number of the message within its GUID.
    pub number: u16,
    /// Which optional fields there are.
    pub flags: MessageFlags,
    /// Sequence number.
    pub sequence: Option<u32>,
    /// Component, if the message has no GUID.
    pub component_id: Option<u32>,
    /// GUID of the message's source file.
    pub guid: Option<Guid>,
    /// Raw timestamp.
    pub timestamp: Option<Ticks>,
    /// The thread that wrote the message.
    pub thread_id: Option<ThreadId>,
    /// The process that wrote the message.
    pub process_id: Option<ProcessId>,
    payload_offset: u16,
}

impl MessageHeader {
    /// Bytes of the fixed part.
    pub const SIZE: usize = 8;

    pub(crate) fn parse(b: &[u8]) -> Option<Self> {
        let flags = MessageFlags(b.u16_at(message::FLAGS)?);
        let mut c = Cursor::new(b);
        c.take(Self::SIZE)?;
        let mut header = MessageHeader {
            number: b.u16_at(message::NUMBER)?,
            flags,
            sequence: None,
            component_id: None,
            guid: None,
            timestamp: None,
            thread_id: None,
            process_id: None,
            payload_offset: 0,
        };
        let payload_offset = match header.read_optional(&mut c) {
            Some(()) => c.position(),
            None => b.len(),
        };
        header.payload_offset = u16::try_from(payload_offset).unwrap_or(u16::MAX);
        Some(header)
    }

    /// Reads the optional fields in stored order.
    fn read_optional(&mut self, c: &mut Cursor<'_>) -> Option<()> {
        let flags = self.flags;
        if flags.has(MessageFlags::SEQUENCE) {
            self.sequence = Some(c.u32()?);
        }
        if flags.has(MessageFlags::COMPONENT_ID) {
            self.component_id = Some(c.u32()?);
        } else if flags.has(MessageFlags::GUID) {
            self.guid = Some(c.guid()?);
        }
        if flags.has_timestamp() {
            self.timestamp = Some(Ticks::new(c.i64()?));
        }
        if flags.has(MessageFlags::SYSTEMINFO) {
            self.thread_id = Some(ThreadId::new(c.u32()?));
            self.process_id = Some(ProcessId::new(c.u32()?));
        }
        Some(())
    }

    /// Width of the producer's pointers, if the flags state it.
    #[must_use]
    pub fn pointer_size(&self) -> Option<PointerSize> {
        if self.flags.has(MessageFlags::POINTER64) {
            Some(PointerSize::P8)
        } else if self.flags.has(MessageFlags::POINTER32) {
            Some(PointerSize::P4)
        } else {
            None
        }
    }

    /// Offset of the arguments in the record.
    pub(crate) fn payload_offset(&self) -> usize {
        self.payload_offset.into()
    }
}
