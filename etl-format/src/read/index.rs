//! The walk from buffer to buffer through a file, with which every reader begins.

use crate::Ticks;
use core::ops::Range;

use crate::clock::Clock;
use crate::constants::{
    BUFFER_HEADER_SIZE, BufferFlags, BufferType, CompressionFormat, LogFileMode,
};
use crate::error::{Error, ErrorKind, Result};
use crate::headers::BufferHeader;
use crate::headers::FileHeader;
use crate::headers::buffer::FillFault;
use crate::headers::file::Overwriting;

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
    /// Its sequence number; where that is damaged ([`Note::SequenceWrong`]), the expected one.
    pub sequence_number: i64,
    /// Raw timestamp of its first timestamped record; the session's start when it has none.
    pub first_timestamp: Ticks,
    /// Bytes that it takes in the file.
    pub stored: u32,
    /// Bytes in use when decompressed, the header included.
    pub fill: u32,
    /// Where the buffer header does not state the fill exactly: from here on, filler may end the
    /// records. Else the fill.
    pub(crate) least_fill: u32,
    /// Where the header event ends, in a first buffer that states this as `SavedOffset` and has
    /// further records; else 0.
    pub(crate) saved: u32,
    /// Processor whose records it holds.
    pub processor: u16,
    /// Flags.
    pub flags: BufferFlags,
    /// Type.
    pub buffer_type: BufferType,
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
    /// Whether its records are known not to be in time order. Only [`super::OrderCheck::Scan`]
    /// determines this.
    pub unordered: bool,
    /// What the file header before this buffer states about it.
    pub(crate) layout: BufferLayout,
}

impl BufferEntry {
    pub(super) fn of(header: &BufferHeader, offset: u64, capacity: u32) -> Self {
        let fills = header.fills(capacity);
        let has_rest = header.is_header()
            && (BUFFER_HEADER_SIZE as u32 + 1..fills.most).contains(&header.saved_offset);
        BufferEntry {
            offset,
            sequence_number: header.sequence_number,
            first_timestamp: Ticks::MIN,
            stored: header.buffer_size,
            fill: fills.most,
            least_fill: fills.least,
            saved: if has_rest { header.saved_offset } else { 0 },
            processor: header.processor(),
            flags: header.flags,
            buffer_type: header.buffer_type,
            compressed: header.is_compressed(),
            format: CompressionFormat::NONE,
            cut: false,
            rebuilt: false,
            unordered: false,
            layout: BufferLayout::default(),
        }
    }

    /// Whether this buffer holds a file header.
    #[must_use]
    pub fn is_header(&self) -> bool {
        self.buffer_type == BufferType::HEADER
    }
}

/// What a reader of records needs to know about a trace.
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

/// What a file header states about the buffers after it. Appended data may have another header, so
/// each buffer keeps its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferLayout {
    /// Memory of a buffer in bytes, or the limit if the header event is not known.
    pub capacity: u32,
    /// Distance of buffers in an uncompressed file, in bytes; 0 if it is not known.
    pub spacing: u32,
    /// Whether buffers are compressed.
    pub packed: bool,
}

/// The layout of the file that the walk relies on.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// What the last file header states about the buffers after it.
    pub buffers: BufferLayout,
    pub format: CompressionFormat,
    pub mode: LogFileMode,
    pub stated_buffers: u32,
    /// When a circular file may have overwritten buffers.
    pub overwriting: Option<Overwriting>,
    /// Raw timestamp of the session's start, for records without a timestamp.
    pub start: i64,
    pub limits: Limits,
}

/// Reads the buffer headers of a file.
#[derive(Debug)]
pub(crate) struct BufferWalk {
    pub layout: Layout,
    pub(super) at: u64,
    pub count: u64,
    /// Buffers without readable records, where their size is known.
    pub(super) destroyed: u64,
    pub notes: Vec<Note>,
    pub(super) done: bool,
    /// Whether a buffer had a fault.
    pub(super) damaged: bool,
    /// A fault after the records of the current buffer. It is reported when they have been read.
    pub(super) pending_fault: Option<(Range<u64>, Error)>,
}

/// Bytes that are read for a buffer's header and its first record.
const HEAD: usize = 0x100;

impl BufferWalk {
    pub(super) fn at(
        at: u64,
        header: &FileHeader,
        format: CompressionFormat,
        limits: &Limits,
    ) -> Self {
        let packed = header.mode.has(LogFileMode::COMPRESSED);
        let known = header.buffer_size >= BUFFER_HEADER_SIZE as u32;
        let capacity = if known {
            header.buffer_size.min(limits.buffer)
        } else {
            limits.buffer
        };
        let spacing = if packed || !known {
            0
        } else {
            header.buffer_size
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
            at,
            count: 0,
            destroyed: 0,
            notes: Vec::new(),
            done: false,
            damaged: false,
            pending_fault: None,
        }
    }

