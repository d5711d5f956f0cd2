//! Writes the file of a session: buffer 0, the position of each buffer, and the final header.

use crate::headers::BufferHeader;

use super::{Held, PackedBuffer, Sealed, Session, Style};
use crate::constants::{
    BUFFER_HEADER_SIZE, BufferFlags, BufferState, BufferType, LEGACY_BUFFER_ALIGNMENT, LogFileMode,
    SHORT_BUFFER_UNIT, offset,
};
use crate::error::Result;
use crate::pool::{Completed, Take};
use crate::write::buffer::fill;
use crate::write::output::Output;
use crate::write::put::{align, overwrite, unwritable};
use crate::write::record::Record;
use crate::{FileTime, Ticks};

/// The largest number of bytes of memory that is kept for the next buffers.
const MAX_SPARE: usize = 4 << 20;

impl<O: Output> Session<O> {
    /// Writes buffer 0 at the start of a file.
    pub(super) fn begin_file(&mut self) -> Result<()> {
        let buffer = self.buffer_zero()?;
        let header = &self.config.header;
        if header.mode.has(LogFileMode::PREALLOCATE)
            && self.output.is_seekable()
            && let Some(maximum) = header.maximum_bytes()
        {
            self.output.write_at(maximum.saturating_sub(1), &[0])?;
        }
        self.output.write_at(0, &buffer)?;
        self.position = buffer.len() as u64;
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
        let stored = match &self.packing {
            Some(_) => used.next_multiple_of(SHORT_BUFFER_UNIT),
            None => size,
        };
        if used > stored {
            return Err(unwritable(
                "the header and its extras do not fit into one buffer",
            ));
        }
        align(&mut out);
        let used = to_u32(used)?;
        // The state of buffer 0 is the compression format.
        let packing = self.packing.as_ref();
        let format = packing.map(|packing| BufferState(packing.compressor().format().0.into()));
        let mut header = BufferHeader {
            buffer_size: to_u32(stored)?,
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
                header.saved_offset = to_u32(header_end.next_multiple_of(8))?;
                header.current_offset = 0;
                header.state = format.unwrap_or(BufferState::FREE);
                header.flags = BufferFlags::FLUSH_MARKER;
            }
        }
        overwrite(&mut out, 0, &header.to_bytes());
        fill(&mut out, stored);
        Ok(out)
    }

    /// Completes a sealed buffer and writes it, or adds it to the buffers that are compressed.
    pub(super) fn emit(&mut self, mut sealed: Sealed, now: i64) -> Result<()> {
        // A flush is not earlier than the records that it writes or the previous flush.
        let timestamp = now
            .max(self.last_flush)
            .max(sealed.latest.unwrap_or(i64::MIN));
        self.last_flush = timestamp;
        self.latest = self.latest.max(timestamp);
        let used = to_u32(sealed.bytes.len())?;
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
        let buffer = PackedBuffer {
            header,
            events: sealed.events,
        };
        packing.push(sealed.bytes, buffer);
        // Before a file may end, all its buffers must be written.
        self.place_packed(if self.next_file.is_some() {
            Take::All
        } else {
            Take::Finished
        })
    }

    /// Writes buffers that were compressed.
    pub(super) fn place_packed(&mut self, take: Take) -> Result<()> {
        while let Some(packing) = &mut self.packing
            && let Some(Completed { job, with }) = packing.pop(take)?
        {
            let PackedBuffer { mut header, events } = with;
            let mut bytes;
            if job.is_worthwhile() {
                header.flags = header.flags | BufferFlags::COMPRESSED;
                bytes = job.packed;
                packing.give_back(job.plain);
            } else {
                bytes = job.plain;
                packing.give_back(job.packed);
            }
            header.buffer_size = to_u32(bytes.len())?;
            overwrite(&mut bytes, 0, &header.to_bytes());
            self.place(bytes, events)?;
        }
        Ok(())
    }

    /// Chooses the position of a finished buffer in the file, or counts it as lost.
    fn place(&mut self, bytes: Vec<u8>, events: u64) -> Result<()> {
        let len = bytes.len() as u64;
        let header = &self.config.header;
        let is_full = match header.maximum_bytes() {
            Some(maximum) => self.position.saturating_add(len) > maximum,
            None => false,
        };
        if is_full && header.mode.has(LogFileMode::CIRCULAR) {
            let start = u64::from(header.start_buffers).max(1);
            self.position = start.saturating_mul(header.buffer_size.into());
        } else if is_full && header.mode.has(LogFileMode::NEWFILE) && self.next_file.is_some() {
            self.begin_next_file()?;
        } else if is_full {
            self.summary.buffers_lost += 1;
            self.summary.events_in_lost_buffers += events;
            self.recycle(bytes);
            return Ok(());
        }
        let offset = self.position;
        self.position = offset.saturating_add(len);
        self.summary.buffers_written += 1;
        self.summary.events_written += events;
        // A circular file also counts the buffers that are overwritten.
        self.buffers = self.buffers.saturating_add(1);
        if let Some(previous) = self.held.replace(Held { offset, bytes }) {
            self.output.write_at(previous.offset, &previous.bytes)?;
            self.recycle(previous.bytes);
        }
        Ok(())
    }

    /// Keeps the memory of a buffer for the next buffers, up to a limit.
    fn recycle(&mut self, bytes: Vec<u8>) {
        let size = (self.config.header.buffer_size as usize).max(1);
        if self.spare.len() < (MAX_SPARE / size).max(1) {
            self.spare.push(bytes);
        }
    }

    /// Ends a file of mode NEWFILE and begins the next.
    fn begin_next_file(&mut self) -> Result<()> {
        let Some(mut next_file) = self.next_file.take() else {
            return Ok(());
        };
        // Ending the file sets the final counts in the header.
        let header = self.config.header.clone();
        self.end_file(None)?;
        self.config.header = header;
        let number = self.summary.files;
        self.summary.files = self.summary.files.saturating_add(1);
        next_file(&mut self.output, number)?;
        self.next_file = Some(next_file);
        self.begin_file()
    }

    /// Writes the last buffer with the flush marker, and the header with its final counts.
    pub(super) fn end_file(&mut self, end_time: Option<FileTime>) -> Result<()> {
        if let Some(mut held) = self.held.take() {
            if let Some(flags) = held.bytes.get_mut(offset::buffer::FLAGS) {
                *flags |= BufferFlags::FLUSH_MARKER.0 as u8;
            }
            self.output.write_at(held.offset, &held.bytes)?;
            self.recycle(held.bytes);
        }
        if self.output.is_seekable() {
            // A closed session ends after its start, so that a session without events differs from
            // an unclosed session.
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

fn to_u32(len: usize) -> Result<u32> {
    u32::try_from(len).map_err(|_| unwritable("a buffer takes at most 4 GiB"))
}
