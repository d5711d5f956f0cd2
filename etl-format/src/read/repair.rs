//! Continues after damaged buffers, and salvages as much of them as possible.

use crate::Ticks;
use core::ops::Range;

use crate::constants::{BUFFER_HEADER_SIZE, BufferType, FILLER, LogFileMode};
use crate::error::{Error, Result};
use crate::headers::BufferHeader;

use super::damage::{Log, Mode, Note};
use super::index::{BufferEntry, BufferWalk};
use super::limits::Limits;
use super::opening::MAX_BUFFER_0;
use super::resync::Search;
use super::scan::{self, Scan};
use super::source::Source;
use super::walk;

/// Bytes that are searched for a buffer first.
const FIRST_WINDOW: usize = 1 << 12;

impl BufferWalk {
    /// Ends a buffer early where its size does not lead to another buffer but a buffer begins
    /// inside it: bytes are missing. Returns the fault.
    pub(super) fn shorten<S: Source>(
        &self,
        entry: &mut BufferEntry,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
    ) -> Result<Option<Error>> {
        let at = entry.offset;
        let inside = BUFFER_HEADER_SIZE..entry.stored.min(limits.buffer) as usize;
        let Some((len, next)) = self.next_inside(at, inside, source, block)? else {
            return Ok(None);
        };
        let beyond = (len as u32).saturating_add(next.buffer_size);
        if !self.leads_on(at, beyond, source, block)? {
            return Ok(None);
        }
        let error = Error::truncated(at, "buffer", entry.stored.into(), len as u64);
        (entry.stored, entry.cut) = (len as u32, true);
        if !entry.compressed {
            entry.fill = entry.fill.min(entry.stored);
        }
        Ok(Some(error))
    }

    /// The first buffer that begins within these bytes after `at`. `block` then holds the bytes up
    /// to it: the next buffer is often near, and all of them may be many.
    fn next_inside<S: Source>(
        &self,
        at: u64,
        inside: Range<usize>,
        source: &mut S,
        block: &mut S::Block,
    ) -> Result<Option<(usize, BufferHeader)>> {
        let (mut from, mut window) = (inside.start, FIRST_WINDOW);
        loop {
            let end = inside.end.min(window);
            source
                .read(at, end + scan::REACH, block)
                .map_err(|e| Error::new(at, e.into()))?;
            let (bytes, layout) = (block.as_ref(), &self.layout);
            let found = scan::within(bytes, from..end, layout.buffers.capacity, Some(layout));
            if found.is_some() || end == inside.end || bytes.len() < end + scan::REACH {
                return Ok(found);
            }
            (from, window) = (end, window.saturating_mul(2));
        }
    }

    /// Whether a buffer begins, or the file ends, `size` bytes after `at`.
    pub(super) fn leads_on<S: Source>(
        &self,
        at: u64,
        size: u32,
        source: &mut S,
        block: &mut S::Block,
    ) -> Result<bool> {
        // A pipe reads forwards only, so all bytes are requested at once.
        if size > self.layout.buffers.capacity.saturating_mul(2) {
            return Ok(false);
        }
        let far = at.saturating_add(size.into());
        let size = size as usize;
        let (bytes, end) = if let Some(end) = source.size() {
            source
                .read(far, BUFFER_HEADER_SIZE, block)
                .map_err(|e| Error::new(far, e.into()))?;
            (block.as_ref(), end == far)
        } else {
            let len = size + BUFFER_HEADER_SIZE;
            source
                .read(at, len, block)
                .map_err(|e| Error::new(at, e.into()))?;
            let bytes = block.as_ref();
            (bytes.get(size..).unwrap_or_default(), bytes.len() == size)
        };
        let header = BufferHeader::parse(bytes, far);
        Ok(end || header.is_ok_and(|h| h.is_plausible(self.layout.buffers.capacity)))
    }

