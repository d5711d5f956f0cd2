//! Compresses and decompresses traces buffer by buffer; nothing else changes.
//!
//! Records are copied as they are. Every buffer keeps its processor, numbers, timestamps and flags,
//! except the flag for compression. The file headers receive the matching mode and version of the
//! log format. Decompressing a compressed trace restores the same bytes if the original was laid
//! out as by a session: buffers of one size, with filler, and no bytes after the last one.
//!
//! Both read and write forwards only, so input and output may be pipes.

use std::io::Write;

use crate::constants::offset::header_event;
use crate::constants::{
    BUFFER_HEADER_SIZE, BufferFlags, BufferState, CompressionFormat, LogFileMode, SHORT_BUFFER_UNIT,
};
use crate::error::{Error, ErrorKind, Result};
use crate::read::{BufferEntry, Buffers, Note, Options, Source, Stored, SystemHeader};

use super::callback::Callback;
use crate::pool::{OrderedPool, Work};
use crate::write::BufferCompressor;
use crate::write::MAX_THREADS;
use crate::write::fill;
use crate::write::packing::{Packed, Packing};
use crate::write::put::{overwrite, unwritable};
use crate::{BufferHeader, FileHeader};

/// Offset of the payload of a header event in the buffer that begins with it.
const HEADER_EVENT: usize = BUFFER_HEADER_SIZE + SystemHeader::SIZE;

/// The result of compressing or decompressing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepackReport {
    /// Buffers.
    pub buffers: u64,
    /// Buffers that are compressed now.
    pub compressed: u64,
    /// Bytes of the buffers read.
    pub bytes_in: u64,
    /// Bytes of the buffers written.
    pub bytes_out: u64,
    /// Bytes in use in the buffers, their headers included: the size without filler and
    /// compression.
    pub used: u64,
    /// Whether buffers were compressed before.
    pub was_compressed: bool,
    /// Remarks on the trace that was read.
    pub notes: Vec<Note>,
    /// Its mode, which the weight of the remarks depends on.
    pub mode: LogFileMode,
}

/// Compresses or decompresses traces.
///
/// ```
/// use etl_format::compress::Effort;
/// use etl_format::constants::{CompressionFormat, hook};
/// use etl_format::rewrite::repack::Repacker;
/// use etl_format::write::record::PerfInfo;
/// use etl_format::FileHeader;
/// use etl_format::write::{BufferCompressor, Session};
///
/// let mut session = Session::in_memory(FileHeader::new())?;
/// session.write(0, &PerfInfo::new(hook::SAMPLE, 2_000).payload(&[7; 4_000]))?;
/// let plain = session.finish()?;
/// let compressor = BufferCompressor::new(CompressionFormat::XPRESS, Effort::Default)?;
/// let mut packed = Vec::new();
/// Repacker::compress(compressor).run(plain.as_slice(), &mut packed)?;
/// assert!(packed.len() < plain.len());
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Repacker<'f> {
    compressor: Option<BufferCompressor>,
    read: Options,
    on_buffer: Callback<dyn FnMut(u64) + 'f>,
}

impl<'f> Repacker<'f> {
    /// Compresses a trace. One that is compressed already is compressed again. A buffer that does
    /// not become shorter stays uncompressed.
    #[must_use]
    pub fn compress(compressor: BufferCompressor) -> Self {
        Repacker {
            compressor: Some(compressor),
            ..Repacker::decompress()
        }
    }

    /// Decompresses a trace. A trace that is not compressed is only laid out again.
    #[must_use]
    pub fn decompress() -> Self {
        Repacker::default()
    }

    /// Whether the trace will be compressed.
    #[must_use]
    pub fn compresses(&self) -> bool {
        self.compressor.is_some()
    }

    /// How the trace is read. The bytes written, and an error, are the same for any number of
    /// threads; each holds up to eight buffers, at most 4 MiB.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.read = options;
        self
    }

    /// Calls `f` for every buffer that was read, with its bytes in the file.
    #[must_use]
    pub fn on_buffer(mut self, f: impl FnMut(u64) + 'f) -> Self {
        self.on_buffer = Callback(Some(Box::new(f)));
        self
    }

    /// Reads a trace and writes it compressed or decompressed.
    ///
    /// # Errors
    /// When the input is no trace, or its buffers are damaged; errors of the output. For
    /// decompression, [`crate::ErrorKind::Unwritable`] when a buffer is larger than the size in its
    /// file header, and [`crate::ErrorKind::Limit`] when that size is larger than the limits allow.
    pub fn run<S: Source, W: Write>(self, input: S, output: &mut W) -> Result<RepackReport> {
        let Repacker {
            compressor,
            read,
            mut on_buffer,
        } = self;
        // Compression uses the other threads.
        let threads = if compressor.is_some() {
            1
        } else {
            read.threads
        };
        let options = Options { threads, ..read };
        let mut out = Repack {
            output,
            done: RepackReport::default(),
            packing: compressor.map(Packing::new),
            size: 0,
            memory: Vec::new(),
        };
        let read = read_buffers(input, &mut out, &options, |bytes| {
            if let Some(on_buffer) = &mut on_buffer.0 {
                on_buffer(bytes);
            }
        });
        // What was read before an error is written before the error is returned.
        out.write_packed(true)?;
        (out.done.notes, out.done.mode) = read?;
        out.output.flush()?;
        Ok(out.done)
    }
}

