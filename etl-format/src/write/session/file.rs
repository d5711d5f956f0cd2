//! Writes the file of a session: buffer 0, the position of each buffer, and the final header.

use crate::headers::BufferHeader;

use super::{Held, Sealed, Session, Style};
use crate::constants::{
    BUFFER_HEADER_SIZE, BufferFlags, BufferState, BufferType, LEGACY_BUFFER_ALIGNMENT, LogFileMode,
    SHORT_BUFFER_UNIT, offset,
};
use crate::error::Result;
use crate::write::buffer::fill;
use crate::write::output::Output;
use crate::write::packing::Packed;
use crate::write::put::{align, overwrite, unwritable};
use crate::write::record::Record;
use crate::{FileTime, Ticks};

/// Bytes of written buffers whose memory is kept for others.
const MAX_SPARE: usize = 4 << 20;

impl<O: Output> Session<O> {
    /// Writes buffer 0 at the start of a file.
    pub(super) fn begin_file(&mut self) -> Result<()> {
        let buffer = self.buffer_zero()?;
        let mode = self.config.header.mode;
        if mode.has(LogFileMode::PREALLOCATE)
            && self.output.is_seekable()
            && let Some(last) = self
                .config
                .header
                .maximum_bytes()
                .and_then(|n| n.checked_sub(1))
        {
            self.output.write_at(last, &[0])?;
        }
        self.output.write_at(0, &buffer)?;
        self.at = buffer.len() as u64;
        self.buffers = 1;
        self.summary.buffers_written += 1;
        Ok(())
    }

    /// Buffer 0 with the header as it is now.
    fn buffer_zero(&self) -> Result<Vec<u8>> {
        let size = self.config.header.buffer_size as usize;
        let mut out = vec![0; BUFFER_HEADER_SIZE];
        self.config.header.encode(&mut out)?;
        let header_end = out.len();
        let extras = self.config.extras();
        if !extras.is_empty() {
            align(&mut out);
            out.extend_from_slice(extras);
        }
        let used = out.len().next_multiple_of(8);
        let whole = match &self.packing {
            Some(_) => used.next_multiple_of(SHORT_BUFFER_UNIT),
            None => size,
        };
        if used > whole {
            return Err(unwritable(
                "the header and its extras do not fit into one buffer",
            ));
        }
        align(&mut out);
        let used = narrow(used)?;
        let format = self
            .packing
            .as_ref()
            .map(|p| BufferState(p.compressor().format().0.into()));
        let mut header = BufferHeader {
            buffer_size: narrow(whole)?,
            saved_offset: used,
            current_offset: used,
            logger_id: self.config.logger_id,
            state: format.unwrap_or(BufferState::FLUSH),
            offset: used,
            flags: BufferFlags::FLUSH_MARKER | BufferFlags::PROC_INDEX,
            buffer_type: BufferType::HEADER,
            ..BufferHeader::data()
        };
        match self.config.style {
            Style::Kernel => {}
            Style::LegacyKernel => {
                header.saved_offset = 0;
                header.processor_field = legacy_processor(0);
                header.flags = BufferFlags::FLUSH_MARKER;
            }
            Style::Relogger { .. } => {
                header.saved_offset = narrow(header_end.next_multiple_of(8))?;
                header.current_offset = 0;
                header.state = format.unwrap_or(BufferState::FREE);
                header.flags = BufferFlags::FLUSH_MARKER;
            }
        }
        overwrite(&mut out, 0, &header.to_bytes());
        fill(&mut out, whole);
        Ok(out)
    }

    /// Completes a sealed buffer and writes it, or adds it to those to compress.
    pub(super) fn emit(&mut self, mut sealed: Sealed, now: i64) -> Result<()> {
        // A flush is not earlier than the records that it writes, nor than the previous flush.
        let timestamp = now
            .max(self.last_flush)
            .max(sealed.latest.unwrap_or(i64::MIN));
        self.last_flush = timestamp;
        self.latest = self.latest.max(timestamp);
        let used = narrow(sealed.bytes.len())?;
        let size = self.config.header.buffer_size;
        let mut header = BufferHeader {
            buffer_size: size,
            saved_offset: used,
            current_offset: sealed.current_offset,
            timestamp: timestamp.into(),
            sequence_number: sealed.sequence,
            processor_field: sealed.processor,
            logger_id: self.config.logger_id,
            offset: used,
            ..BufferHeader::data()
        };
        match self.config.style {
            Style::Kernel => {}
            Style::LegacyKernel => {
                header.processor_field = legacy_processor(sealed.processor);
                header.flags = BufferFlags(0);
            }
            Style::Relogger { now } => header.timestamp = now.get().into(),
        }
        header.flags = header.flags | sealed.losses;
        let Some(packing) = &mut self.packing else {
            overwrite(&mut sealed.bytes, 0, &header.to_bytes());
            fill(&mut sealed.bytes, size as usize);
            return self.place(sealed.bytes, sealed.events);
        };
        packing.push(sealed.bytes, (header, sealed.events));
        // Before a file may end, all its buffers must be written.
        self.place_packed(self.next_file.is_some())
    }

