//! The reader.

mod rows;

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::blocks::BlockPool;
use crate::damage::{Damage, DamageLog};
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::frame::{BlockKind, Frame};
use crate::header::TraceHeader;
use crate::held::HeldEvent;
use crate::metadata::Metadata;
use crate::options::{Options, Order};
use crate::sequence_point::SequencePoint;
use crate::sorter::{Memory, Sorter};
use crate::tables::Tables;
use crate::threads::{RemovedThread, Thread};
use crate::time::Ticks;

use rows::OpenBlock;

/// Reads an EventPipe stream from any [`Read`], front to back.
///
/// Events are lent one at a time and borrow from the reader; it allocates nothing for each event.
/// What is intact before a cut or around damage is returned; [`Reader::damage`] lists the rest.
///
/// ```
/// # mod write { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/common/write.rs")); }
/// # let stream = write::sample();
/// use etl_nettrace::Reader;
///
/// let mut reader = Reader::new(&stream[..stream.len() - 1])?;
/// while let Some(event) = reader.next_event()? {
///     println!("{} {} {}", event.timestamp, event.provider(), event.name());
/// }
/// assert_eq!(reader.events(), 2);
/// let cut = reader.cut_offset().expect("the last byte is missing");
/// assert_eq!(cut, stream.len() as u64 - 1);
/// # Ok::<(), etl_nettrace::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    frame: Frame<R>,
    options: Options,
    tables: Tables,
    blocks: BlockPool,
    /// The block whose rows are read.
    block: Option<OpenBlock>,
    sorter: Sorter,
    /// Removed threads that are returned after the events that are held.
    removed: VecDeque<RemovedThread>,
    current: Option<Current>,
    damage: DamageLog,
    state: State,
    events: u64,
    late_events: u64,
    latest: Ticks,
}

