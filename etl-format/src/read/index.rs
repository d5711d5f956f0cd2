//! From buffer to buffer through a file: the walk that every reader starts from.

use crate::constants::{
    BUFFER_HEADER_SIZE, BufferFlags, BufferType, CompressionFormat, LogFileMode,
};
use crate::error::{Error, ErrorKind, Result};

use super::buffer::BufferHeader;
use super::damage::{Log, Note};
use super::header::FileHeader;
use super::limits::Limits;
use super::source::Source;
use super::{scan, walk};

/// What a reader keeps of each buffer of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferEntry {
    /// Where the buffer stands in the file.
    pub offset: u64,
    /// Its sequence number.
    pub sequence_number: i64,
    /// Raw stamp of its first record; `i64::MIN` when not known.
    pub first_stamp: i64,
    /// Bytes that it takes in the file.
    pub stored: u32,
    /// Bytes in use when decompressed, the header included.
    pub fill: u32,
    /// Processor whose records it holds.
    pub processor: u16,
    /// Flags.
    pub flags: BufferFlags,
    /// Type.
    pub buffer_type: BufferType,
    /// Whether the records are compressed.
    pub compressed: bool,
    /// Whether the file ends inside this buffer.
    pub cut: bool,
    /// Whether the buffer's own header was unreadable and this entry was made from its records;
    /// then the processor and the sequence number are unknown and 0.
    pub rebuilt: bool,
    /// Whether its records are known not to be in time order; only found out by
    /// [`super::OrderCheck::Full`].
    pub unordered: bool,
}

impl BufferEntry {
    /// Whether this buffer holds a file header.
    #[must_use]
    pub fn is_header(&self) -> bool {
        self.buffer_type == BufferType::HEADER
    }
}

/// What the walk must know about the file.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Memory of a buffer, from the header event, or the limit where the header is not known.
    pub capacity: u32,
    /// Distance of buffers in an uncompressed file; 0 when not known.
    pub spacing: u32,
    pub format: CompressionFormat,
    pub packed: bool,
    pub mode: LogFileMode,
    pub stated_buffers: u32,
}

/// Reads buffer headers one after the other.
#[derive(Debug)]
pub(crate) struct BufferWalk {
    pub layout: Layout,
    at: u64,
    pub count: u64,
    pub notes: Vec<Note>,
    done: bool,
}

/// Bytes read for a buffer's header and, in passing, its first record.
const HEAD: usize = 0x100;

