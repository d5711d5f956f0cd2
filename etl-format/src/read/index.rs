//! The walk from buffer to buffer through a file, with which every reader begins.

use core::ops::Range;

use crate::Ticks;
use crate::clock::Clock;
use crate::constants::{
    BUFFER_HEADER_SIZE, BufferFlags, BufferType, CompressionFormat, LogFileMode,
};
use crate::error::{Error, ErrorKind, Result};
use crate::headers::file::Overwriting;
use crate::headers::{BufferHeader, FileHeader};

use super::damage::{Damage, Log, Mode, Note};
use super::limits::Limits;
use super::options::Options;
use super::source::Source;
use super::walk;

/// A buffer of a trace, without its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferEntry {
    /// File offset of the buffer.
    pub offset: u64,
    /// Its sequence number; the expected number if it is damaged ([`Note::SequenceWrong`]).
    pub sequence_number: i64,
    /// Raw timestamp of its first timestamped record; the session's start if it has none.
    pub first_timestamp: Ticks,
    /// Bytes of the buffer in the file.
    pub stored: u32,
    /// Bytes in use after decompression, the header included.
    pub fill: u32,
    /// If the buffer header does not state the fill exactly, filler may end the records from here
    /// on. Otherwise the fill.
    pub(crate) min_fill: u32,
    /// The end of the header event, in a first buffer that states it as `SavedOffset` and has
    /// further records; otherwise 0.
    pub(crate) header_end: u32,
    /// Processor whose records it contains.
    pub processor: u16,
    /// Flags, which state losses among other things.
    pub flags: BufferFlags,
    /// Type; most buffers have the type of records.
    pub buffer_type: BufferType,
    /// Id of the session that wrote the buffer; 0 or 0x8001 when relogged.
    pub logger_id: u16,
    /// Which run of the file's sessions wrote the buffer, from 0 on. Sequence numbers start again
    /// with each run: after another file header, and where a session was appended to the file.
    pub run: u32,
    /// Whether the records are compressed.
    pub compressed: bool,
    /// The compression format that the preceding file header states.
    pub format: CompressionFormat,
    /// Whether the end of the buffer is missing: the file ends inside it, or the next buffer begins
    /// there.
    pub cut: bool,
    /// Whether the buffer's header was unreadable and this entry was made from its records. Then
    /// the processor and the sequence number are unknown, and are 0.
    pub rebuilt: bool,
    /// Whether its records are not in time order. Always `false` without
    /// [`super::OrderCheck::Scan`].
    pub unordered: bool,
    /// The layout that the file header before this buffer states.
    pub(crate) layout: BufferLayout,
}

impl BufferEntry {
    pub(super) fn of(header: &BufferHeader, offset: u64, capacity: u32) -> Self {
        let fill = header.fill_within(capacity);
        let first_end = BUFFER_HEADER_SIZE as u32 + 1;
        let has_rest = header.is_header() && (first_end..fill.max).contains(&header.saved_offset);
        BufferEntry {
            offset,
            sequence_number: header.sequence_number,
            first_timestamp: Ticks::MIN,
            stored: header.buffer_size,
            fill: fill.max,
            min_fill: fill.min,
            header_end: if has_rest { header.saved_offset } else { 0 },
            processor: header.processor(),
            flags: header.flags,
            buffer_type: header.buffer_type,
            logger_id: header.logger_id,
            run: 0,
            compressed: header.is_compressed(),
            format: CompressionFormat::NONE,
            cut: false,
            rebuilt: false,
            unordered: false,
            layout: BufferLayout::default(),
        }
    }

    /// The offset of the end of the buffer in the file.
    pub(super) fn file_end(&self) -> u64 {
        self.offset.saturating_add(self.stored.into())
    }

    /// Whether this buffer contains a file header.
    #[must_use]
    pub fn is_header(&self) -> bool {
        self.buffer_type == BufferType::HEADER
    }
}

/// Everything that a reader of records needs to know about a trace.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub options: Options,
    pub header: FileHeader,
    pub clock: Clock,
    pub buffers: Vec<BufferEntry>,
    pub layout: Layout,
    pub notes: Vec<Note>,
    pub damage: Vec<Damage>,
    /// Offsets of the stale records in the first buffer, ascending.
    pub stale: Vec<u32>,
}

/// The layout of the buffers after a file header. Appended data may have another header, so each
/// buffer has its own layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferLayout {
    /// Memory of a buffer in bytes, or the limit if the header event is lost.
    pub capacity: u32,
    /// Distance of buffers in an uncompressed file, in bytes; 0 if it is unknown.
    pub spacing: u32,
    /// Whether buffers are compressed.
    pub packed: bool,
}

