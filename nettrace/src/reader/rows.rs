//! The rows of blocks.

use std::io::Read;
use std::sync::Arc;

use crate::blocks::BlockId;
use crate::cursor::Cursor;
use crate::error::{Definition, Error, Result};
use crate::event_header::{EventBlockHeader, EventHeader};
use crate::frame::{BlockHead, BlockKind, Encoding};
use crate::held::HeldEvent;
use crate::labels::Label;
use crate::metadata::{Metadata, ParsedMetadata};
use crate::sequence_point::SequencePoint;
use crate::threads::{RemovedThread, Thread};

use super::{Current, Reader};

/// A block whose rows are read.
#[derive(Debug)]
pub(super) struct OpenBlock {
    pub head: BlockHead,
    pub id: BlockId,
    /// Bytes of its rows that were read.
    pub position: usize,
    /// Bytes that there are: fewer than stated if the stream is cut.
    pub available: usize,
    /// The header of a block of events.
    pub events: EventBlockHeader,
    /// The header of the event before.
    pub event: EventHeader,
    /// Label lists read so far.
    pub labels: LabelProgress,
}

/// The ids of the label lists of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LabelProgress {
    next_id: u32,
    left: u32,
}

impl OpenBlock {
    pub fn new(head: BlockHead, id: BlockId, available: usize) -> Self {
        OpenBlock {
            head,
            id,
            position: 0,
            available,
            events: EventBlockHeader::default(),
            event: EventHeader::default(),
            labels: LabelProgress::default(),
        }
    }

    pub fn is_cut(&self) -> bool {
        (self.available as u64) < self.head.size
    }

    /// The file offset of the next row.
    pub fn offset(&self) -> u64 {
        self.head.offset.saturating_add(self.position as u64)
    }

    /// The file offset after its last byte.
    pub fn end(&self) -> u64 {
        self.head.offset.saturating_add(self.available as u64)
    }
}

impl<R: Read> Reader<R> {
    /// Reads what precedes the rows of a block.
    pub(super) fn begin_block(&mut self, block: &mut OpenBlock) -> Result<()> {
        let mut cursor = Cursor::new(self.blocks.bytes(block.id), block.head.offset);
        match block.head.kind {
            BlockKind::Events => block.events = EventBlockHeader::read(&mut cursor)?,
            BlockKind::Metadata => match self.frame.encoding {
                Encoding::Objects => block.events = EventBlockHeader::read(&mut cursor)?,
                Encoding::Blocks => {
                    let size = cursor.u16("the size of a block header")?;
                    cursor.take(size.into(), "a block header")?;
                }
            },
            BlockKind::LabelLists => {
                block.labels = LabelProgress {
                    next_id: cursor.u32("the first id of a block of label lists")?,
                    left: cursor.u32("the number of label lists")?,
                };
            }
            _ => {}
        }
        block.position = cursor.position();
        Ok(())
    }

    /// Reads a row of the open block. Returns the item that it contains, if there is one; closes
    /// the block after its last row and at a fault.
    pub(super) fn read_row(&mut self) -> Result<Option<Current>> {
        let Some(mut block) = self.block.take() else {
            return Ok(None);
        };
        if self.has_ended(&block) {
            self.close_block(block)?;
            return Ok(None);
        }
        let row = match block.head.kind {
            BlockKind::Events => self.read_event(&mut block),
            BlockKind::Metadata => self.read_metadata(&mut block),
            BlockKind::SequencePoint => self.read_sequence_point(&mut block),
            BlockKind::Stacks => self.read_stacks(&mut block),
            BlockKind::Threads => self.read_thread(&mut block),
            BlockKind::RemovedThreads => self.read_removed_thread(&mut block),
            BlockKind::LabelLists => self.read_label_list(&mut block),
            BlockKind::Unknown(_) => Ok(None),
        };
        self.block = Some(block);
        match row {
            Ok(current) => Ok(current),
            Err(error) => {
                self.close_block_at_fault(error)?;
                Ok(None)
            }
        }
    }

    /// Whether all rows of a block were read.
    fn has_ended(&self, block: &OpenBlock) -> bool {
        match block.head.kind {
            BlockKind::LabelLists => block.labels.left == 0,
            // They have one row.
            BlockKind::SequencePoint | BlockKind::Stacks => block.position > 0,
            _ => block.position >= block.available,
        }
    }

    fn read_event(&mut self, block: &mut OpenBlock) -> Result<Option<Current>> {
        let start = block.offset();
        self.read_event_header(block)?;
        let header = block.event;
        let Some(metadata) = self.tables.metadata(header.metadata_id) else {
            let id = header.metadata_id.into();
            let error = Error::undefined(start, Definition::Metadata, id);
            self.damage.add(start..block.offset(), error)?;
            return Ok(None);
        };
        let metadata = Arc::clone(metadata);
        let mut stack = None;
        if header.stack_id != 0 {
            stack = self.tables.stacks.find(header.stack_id);
            if stack.is_none() {
                self.note_undefined(start, Definition::Stack, header.stack_id.into())?;
            }
        }
        let mut thread = None;
        if self.frame.encoding == Encoding::Blocks {
            thread = self.tables.thread(header.thread).cloned();
            if thread.is_none() {
                self.note_undefined(start, Definition::Thread, header.thread)?;
            }
        }
        let mut labels = None;
        if header.label_list != 0 {
            labels = self.tables.label_list(header.label_list).cloned();
            if labels.is_none() {
                self.note_undefined(start, Definition::LabelList, header.label_list.into())?;
            }
        }
        self.blocks.add_reference(block.id);
        Ok(Some(Current::Event(HeldEvent {
            header,
            block: block.id,
            metadata,
            stack,
            thread,
            labels,
        })))
    }