/// Reads all buffers and passes them to the output. Returns the remarks on the trace and its mode.
fn read_buffers<S: Source, W: Write>(
    input: S,
    output: &mut Repack<'_, W>,
    options: &Options,
    mut watch: impl FnMut(u64),
) -> Result<(Vec<Note>, LogFileMode)> {
    let mut buffers = Buffers::open(input, options)?;
    output.size = buffers.header().buffer_size;
    let mut take = |entry: BufferEntry, bytes: &[u8]| {
        output.take(entry, bytes, options)?;
        watch(entry.stored.into());
        Ok(())
    };
    let threads = options.threads.clamp(1, MAX_THREADS);
    if threads > 1 && buffers.is_compressed() {
        read_parallel(&mut buffers, threads, take)?;
    } else {
        while let Some(&entry) = buffers.next_buffer()? {
            buffers.check_records()?;
            take(entry, buffers.bytes())?;
        }
    }
    Ok((buffers.notes().to_vec(), buffers.header().mode))
}

/// Decompresses buffers.
struct Decompress;

impl Work for Decompress {
    /// A buffer and the result of decompressing it.
    type Job = (Stored, Result<()>);

    fn work(&mut self, (stored, opened): &mut Self::Job) {
        *opened = stored.decompress().and_then(|()| stored.check_records());
    }
}

/// Reads all buffers; other threads decompress them too.
fn read_parallel<S: Source>(
    buffers: &mut Buffers<S>,
    threads: usize,
    mut take: impl FnMut(BufferEntry, &[u8]) -> Result<()>,
) -> Result<()> {
    let others = (1..threads).map(|_| Decompress).collect();
    let mut pool: OrderedPool<Decompress, ()> = OrderedPool::new(Decompress, others);
    let mut spare = Vec::new();
    loop {
        let next = match buffers.next_stored(spare.pop()) {
            Ok(Some(stored)) => {
                let cost = stored.max_bytes();
                pool.push((stored, Ok(())), cost, ());
                None
            }
            Ok(None) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        };
        // Earlier buffers come first: one of them may have a fault too.
        while let Some(((stored, opened), ())) = pool.pop(next.is_some() || pool.is_full())? {
            opened?;
            take(stored.entry(), stored.bytes())?;
            spare.push(stored);
        }
        if let Some(end) = next {
            return end;
        }
    }
}

/// The output of buffers.
struct Repack<'a, W> {
    output: &'a mut W,
    done: RepackReport,
    packing: Option<Packing<(BufferHeader, BufferEntry)>>,
    /// The size of buffers in the file header.
    size: u32,
    /// Memory for a buffer that is not compressed.
    memory: Vec<u8>,
}