    pub(super) fn fault(&mut self, range: Range<u64>, error: Error, log: &mut Log) -> Result<()> {
        self.damaged = true;
        log.fault(range, error)
    }

    /// The next buffer. With `whole`, `block` then holds all its bytes, else at least its header
    /// and its first bytes.
    pub fn next<S: Source>(
        &mut self,
        source: &mut S,
        block: &mut S::Block,
        whole: bool,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Option<BufferEntry>> {
        if let Some((range, error)) = self.pending_fault.take() {
            self.fault(range, error, log)?;
        }
        while !self.done {
            let at = self.at;
            source
                .read(at, HEAD, block)
                .map_err(|e| Error::new(at, e.into()))?;
            let head = block.as_ref();
            if head.is_empty() {
                self.finish(at, log)?;
                return Ok(None);
            }
            let judged = BufferHeader::parse(head, at)
                .and_then(|h| h.check(at, self.layout.buffers.capacity).map(|()| h));
            let nothing = self.nothing(source, block, limits)?;
            if let Some((end, true)) = nothing
                && !(self.is_due() && end - at < BUFFER_HEADER_SIZE as u64)
            {
                self.notes.push(Note::UnusedTail {
                    offset: at,
                    len: end - at,
                });
                self.finish(at, log)?;
                return Ok(None);
            }
            if let Ok(header) = &judged
                && header.is_header()
                && self.count > 0
            {
                self.appended(header, source, block, limits)?;
            }
            let entry = match judged {
                Ok(header) => self.entry(&header, source, block, limits, log)?,
                Err(error) => Err(error),
            };
            let mut entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let hole = nothing.map(|(end, _)| end);
                    match self.rebuild(error, hole, source, block, limits, log)? {
                        Some(entry) => entry,
                        None => continue,
                    }
                }
            };
            self.measure(&mut entry, source, block, whole, log)?;
            self.count += 1;
            self.at = at + u64::from(entry.stored).max(8);
            return Ok(Some(entry));
        }
        Ok(None)
    }

    /// The entry of a buffer with a valid header. A fill that cannot be right is a fault. The inner
    /// error is that of a buffer beyond the limits.
    fn entry<S: Source>(
        &mut self,
        header: &BufferHeader,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Result<BufferEntry, Error>> {
        let sized = self.sized(header, source, block, limits, log)?;
        if let Ok(entry) = &sized {
            let buffer_size = if entry.cut {
                header.buffer_size
            } else {
                entry.stored
            };
            let fills = BufferHeader {
                buffer_size,
                ..*header
            }
            .fills(self.layout.buffers.capacity);
            if let Some(FillFault {
                at,
                found,
                expected,
            }) = fills.fault
            {
                let at = entry.offset + at;
                let error = Error::invalid(at, "fill of a buffer", found, expected);
                log.fault(at..at + 4, error)?;
            }
        }
        Ok(sized)
    }

    /// The entry of a buffer whose size leads to another buffer. One that does not, where the size
    /// in the file header does, is a fault.
    fn sized<S: Source>(
        &mut self,
        header: &BufferHeader,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Result<BufferEntry, Error>> {
        let at = self.at;
        let capacity = self.layout.buffers.capacity;
        let mut entry = BufferEntry::of(header, at, capacity);
        let spacing = self.layout.buffers.spacing;
        let odd = spacing != 0 && entry.stored != spacing && !entry.compressed;
        let plausible = header.is_plausible(self.layout.buffers.capacity);
        // Where another buffer begins at the common distance, a larger stated size would skip it.
        if odd && self.leads_on(at, spacing, source, block)? {
            let expected = "the buffer size of the file header";
            let error = Error::invalid(at, "buffer size", entry.stored.into(), expected);
            self.fault(at..at + 4, error, log)?;
            let header = BufferHeader {
                buffer_size: spacing,
                ..*header
            };
            entry = BufferEntry::of(&header, at, capacity);
        } else if !self.leads_on(at, entry.stored, source, block)? {
            // A header that is some bytes off could state any size, and the buffer that begins a
            // few bytes on must not count as part of this one.
            let shifted = self.layout.buffers.packed && !plausible;
            if !shifted && let Some(error) = self.shorten(&mut entry, source, block, limits)? {
                if log.mode == Mode::Strict {
                    return Ok(Err(error));
                }
                let end = at + u64::from(entry.stored);
                self.pending_fault = Some((end..end, error));
                return Ok(within(entry, limits));
            }
            if plausible {
                return Ok(within(entry, limits));
            }
            if entry.stored > limits.buffer && entry.stored == spacing {
                return Ok(Err(beyond_limit(&entry, limits)));
            }
            let expected = "a size that leads to the next buffer";
            return Ok(Err(Error::invalid(
                at,
                "buffer size",
                entry.stored.into(),
                expected,
            )));
        }
        Ok(within(entry, limits))
    }

    /// Completes an entry: whether the buffer is cut off, and its first timestamp.
    fn measure<S: Source>(
        &mut self,
        entry: &mut BufferEntry,
        source: &mut S,
        block: &mut S::Block,
        whole: bool,
        log: &Log,
    ) -> Result<()> {
        let at = entry.offset;
        let len = if whole || source.size().is_none() {
            entry.stored as usize
        } else {
            HEAD
        };
        source
            .read(at, len, block)
            .map_err(|e| Error::new(at, e.into()))?;
        let have = match source.size() {
            Some(size) => size.saturating_sub(at),
            None => block.as_ref().len() as u64,
        };
        if have < u64::from(entry.stored) {
            let need = u64::from(entry.stored);
            let error = Error::truncated(at, "buffer", need, have);
            if log.mode == Mode::Strict {
                return Err(error);
            }
            self.pending_fault = Some((at + have..at + need, error));
            entry.cut = true;
            entry.stored = have as u32;
        }
        if entry.compressed {
            entry.format = self.layout.format;
        }
        entry.layout = self.layout.buffers;
        entry.first_timestamp = first_timestamp(entry, block.as_ref());
        self.note(entry);
        Ok(())
    }

    fn note(&mut self, entry: &BufferEntry) {
        let (offset, processor) = (entry.offset, entry.processor);
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
    fn is_due(&self) -> bool {
        // A circular file that is full counts all buffers ever written.
        let full = |o: Overwriting| o.is_possible(self.count, self.at);
        let may_overwrite = self.layout.overwriting.is_some_and(full);
        self.count < u64::from(self.layout.stated_buffers) && !may_overwrite
    }

    /// At the end of the file, checks whether buffers are missing.
    fn finish(&mut self, end: u64, log: &mut Log) -> Result<()> {
        self.done = true;
        let (stated, found) = (self.layout.stated_buffers, self.count);
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
        if self.is_due() && !self.damaged {
            let missing = u64::from(stated) - found;
            // A compressed buffer takes at least the bytes of its header.
            let least = self.layout.buffers.spacing.max(BUFFER_HEADER_SIZE as u32);
            let need = missing.saturating_mul(u64::from(least));
            self.fault(
                end..end,
                Error::truncated(end, "further buffers that the file header counts", need, 0),
                log,
            )?;
        } else if self.is_due()
            || u64::from(stated) < found
            || !self.layout.mode.has(LogFileMode::CIRCULAR)
        {
            // What a full circular file counts beyond its buffers is overwritten.
            self.notes.push(Note::BufferCount { stated, found });
        }
        Ok(())
    }
}

fn within(entry: BufferEntry, limits: &Limits) -> Result<BufferEntry> {
    let most = entry.stored.max(entry.fill);
    if most > limits.buffer {
        Err(beyond_limit(&entry, limits))
    } else {
        Ok(entry)
    }
}

fn beyond_limit(entry: &BufferEntry, limits: &Limits) -> Error {
    let need = entry.stored.max(entry.fill).into();
    let kind = ErrorKind::Limit {
        what: "a buffer",
        need,
        limit: limits.buffer.into(),
    };
    Error::new(entry.offset, kind)
}

/// Raw timestamp of the first record, from what was read of the buffer.
fn first_timestamp(entry: &BufferEntry, bytes: &[u8]) -> Ticks {
    if !entry.compressed {
        let fill = (entry.fill as usize).min(entry.stored as usize);
        return walk::record_at_head(bytes, fill).map_or(Ticks::MIN, Ticks::new);
    }
    // A few bytes are enough for the first record's header.
    let mut head = [0u8; BUFFER_HEADER_SIZE + 0x30];
    let len = head.len().min(entry.fill as usize);
    let packed = bytes.get(BUFFER_HEADER_SIZE..).unwrap_or_default();
    let unpacked = head
        .get_mut(BUFFER_HEADER_SIZE..len)
        .is_some_and(|out| crate::compress::decompress(entry.format, packed, out).is_ok());
    if !unpacked {
        return Ticks::MIN;
    }
    walk::record_at_head(head.get(..len).unwrap_or_default(), entry.fill as usize)
        .map_or(Ticks::MIN, Ticks::new)
}