    /// Handles a buffer with a damaged header. If its records are intact, returns an entry for
    /// them. Else moves the walk to the next intact buffer and returns `None`. `hole` is the end of
    /// the run of zeros or filler that covers the header, if there is one.
    pub(super) fn rebuild<S: Source>(
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
        if preallocated && stated > 1 && self.count + self.destroyed >= stated {
            // Reserved and unused space contains old data of the disk.
            let len = source.size().map_or(0, |size| size.saturating_sub(at));
            self.notes.push(Note::UnusedTail { offset: at, len });
            self.done = true;
            return Ok(None);
        }
        if log.mode == Mode::Strict {
            return Err(error);
        }
        let near = self.near(limits);
        // A hole as long as the buffer covers all its records.
        if let Some(end) = hole.filter(|end| end - at >= near as u64) {
            if self.layout.buffers.spacing != 0 && near != 0 {
                // The records of the buffer in which the hole ends may be intact.
                let buffers = (end - at) / near as u64;
                self.destroyed += buffers;
                self.leave(at + buffers * near as u64, error, log)?;
                return Ok(None);
            }
            // A header may begin with the last bytes of what looks like a hole.
            return self.scan(at.max(end - scan::REACH as u64), error, source, log);
        }
        if near <= BUFFER_HEADER_SIZE {
            return self.scan(at, error, source, log);
        }
        let next = self.next_inside(at, 1..near, source, block)?;
        let bytes = block.as_ref();
        let len = match next {
            Some((len, _)) => len,
            None if self.layout.buffers.spacing != 0 => near.min(bytes.len()),
            None => return self.scan(at, error, source, log),
        };
        let sizes = BufferHeader::parse(bytes, at)
            .ok()
            .and_then(|h| h.resized(len as u32));
        let data = bytes.get(..len).unwrap_or_default();
        let search = Search {
            data,
            fill: len,
            tail: walk::tail(data, len),
        };
        if search
            .resync(BUFFER_HEADER_SIZE, self.layout.start)
            .is_none()
        {
            self.destroyed += 1;
            self.leave(at + len as u64, error, log)?;
            return Ok(None);
        }
        self.fault(at..at + BUFFER_HEADER_SIZE as u64, error, log)?;
        if let Some(header) = sizes {
            let entry = BufferEntry::of(&header, at, self.layout.buffers.capacity);
            return Ok(Some(BufferEntry {
                least_fill: 0,
                ..entry
            }));
        }
        let buffer_type = if at == 0 {
            BufferType::HEADER
        } else {
            BufferType::GENERIC
        };
        Ok(Some(BufferEntry {
            offset: at,
            first_timestamp: Ticks::MIN,
            stored: len as u32,
            fill: len as u32,
            buffer_type,
            rebuilt: true,
            ..BufferEntry::default()
        }))
    }

    /// Leaves a destroyed buffer for the next plausible one after `from`.
    fn scan<S: Source>(
        &mut self,
        from: u64,
        error: Error,
        source: &mut S,
        log: &mut Log,
    ) -> Result<Option<BufferEntry>> {
        let capacity = self.layout.buffers.capacity;
        let scan = scan::next_buffer(source, from + 1, capacity, Some(&self.layout))?;
        self.done = matches!(scan, Scan::End(_));
        self.leave(scan.offset(), error, log)?;
        Ok(None)
    }

    /// Continues at `end`; the bytes up to there are damaged.
    fn leave(&mut self, end: u64, error: Error, log: &mut Log) -> Result<()> {
        self.fault(self.at..end, error, log)?;
        self.at = end;
        Ok(())
    }

    /// The number of bytes in which to search for the records of a buffer with a damaged header: up
    /// to the next buffer, where that is known.
    pub(super) fn near(&self, limits: &Limits) -> usize {
        let packed_buffer_0 = self.at == 0 && self.layout.buffers.spacing == 0;
        let len = if packed_buffer_0 {
            MAX_BUFFER_0 as u32
        } else {
            self.layout.buffers.spacing
        };
        len.min(limits.buffer) as usize
    }

    /// If there is a run of zeros or filler in place of a buffer header: where it ends, and whether
    /// that is the end of the file. At the end of the file it is unused space; elsewhere it is a
    /// fault.
    pub(super) fn nothing<S: Source>(
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
        // A pipe cannot go back, so each read covers all bytes that may be needed again: the length
        // of the buffer in which the hole ends.
        let again = self.near(limits) + scan::REACH;
        let mut at = self.at;
        let mut len = again + (1 << 16);
        loop {
            source
                .read(at, len, block)
                .map_err(|e| Error::new(at, e.into()))?;
            let bytes = block.as_ref();
            if let Some(run) = bytes.iter().position(|&b| b != byte) {
                return Ok(Some((at + run as u64, false)));
            }
            if bytes.len() < len {
                return Ok(Some((at + bytes.len() as u64, true)));
            }
            at += (len - again) as u64;
            len = again + (1 << 20);
        }
    }
}