    /// Reads the header of the next event of a block, and skips its payload.
    fn read_event_header(&mut self, block: &mut OpenBlock) -> Result<()> {
        let bytes = self.blocks.bytes(block.id);
        let mut cursor = Cursor::resume(bytes, block.head.offset, block.position);
        block
            .event
            .read_next(&mut cursor, block.events, self.frame.encoding)?;
        block.position = cursor.position();
        Ok(())
    }

    /// Records that an event refers to something that is not defined.
    #[cold]
    fn note_undefined(&mut self, offset: u64, what: Definition, id: u64) -> Result<()> {
        self.damage
            .add(offset..offset, Error::undefined(offset, what, id))
    }

    fn read_metadata(&mut self, block: &mut OpenBlock) -> Result<Option<Current>> {
        let start = block.offset();
        let parsed = match self.frame.encoding {
            Encoding::Objects => self.read_metadata_blob(block)?,
            Encoding::Blocks => {
                let mut row = self.take_row(block, "a row of metadata")?;
                Metadata::read_row(&mut row)
            }
        };
        // The row has its own size, so that the next one can be read.
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                self.damage.add(start..block.offset(), error)?;
                return Ok(None);
            }
        };
        if let Some(error) = parsed.error {
            self.damage.add(error.offset..block.offset(), error)?;
        }
        let metadata = Arc::new(parsed.metadata);
        self.tables.add_metadata(&metadata);
        self.tables.check_limit(start)?;
        Ok(Some(Current::Metadata(metadata)))
    }

    /// Reads a metadata event of versions 4 and 5. The outer error is a fault of its header.
    fn read_metadata_blob(&mut self, block: &mut OpenBlock) -> Result<Result<ParsedMetadata>> {
        self.read_event_header(block)?;
        let header = &block.event;
        let bytes = self.blocks.bytes(block.id);
        let end = header.payload_start + header.payload_len;
        let payload = bytes.get(..end).unwrap_or_default();
        let mut cursor = Cursor::resume(payload, block.head.offset, header.payload_start);
        Ok(Metadata::read_blob(&mut cursor))
    }

    /// The next row of a block of version 6 whose rows begin with their size.
    fn take_row(&self, block: &mut OpenBlock, what: &'static str) -> Result<Cursor<'_>> {
        let bytes = self.blocks.bytes(block.id);
        let mut cursor = Cursor::resume(bytes, block.head.offset, block.position);
        let size = cursor.u16("the size of a row")?;
        let row = cursor.sub(size.into(), what)?;
        block.position = cursor.position();
        Ok(row)
    }

    fn read_sequence_point(&mut self, block: &mut OpenBlock) -> Result<Option<Current>> {
        let bytes = self.blocks.bytes(block.id);
        let mut cursor = Cursor::new(bytes, block.head.offset);
        let limit = self.options.limits.tables;
        let point = SequencePoint::read(&mut cursor, self.frame.encoding, limit)?;
        block.position = cursor.position();
        self.tables.forget(&point);
        Ok(Some(Current::SequencePoint(point)))
    }

    fn read_stacks(&mut self, block: &mut OpenBlock) -> Result<Option<Current>> {
        let bytes = self.blocks.bytes(block.id);
        let mut cursor = Cursor::new(bytes, block.head.offset);
        let pointer_size = self.frame.header.pointer_size;
        let read = self.tables.stacks.read_block(&mut cursor, pointer_size);
        block.position = cursor.position();
        self.tables.check_limit(block.head.offset)?;
        read?;
        Ok(None)
    }

    fn read_thread(&mut self, block: &mut OpenBlock) -> Result<Option<Current>> {
        let start = block.offset();
        let mut row = self.take_row(block, "a row of a thread")?;
        // The row has its own size, so that the next one can be read.
        let thread = match Thread::read(&mut row) {
            Ok(thread) => Arc::new(thread),
            Err(error) => {
                self.damage.add(start..block.offset(), error)?;
                return Ok(None);
            }
        };
        self.tables.add_thread(&thread);
        self.tables.check_limit(start)?;
        Ok(Some(Current::Thread(thread)))
    }

    fn read_removed_thread(&mut self, block: &mut OpenBlock) -> Result<Option<Current>> {
        let bytes = self.blocks.bytes(block.id);
        let mut cursor = Cursor::resume(bytes, block.head.offset, block.position);
        let removed = RemovedThread::read(&mut cursor)?;
        block.position = cursor.position();
        self.tables.remove_thread(removed.index);
        Ok(Some(Current::RemovedThread(removed)))
    }

    fn read_label_list(&mut self, block: &mut OpenBlock) -> Result<Option<Current>> {
        let start = block.offset();
        let bytes = self.blocks.bytes(block.id);
        let mut cursor = Cursor::resume(bytes, block.head.offset, block.position);
        let labels = Label::read_list(&mut cursor)?;
        block.position = cursor.position();
        self.tables.add_label_list(block.labels.next_id, labels);
        self.tables.check_limit(start)?;
        block.labels.next_id = block.labels.next_id.wrapping_add(1);
        block.labels.left -= 1;
        Ok(None)
    }
}
