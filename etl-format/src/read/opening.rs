//! Opens a trace: buffer 0 and the header event, or what salvage mode uses instead of them.

use crate::compress::{self, Progress};
use crate::constants::{BUFFER_HEADER_SIZE, CompressionFormat, LogFileMode};
use crate::error::{Error, ErrorKind, Result};
use crate::headers::{BufferHeader, FileHeader};

use super::damage::{Log, Mode, Note};
use super::index::BufferWalk;
use super::limits::Limits;
use super::scan::{self, Scan};
use super::source::Source;

/// A walk at the start of a trace, and the file header.
pub(super) struct Opened {
    pub walk: BufferWalk,
    pub header: FileHeader,
}

impl BufferWalk {
    /// Reads the header event; the walk then starts at buffer 0.
    pub(super) fn open<S: Source>(
        source: &mut S,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<Opened> {
        let mut block = S::Block::default();
        // Nearly always, the first bytes contain the whole header event.
        source.read(0, FIRST_BYTES, &mut block)?;
        let mut buffer_0 = Buffer0::parse(block.as_ref(), limits, log.mode);
        if buffer_0.is_err() && block.as_ref().len() == FIRST_BYTES {
            source.read(0, MAX_BUFFER_0, &mut block)?;
            buffer_0 = Buffer0::parse(block.as_ref(), limits, log.mode);
        }
        let Buffer0 { buffer, header } = match buffer_0 {
            Ok(buffer_0) => buffer_0,
            Err(error) => return Self::open_headless(source, limits, log, error),
        };
        let mut compression = Compression::of(&header, &buffer);
        if compression.note.is_some() {
            let next_buffer = buffer.buffer_size as usize;
            compression.format = detect_format(source, 0, next_buffer, limits)?;
        }
        let mut walk = BufferWalk::new(0, &header, compression.format, limits);
        walk.begins_with_header_event = true;
        walk.notes.extend(compression.note);
        walk.notes.extend(header_notes(&header));
        Ok(Opened { walk, header })
    }

    /// Opens a trace whose header event is not readable.
    pub(super) fn open_headless<S: Source>(
        source: &mut S,
        limits: &Limits,
        log: &mut Log,
        error: Error,
    ) -> Result<Opened> {
        let is_old = matches!(error.kind, ErrorKind::NotEtl(why) if why.contains("XP"));
        if log.mode == Mode::Strict || is_old || error.is_io() {
            return Err(error);
        }
        if let Some(FirstBuffers { buffer_0, next }) = first_buffers(source, limits)? {
            let header = unknown_header(&next);
            let compression = Compression::of(&header, &buffer_0);
            let mut walk = BufferWalk::new(0, &header, compression.format, limits);
            walk.notes.extend(compression.note);
            let event = BUFFER_HEADER_SIZE as u64;
            walk.fault(event..event + 8, error, log)?;
            return Ok(Opened { walk, header });
        }
        let Scan::Buffer(offset, first) = scan::next_buffer(source, 0, limits.buffer, None)? else {
            return Err(error);
        };
        let header = unknown_header(&first);
        let format = detect_format(source, offset, 0, limits)?;
        let mut walk = BufferWalk::new(offset, &header, format, limits);
        walk.fault(0..offset, error, log)?;
        Ok(Opened { walk, header })
    }

    /// Reads a file header in the middle: the buffers after it may have another layout.
    pub(super) fn read_appended_header<S: Source>(
        &mut self,
        buffer: &BufferHeader,
        source: &mut S,
        block: &mut S::Block,
        limits: &Limits,
    ) -> Result<()> {
        let offset = self.position;
        let len = MAX_BUFFER_0.min(buffer.buffer_size as usize);
        source
            .read(offset, len, block)
            .map_err(|e| Error::new(offset, e.into()))?;
        let event = block.as_ref().get(BUFFER_HEADER_SIZE..).unwrap_or_default();
        let Ok(header) = FileHeader::parse(event, offset) else {
            return Ok(());
        };
        let compression = Compression::of(&header, buffer);
        let appended = BufferWalk::new(offset, &header, compression.format, limits).layout;
        self.layout.buffers = appended.buffers;
        if appended.buffers.packed {
            self.layout.format = appended.format;
        }
        self.notes.extend(compression.note);
        Ok(())
    }
}

/// Bytes that are read at first.
const FIRST_BYTES: usize = 0x1000;

/// The largest number of bytes of a buffer 0 that contains only a header event, whose size has 16
/// bits.
pub(super) const MAX_BUFFER_0: usize = BUFFER_HEADER_SIZE + 0x1_0000;

/// The header of buffer 0, and the header event.
struct Buffer0 {
    buffer: BufferHeader,
    header: FileHeader,
}

impl Buffer0 {
    /// Decodes both. Salvage mode accepts a damaged buffer header.
    fn parse(bytes: &[u8], limits: &Limits, mode: Mode) -> Result<Self> {
        if bytes.is_empty() {
            return Err(Error::new(0, ErrorKind::NotEtl("it is empty")));
        }
        let buffer = BufferHeader::parse(bytes, 0)?;
        let records = bytes.get(BUFFER_HEADER_SIZE..).unwrap_or_default();
        let header = FileHeader::parse(records, BUFFER_HEADER_SIZE as u64)?;
        if mode == Mode::Strict {
            buffer.check(0, limits.buffer)?;
        }
        Ok(Buffer0 { buffer, header })
    }
}

/// The headers of the first two buffers.
struct FirstBuffers {
    buffer_0: BufferHeader,
    next: BufferHeader,
}

/// The headers of buffer 0 and of the buffer after it, if both are plausible.
fn first_buffers<S: Source>(source: &mut S, limits: &Limits) -> Result<Option<FirstBuffers>> {
    let mut block = S::Block::default();
    source.read(0, BUFFER_HEADER_SIZE, &mut block)?;
    let Ok(buffer_0) = BufferHeader::parse(block.as_ref(), 0) else {
        return Ok(None);
    };
    if !buffer_0.is_header() || !buffer_0.is_plausible(limits.buffer) {
        return Ok(None);
    }
    let len = buffer_0.buffer_size as usize;
    source.read(0, len + scan::REACH, &mut block)?;
    let next = scan::candidate(block.as_ref(), len, limits.buffer, None);
    Ok(next.map(|next| FirstBuffers { buffer_0, next }))
}

/// The substitute for a header event that is lost, from a data buffer.
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

/// The compression of the buffers after a file header.
struct Compression {
    format: CompressionFormat,
    /// Set if the format is not stated.
    note: Option<Note>,
}

impl Compression {
    /// From the state of the buffer with the file header.
    fn of(header: &FileHeader, buffer: &BufferHeader) -> Self {
        let state = buffer.state.0;
        let stated = CompressionFormat(state as u16);
        if !header.mode.has(LogFileMode::COMPRESSED) {
            // A compressed buffer in an uncompressed file is assumed to have the common format.
            Compression {
                format: CompressionFormat::XPRESS,
                note: None,
            }
        } else if FORMATS.contains(&stated) {
            Compression {
                format: stated,
                note: None,
            }
        } else {
            Compression {
                format: CompressionFormat::XPRESS,
                note: Some(Note::CompressionUnnamed { state }),
            }
        }
    }
}

/// The formats of compressed buffers, the common one first.
const FORMATS: [CompressionFormat; 3] = [
    CompressionFormat::XPRESS,
    CompressionFormat::LZNT1,
    CompressionFormat::XPRESS_HUFF,
];

/// The format in which a buffer decompresses to exactly its fill; the common format if none does.
/// The buffer begins `offset` bytes after `base`, from which on a pipe can be read again.
fn detect_format<S: Source>(
    source: &mut S,
    base: u64,
    offset: usize,
    limits: &Limits,
) -> Result<CompressionFormat> {
    let mut block = S::Block::default();
    let common = CompressionFormat::XPRESS;
    if offset > limits.buffer as usize {
        return Ok(common);
    }
    source.read(base, offset + scan::REACH, &mut block)?;
    let buffer = scan::candidate(block.as_ref(), offset, limits.buffer, None);
    let Some(buffer) = buffer.filter(BufferHeader::is_compressed) else {
        return Ok(common);
    };
    let end = offset + buffer.buffer_size as usize;
    source.read(base, end, &mut block)?;
    let packed = block.as_ref().get(offset + BUFFER_HEADER_SIZE..end);
    let packed = packed.unwrap_or_default();
    let mut plain = vec![0; (buffer.fill() as usize).saturating_sub(BUFFER_HEADER_SIZE)];
    for format in FORMATS {
        let mut progress = Progress::default();
        let whole = compress::decode(format, packed, &mut plain, &mut progress);
        let unused = packed.len().saturating_sub(progress.consumed);
        if whole.is_some() && compress::is_end(format, unused) {
            return Ok(format);
        }
    }
    Ok(common)
}

fn header_notes(header: &FileHeader) -> Vec<Note> {
    let mut notes = Vec::new();
    if !header.is_closed() {
        notes.push(Note::Unclosed);
    }
    if header.events_lost != 0 {
        notes.push(Note::EventsLost(header.events_lost));
    }
    if header.buffers_lost != 0 {
        notes.push(Note::BuffersLost(header.buffers_lost));
    }
    let stated = header.stated_pointer_size;
    if stated != header.pointer_size.bytes() as u32 {
        notes.push(Note::PointerSize { stated });
    }
    notes
}