impl<W: Write> Repack<'_, W> {
    /// Takes the next buffer of the input, decompressed.
    fn take(&mut self, entry: BufferEntry, bytes: &[u8], options: &Options) -> Result<()> {
        let format = self
            .packing
            .as_ref()
            .map(|packing| packing.compressor().format());
        let mut out = core::mem::take(&mut self.memory);
        let used = (entry.fill as usize).min(bytes.len());
        let mut header = BufferHeader::parse(bytes, entry.offset)?;
        header.flags = header.flags.without(BufferFlags::COMPRESSED);
        // A fill beyond the end of a short buffer must not cover filler once the buffer is longer.
        header.saved_offset = header.saved_offset.min(used as u32);
        header.offset = header.offset.min(used as u32);
        let records = bytes.get(BUFFER_HEADER_SIZE..used).unwrap_or_default();
        let event = FileHeader::parse(records, entry.offset);
        if let Ok(event) = event.as_ref()
            && entry.is_header()
        {
            // They belong to the header before this one.
            self.write_packed(true)?;
            self.size = event.buffer_size;
            let plain = self.plain_size(&entry, options);
            let whole = match format {
                Some(_) => used.next_multiple_of(SHORT_BUFFER_UNIT),
                None => plain?,
            };
            out.clear();
            out.extend_from_slice(bytes.get(..used).unwrap_or(bytes));
            header.state = set_compression(event, format, &mut out);
            self.write(&mut header, &mut out, whole, entry.offset)?;
        } else if let Some(packing) = &mut self.packing {
            let mut plain = packing.memory();
            plain.resize(BUFFER_HEADER_SIZE, 0);
            plain.extend_from_slice(records);
            packing.push(plain, (header, entry));
            self.write_packed(false)?;
        } else {
            let whole = self.plain_size(&entry, options)?;
            out.clear();
            out.resize(BUFFER_HEADER_SIZE, 0);
            out.extend_from_slice(records);
            self.write(&mut header, &mut out, whole, entry.offset)?;
        }
        self.memory = out;
        let done = &mut self.done;
        done.was_compressed |= entry.compressed;
        done.bytes_in = done.bytes_in.saturating_add(entry.stored.into());
        done.used = done.used.saturating_add(used as u64);
        Ok(())
    }

    /// Bytes of a buffer that is not compressed: the size in the file header. The header may be a
    /// substitute, so the limit is checked for each buffer.
    fn plain_size(&self, entry: &BufferEntry, options: &Options) -> Result<usize> {
        if self.size > options.limits.buffer {
            let (need, limit) = (self.size.into(), options.limits.buffer.into());
            let kind = ErrorKind::Limit {
                what: "a plain buffer",
                need,
                limit,
            };
            return Err(Error::new(entry.offset, kind));
        }
        Ok(self.size as usize)
    }

    /// Writes the buffers that are compressed by now. With `all`, waits for all buffers.
    fn write_packed(&mut self, all: bool) -> Result<()> {
        while let Some(packing) = &mut self.packing
            && let Some(done) = packing.pop(all || packing.is_full())?
        {
            // A buffer larger than the file header says is not accepted if it is compressed.
            let fits = done.with.1.fill <= self.size;
            let worthwhile = fits && done.is_worthwhile();
            let Packed {
                plain,
                packed,
                with: (mut header, entry),
            } = done;
            let (mut bytes, other) = if worthwhile {
                header.flags = header.flags | BufferFlags::COMPRESSED;
                // The size of the records without compression.
                (header.saved_offset, header.offset) = (entry.fill, entry.fill);
                self.done.compressed += 1;
                (packed, plain)
            } else {
                (plain, packed)
            };
            packing.give_back(other);
            let whole = bytes.len();
            self.write(&mut header, &mut bytes, whole, entry.offset)?;
            if let Some(packing) = &mut self.packing {
                packing.give_back(bytes);
            }
        }
        Ok(())
    }

    /// Fills a buffer up to its size in the file, completes its header and writes it.
    fn write(
        &mut self,
        header: &mut BufferHeader,
        bytes: &mut Vec<u8>,
        whole: usize,
        offset: u64,
    ) -> Result<()> {
        let written =
            finish(header, bytes, whole, offset).and_then(|()| Ok(self.output.write_all(bytes)?));
        if written.is_err() {
            // No later buffer may follow the missing one.
            self.packing = None;
        }
        written?;
        self.done.buffers += 1;
        self.done.bytes_out = self.done.bytes_out.saturating_add(bytes.len() as u64);
        Ok(())
    }
}

/// Sets mode and version in the header event at the beginning of a buffer, and returns the state
/// for the buffer's header.
fn set_compression(
    event: &FileHeader,
    format: Option<CompressionFormat>,
    buffer: &mut [u8],
) -> BufferState {
    let mut header = event.clone();
    header.mode = match format {
        Some(_) => header.mode | LogFileMode::COMPRESSED,
        None => header.mode.without(LogFileMode::COMPRESSED),
    };
    header.set_log_version();
    overwrite(
        buffer,
        HEADER_EVENT + header_event::LOG_VERSION,
        &[header.log_major, header.log_minor],
    );
    overwrite(
        buffer,
        HEADER_EVENT + header_event::MODE,
        &header.mode.0.to_le_bytes(),
    );
    match format {
        Some(format) => BufferState(format.0.into()),
        None if header.mode.has(LogFileMode::RELOG) => BufferState::FREE,
        None => BufferState::FLUSH,
    }
}

/// Fills a buffer up to its size in the file and completes its header.
fn finish(header: &mut BufferHeader, out: &mut Vec<u8>, whole: usize, offset: u64) -> Result<()> {
    let larger = || Error {
        offset,
        ..unwritable("the buffer is larger than the file header says buffers are")
    };
    if out.len() > whole {
        return Err(larger());
    }
    fill(out, whole);
    header.buffer_size = u32::try_from(whole).map_err(|_| larger())?;
    overwrite(out, 0, &header.to_bytes());
    Ok(())
}
