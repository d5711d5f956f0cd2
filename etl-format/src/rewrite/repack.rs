//! Compresses and decompresses traces buffer by buffer; nothing else changes.
//!
//! Records are copied unchanged. Every buffer keeps its processor, numbers, timestamps and flags,
//! except the flag for compression. The file headers receive the matching mode and version of the
//! log format. Decompressing a compressed trace restores the same bytes if the original had the
//! layout of a session: buffers of one size, with filler, and no bytes after the last buffer.
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
use crate::pool::{Completed, OrderedPool, Take, Work};
use crate::write::BufferCompressor;
use crate::write::MAX_THREADS;
use crate::write::fill;
use crate::write::packing::Packing;
use crate::write::put::{overwrite, unwritable};
use crate::{BufferHeader, FileHeader};

/// Offset of the payload of a header event in the buffer that begins with it.
const HEADER_EVENT: usize = BUFFER_HEADER_SIZE + SystemHeader::SIZE;

/// The result of compressing or decompressing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepackReport {
    /// Number of buffers.
    pub buffers: u64,
    /// Number of buffers that are compressed now.
    pub compressed: u64,
    /// Bytes of the buffers that were read.
    pub bytes_in: u64,
    /// Bytes of the buffers that were written.
    pub bytes_out: u64,
    /// Bytes in use in the buffers, their headers included: the size without filler and
    /// compression.
    pub used: u64,
    /// Whether buffers were compressed before.
    pub was_compressed: bool,
    /// Remarks on the trace that was read.
    pub notes: Vec<Note>,
    /// The mode of the trace, on which the weight of the remarks depends.
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
    /// Compresses a trace, also a trace that is compressed already. A buffer that does not become
    /// shorter stays uncompressed.
    #[must_use]
    pub fn compress(compressor: BufferCompressor) -> Self {
        Repacker {
            compressor: Some(compressor),
            ..Repacker::decompress()
        }
    }

    /// Decompresses a trace. If it is not compressed, only its filler may change.
    #[must_use]
    pub fn decompress() -> Self {
        Repacker::default()
    }

    /// Whether the trace will be compressed.
    #[must_use]
    pub fn compresses(&self) -> bool {
        self.compressor.is_some()
    }

    /// Sets how the trace is read. The bytes written, and an error, are the same for any number of
    /// threads; each has up to eight buffers in memory, at most 4 MiB.
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
    /// If the input is not a trace, or its buffers are damaged; errors of the output. For
    /// decompression, [`crate::ErrorKind::Unwritable`] if a buffer is larger than the size in its
    /// file header, and [`crate::ErrorKind::Limit`] if that size is larger than the limits allow.
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
        let mut repack = Repack {
            output,
            report: RepackReport::default(),
            packing: compressor.map(Packing::new),
            max_buffer: options.limits.buffer,
            buffer_size: 0,
            memory: Vec::new(),
        };
        let read = read_buffers(input, &mut repack, &options, |bytes| {
            if let Some(on_buffer) = &mut on_buffer.0 {
                on_buffer(bytes);
            }
        });
        // Buffers before an error are written before the error is returned.
        repack.write_packed(Take::All)?;
        read?;
        repack.output.flush()?;
        Ok(repack.report)
    }
}

/// Reads all buffers and passes them to the output. At the end, the report has the notes on the
/// trace and its mode.
fn read_buffers<S: Source, W: Write>(
    input: S,
    output: &mut Repack<'_, W>,
    options: &Options,
    mut on_buffer: impl FnMut(u64),
) -> Result<()> {
    let mut buffers = Buffers::open(input, options)?;
    output.buffer_size = buffers.header().buffer_size;
    let threads = options.threads.clamp(1, MAX_THREADS);
    if threads > 1 && buffers.is_compressed() {
        read_parallel(&mut buffers, threads, output, on_buffer)?;
    } else {
        while let Some(&entry) = buffers.next_buffer()? {
            buffers.check_records()?;
            output.add(entry, buffers.bytes())?;
            on_buffer(entry.stored.into());
        }
    }
    output.report.notes = buffers.notes().to_vec();
    output.report.mode = buffers.header().mode;
    Ok(())
}

/// Decompresses buffers.
struct Decompress;

/// A buffer, and the result of decompressing it.
struct DecompressJob {
    stored: Stored,
    result: Result<()>,
}

impl Work for Decompress {
    type Job = DecompressJob;

    fn work(&mut self, job: &mut DecompressJob) {
        job.result = match job.stored.decompress() {
            Ok(()) => job.stored.check_records(),
            Err(error) => Err(error),
        };
    }
}

/// Reads all buffers, which other threads also decompress.
fn read_parallel<S: Source, W: Write>(
    buffers: &mut Buffers<S>,
    threads: usize,
    output: &mut Repack<'_, W>,
    mut on_buffer: impl FnMut(u64),
) -> Result<()> {
    let others = (1..threads).map(|_| Decompress).collect();
    let mut pool: OrderedPool<Decompress, ()> = OrderedPool::new(Decompress, others);
    let mut spare = Vec::new();
    loop {
        let end = match buffers.next_stored(spare.pop()) {
            Ok(Some(stored)) => {
                let bytes = stored.max_bytes();
                let result = Ok(());
                pool.push(DecompressJob { stored, result }, bytes, ());
                None
            }
            Ok(None) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        };
        let take = if end.is_some() {
            Take::All
        } else {
            Take::Finished
        };
        // Earlier buffers come first, because they may also have a fault.
        while let Some(Completed { job, .. }) = pool.pop(take)? {
            job.result?;
            let entry = job.stored.entry();
            output.add(entry, job.stored.bytes())?;
            on_buffer(entry.stored.into());
            spare.push(job.stored);
        }
        if let Some(end) = end {
            return end;
        }
    }
}

