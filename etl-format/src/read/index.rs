//! From buffer to buffer through a file: the walk that every reader starts from.

use core::ops::Range;

use crate::constants::{
    BUFFER_HEADER_SIZE, BufferFlags, BufferType, CompressionFormat, FILLER, LogFileMode,
};
use crate::error::{Error, ErrorKind, Result};

use super::buffer::BufferHeader;
use super::damage::{Log, Mode, Note};
use super::header::FileHeader;
use super::limits::Limits;
use super::scan::{self, Scan};
use super::source::Source;
use super::walk;

/// What a reader keeps of each buffer of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferEntry {
    /// Where the buffer stands in the file.
    pub offset: u64,
    /// Its sequence number.
    pub sequence_number: i64,
    /// Raw stamp of its first stamped record; the session's start when it has none.
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
    /// Whether the end of the buffer is missing: the file ends inside it, or the next buffer
    /// begins there.
    pub cut: bool,
    /// Whether the buffer's own header was unreadable and this entry was made from its records;
    /// then the processor and the sequence number are unknown and 0.
    pub rebuilt: bool,
    /// Whether its records are known not to be in time order; only found out by
    /// [`super::OrderCheck::Full`].
    pub unordered: bool,
}

impl BufferEntry {
    fn of(header: &BufferHeader, offset: u64) -> Self {
        BufferEntry {
            offset,
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
        }
    }

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
    /// Raw stamp of the session's start, which records take that have none.
    pub start: i64,
}

/// Reads buffer headers one after the other.
#[derive(Debug)]
pub(crate) struct BufferWalk {
    pub layout: Layout,
    at: u64,
    pub count: u64,
    pub notes: Vec<Note>,
    done: bool,
    /// Whether a fault was met among the buffers.
    damaged: bool,
    /// A fault behind the records of the buffer just given; it is told when they have been read.
    behind: Option<(Range<u64>, Error)>,
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
        source.read(0, BUFFER_0_MOST, &mut block)?;
        match open_buffer_0(block.as_ref(), limits, log.mode) {
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

    /// A trace whose header event is not readable: the rest of it may be.
    fn open_headless<S: Source>(
        source: &mut S,
        limits: &Limits,
        log: &mut Log,
        error: Error,
    ) -> Result<(Self, FileHeader)> {
        let old = matches!(error.kind, ErrorKind::NotEtl(why) if why.contains("XP"));
        if log.mode == Mode::Strict || old || error.is_io() {
            return Err(error);
        }
        if let Some((buffer, next)) = sound_buffer_0(source, limits)? {
            let header = unknown_header(&next);
            let (format, note) = compression(&header, &buffer);
            let mut walk = BufferWalk::at(0, &header, format, limits);
            walk.notes.extend(note);
            let event = BUFFER_HEADER_SIZE as u64;
            walk.fault(event..event + 8, error, log)?;
            return Ok((walk, header));
        }
        let Scan::Buffer(at, first) = scan::next_buffer(source, 0, limits.buffer, None)? else {
            return Err(error);
        };
        let header = unknown_header(&first);
        let mut walk = BufferWalk::at(at, &header, CompressionFormat::XPRESS, limits);
        walk.fault(0..at, error, log)?;
        Ok((walk, header))
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
            start: header.stamp,
        };
        BufferWalk {
            layout,
            at,
            count: 0,
            notes: Vec::new(),
            done: false,
            damaged: false,
            behind: None,
        }
    }

