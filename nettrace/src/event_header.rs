//! The headers of events, as they are stored.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::frame::Encoding;
use crate::guid::Guid;
use crate::time::Ticks;

/// The header of an event block or of a metadata block of versions 4 and 5.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EventBlockHeader {
    pub is_compressed: bool,
}

impl EventBlockHeader {
    /// Bytes of the header that are known. Its earliest and latest time are of no use: one_collect
    /// writes a latest time that is too early.
    const SIZE: u16 = 20;

    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        const COMPRESSED: u16 = 1;
        let start = cursor.offset();
        let what = "the size of a block header";
        let size = cursor.u16(what)?;
        if size < Self::SIZE {
            return Err(Error::invalid(start, what, size.into(), "20 or more"));
        }
        let flags = cursor.u16("the flags of a block header")?;
        cursor.take(usize::from(size) - 4, "a block header")?;
        Ok(EventBlockHeader {
            is_compressed: flags & COMPRESSED != 0,
        })
    }
}

/// The header of an event. Compressed headers state only what differs from the event before in the
/// same block; the first event follows a header of zeros.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EventHeader {
    /// File offset of the event.
    pub offset: u64,
    pub metadata_id: u32,
    pub sequence_number: u32,
    pub capture_thread: u64,
    pub processor: u32,
    pub thread: u64,
    pub stack_id: u32,
    pub timestamp: Ticks,
    pub activity_id: Guid,
    pub related_activity_id: Guid,
    pub label_list: u32,
    pub is_barrier: bool,
    /// Where the payload is in the block.
    pub payload_start: usize,
    pub payload_len: usize,
}

/// Bits of the first byte of a compressed header.
mod flag {
    pub const METADATA_ID: u8 = 1;
    pub const CAPTURE_THREAD: u8 = 2;
    pub const THREAD: u8 = 4;
    pub const STACK: u8 = 8;
    /// Versions 4 and 5.
    pub const ACTIVITY: u8 = 16;
    /// Version 6.
    pub const LABEL_LIST: u8 = 16;
    pub const RELATED_ACTIVITY: u8 = 32;
    pub const BARRIER: u8 = 64;
    pub const PAYLOAD_SIZE: u8 = 128;
}

impl EventHeader {
    /// Reads the event after this one. After an error the header is of no use.
    pub fn read_next(
        &mut self,
        cursor: &mut Cursor<'_>,
        block: EventBlockHeader,
        encoding: Encoding,
    ) -> Result<()> {
        self.offset = cursor.offset();
        if block.is_compressed {
            self.read_compressed(cursor, encoding)
        } else {
            self.read_plain(cursor, encoding)
        }
    }

    fn read_compressed(&mut self, cursor: &mut Cursor<'_>, encoding: Encoding) -> Result<()> {
        let flags = cursor.u8("the flags of an event")?;
        if flags & flag::METADATA_ID != 0 {
            self.metadata_id = cursor.var32("the metadata id of an event")?;
        }
        if flags & flag::CAPTURE_THREAD != 0 {
            let step = cursor.var32("the sequence number of an event")?;
            self.sequence_number = self.sequence_number.wrapping_add(step).wrapping_add(1);
            self.capture_thread = cursor.var64("the capture thread of an event")?;
            self.processor = cursor.var32("the processor of an event")?;
        } else if self.metadata_id != 0 {
            self.sequence_number = self.sequence_number.wrapping_add(1);
        }
        if flags & flag::THREAD != 0 {
            self.thread = cursor.var64("the thread of an event")?;
        }
        if flags & flag::STACK != 0 {
            self.stack_id = cursor.var32("the stack id of an event")?;
        }
        let step = cursor.var64("the time of an event")?;
        let ticks = self.timestamp.get().wrapping_add_unsigned(step);
        self.timestamp = Ticks::new(ticks);
        match encoding {
            Encoding::Objects => {
                if flags & flag::ACTIVITY != 0 {
                    self.activity_id = cursor.guid("the activity id of an event")?;
                }
                if flags & flag::RELATED_ACTIVITY != 0 {
                    self.related_activity_id = cursor.guid("the related activity of an event")?;
                }
            }
            Encoding::Blocks => {
                if flags & flag::LABEL_LIST != 0 {
                    self.label_list = cursor.var32("the label list of an event")?;
                }
            }
        }
        self.is_barrier = flags & flag::BARRIER != 0;
        if flags & flag::PAYLOAD_SIZE != 0 {
            self.payload_len = cursor.var32("the payload size of an event")? as usize;
        }
        self.read_payload(cursor)
    }

    /// A header of fields of fixed sizes, which no known writer uses.
    fn read_plain(&mut self, cursor: &mut Cursor<'_>, encoding: Encoding) -> Result<()> {
        const NOT_SORTED: u32 = 1 << 31;
        const ALIGNMENT: u64 = 4;
        cursor.u32("the size of an event")?;
        let id = cursor.u32("the metadata id of an event")?;
        self.metadata_id = id & !NOT_SORTED;
        self.is_barrier = id & NOT_SORTED == 0;
        self.sequence_number = cursor.u32("the sequence number of an event")?;
        self.thread = cursor.u64("the thread of an event")?;
        self.capture_thread = cursor.u64("the capture thread of an event")?;
        self.processor = cursor.u32("the processor of an event")?;
        self.stack_id = cursor.u32("the stack id of an event")?;
        self.timestamp = Ticks::new(cursor.i64("the time of an event")?);
        match encoding {
            Encoding::Objects => {
                self.activity_id = cursor.guid("the activity id of an event")?;
                self.related_activity_id = cursor.guid("the related activity of an event")?;
            }
            Encoding::Blocks => self.label_list = cursor.u32("the label list of an event")?,
        }
        self.payload_len = cursor.u32("the payload size of an event")? as usize;
        self.read_payload(cursor)?;
        if encoding == Encoding::Objects {
            while !cursor.is_empty() && !cursor.offset().is_multiple_of(ALIGNMENT) {
                cursor.u8("the padding of an event")?;
            }
        }
        Ok(())
    }

    fn read_payload(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        self.payload_start = cursor.position();
        cursor.take(self.payload_len, "the payload of an event")?;
        Ok(())
    }
}