/// What a stream contains, in the order of the stream. With [`Order::Time`], metadata and threads
/// come before events that precede them in the stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// Metadata that later events refer to. [`Event::metadata`] has it as well.
    Metadata(&'a Arc<Metadata>),
    /// The numbers of the last events of all threads.
    SequencePoint(&'a SequencePoint),
    /// A thread of version 6. [`Event::thread`] has it as well.
    Thread(&'a Arc<Thread>),
    /// A thread of version 6 that has ended.
    RemovedThread(RemovedThread),
    /// A block of a kind that this crate does not know, which was skipped.
    UnknownBlock(&'a UnknownBlock),
}

/// A block of a kind that this crate does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownBlock {
    /// The name of the object, or the number of the kind in version 6.
    pub kind: String,
    /// File offset of its content.
    pub offset: u64,
    /// Bytes of its content.
    pub size: u64,
}

/// The item that is lent.
#[derive(Debug)]
enum Current {
    Event(HeldEvent),
    Metadata(Arc<Metadata>),
    SequencePoint(SequencePoint),
    Thread(Arc<Thread>),
    RemovedThread(RemovedThread),
    UnknownBlock(UnknownBlock),
}

/// Whether more blocks can be read.
#[derive(Debug)]
enum State {
    Reading,
    /// The end of the stream was read.
    Complete,
    /// The source ended before the stream, at this offset.
    Cut(u64),
    /// The frame of the blocks is damaged, so that the next one cannot be found.
    Lost,
    /// An error that was returned.
    Failed(Error),
}

/// Why no more blocks can be found.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The source has ended.
    Cut,
    /// The frame of the blocks is damaged.
    Lost,
}

impl Reader<File> {
    /// Opens a file.
    ///
    /// ```
    /// use etl_nettrace::{Options, Reader};
    ///
    /// let path = std::env::temp_dir().join("there is no such file.nettrace");
    /// assert!(Reader::open_path(path, &Options::default()).unwrap_err().is_io());
    /// ```
    ///
    /// # Errors
    /// As [`Reader::new`], and when the file cannot be opened.
    pub fn open_path(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        match File::open(path) {
            Ok(file) => Reader::with_options(file, options),
            Err(error) => Err(Error::io(0, error)),
        }
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header of a stream. Events come in the order of the stream, and damage is skipped.
    ///
    /// # Errors
    /// When the bytes are not an EventPipe stream of version 4 to 6, end within its header, or
    /// cannot be read.
    pub fn new(source: R) -> Result<Self> {
        Reader::with_options(source, &Options::default())
    }

    /// The same, with an order, a mode and limits.
    ///
    /// # Errors
    /// As [`Reader::new`].
    pub fn with_options(source: R, options: &Options) -> Result<Self> {
        let frame = Frame::open(source, options.limits.block)?;
        Ok(Reader {
            frame,
            options: *options,
            tables: Tables::new(options.limits.tables),
            blocks: BlockPool::default(),
            block: None,
            sorter: Sorter::default(),
            removed: VecDeque::new(),
            current: None,
            damage: DamageLog::new(options.mode),
            state: State::Reading,
            events: 0,
            late_events: 0,
            latest: Ticks::new(i64::MIN),
        })
    }

    /// Version, clock, process.
    #[must_use]
    pub fn header(&self) -> &TraceHeader {
        &self.frame.header
    }

    /// The next event; `None` at the end of what can be read. Skips the other items.
    ///
    /// # Errors
    /// When the source fails, or a limit would be exceeded; in
    /// [`Mode::Strict`](crate::Mode::Strict) also at the first fault. Returns the same error again
    /// after that.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>> {
        loop {
            self.advance()?;
            match &self.current {
                None | Some(Current::Event(_)) => break,
                Some(_) => {}
            }
        }
        match self.lend() {
            Some(Item::Event(event)) => Ok(Some(event)),
            _ => Ok(None),
        }
    }

    /// The next item; `None` at the end of what can be read.
    ///
    /// ```
    /// # mod write { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/common/write.rs")); }
    /// # let stream = write::sample();
    /// use etl_nettrace::{Item, Reader};
    ///
    /// let mut reader = Reader::new(stream.as_slice())?;
    /// let mut items = Vec::new();
    /// while let Some(item) = reader.next_item()? {
    ///     items.push(match item {
    ///         Item::Event(event) => event.sequence_number.to_string(),
    ///         Item::Metadata(metadata) => metadata.name.clone(),
    ///         Item::SequencePoint(point) => format!("{} threads", point.threads.len()),
    ///         _ => continue,
    ///     });
    /// }
    /// assert_eq!(items, ["RequestStart", "1", "2", "1 threads"]);
    /// # Ok::<(), etl_nettrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reader::next_event`].
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>> {
        self.advance()?;
        Ok(self.lend())
    }

    /// Events returned so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Events of [`Order::Time`] that were returned after a later one. They exist if the limit for
    /// sorting is too low, or if the writer does not keep the order that the format promises.
    #[must_use]
    pub fn late_events(&self) -> u64 {
        self.late_events
    }

    /// What could not be read so far, at most 1,000 faults. See [`Reader::damage_count`].
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage.list
    }

    /// The number of faults so far.
    #[must_use]
    pub fn damage_count(&self) -> u64 {
        self.damage.count
    }

    /// Whether the end of the stream was read. A killed process leaves a stream without an end.
    /// With [`Order::Time`], events may still follow.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete)
    }

    /// If the source ended before the stream: the number of its bytes. Everything before is
    /// intact, except for the last entry of [`Reader::damage`].
    #[must_use]
    pub fn cut_offset(&self) -> Option<u64> {
        match self.state {
            State::Cut(offset) => Some(offset),
            _ => None,
        }
    }

    fn lend(&self) -> Option<Item<'_>> {
        let item = match self.current.as_ref()? {
            Current::Event(event) => {
                Item::Event(event.lend(&self.blocks, &self.tables, &self.frame.header))
            }
            Current::Metadata(metadata) => Item::Metadata(metadata),
            Current::SequencePoint(point) => Item::SequencePoint(point),
            Current::Thread(thread) => Item::Thread(thread),
            Current::RemovedThread(removed) => Item::RemovedThread(*removed),
            Current::UnknownBlock(block) => Item::UnknownBlock(block),
        };
        Some(item)
    }

    /// Makes the next item the current one, or none at the end.
    fn advance(&mut self) -> Result<()> {
        if let Some(Current::Event(event)) = self.current.take() {
            self.blocks.drop_reference(event.block);
        }
        self.current = self.find_next()?;
        self.count_event();
        Ok(())
    }

    fn count_event(&mut self) {
        let Some(Current::Event(event)) = &self.current else {
            return;
        };
        self.events += 1;
        if self.options.order == Order::Time && event.header.timestamp < self.latest {
            self.late_events += 1;
        }
        self.latest = self.latest.max(event.header.timestamp);
    }

    /// Returns an error after all events before it.
    fn find_next(&mut self) -> Result<Option<Current>> {
        loop {
            if let Some(event) = self.sorter.pop_due(self.memory_for_sorting()) {
                return Ok(Some(Current::Event(event)));
            }
            if self.sorter.is_empty() {
                self.tables.reset_replaced_size();
                if let Some(removed) = self.removed.pop_front() {
                    return Ok(Some(Current::RemovedThread(removed)));
                }
            }
            let read = if self.block.is_some() {
                self.read_row()
            } else if matches!(self.state, State::Reading) {
                self.open_block()
            } else {
                return self.next_after_the_end();
            };
            match read {
                Ok(None) => {}
                Ok(Some(Current::Event(event))) if self.options.order == Order::Time => {
                    self.sorter.push(event);
                }
                Ok(Some(Current::RemovedThread(removed))) => self.removed.push_back(removed),
                Ok(Some(current)) => return Ok(Some(current)),
                Err(error) => {
                    self.block = None;
                    self.state = State::Failed(error);
                }
            }
        }
    }

    /// The events that are still held, then the error that ended the reading.
    fn next_after_the_end(&mut self) -> Result<Option<Current>> {
        self.sorter.drain();
        if let Some(event) = self.sorter.pop_due(Memory::Sufficient) {
            return Ok(Some(Current::Event(event)));
        }
        match &self.state {
            State::Failed(error) => Err(error.clone()),
            _ => Ok(None),
        }
    }

    fn memory_for_sorting(&self) -> Memory {
        let removed = self.removed.len() * size_of::<RemovedThread>();
        let events = self.sorter.size_in_memory() + self.blocks.size();
        let used = events + removed + self.tables.replaced_size();
        if used as u64 > self.options.limits.sorting {
            Memory::Short
        } else {
            Memory::Sufficient
        }
    }

    /// Reads the next block into memory. Skips and returns a block whose kind is not known.
    fn open_block(&mut self) -> Result<Option<Current>> {
        let start = self.frame.input.offset();
        let head = match self.frame.next_block() {
            Ok(Some(head)) => head,
            Ok(None) => {
                self.state = State::Complete;
                return Ok(None);
            }
            Err(error) => {
                let is_cut = matches!(error.kind, ErrorKind::Truncated { .. });
                self.end_at_fault(if is_cut { Fault::Cut } else { Fault::Lost }, start, error)?;
                return Ok(None);
            }
        };
        if let BlockKind::Unknown(kind) = head.kind {
            let skipped = self.frame.input.skip(head.size)?;
            if skipped < head.size {
                let what = "block of an unknown kind";
                let error = Error::truncated(head.offset, what, head.size, skipped);
                self.end_at_fault(Fault::Cut, head.offset, error)?;
                return Ok(None);
            }
            return Ok(Some(Current::UnknownBlock(UnknownBlock {
                kind,
                offset: head.offset,
                size: head.size,
            })));
        }
        let limit = self.options.limits.block;
        if head.size > limit {
            return Err(Error::limit(
                head.offset,
                head.kind.name(),
                head.size,
                limit,
            ));
        }
        let mut bytes = self.blocks.vector();
        if let Err(error) = self.frame.input.read_up_to(head.size, &mut bytes) {
            // After the intact rows of this block.
            self.state = State::Failed(error);
        }
        let available = bytes.len();
        let id = self.blocks.insert(bytes);
        if head.kind == BlockKind::SequencePoint {
            // No event crosses it.
            self.sorter.drain();
        }
        let mut block = OpenBlock::new(head, id, available);
        let begun = self.begin_block(&mut block);
        self.block = Some(block);
        if let Err(error) = begun {
            self.close_block_at_fault(error)?;
        }
        Ok(None)
    }

    fn close_block(&mut self, block: OpenBlock) -> Result<()> {
        self.blocks.drop_reference(block.id);
        if !block.is_cut() {
            return Ok(());
        }
        let size = block.head.size;
        let have = block.available as u64;
        let error = Error::truncated(block.end(), block.head.kind.name(), size, have);
        self.end_at_fault(Fault::Cut, block.end(), error)
    }

    /// Skips the rest of the open block.
    fn close_block_at_fault(&mut self, error: Error) -> Result<()> {
        let Some(block) = self.block.take() else {
            return Ok(());
        };
        self.blocks.drop_reference(block.id);
        if block.is_cut() {
            self.end_at_fault(Fault::Cut, block.offset(), error)
        } else {
            self.damage.add(block.offset()..block.end(), error)
        }
    }

    /// Ends the reading at a fault after which no block can be found. `start` is the first byte
    /// that was not used.
    fn end_at_fault(&mut self, fault: Fault, start: u64, error: Error) -> Result<()> {
        if let State::Failed(_) = self.state {
            // The source failed in this block, which is why it is cut.
            return Ok(());
        }
        let end = self.frame.input.offset();
        self.state = match fault {
            Fault::Cut => State::Cut(end),
            Fault::Lost => State::Lost,
        };
        self.damage.add(start..end, error)
    }
}