    fn fault(&mut self, range: Range<u64>, error: Error, log: &mut Log) -> Result<()> {
        self.damaged = true;
        log.fault(range, error)
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
        if let Some((range, error)) = self.behind.take() {
            self.fault(range, error, log)?;
        }
        while !self.done {
            let at = self.at;
            source.read(at, HEAD, block).map_err(|e| Error::new(at, e.into()))?;
            let head = block.as_ref();
            if head.is_empty() {
                self.finish(at, log)?;
                return Ok(None);
            }
            let judged = BufferHeader::parse(head, at)
                .and_then(|h| h.check(at, self.layout.capacity).map(|()| h));
            let nothing = self.nothing(source, block, limits)?;
            if let Some((end, true)) = nothing {
                self.notes.push(Note::UnusedTail { offset: at, len: end - at });
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

    /// A further file header: what was appended may have buffers of another size.
    fn appended<S: Source>(
        &mut self,
        buffer: &BufferHeader,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
    ) -> Result<()> {
        let at = self.at;
        source.read(at, BUFFER_0_MOST, block).map_err(|e| Error::new(at, e.into()))?;
        let event = block.as_ref().get(BUFFER_HEADER_SIZE..).unwrap_or_default();
        let Ok(header) = FileHeader::parse(event, at) else { return Ok(()) };
        let (format, note) = compression(&header, buffer);
        let next = BufferWalk::at(at, &header, format, limits).layout;
        self.layout = Layout {
            capacity: next.capacity,
            spacing: next.spacing,
            packed: next.packed,
            format: if next.packed { next.format } else { self.layout.format },
            ..self.layout.clone()
        };
        self.notes.extend(note);
        Ok(())
    }

    /// The entry of a buffer whose header is sound. A size that leads nowhere, where the one of the
    /// file header does, is a fault. The inner error is that of a buffer beyond the limits.
    fn entry<S: Source>(
        &mut self,
        header: &BufferHeader,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Result<BufferEntry, Error>> {
        let at = self.at;
        let mut entry = BufferEntry::of(header, at);
        if header.fill_differs() {
            let (saved, current) = (header.saved_offset, header.offset);
            self.notes.push(Note::FillDiffers { offset: at, saved, current });
        }
        let spacing = self.layout.spacing;
        let odd = spacing != 0 && entry.stored != spacing && !entry.compressed;
        let plausible = header.is_plausible(self.layout.capacity);
        let salvage = log.mode == Mode::Salvage;
        // Where another buffer stands at the common distance, a stated one that leads to yet
        // another would swallow it.
        if odd && self.leads_on(at, spacing, source, block)? {
            let expected = "the buffer size of the file header";
            let error = Error::invalid(at, "buffer size", entry.stored.into(), expected);
            self.fault(at..at + 4, error, log)?;
            entry.stored = spacing;
            entry.fill = BufferHeader { buffer_size: spacing, ..*header }.fill();
        } else if (odd || salvage || !plausible)
            && !self.leads_on(at, entry.stored, source, block)?
            && !(salvage && self.shorten(&mut entry, source, block, limits)?)
            && !plausible
        {
            if entry.stored > limits.buffer && entry.stored == spacing {
                return Ok(Err(beyond_limit(&entry, limits)));
            }
            let expected = "a size that leads to the next buffer";
            return Ok(Err(Error::invalid(at, "buffer size", entry.stored.into(), expected)));
        }
        if entry.stored.max(entry.fill) > limits.buffer {
            return Ok(Err(beyond_limit(&entry, limits)));
        }
        Ok(Ok(entry))
    }

    /// Where a buffer leads nowhere and another one begins inside it that does lead on, bytes have
    /// gone missing: the buffer ends there. Whether it is so.
    fn shorten<S: Source>(
        &mut self,
        entry: &mut BufferEntry,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
    ) -> Result<bool> {
        let at = entry.offset;
        let stored = entry.stored.min(limits.buffer) as usize;
        source.read(at, stored + scan::REACH, block).map_err(|e| Error::new(at, e.into()))?;
        let inside = BUFFER_HEADER_SIZE..stored;
        let Some((len, next)) =
            scan::within(block.as_ref(), inside, self.layout.capacity, Some(&self.layout))
        else {
            return Ok(false);
        };
        let beyond = (len as u32).saturating_add(next.buffer_size);
        let gap = self.leads_on(at, beyond, source, block)?;
        if gap {
            let error = Error::truncated(at, "buffer", entry.stored.into(), len as u64);
            let end = at + len as u64;
            self.behind = Some((end..end, error));
            (entry.stored, entry.cut) = (len as u32, true);
            if !entry.compressed {
                entry.fill = entry.fill.min(entry.stored);
            }
        }
        Ok(gap)
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
        if size > self.layout.capacity.saturating_mul(2) {
            return Ok(false);
        }
        let far = at.saturating_add(size.into());
        let size = size as usize;
        let (bytes, end) = if let Some(end) = source.size() {
            source.read(far, BUFFER_HEADER_SIZE, block).map_err(|e| Error::new(far, e.into()))?;
            (block.as_ref(), end == far)
        } else {
            let len = size + BUFFER_HEADER_SIZE;
            source.read(at, len, block).map_err(|e| Error::new(at, e.into()))?;
            let bytes = block.as_ref();
            (bytes.get(size..).unwrap_or_default(), bytes.len() == size)
        };
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
        log: &Log,
    ) -> Result<()> {
        let at = entry.offset;
        let len = if whole || source.size().is_none() { entry.stored as usize } else { HEAD };
        source.read(at, len, block).map_err(|e| Error::new(at, e.into()))?;
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
            self.behind = Some((at + have..at + need, error));
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
    /// sound buffer has to be looked for. `None` when the walk has been set to go on there. `hole`
    /// is where a run of nothing ends in which the header stands.
    fn rebuild<S: Source>(
        &mut self,
        error: Error,
        hole: Option<u64>,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Option<BufferEntry>> {
        let at = self.at;
        let preallocated = self.layout.mode.has(LogFileMode::PREALLOCATE);
        let stated = u64::from(self.layout.stated_buffers);
        if preallocated && stated > 1 && self.count >= stated {
            // Space that the session reserved and never used holds whatever the disk held.
            let len = source.size().map_or(0, |size| size.saturating_sub(at));
            self.notes.push(Note::UnusedTail { offset: at, len });
            self.done = true;
            return Ok(None);
        }
        if log.mode == Mode::Strict {
            return Err(error);
        }
        let near = self.near(limits);
        // Where the hole is as long as the buffer, there are no records.
        let hole = hole.filter(|end| end - at >= near as u64);
        if hole.is_none() && near > BUFFER_HEADER_SIZE {
            source.read(at, near + scan::REACH, block).map_err(|e| Error::new(at, e.into()))?;
            let bytes = block.as_ref();
            let next = scan::within(bytes, 1..near, self.layout.capacity, Some(&self.layout));
            let len = match next {
                Some((len, _)) => len,
                None if self.layout.spacing != 0 => near.min(bytes.len()),
                None => 0,
            };
            let sizes = BufferHeader::parse(bytes, at).ok().and_then(|h| h.resized(len as u32));
            let (bytes, start) = (bytes.get(..len).unwrap_or_default(), self.layout.start);
            let tail = walk::tail(bytes, len);
            if walk::resync(bytes, BUFFER_HEADER_SIZE, len, start, tail).is_some() {
                self.fault(at..at + BUFFER_HEADER_SIZE as u64, error, log)?;
                if let Some(header) = sizes {
                    return Ok(Some(BufferEntry::of(&header, at)));
                }
                let buffer_type = if at == 0 { BufferType::HEADER } else { BufferType::GENERIC };
                return Ok(Some(BufferEntry {
                    offset: at,
                    first_stamp: i64::MIN,
                    stored: len as u32,
                    fill: len as u32,
                    buffer_type,
                    rebuilt: true,
                    ..BufferEntry::default()
                }));
            }
        }
        // A header may begin with the last bytes of what looks like a hole.
        let from = hole.map_or(at, |end| end - scan::REACH as u64).max(at) + 1;
        let scan = scan::next_buffer(source, from, self.layout.capacity, Some(&self.layout))?;
        let end = scan.offset();
        self.done = matches!(scan, Scan::End(_));
        self.fault(at..end, error, log)?;
        self.at = end;
        Ok(None)
    }

    /// Bytes from a buffer in which its records are looked for although its header is not sound:
    /// to the next one, where that is known.
    fn near(&self, limits: &Limits) -> usize {
        let packed_buffer_0 = self.at == 0 && self.layout.spacing == 0;
        let len = if packed_buffer_0 { BUFFER_0_MOST as u32 } else { self.layout.spacing };
        len.min(limits.buffer) as usize
    }

    /// Whether a run of zeros or filler stands where a buffer header should: where it ends, and
    /// whether that is the end of the file. Only such a tail is space that was reserved and never
    /// used; a buffer lost in the middle is a fault.
    fn nothing<S: Source>(
        &self,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
    ) -> Result<Option<(u64, bool)>> {
        let head = block.as_ref();
        let byte = head.first().copied().unwrap_or(1);
        let head = head.get(..BUFFER_HEADER_SIZE).unwrap_or(head);
        if self.count == 0 || !matches!(byte, 0 | FILLER) || head.iter().any(|&b| b != byte) {
            return Ok(None);
        }
        // A pipe forgets what lies behind, so all that may be looked at again is read at once: a
        // buffer's length at first, and then always the end of the last piece as well.
        let mut at = self.at;
        let mut len = self.near(limits).max(1 << 16) + scan::REACH;
        loop {
            source.read(at, len, block).map_err(|e| Error::new(at, e.into()))?;
            let bytes = block.as_ref();
            if let Some(run) = bytes.iter().position(|&b| b != byte) {
                return Ok(Some((at + run as u64, false)));
            }
            if bytes.len() < len {
                return Ok(Some((at + bytes.len() as u64, true)));
            }
            at += (len - scan::REACH) as u64;
            len = 1 << 20;
        }
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
        if found < u64::from(stated) && !circular && !self.damaged {
            let missing = u64::from(stated) - found;
            let need = missing.saturating_mul(u64::from(self.layout.spacing.max(1)));
            self.fault(end..end, Error::truncated(end, "further buffers", need, 0), log)?;
        } else {
            self.notes.push(Note::BufferCount { stated, found });
        }
        Ok(())
    }
}

fn beyond_limit(entry: &BufferEntry, limits: &Limits) -> Error {
    let need = entry.stored.max(entry.fill).into();
    let kind = ErrorKind::Limit { what: "a buffer", need, limit: limits.buffer.into() };
    Error::new(entry.offset, kind)
}

/// Bytes of a buffer 0 that holds no more than a header event: the event's size has 16 bits.
const BUFFER_0_MOST: usize = BUFFER_HEADER_SIZE + 0x1_0000;

/// Buffer 0 and the header event in it. In salvage mode the event is enough.
fn open_buffer_0(bytes: &[u8], limits: &Limits, mode: Mode) -> Result<(BufferHeader, FileHeader)> {
    if bytes.is_empty() {
        return Err(Error::new(0, ErrorKind::NotEtl("it is empty")));
    }
    let buffer = BufferHeader::parse(bytes, 0)?;
    let records = bytes.get(BUFFER_HEADER_SIZE..).unwrap_or_default();
    let header = FileHeader::parse(records, BUFFER_HEADER_SIZE as u64)?;
    if mode == Mode::Strict {
        buffer.check(0, limits.buffer)?;
    }
    Ok((buffer, header))
}

/// The headers of buffer 0 and of the one behind it, where both look sound.
fn sound_buffer_0<S: Source>(
    source: &mut S,
    limits: &Limits,
) -> Result<Option<(BufferHeader, BufferHeader)>> {
    let mut block = S::Block::default();
    source.read(0, BUFFER_HEADER_SIZE, &mut block)?;
    let Ok(buffer) = BufferHeader::parse(block.as_ref(), 0) else { return Ok(None) };
    if !buffer.is_header() || !buffer.is_plausible(limits.buffer) {
        return Ok(None);
    }
    let len = buffer.buffer_size as usize;
    source.read(0, len + scan::REACH, &mut block)?;
    let next = scan::candidate(block.as_ref(), len, limits.buffer, None);
    Ok(next.map(|next| (buffer, next)))
}

/// What is known without the header event, from a data buffer.
fn unknown_header(buffer: &BufferHeader) -> FileHeader {
    if buffer.is_compressed() {
        FileHeader { mode: LogFileMode::COMPRESSED, ..FileHeader::unknown(0) }
    } else {
        FileHeader::unknown(buffer.buffer_size)
    }
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