/// The output of buffers.
struct Repack<'a, W> {
    output: &'a mut W,
    report: RepackReport,
    packing: Option<Packing<PackedBuffer>>,
    /// The largest buffer that the limits allow.
    max_buffer: u32,
    /// The size of buffers in the file header.
    buffer_size: u32,
    /// Memory for a buffer that is not compressed.
    memory: Vec<u8>,
}

/// A buffer that is being compressed.
struct PackedBuffer {
    header: BufferHeader,
    entry: BufferEntry,
}

impl<W: Write> Repack<'_, W> {
    /// Adds the next buffer of the input, decompressed.
    fn add(&mut self, entry: BufferEntry, bytes: &[u8]) -> Result<()> {
        let used = (entry.fill as usize).min(bytes.len());
        let mut header = BufferHeader::parse(bytes, entry.offset)?;
        header.flags = header.flags.without(BufferFlags::COMPRESSED);
        // A fill beyond the end of a short buffer must not cover filler once the buffer is longer.
        header.saved_offset = header.saved_offset.min(used as u32);
        header.offset = header.offset.min(used as u32);
        let records = bytes.get(BUFFER_HEADER_SIZE..used).unwrap_or_default();
        if entry.is_header()
            && let Ok(event) = FileHeader::parse(records, entry.offset)
        {
            let used = bytes.get(..used).unwrap_or(bytes);
            self.add_header(&event, header, used, &entry)?;
        } else if let Some(packing) = &mut self.packing {
            let mut plain = packing.memory();
            plain.resize(BUFFER_HEADER_SIZE, 0);
            plain.extend_from_slice(records);
            packing.push(plain, PackedBuffer { header, entry });
            self.write_packed(Take::Finished)?;
        } else {
            let size = self.plain_size(&entry)?;
            let mut out = core::mem::take(&mut self.memory);
            out.clear();
            out.resize(BUFFER_HEADER_SIZE, 0);
            out.extend_from_slice(records);
            self.write(&mut header, &mut out, size, entry.offset)?;
            self.memory = out;
        }
        let report = &mut self.report;
        report.was_compressed |= entry.compressed;
        report.bytes_in = report.bytes_in.saturating_add(entry.stored.into());
        report.used = report.used.saturating_add(used as u64);
        Ok(())
    }

    /// Adds a buffer with a file header, whose bytes in use are `used`.
    fn add_header(
        &mut self,
        event: &FileHeader,
        mut header: BufferHeader,
        used: &[u8],
        entry: &BufferEntry,
    ) -> Result<()> {
        // The buffers before it belong to the previous file header.
        self.write_packed(Take::All)?;
        self.buffer_size = event.buffer_size;
        let packing = self.packing.as_ref();
        let format = packing.map(|packing| packing.compressor().format());
        let size = match format {
            Some(_) => used.len().next_multiple_of(SHORT_BUFFER_UNIT),
            None => self.plain_size(entry)?,
        };
        let mut out = core::mem::take(&mut self.memory);
        out.clear();
        out.extend_from_slice(used);
        header.state = set_compression(event, format, &mut out);
        self.write(&mut header, &mut out, size, entry.offset)?;
        self.memory = out;
        Ok(())
    }

    /// Bytes of a buffer that is not compressed: the size in the file header. The header may be a
    /// substitute, so the limit is checked for each buffer.
    fn plain_size(&self, entry: &BufferEntry) -> Result<usize> {
        if self.buffer_size > self.max_buffer {
            let kind = ErrorKind::Limit {
                what: "a plain buffer",
                need: self.buffer_size.into(),
                limit: self.max_buffer.into(),
            };
            return Err(Error::new(entry.offset, kind));
        }
        Ok(self.buffer_size as usize)
    }

    /// Writes buffers that were compressed.
    fn write_packed(&mut self, take: Take) -> Result<()> {
        while let Some(packing) = &mut self.packing
            && let Some(Completed { job, with }) = packing.pop(take)?
        {
            let PackedBuffer { mut header, entry } = with;
            let mut bytes;
            // Readers do not accept a compressed buffer that is larger than the file header states.
            if entry.fill <= self.buffer_size && job.is_worthwhile() {
                header.flags = header.flags | BufferFlags::COMPRESSED;
                // Both are the size without compression.
                header.saved_offset = entry.fill;
                header.offset = entry.fill;
                self.report.compressed += 1;
                bytes = job.packed;
                packing.give_back(job.plain);
            } else {
                bytes = job.plain;
                packing.give_back(job.packed);
            }
            let size = bytes.len();
            self.write(&mut header, &mut bytes, size, entry.offset)?;
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
        size: usize,
        offset: u64,
    ) -> Result<()> {
        let written =
            finish(header, bytes, size, offset).and_then(|()| Ok(self.output.write_all(bytes)?));
        if written.is_err() {
            // No later buffer may follow the missing buffer.
            self.packing = None;
        }
        written?;
        self.report.buffers += 1;
        self.report.bytes_out = self.report.bytes_out.saturating_add(bytes.len() as u64);
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
fn finish(header: &mut BufferHeader, out: &mut Vec<u8>, size: usize, offset: u64) -> Result<()> {
    match u32::try_from(size) {
        Ok(buffer_size) if out.len() <= size => {
            header.buffer_size = buffer_size;
            fill(out, size);
            overwrite(out, 0, &header.to_bytes());
            Ok(())
        }
        _ => Err(Error {
            offset,
            ..unwritable("the buffer is larger than the file header says buffers are")
        }),
    }
}