impl BufferWalk {
    /// Reads the header event and stands before buffer 0.
    pub fn open<S: Source>(
        source: &mut S,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<(Self, FileHeader)> {
        let mut block = S::Block::default();
        // The header event is at most 64 KB long, since its size has 16 bits.
        source.read(0, BUFFER_HEADER_SIZE + 0x1_0000, &mut block)?;
        let bytes = block.as_ref();
        match open_buffer_0(bytes, limits) {
            Ok((buffer, header)) => {
                let (format, note) = compression(&header, &buffer);
                let mut walk = BufferWalk::at(0, &header, format, limits);
                walk.notes.extend(note);
                walk.notes.extend(header_notes(&header));
                Ok((walk, header))
            }
            Err(error) => Self::open_headless(source, limits, log, error),
        }
    }

    /// A trace whose first buffer is not readable: its other buffers may be.
    fn open_headless<S: Source>(
        source: &mut S,
        limits: &Limits,
        log: &mut Log,
        error: Error,
    ) -> Result<(Self, FileHeader)> {
        let old = matches!(error.kind, ErrorKind::NotEtl(why) if why.contains("XP"));
        if log.mode == super::Mode::Strict || old || source.size().is_none() {
            return Err(error);
        }
        let Some((at, first)) = scan::next_buffer(source, 1, limits.buffer, None)? else {
            return Err(error);
        };
        let mut header =
            FileHeader::unknown(if first.is_compressed() { 0 } else { first.buffer_size });
        if first.is_compressed() {
            header.mode = LogFileMode::COMPRESSED;
        }
        log.fault(0..at, error)?;
        Ok((BufferWalk::at(at, &header, CompressionFormat::XPRESS, limits), header))
    }

    fn at(at: u64, header: &FileHeader, format: CompressionFormat, limits: &Limits) -> Self {
        let packed = header.mode.has(LogFileMode::COMPRESSED);
        let known = header.buffer_size >= BUFFER_HEADER_SIZE as u32;
        let capacity = if known { header.buffer_size.min(limits.buffer) } else { limits.buffer };
        let layout = Layout {
            capacity,
            spacing: if packed || !known { 0 } else { header.buffer_size },
            format,
            packed,
            mode: header.mode,
            stated_buffers: header.buffers_written,
        };
        BufferWalk { layout, at, count: 0, notes: Vec::new(), done: false }
    }

    /// The next buffer. With `whole`, all its bytes are left in `block`, else at least its header
    /// and what follows it closely.
    pub fn next<S: Source>(
        &mut self,
        source: &mut S,
        block: &mut S::Block,
        whole: bool,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Option<BufferEntry>> {
        while !self.done {
            let at = self.at;
            source.read(at, HEAD, block).map_err(|e| Error::new(at, e.into()))?;
            let head = block.as_ref();
            if head.is_empty() {
                self.finish(at, log)?;
                return Ok(None);
            }
            if self.is_unused_tail(source, head.first().copied().unwrap_or(0), head)? {
                self.finish(at, log)?;
                return Ok(None);
            }
            let judged = BufferHeader::parse(head, at)
                .and_then(|h| h.check(at, self.layout.capacity).map(|()| h));
            source.read(at, HEAD, block).map_err(|e| Error::new(at, e.into()))?;
            let mut entry = match judged {
                Ok(header) => self.entry(&header, at, source, block, log)?,
                Err(error) => match self.rebuild(error, source, block, limits, log)? {
                    Some(entry) => entry,
                    None => continue,
                },
            };
            self.measure(&mut entry, source, block, whole, limits, log)?;
            self.count += 1;
            self.at = at + u64::from(entry.stored).max(8);
            return Ok(Some(entry));
        }
        Ok(None)
    }

    /// The entry of a buffer whose header is sound. A size that leads nowhere, where the one of the
    /// file header does, is a fault.
    fn entry<S: Source>(
        &mut self,
        header: &BufferHeader,
        at: u64,
        source: &mut S,
        block: &mut S::Block,
        log: &mut Log,
    ) -> Result<BufferEntry> {
        let mut entry = BufferEntry {
            offset: at,
            sequence_number: header.sequence_number,
            first_stamp: i64::MIN,
            stored: header.buffer_size,
            fill: header.fill(),
            processor: header.processor(),
            flags: header.flags,
            buffer_type: header.buffer_type,
            compressed: header.is_compressed(),
            cut: false,
            rebuilt: false,
            unordered: false,
        };
        let spacing = self.layout.spacing;
        if spacing != 0 && entry.stored != spacing && !entry.compressed {
            let stated = self.leads_on(at, entry.stored, source, block)?;
            if !stated && self.leads_on(at, spacing, source, block)? {
                log.fault(
                    at..at + 4,
                    Error::invalid(
                        at,
                        "buffer size",
                        entry.stored.into(),
                        "the buffer size of the file header",
                    ),
                )?;
                entry.stored = spacing;
                entry.fill = if header.offset != 0 { header.offset } else { header.saved_offset };
                entry.fill = entry.fill.min(spacing);
            }
            source.read(at, HEAD, block).map_err(|e| Error::new(at, e.into()))?;
        }
        Ok(entry)
    }

    /// Whether a buffer, or the end of the file, stands `size` bytes behind `at`.
    fn leads_on<S: Source>(
        &self,
        at: u64,
        size: u32,
        source: &mut S,
        block: &mut S::Block,
    ) -> Result<bool> {
        // A pipe can only look ahead from where it stands, so all of it is asked for at once.
        let size = size.min(self.layout.capacity.max(self.layout.spacing)) as usize;
        let far = at.saturating_add(size as u64);
        let bytes = if source.size().is_some() {
            source.read(far, BUFFER_HEADER_SIZE, block).map_err(|e| Error::new(far, e.into()))?;
            block.as_ref()
        } else {
            let len = size + BUFFER_HEADER_SIZE;
            source.read(at, len, block).map_err(|e| Error::new(at, e.into()))?;
            block.as_ref().get(size..).unwrap_or_default()
        };
        let end = source.size().is_none_or(|end| end == far) && bytes.is_empty();
        let header = BufferHeader::parse(bytes, far);
        Ok(end || header.is_ok_and(|h| h.is_plausible(self.layout.capacity)))
    }

    /// Cut buffers and the first stamp.
    fn measure<S: Source>(
        &mut self,
        entry: &mut BufferEntry,
        source: &mut S,
        block: &mut S::Block,
        whole: bool,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<()> {
        let at = entry.offset;
        if entry.stored.max(entry.fill) > limits.buffer {
            let need = u64::from(entry.stored.max(entry.fill));
            let limit = limits.buffer.into();
            return Err(Error::new(at, ErrorKind::Limit { what: "a buffer", need, limit }));
        }
        let have = match source.size() {
            Some(size) if !whole => size.saturating_sub(at),
            _ => {
                let len = entry.stored as usize;
                source.read(at, len, block).map_err(|e| Error::new(at, e.into()))?;
                block.as_ref().len() as u64
            }
        };
        if have < u64::from(entry.stored) {
            let need = u64::from(entry.stored);
            log.fault(at + have..at + need, Error::truncated(at, "buffer", need, have))?;
            entry.cut = true;
            entry.stored = have as u32;
        }
        entry.first_stamp = first_stamp(entry, block.as_ref(), self.layout.format);
        self.note(entry);
        Ok(())
    }

    fn note(&mut self, entry: &BufferEntry) {
        let (offset, processor) = (entry.offset, entry.processor);
        if entry.flags.has(BufferFlags::EVENTS_LOST) {
            self.notes.push(Note::EventsLostInBuffer { offset, processor });
        }
        if entry.flags.has(BufferFlags::BUFFER_LOST) {
            self.notes.push(Note::BufferLostBefore { offset, processor });
        }
        if entry.buffer_type == BufferType::HEADER && self.count > 0 {
            self.notes.push(Note::AnotherHeader { offset });
        }
    }

    /// A buffer whose header is damaged: its records may stand where they should, or the next
    /// sound buffer has to be looked for. `None` when the walk has been set to go on there.
    fn rebuild<S: Source>(
        &mut self,
        error: Error,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Option<BufferEntry>> {
        let at = self.at;
        let spacing = self.layout.spacing as usize;
        let preallocated = self.layout.mode.has(LogFileMode::PREALLOCATE);
        let stated = u64::from(self.layout.stated_buffers);
        if preallocated && stated > 1 && self.count >= stated {
            // Space that the session reserved and never used holds whatever the disk held.
            let len = source.size().map_or(0, |size| size.saturating_sub(at));
            self.notes.push(Note::UnusedTail { offset: at, len });
            self.done = true;
            return Ok(None);
        }
        if log.mode == super::Mode::Strict {
            return Err(error);
        }
        if spacing > BUFFER_HEADER_SIZE && spacing <= limits.buffer as usize {
            source.read(at, spacing, block).map_err(|e| Error::new(at, e.into()))?;
            let bytes = block.as_ref();
            let tail = walk::tail(bytes, bytes.len());
            let first = walk::resync(bytes, BUFFER_HEADER_SIZE, bytes.len(), i64::MIN, tail);
            if first == Some(BUFFER_HEADER_SIZE) {
                log.fault(at..at + BUFFER_HEADER_SIZE as u64, error)?;
                return Ok(Some(BufferEntry {
                    offset: at,
                    first_stamp: i64::MIN,
                    stored: spacing as u32,
                    fill: spacing as u32,
                    rebuilt: true,
                    ..BufferEntry::default()
                }));
            }
        }
        let from = at.saturating_add(1);
        let next = scan::next_buffer(source, from, self.layout.capacity, Some(&self.layout))?;
        let end = match next {
            Some((next, _)) => next,
            None => {
                self.done = true;
                let rest = source.size().unwrap_or(at);
                rest.max(at)
            }
        };
        log.fault(at..end, error)?;
        self.at = end;
        Ok(None)
    }

    /// Whether nothing but zeros (or filler) follows: space that was reserved and never used.
    fn is_unused_tail<S: Source>(&mut self, source: &mut S, byte: u8, head: &[u8]) -> Result<bool> {
        let same = |b: &[u8]| b.iter().all(|&x| x == byte);
        if !matches!(byte, 0 | 0xff) || !same(head.get(..BUFFER_HEADER_SIZE).unwrap_or(head)) {
            return Ok(false);
        }
        if self.count == 0 {
            return Ok(false);
        }
        // A buffer lost in the middle is a fault; only a tail that is empty to the very end is
        // none. A pipe must read on to know.
        let mut block = S::Block::default();
        let mut at = self.at;
        loop {
            source.read(at, 1 << 16, &mut block).map_err(|e| Error::new(at, e.into()))?;
            let bytes = block.as_ref();
            if bytes.is_empty() {
                break;
            }
            if !same(bytes) {
                return Ok(false);
            }
            at += bytes.len() as u64;
        }
        self.notes.push(Note::UnusedTail { offset: self.at, len: at - self.at });
        Ok(true)
    }

    /// The end of the file: is anything missing?
    fn finish(&mut self, end: u64, log: &mut Log) -> Result<()> {
        self.done = true;
        let (stated, found) = (self.layout.stated_buffers, self.count);
        if u64::from(stated) == found {
            return Ok(());
        }
        if stated <= 1 {
            // The count of the start, never brought up to date; without a header nothing is known.
            if stated == 1 && !self.notes.contains(&Note::Unclosed) {
                self.notes.push(Note::Unclosed);
            }
            return Ok(());
        }
        // A circular file counts what was written, not what is left.
        let circular = self.layout.mode.has(LogFileMode::CIRCULAR);
        if found < u64::from(stated) && !circular && log.damage.is_empty() {
            let missing = u64::from(stated) - found;
            let need = missing.saturating_mul(u64::from(self.layout.spacing.max(1)));
            log.fault(end..end, Error::truncated(end, "further buffers", need, 0))?;
        } else {
            self.notes.push(Note::BufferCount { stated, found });
        }
        Ok(())
    }
}

fn open_buffer_0(bytes: &[u8], limits: &Limits) -> Result<(BufferHeader, FileHeader)> {
    if bytes.is_empty() {
        return Err(Error::new(0, ErrorKind::NotEtl("it is empty")));
    }
    let buffer = BufferHeader::parse(bytes, 0)?;
    let records = bytes.get(BUFFER_HEADER_SIZE..).unwrap_or_default();
    let header = FileHeader::parse(records, BUFFER_HEADER_SIZE as u64)?;
    buffer.check(0, limits.buffer)?;
    Ok((buffer, header))
}

/// The compression format, from the state of buffer 0.
fn compression(header: &FileHeader, buffer: &BufferHeader) -> (CompressionFormat, Option<Note>) {
    if !header.mode.has(LogFileMode::COMPRESSED) {
        // A stray compressed buffer in a plain file can only be of the common format.
        return (CompressionFormat::XPRESS, None);
    }
    match CompressionFormat(buffer.state.0 as u16) {
        f @ (CompressionFormat::LZNT1
        | CompressionFormat::XPRESS
        | CompressionFormat::XPRESS_HUFF) => (f, None),
        _ => (CompressionFormat::XPRESS, Some(Note::CompressionUnnamed { state: buffer.state.0 })),
    }
}

fn header_notes(header: &FileHeader) -> impl Iterator<Item = Note> {
    let lost = (header.events_lost != 0).then_some(Note::EventsLost(header.events_lost));
    let buffers = (header.buffers_lost != 0).then_some(Note::BuffersLost(header.buffers_lost));
    let open = (!header.is_closed()).then_some(Note::Unclosed);
    let stated = header.stated_pointer_size;
    let width = header.pointer_size.bytes() as u32;
    let pointer = (stated != width).then_some(Note::PointerSize { stated });
    [open, lost, buffers, pointer].into_iter().flatten()
}

/// Raw stamp of the first record, from what was read of the buffer.
fn first_stamp(entry: &BufferEntry, bytes: &[u8], format: CompressionFormat) -> i64 {
    if !entry.compressed {
        let fill = (entry.fill as usize).min(entry.stored as usize);
        return walk::record_at_head(bytes, fill).unwrap_or(i64::MIN);
    }
    // A few bytes are enough for the first record's header.
    let mut head = [0u8; BUFFER_HEADER_SIZE + 0x30];
    let len = head.len().min(entry.fill as usize);
    let packed = bytes.get(BUFFER_HEADER_SIZE..).unwrap_or_default();
    let unpacked = head
        .get_mut(BUFFER_HEADER_SIZE..len)
        .is_some_and(|out| crate::compress::decompress(format, packed, out).is_ok());
    if !unpacked {
        return i64::MIN;
    }
    walk::record_at_head(head.get(..len).unwrap_or_default(), entry.fill as usize)
        .unwrap_or(i64::MIN)
}