/// The layout of the file that the walk relies on.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The layout of the buffers after the last file header.
    pub buffers: BufferLayout,
    pub format: CompressionFormat,
    pub mode: LogFileMode,
    pub stated_buffers: u32,
    /// When newer buffers may have been written over older ones; `None` if the file is not
    /// circular.
    pub overwriting: Option<Overwriting>,
    /// Raw timestamp of the session's start, for records without a timestamp.
    pub start: i64,
    pub limits: Limits,
}

/// Reads the buffer headers of a file.
#[derive(Debug)]
pub(crate) struct BufferWalk {
    pub layout: Layout,
    pub(super) position: u64,
    pub count: u64,
    /// Number of the buffers without readable records. Only buffers of a known size are counted.
    pub(super) destroyed: u64,
    pub notes: Vec<Note>,
    pub(super) is_done: bool,
    /// Whether the first record of the first buffer is a header event.
    pub(super) begins_with_header_event: bool,
    /// Whether a buffer had a fault.
    pub(super) has_damage: bool,
    /// A fault after the records of the current buffer. It is reported when they have been read.
    pub(super) pending_fault: Option<(Range<u64>, Error)>,
}

/// How much of a buffer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// At least its header and its first bytes.
    Head,
    /// All its bytes.
    Whole,
}

/// Zeros or filler at the place of a buffer header.
#[derive(Clone, Copy)]
pub(super) struct Hole {
    /// File offset after the last such byte.
    pub end: u64,
    /// Whether nothing else follows in the file.
    pub is_at_end_of_file: bool,
}

/// Bytes that are read for a buffer's header and its first record.
const HEAD: usize = 0x100;

impl BufferWalk {
    pub(super) fn new(
        position: u64,
        header: &FileHeader,
        format: CompressionFormat,
        limits: &Limits,
    ) -> Self {
        let packed = header.mode.has(LogFileMode::COMPRESSED);
        let has_size = header.buffer_size >= BUFFER_HEADER_SIZE as u32;
        let capacity = if has_size {
            header.buffer_size.min(limits.buffer)
        } else {
            limits.buffer
        };
        let spacing = if has_size && !packed {
            header.buffer_size
        } else {
            0
        };
        let layout = Layout {
            buffers: BufferLayout {
                capacity,
                spacing,
                packed,
            },
            format,
            mode: header.mode,
            stated_buffers: header.buffers_written,
            overwriting: header.overwriting(),
            start: header.timestamp.get(),
            limits: *limits,
        };
        BufferWalk {
            layout,
            position,
            count: 0,
            destroyed: 0,
            notes: Vec::new(),
            is_done: false,
            begins_with_header_event: false,
            has_damage: false,
            pending_fault: None,
        }
    }

    pub(super) fn fault(&mut self, range: Range<u64>, error: Error, log: &mut Log) -> Result<()> {
        self.has_damage = true;
        log.fault(range, error)
    }

