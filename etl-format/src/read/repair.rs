//! Continues after damaged buffers, and salvages as much of them as possible.

use core::ops::Range;

use crate::Ticks;
use crate::constants::{BUFFER_HEADER_SIZE, BufferType, FILLER, LogFileMode};
use crate::error::{Error, Result};
use crate::headers::BufferHeader;

use super::damage::{Log, Mode, Note};
use super::index::{BufferEntry, BufferWalk, Hole};
use super::limits::Limits;
use super::opening::MAX_BUFFER_0;
use super::resync::Search;
use super::scan::{self, Candidate, Scan};
use super::source::Source;
use super::walk;

/// Bytes that are searched for a buffer first.
const FIRST_WINDOW: usize = 1 << 12;

impl BufferWalk {
    /// Shortens a buffer whose size does not lead to another buffer, if a buffer begins inside it:
    /// bytes are missing. Returns the fault.
    pub(super) fn shorten<S: Source>(
        &self,
        entry: &mut BufferEntry,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
    ) -> Result<Option<Error>> {
        let offset = entry.offset;
        let inside = BUFFER_HEADER_SIZE..entry.stored.min(limits.buffer) as usize;
        let Some(next) = self.next_inside(offset, inside, source, block)? else {
            return Ok(None);
        };
        let len = next.offset as u32;
        let next_end = len.saturating_add(next.header.buffer_size);
        if !self.leads_on(offset, next_end, source, block)? {
            return Ok(None);
        }
        let error = Error::truncated(offset, "buffer", entry.stored.into(), len.into());
        entry.stored = len;
        entry.cut = true;
        if !entry.compressed {
            entry.fill = entry.fill.min(entry.stored);
        }
        Ok(Some(error))
    }

    /// The first buffer that begins within a range of bytes after `base`. Reads into `block` the
    /// bytes up to it, in growing steps: the next buffer is often near, and the range may be long.
    fn next_inside<S: Source>(
        &self,
        base: u64,
        inside: Range<usize>,
        source: &mut S,
        block: &mut S::Block,
    ) -> Result<Option<Candidate>> {
        let layout = &self.layout;
        let capacity = layout.buffers.capacity;
        let mut start = inside.start;
        let mut window = FIRST_WINDOW;
        loop {
            let end = inside.end.min(window);
            source
                .read(base, end + scan::REACH, block)
                .map_err(|e| Error::new(base, e.into()))?;
            let bytes = block.as_ref();
            let found = scan::within(bytes, start..end, capacity, Some(layout));
            if found.is_some() || end == inside.end || bytes.len() < end + scan::REACH {
                return Ok(found);
            }
            start = end;
            window = window.saturating_mul(2);
        }
    }

    /// Whether a buffer begins, or the file ends, `size` bytes after an offset.
    pub(super) fn leads_on<S: Source>(
        &self,
        offset: u64,
        size: u32,
        source: &mut S,
        block: &mut S::Block,
    ) -> Result<bool> {
        // A pipe reads forwards only, so all bytes are requested at once.
        if size > self.layout.buffers.capacity.saturating_mul(2) {
            return Ok(false);
        }
        let end = offset.saturating_add(size.into());
        if let Some(file_size) = source.size() {
            source
                .read(end, BUFFER_HEADER_SIZE, block)
                .map_err(|e| Error::new(end, e.into()))?;
            return Ok(end == file_size || self.is_plausible(block.as_ref()));
        }
        let size = size as usize;
        source
            .read(offset, size + BUFFER_HEADER_SIZE, block)
            .map_err(|e| Error::new(offset, e.into()))?;
        let bytes = block.as_ref();
        let next = bytes.get(size..).unwrap_or_default();
        Ok(bytes.len() == size || self.is_plausible(next))
    }

    /// Whether the bytes begin with a plausible buffer header.
    fn is_plausible(&self, bytes: &[u8]) -> bool {
        match BufferHeader::parse(bytes, 0) {
            Ok(header) => header.is_plausible(self.layout.buffers.capacity),
            Err(_) => false,
        }
    }

