//! Opens a trace: buffer 0 and the header event, or what salvage mode uses in their place.

use crate::compress;
use crate::constants::{BUFFER_HEADER_SIZE, CompressionFormat, LogFileMode};
use crate::error::{Error, ErrorKind, Result};
use crate::headers::BufferHeader;
use crate::headers::FileHeader;

use super::damage::{Log, Mode, Note};
use super::index::BufferWalk;
use super::limits::Limits;
use super::scan::{self, Scan};
use super::source::Source;

impl BufferWalk {
    /// Reads the header event; the walk then starts at buffer 0.
    pub fn open<S: Source>(
        source: &mut S,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<(Self, FileHeader)> {
        let mut block = S::Block::default();
        // Nearly always, the first bytes have all of the header event.
        source.read(0, FIRST_BYTES, &mut block)?;
        let mut opened = open_buffer_0(block.as_ref(), limits, log.mode);
        if opened.is_err() && block.as_ref().len() == FIRST_BYTES {
            source.read(0, MAX_BUFFER_0, &mut block)?;
            opened = open_buffer_0(block.as_ref(), limits, log.mode);
        }
        match opened {
            Ok((buffer, header)) => {
                let (mut format, note) = compression(&header, &buffer);
                if note.is_some() {
                    format = format_at(source, 0, buffer.buffer_size as usize, limits)?;
                }
                let mut walk = BufferWalk::at(0, &header, format, limits);
                walk.notes.extend(note);
                walk.notes.extend(header_notes(&header));
                Ok((walk, header))
            }
            Err(error) => Self::open_headless(source, limits, log, error),
        }
    }

    /// Opens a trace whose header event is not readable.
    pub(super) fn open_headless<S: Source>(
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
        let format = format_at(source, at, 0, limits)?;
        let mut walk = BufferWalk::at(at, &header, format, limits);
        walk.fault(0..at, error, log)?;
        Ok((walk, header))
    }

    /// Takes over another file header: the buffers after it may have another size.
    pub(super) fn appended<S: Source>(
        &mut self,
        buffer: &BufferHeader,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
    ) -> Result<()> {
        let at = self.at;
        let len = MAX_BUFFER_0.min(buffer.buffer_size as usize);
        source
            .read(at, len, block)
            .map_err(|e| Error::new(at, e.into()))?;
        let event = block.as_ref().get(BUFFER_HEADER_SIZE..).unwrap_or_default();
        let Ok(header) = FileHeader::parse(event, at) else {
            return Ok(());
        };
        let (format, note) = compression(&header, buffer);
        let next = BufferWalk::at(at, &header, format, limits).layout;
        self.layout.buffers = next.buffers;
        if next.buffers.packed {
            self.layout.format = next.format;
        }
        self.notes.extend(note);
        Ok(())
    }
}

/// Bytes that are read at first.
const FIRST_BYTES: usize = 0x1000;

/// The largest number of bytes of a buffer 0 that holds only a header event, whose size has 16
/// bits.
pub(super) const MAX_BUFFER_0: usize = BUFFER_HEADER_SIZE + 0x1_0000;

/// Buffer 0 and its header event. Salvage mode accepts a damaged buffer header.
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

/// The headers of buffer 0 and of the buffer after it, if both are plausible.
fn sound_buffer_0<S: Source>(
    source: &mut S,
    limits: &Limits,
) -> Result<Option<(BufferHeader, BufferHeader)>> {
    let mut block = S::Block::default();
    source.read(0, BUFFER_HEADER_SIZE, &mut block)?;
    let Ok(buffer) = BufferHeader::parse(block.as_ref(), 0) else {
        return Ok(None);
    };
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
        FileHeader {
            mode: LogFileMode::COMPRESSED,
            ..FileHeader::unknown(0)
        }
    } else {
        FileHeader::unknown(buffer.buffer_size)
    }
}

/// The compression format, from the state of buffer 0.
fn compression(header: &FileHeader, buffer: &BufferHeader) -> (CompressionFormat, Option<Note>) {
    if !header.mode.has(LogFileMode::COMPRESSED) {
        // A compressed buffer in an uncompressed file is assumed to have the common format.
        return (CompressionFormat::XPRESS, None);
    }
    match CompressionFormat(buffer.state.0 as u16) {
        format if FORMATS.contains(&format) => (format, None),
        _ => (
            CompressionFormat::XPRESS,
            Some(Note::CompressionUnnamed {
                state: buffer.state.0,
            }),
        ),
    }
}

/// The formats of compressed buffers, the common one first.
const FORMATS: [CompressionFormat; 3] = [
    CompressionFormat::XPRESS,
    CompressionFormat::LZNT1,
    CompressionFormat::XPRESS_HUFF,
];

/// The format in which the buffer `at` bytes after `base` decompresses to exactly its fill; the
/// common one if none does.
fn format_at<S: Source>(
    source: &mut S,
    base: u64,
    at: usize,
    limits: &Limits,
) -> Result<CompressionFormat> {
    let mut block = S::Block::default();
    let unknown = Ok(CompressionFormat::XPRESS);
    if at > limits.buffer as usize {
        return unknown;
    }
    source.read(base, at + scan::REACH, &mut block)?;
    let buffer = scan::candidate(block.as_ref(), at, limits.buffer, None);
    let Some(buffer) = buffer.filter(BufferHeader::is_compressed) else {
        return unknown;
    };
    let end = at + buffer.buffer_size as usize;
    source.read(base, end, &mut block)?;
    let packed = block
        .as_ref()
        .get(at + BUFFER_HEADER_SIZE..end)
        .unwrap_or_default();
    let mut plain = vec![0; (buffer.fill() as usize).saturating_sub(BUFFER_HEADER_SIZE)];
    let mut fits = |format: &CompressionFormat| {
        let (whole, done) = compress::decode(*format, packed, &mut plain);
        whole.is_some() && compress::is_end(*format, packed.len().saturating_sub(done.consumed))
    };
    Ok(FORMATS
        .into_iter()
        .find(|format| fits(format))
        .unwrap_or(CompressionFormat::XPRESS))
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