    /// Reads the next buffer into `block`; `None` at the end.
    pub(super) fn next<S: Source>(
        &mut self,
        source: &mut S,
        block: &mut S::Block,
        extent: Extent,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Option<BufferEntry>> {
        if let Some((range, error)) = self.pending_fault.take() {
            self.fault(range, error, log)?;
        }
        while !self.is_done {
            let offset = self.position;
            source
                .read(offset, HEAD, block)
                .map_err(|e| Error::new(offset, e.into()))?;
            let head = block.as_ref();
            if head.is_empty() {
                self.finish(offset, log)?;
                return Ok(None);
            }
            let mut header = checked_header(head, offset, self.layout.buffers.capacity);
            // The record decides, not the type of the buffer.
            if self.begins_with_header_event
                && self.count == 0
                && let Ok(header) = &mut header
            {
                header.buffer_type = BufferType::HEADER;
            }
            let hole = self.hole(source, block, limits)?;
            if let Some(Hole {
                end,
                is_at_end_of_file: true,
            }) = hole
                && !(self.expects_buffers() && end - offset < BUFFER_HEADER_SIZE as u64)
            {
                let len = end - offset;
                self.notes.push(Note::UnusedTail { offset, len });
                self.finish(offset, log)?;
                return Ok(None);
            }
            if let Ok(header) = &header
                && header.is_header()
                && self.count > 0
            {
                self.read_appended_header(header, source, block, limits)?;
            }
            let entry = match header {
                Ok(header) => self.entry(&header, source, block, limits, log)?,
                Err(error) => Err(error),
            };
            let mut entry = match entry {
                Ok(entry) => entry,
                Err(error) => match self.rebuild(error, hole, source, block, limits, log)? {
                    Some(entry) => entry,
                    None => continue,
                },
            };
            self.complete(&mut entry, source, block, extent, log)?;
            self.count += 1;
            self.position = offset + u64::from(entry.stored).max(8);
            return Ok(Some(entry));
        }
        Ok(None)
    }

    /// The entry of a buffer with a valid header. Reports a fill that cannot be right. The inner
    /// error is for a buffer that is not readable, or beyond the limits.
    fn entry<S: Source>(
        &mut self,
        header: &BufferHeader,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Result<BufferEntry, Error>> {
        let entry = self.entry_with_size(header, source, block, limits, log)?;
        if let Ok(entry) = &entry {
            let buffer_size = if entry.cut {
                header.buffer_size
            } else {
                entry.stored
            };
            let header = BufferHeader {
                buffer_size,
                ..*header
            };
            let fill = header.fill_within(self.layout.buffers.capacity);
            if let Some(fault) = fill.fault {
                let offset = entry.offset + fault.field;
                let field = "fill of a buffer";
                let error = Error::invalid(offset, field, fault.found, fault.expected);
                log.fault(offset..offset + 4, error)?;
            }
        }
        Ok(entry)
    }

    /// The entry of a buffer whose size leads to another buffer. If its size does not, but the size
    /// in the file header does, reports the size.
    fn entry_with_size<S: Source>(
        &mut self,
        header: &BufferHeader,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Result<BufferEntry, Error>> {
        let offset = self.position;
        let capacity = self.layout.buffers.capacity;
        let mut entry = BufferEntry::of(header, offset, capacity);
        let spacing = self.layout.buffers.spacing;
        let differs = spacing != 0 && entry.stored != spacing && !entry.compressed;
        let is_plausible = header.is_plausible(self.layout.buffers.capacity);
        // If another buffer begins at the common distance, a larger stated size would skip it.
        if differs && self.leads_on(offset, spacing, source, block)? {
            let expected = "the buffer size of the file header";
            let error = Error::invalid(offset, "buffer size", entry.stored.into(), expected);
            self.fault(offset..offset + 4, error, log)?;
            let header = BufferHeader {
                buffer_size: spacing,
                ..*header
            };
            entry = BufferEntry::of(&header, offset, capacity);
        } else if !self.leads_on(offset, entry.stored, source, block)? {
            // Bytes that are not aligned with a header could state any size, and the buffer that
            // begins a few bytes later must not become part of this one.
            let may_be_shifted = self.layout.buffers.packed && !is_plausible;
            if !may_be_shifted
                && let Some(error) = self.shorten(&mut entry, source, block, limits)?
            {
                if log.mode == Mode::Strict {
                    return Ok(Err(error));
                }
                let end = offset + u64::from(entry.stored);
                self.pending_fault = Some((end..end, error));
                return Ok(within(entry, limits));
            }
            if is_plausible {
                return Ok(within(entry, limits));
            }
            if entry.stored > limits.buffer && entry.stored == spacing {
                return Ok(Err(beyond_limit(&entry, limits)));
            }
            let expected = "a size that leads to the next buffer";
            return Ok(Err(Error::invalid(
                offset,
                "buffer size",
                entry.stored.into(),
                expected,
            )));
        }
        Ok(within(entry, limits))
    }

    /// Completes an entry: whether the buffer is cut off, and its first timestamp.
    fn complete<S: Source>(
        &mut self,
        entry: &mut BufferEntry,
        source: &mut S,
        block: &mut S::Block,
        extent: Extent,
        log: &Log,
    ) -> Result<()> {
        let offset = entry.offset;
        let len = if extent == Extent::Whole || source.size().is_none() {
            entry.stored as usize
        } else {
            HEAD
        };
        source
            .read(offset, len, block)
            .map_err(|e| Error::new(offset, e.into()))?;
        let have = match source.size() {
            Some(size) => size.saturating_sub(offset),
            None => block.as_ref().len() as u64,
        };
        if have < u64::from(entry.stored) {
            let need = u64::from(entry.stored);
            let error = Error::truncated(offset, "buffer", need, have);
            if log.mode == Mode::Strict {
                return Err(error);
            }
            self.pending_fault = Some((offset + have..offset + need, error));
            entry.cut = true;
            entry.stored = have as u32;
        }
        if entry.compressed {
            entry.format = self.layout.format;
        }
        entry.layout = self.layout.buffers;
        entry.first_timestamp = first_timestamp(entry, block.as_ref());
        self.add_notes(entry);
        Ok(())
    }

    fn add_notes(&mut self, entry: &BufferEntry) {
        let offset = entry.offset;
        let processor = entry.processor;
        if entry.flags.has(BufferFlags::EVENTS_LOST) {
            self.notes
                .push(Note::EventsLostInBuffer { offset, processor });
        }
        if entry.flags.has(BufferFlags::BUFFER_LOST) {
            self.notes
                .push(Note::BufferLostBefore { offset, processor });
        }
        if entry.buffer_type == BufferType::HEADER && self.count > 0 {
            self.notes.push(Note::AnotherHeader { offset });
        }
    }

    /// Whether the file header counts more buffers than were found. Then a few zeros are the start
    /// of a header, such as the low bytes of a round size, and not unused space.
    fn expects_buffers(&self) -> bool {
        // A circular file that is full counts all buffers that were ever written.
        let is_full = match self.layout.overwriting {
            Some(overwriting) => overwriting.is_possible(self.count, self.position),
            None => false,
        };
        self.count < u64::from(self.layout.stated_buffers) && !is_full
    }

    /// At the end of the file, checks whether buffers are missing.
    fn finish(&mut self, end: u64, log: &mut Log) -> Result<()> {
        self.is_done = true;
        let stated = self.layout.stated_buffers;
        let found = self.count;
        if u64::from(stated) == found {
            return Ok(());
        }
        if stated <= 1 {
            // The header was never updated, or there is none.
            if stated == 1 && !self.notes.contains(&Note::Unclosed) {
                self.notes.push(Note::Unclosed);
            }
            return Ok(());
        }
        if self.expects_buffers() && !self.has_damage {
            let missing = u64::from(stated) - found;
            // A compressed buffer has at least the bytes of its header.
            let min_len = self.layout.buffers.spacing.max(BUFFER_HEADER_SIZE as u32);
            let need = missing.saturating_mul(u64::from(min_len));
            let what = "further buffers that the file header counts";
            self.fault(end..end, Error::truncated(end, what, need, 0), log)?;
        } else if self.expects_buffers()
            || u64::from(stated) < found
            || !self.layout.mode.has(LogFileMode::CIRCULAR)
        {
            // In a full circular file, the missing buffers are overwritten.
            self.notes.push(Note::BufferCount { stated, found });
        }
        Ok(())
    }
}

/// Decodes and checks the header of a buffer.
fn checked_header(bytes: &[u8], offset: u64, capacity: u32) -> Result<BufferHeader> {
    let header = BufferHeader::parse(bytes, offset)?;
    header.check(offset, capacity)?;
    Ok(header)
}

fn within(entry: BufferEntry, limits: &Limits) -> Result<BufferEntry> {
    if entry.stored.max(entry.fill) > limits.buffer {
        Err(beyond_limit(&entry, limits))
    } else {
        Ok(entry)
    }
}

fn beyond_limit(entry: &BufferEntry, limits: &Limits) -> Error {
    let kind = ErrorKind::Limit {
        what: "a buffer",
        need: entry.stored.max(entry.fill).into(),
        limit: limits.buffer.into(),
    };
    Error::new(entry.offset, kind)
}

/// Raw timestamp of the first record, from the first bytes of the buffer.
fn first_timestamp(entry: &BufferEntry, bytes: &[u8]) -> Ticks {
    if !entry.compressed {
        let fill = (entry.fill as usize).min(entry.stored as usize);
        return walk::record_at_head(bytes, fill).map_or(Ticks::MIN, Ticks::new);
    }
    // A few bytes are enough for the first record's header.
    let mut head = [0u8; BUFFER_HEADER_SIZE + 0x30];
    let len = head.len().min(entry.fill as usize);
    let packed = bytes.get(BUFFER_HEADER_SIZE..).unwrap_or_default();
    let Some(out) = head.get_mut(BUFFER_HEADER_SIZE..len) else {
        return Ticks::MIN;
    };
    if crate::compress::decompress(entry.format, packed, out).is_err() {
        return Ticks::MIN;
    }
    let head = head.get(..len).unwrap_or_default();
    walk::record_at_head(head, entry.fill as usize).map_or(Ticks::MIN, Ticks::new)
}