    /// Handles a buffer with a damaged header. If its records are intact, returns an entry for
    /// them. Otherwise moves the walk to the next intact buffer and returns `None`. `hole` covers
    /// the header, if there is one.
    pub(super) fn rebuild<S: Source>(
        &mut self,
        error: Error,
        hole: Option<Hole>,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Option<BufferEntry>> {
        let offset = self.position;
        if self.is_preallocated_tail() {
            // Reserved and unused space contains old data of the disk.
            let len = source.size().map_or(0, |size| size.saturating_sub(offset));
            self.notes.push(Note::UnusedTail { offset, len });
            self.is_done = true;
            return Ok(None);
        }
        if log.mode == Mode::Strict {
            return Err(error);
        }
        let near = self.near(limits);
        // A hole as long as the buffer covers all its records.
        if let Some(Hole { end, .. }) = hole
            && end - offset >= near as u64
        {
            if self.layout.buffers.spacing != 0 && near != 0 {
                // The records of the buffer in which the hole ends may be intact.
                let buffers = (end - offset) / near as u64;
                self.destroyed += buffers;
                self.skip_to(offset + buffers * near as u64, error, log)?;
                return Ok(None);
            }
            // A header may begin with the last bytes of what looks like a hole.
            return self.scan(offset.max(end - scan::REACH as u64), error, source, log);
        }
        if near <= BUFFER_HEADER_SIZE {
            return self.scan(offset, error, source, log);
        }
        let next = self.next_inside(offset, 1..near, source, block)?;
        let bytes = block.as_ref();
        let len = match next {
            Some(next) => next.offset,
            None if self.layout.buffers.spacing != 0 => near.min(bytes.len()),
            None => return self.scan(offset, error, source, log),
        };
        let data = bytes.get(..len).unwrap_or_default();
        if !self.has_records(data) {
            self.destroyed += 1;
            self.skip_to(offset + len as u64, error, log)?;
            return Ok(None);
        }
        self.fault(offset..offset + BUFFER_HEADER_SIZE as u64, error, log)?;
        Ok(Some(self.entry_of_records(data)))
    }

    /// Whether all buffers have been read of a file that had its maximum size from the start.
    fn is_preallocated_tail(&self) -> bool {
        let stated = u64::from(self.layout.stated_buffers);
        self.layout.mode.has(LogFileMode::PREALLOCATE)
            && stated > 1
            && self.count + self.destroyed >= stated
    }

    /// Whether a buffer with a damaged header contains an intact record.
    fn has_records(&self, data: &[u8]) -> bool {
        let search = Search {
            data,
            fill: data.len(),
            tail: walk::tail(data, data.len()),
        };
        search
            .resync(BUFFER_HEADER_SIZE, self.layout.start)
            .is_some()
    }

    /// The entry of a buffer with intact records and a damaged header. If only the sizes in the
    /// header are damaged, the rest of the header is used.
    fn entry_of_records(&self, data: &[u8]) -> BufferEntry {
        let offset = self.position;
        let len = data.len() as u32;
        if let Ok(damaged) = BufferHeader::parse(data, offset)
            && let Some(header) = damaged.resized(len)
        {
            let entry = BufferEntry::of(&header, offset, self.layout.buffers.capacity);
            return BufferEntry {
                min_fill: 0,
                ..entry
            };
        }
        let buffer_type = if offset == 0 {
            BufferType::HEADER
        } else {
            BufferType::GENERIC
        };
        BufferEntry {
            offset,
            first_timestamp: Ticks::MIN,
            stored: len,
            fill: len,
            buffer_type,
            rebuilt: true,
            ..BufferEntry::default()
        }
    }

    /// Skips a destroyed buffer, up to the next plausible buffer after `from`.
    fn scan<S: Source>(
        &mut self,
        from: u64,
        error: Error,
        source: &mut S,
        log: &mut Log,
    ) -> Result<Option<BufferEntry>> {
        let capacity = self.layout.buffers.capacity;
        let scan = scan::next_buffer(source, from + 1, capacity, Some(&self.layout))?;
        self.is_done = matches!(scan, Scan::End(_));
        self.skip_to(scan.offset(), error, log)?;
        Ok(None)
    }

    /// Continues at `end`; the bytes before it are damaged.
    fn skip_to(&mut self, end: u64, error: Error, log: &mut Log) -> Result<()> {
        self.fault(self.position..end, error, log)?;
        self.position = end;
        Ok(())
    }

    /// The number of bytes in which to search for the records of a buffer with a damaged header:
    /// the distance to the next buffer; 0 if it is unknown.
    pub(super) fn near(&self, limits: &Limits) -> usize {
        let is_packed_buffer_0 = self.position == 0 && self.layout.buffers.spacing == 0;
        let len = if is_packed_buffer_0 {
            MAX_BUFFER_0 as u32
        } else {
            self.layout.buffers.spacing
        };
        len.min(limits.buffer) as usize
    }

    /// The run of zeros or filler at the place of a buffer header, if there is one. At the end of
    /// the file it is unused space; elsewhere it is a fault.
    pub(super) fn hole<S: Source>(
        &self,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
    ) -> Result<Option<Hole>> {
        let head = block.as_ref();
        let byte = head.first().copied().unwrap_or(1);
        let head = head.get(..BUFFER_HEADER_SIZE).unwrap_or(head);
        if self.count == 0 || !matches!(byte, 0 | FILLER) || head.iter().any(|&b| b != byte) {
            return Ok(None);
        }
        // A pipe cannot go back, so each read covers all bytes that may be needed again: the length
        // of the buffer in which the hole ends.
        let again = self.near(limits) + scan::REACH;
        let mut offset = self.position;
        let mut len = again + (1 << 16);
        loop {
            source
                .read(offset, len, block)
                .map_err(|e| Error::new(offset, e.into()))?;
            let bytes = block.as_ref();
            if let Some(run) = bytes.iter().position(|&b| b != byte) {
                return Ok(Some(Hole {
                    end: offset + run as u64,
                    is_at_end_of_file: false,
                }));
            }
            if bytes.len() < len {
                return Ok(Some(Hole {
                    end: offset + bytes.len() as u64,
                    is_at_end_of_file: true,
                }));
            }
            offset += (len - again) as u64;
            len = again + (1 << 20);
        }
    }
}