    /// Writes the buffers that are compressed by now. With `all`, waits for all of them.
    pub(super) fn place_packed(&mut self, all: bool) -> Result<()> {
        while let Some(packing) = &mut self.packing
            && let Some(done) = packing.pop(all || packing.is_full())?
        {
            let worthwhile = done.is_worthwhile();
            let Packed {
                plain,
                packed,
                with: (mut header, events),
            } = done;
            let (mut bytes, other) = if worthwhile {
                header.flags = header.flags | BufferFlags::COMPRESSED;
                (packed, plain)
            } else {
                (plain, packed)
            };
            packing.give_back(other);
            header.buffer_size = narrow(bytes.len())?;
            overwrite(&mut bytes, 0, &header.to_bytes());
            self.place(bytes, events)?;
        }
        Ok(())
    }

    /// Chooses the position of a finished buffer in the file, or counts it as lost.
    fn place(&mut self, bytes: Vec<u8>, events: u64) -> Result<()> {
        let len = bytes.len() as u64;
        let mode = self.config.header.mode;
        let full = self
            .config
            .header
            .maximum_bytes()
            .is_some_and(|maximum| self.at.saturating_add(len) > maximum);
        if full && mode.has(LogFileMode::CIRCULAR) {
            let start = u64::from(self.config.header.start_buffers).max(1);
            self.at = start.saturating_mul(self.config.header.buffer_size.into());
        } else if full && mode.has(LogFileMode::NEWFILE) && self.next_file.is_some() {
            self.roll()?;
        } else if full {
            self.summary.buffers_lost += 1;
            self.summary.events_in_lost_buffers += events;
            self.recycle(bytes);
            return Ok(());
        }
        let at = self.at;
        self.at = at.saturating_add(len);
        self.summary.buffers_written += 1;
        self.summary.events_written += events;
        // A circular file counts those that are overwritten, too.
        self.buffers = self.buffers.saturating_add(1);
        if let Some(done) = self.held.replace(Held { at, bytes }) {
            self.output.write_at(done.at, &done.bytes)?;
            self.recycle(done.bytes);
        }
        Ok(())
    }

    /// Keeps the memory of a buffer for the next ones, but not that of all processors.
    fn recycle(&mut self, bytes: Vec<u8>) {
        let size = (self.config.header.buffer_size as usize).max(1);
        if self.spare.len() < (MAX_SPARE / size).max(1) {
            self.spare.push(bytes);
        }
    }

    /// Ends a file of mode NEWFILE and begins the next.
    fn roll(&mut self) -> Result<()> {
        let Some(mut next) = self.next_file.take() else {
            return Ok(());
        };
        let open = self.config.header.clone();
        self.end_file(None)?;
        self.config.header = open;
        let number = self.summary.files;
        self.summary.files = self.summary.files.saturating_add(1);
        next(&mut self.output, number)?;
        self.next_file = Some(next);
        self.begin_file()
    }

    /// Writes the last buffer with the flush marker, and the header with its final counts.
    pub(super) fn end_file(&mut self, end_time: Option<FileTime>) -> Result<()> {
        if let Some(mut held) = self.held.take() {
            let flags = held.bytes.get(offset::buffer::FLAGS).copied().unwrap_or(0);
            let marked = flags | BufferFlags::FLUSH_MARKER.0 as u8;
            overwrite(&mut held.bytes, offset::buffer::FLAGS, &[marked]);
            self.output.write_at(held.at, &held.bytes)?;
            self.recycle(held.bytes);
        }
        if self.output.is_seekable() {
            // A closed session ends after its start, so that one without events differs from an
            // unclosed one.
            let earliest = self.config.header.start_time.get().saturating_add(1);
            let latest = self.config.header.clock().time(Ticks::new(self.latest));
            let header = &mut self.config.header;
            header.end_time = end_time.unwrap_or(latest.max(FileTime::new(earliest)));
            header.buffers_written = self.buffers;
            header.events_lost = u32::try_from(self.summary.events_lost).unwrap_or(u32::MAX);
            header.buffers_lost = u32::try_from(self.summary.buffers_lost).unwrap_or(u32::MAX);
            let buffer = self.buffer_zero()?;
            self.output.write_at(0, &buffer)?;
        }
        self.output.flush()
    }
}

/// The processor field of Vista and Windows 7: a number of 8 bits and the buffer alignment.
fn legacy_processor(processor: u16) -> u16 {
    processor.min(0xff) | u16::from(LEGACY_BUFFER_ALIGNMENT) << 8
}

fn narrow(len: usize) -> Result<u32> {
    u32::try_from(len).map_err(|_| unwritable("a buffer takes at most 4 GiB"))
}
