//! One buffer in memory, decompressed, and the position of its next record.

use core::hint::black_box;
use std::io;

use crate::compress::{self, Progress};
use crate::constants::offset::buffer::{FLAGS, OFFSET, SAVED_OFFSET};
use crate::constants::{
    BUFFER_HEADER_SIZE, CompressionFormat, MAX_EXPANSION, RECORD_ALIGNMENT, RecordKind,
};
use crate::error::{Error, ErrorKind, Result};

use super::damage::Log;
use super::index::{BufferEntry, Layout};
use super::limits::Limits;
use super::record::{Record, RecordLocation};
use super::resync::{ChainEnd, Search, is_near};
use super::source::Source;
use super::walk::{self, Found, Stop};

/// Offset and timestamp of a record in a buffer: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordRef {
    pub timestamp: i64,
    offset: u32,
    /// 0 for the few records whose size does not fit; they are located again when they are needed.
    len: u16,
    kind: RecordKind,
    /// [`OWN_TIMESTAMP`] and [`STALE`].
    marks: u8,
}

const OWN_TIMESTAMP: u8 = 1;
const STALE: u8 = 2;

impl RecordRef {
    /// Bytes of memory for a record, for [`super::Limits::held`]. The number is fixed, so that the
    /// limit has the same effect on every machine.
    pub const COST: u64 = 16;

    #[inline(always)]
    fn new(found: Found, timestamp: i64) -> Self {
        let Found {
            offset,
            len,
            kind,
            timestamp: own_timestamp,
            ..
        } = found;
        let marks = if own_timestamp.is_some() {
            OWN_TIMESTAMP
        } else {
            0
        };
        RecordRef {
            timestamp,
            offset,
            len: u16::try_from(len).unwrap_or(0),
            kind,
            marks,
        }
    }

    /// Marks the record if its offset is in this list.
    pub fn mark_stale(&mut self, offsets: &[u32]) {
        if offsets.binary_search(&self.offset).is_ok() {
            self.marks |= STALE;
        }
    }

    pub fn is_stale(&self) -> bool {
        self.marks & STALE != 0
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of a buffer whose records are located before the next bytes are loaded into the cache;
/// they fit into the first level of every processor's cache. After each such piece, the memory
/// budget is checked.
const CACHED: usize = 1 << 14;

const _: () = assert!(core::mem::size_of::<RecordRef>() as u64 <= RecordRef::COST);

/// Filler of at least this many bytes is read apart from the records, in pieces of this size.
const PIECE: usize = 1 << 15;

/// Bytes that look like a record and hide others.
struct Hidden {
    offset: u32,
    len: u32,
    /// Where the first hidden record begins.
    next: usize,
}

/// A buffer of the trace in memory. `B` is the source's block.
#[derive(Debug, Default)]
pub(crate) struct Loaded<B> {
    /// The bytes as stored in the file.
    pub raw: B,
    /// The decompressed buffer: header and records. It never shrinks, so it is zeroed only once.
    plain: Vec<u8>,
    pub entry: BufferEntry,
    /// Where the records end.
    fill: usize,
    /// From here on, filler also ends the records.
    min_fill: usize,
    /// Bytes that were decompressed in addition to the bytes that the buffer declares.
    grown: usize,
    /// Where the next record begins.
    position: usize,
    /// The timestamp of records before the first record that has its own.
    timestamp: i64,
    /// The timestamp of all records if none has its own: the session's start.
    start: i64,
    /// Number of the records that were found.
    passed: u64,
    /// Where the filler after the records begins; determined at the first fault.
    tail: Option<usize>,
    /// Number of the records before the last fault.
    resumed: usize,
}

impl<B: AsRef<[u8]>> Loaded<B> {
    /// The buffer: header and records, decompressed.
    #[inline(always)]
    pub fn data(&self) -> &[u8] {
        if self.entry.compressed {
            self.plain.get(..self.fill).unwrap_or_default()
        } else {
            self.raw.as_ref()
        }
    }

    /// Reads the bytes of a buffer that [`Loaded::set`] needs: all of them, or the bytes before the
    /// filler. The filler is read into `scratch`, so that a sparse buffer takes little memory.
    pub fn read<S>(
        &mut self,
        source: &mut S,
        entry: &BufferEntry,
        scratch: &mut B,
    ) -> io::Result<()>
    where
        S: Source<Block = B>,
    {
        let stored = entry.stored as usize;
        let fill = end_of_records(entry.fill);
        let is_sparse = !entry.compressed && stored.saturating_sub(fill) >= PIECE;
        let used = if is_sparse { fill } else { stored };
        source.read(entry.offset, used, &mut self.raw)?;
        let mut offset = used;
        while offset < stored {
            let len = PIECE.min(stored - offset);
            source.read(entry.offset + offset as u64, len, scratch)?;
            if !walk::is_filler(scratch.as_ref()) {
                return source.read(entry.offset, stored, &mut self.raw);
            }
            offset += len;
        }
        Ok(())
    }

    /// Decompresses the bytes of a buffer, which [`Loaded::read`] has read, and goes to its first
    /// record.
    pub fn set(&mut self, entry: BufferEntry, layout: &Layout, log: &mut Log) -> Result<()> {
        self.entry = entry;
        self.start = layout.start;
        self.fill = entry.fill as usize;
        self.min_fill = entry.min_fill as usize;
        self.position = BUFFER_HEADER_SIZE;
        self.tail = None;
        self.passed = 0;
        self.grown = 0;
        self.resumed = 0;
        let has_records = self.fill > BUFFER_HEADER_SIZE;
        if entry.compressed && !entry.layout.packed && has_records && self.is_plain() {
            self.entry.compressed = false;
            let offset = entry.offset + FLAGS as u64;
            let expected = "no flag of compression, as the records are not compressed";
            let flags = entry.flags.0.into();
            log.fault(
                offset..offset + 2,
                Error::invalid(offset, "flags of a buffer", flags, expected),
            )?;
        }
        if self.entry.compressed {
            self.decompress(log)?;
        } else if entry.cut {
            // The buffer ends at the cut.
            self.fill = self.fill.min(self.raw.as_ref().len());
        } else {
            self.check_rest(log)?;
        }
        self.timestamp = self.first_timestamp().unwrap_or(self.start);
        Ok(())
    }

    /// Whether the bytes in the file are records, up to the fill.
    fn is_plain(&self) -> bool {
        walk::is_intact(self.raw.as_ref(), self.fill)
    }

    /// Checks that only filler follows the records of a buffer that is not compressed. Otherwise
    /// the stated fill is too small, and the records may continue up to the end of the buffer.
    /// Filler can also be at the place of the last bytes of a record.
    fn check_rest(&mut self, log: &mut Log) -> Result<()> {
        let Loaded { entry, raw, .. } = self;
        let raw = raw.as_ref();
        let fill = entry.fill as usize;
        let end = end_of_records(entry.fill);
        let rest = raw.get(end..).unwrap_or_default();
        let is_filler = walk::is_filler(rest);
        let is_whole = fill.is_multiple_of(RECORD_ALIGNMENT) || walk::is_intact(raw, fill);
        if is_filler && is_whole {
            return Ok(());
        }
        let offset = entry.offset + OFFSET as u64;
        let expected = if is_filler {
            "the end of a record"
        } else {
            "a fill that only filler follows"
        };
        let error = Error::invalid(offset, "fill of a buffer", entry.fill.into(), expected);
        self.fill = if is_filler {
            end.min(raw.len())
        } else {
            raw.len()
        };
        entry.fill = self.fill as u32;
        log.fault(offset..offset + 4, error)
    }

    fn decompress(&mut self, log: &mut Log) -> Result<()> {
        let entry = self.entry;
        let format = entry.format;
        let raw = self.raw.as_ref();
        let Some((_, packed)) = raw.split_at_checked(BUFFER_HEADER_SIZE) else {
            self.fill = 0;
            return Ok(());
        };
        let max_fill = raw.len().saturating_mul(MAX_EXPANSION);
        let declared = self.fill;
        let unpacked = unpack(format, raw, packed, &mut self.plain, declared.min(max_fill));
        self.fill = unpacked.fill;
        // In a file that is not compressed, filler brings all buffers to the same size.
        let unused = packed.get(packed.len() - unpacked.unused..);
        let is_whole = compress::is_end(format, unpacked.unused)
            || entry.layout.spacing == entry.stored && walk::is_filler(unused.unwrap_or_default());
        if unpacked.fill == declared && is_whole {
            return Ok(());
        }
        if unpacked.fill == self.min_fill && is_whole {
            // The header states two fills; the data show which of them is right.
            self.entry.fill = entry.min_fill;
            return Ok(());
        }
        if entry.cut {
            // The missing bytes are reported already.
            return Ok(());
        }
        let offset = entry.offset + SAVED_OFFSET as u64;
        let expected = "the size of the decompressed data";
        let wrong_fill = Error::invalid(offset, "fill of a buffer", entry.fill.into(), expected);
        if unpacked.fill == declared {
            let capacity = max_fill.min(entry.layout.capacity as usize);
            let all = unpack(format, raw, packed, &mut self.plain, capacity.max(declared));
            if all.fill > declared && compress::is_end(format, all.unused) {
                self.fill = all.fill;
                self.grown = all.fill - declared;
                self.entry.fill = all.fill as u32;
                return log.fault(offset..offset + 4, wrong_fill);
            }
        }
        let intact = compress::before_hole(format, packed);
        if intact.len() < packed.len() {
            self.fill = unpack(format, raw, intact, &mut self.plain, self.fill).fill;
        }
        let error = if self.fill < declared {
            let kind = ErrorKind::Compression {
                format: format.name().unwrap_or("compressed"),
                produced: self.fill.saturating_sub(BUFFER_HEADER_SIZE) as u64,
                declared: declared.saturating_sub(BUFFER_HEADER_SIZE) as u64,
            };
            Error::new(entry.offset, kind)
        } else {
            wrong_fill
        };
        log.fault(entry.offset..entry.offset + u64::from(entry.stored), error)
    }

    /// Replaces `records` by the records of the buffer. Returns whether they are in time order.
    /// Then [`Log::check`] returns the fault that ended them, if there is one.
    ///
    /// # Errors
    /// If the records of the buffer take more memory than `limits` allow.
    pub fn find_records(
        &mut self,
        records: &mut Vec<RecordRef>,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<bool> {
        records.clear();
        let mut cached_end = self.position;
        let mut is_ordered = true;
        loop {
            // The loop over the records changes local variables only, which are in registers.
            let data = self.data();
            let fill = self.fill;
            let mut offset = self.position;
            let mut last = records.last().map_or(i64::MIN, |last| last.timestamp);
            let irregular = loop {
                if offset >= cached_end && offset < fill {
                    break None;
                }
                let found = match walk::record_at(data, offset, fill) {
                    Ok(found) => found,
                    Err(stop) => break Some(Err(stop)),
                };
                match found.timestamp {
                    Some(timestamp) if last <= timestamp => last = timestamp,
                    _ => break Some(Ok(found)),
                }
                if walk::is_suspicious(data, &found) {
                    break Some(Ok(found));
                }
                offset = walk::next_at(found.offset, found.len);
                records.push(RecordRef::new(found, last));
            };
            self.position = offset;
            let Some(irregular) = irregular else {
                limits.check(self.entry.offset)?;
                let len = CACHED.min(fill.saturating_sub(offset));
                self.load_into_cache(offset, len);
                cached_end = offset + len;
                continue;
            };
            if !self.pass_irregular(irregular, records, log) {
                break;
            }
            is_ordered = false;
        }
        self.passed = records.len() as u64;
        Ok(is_ordered || records.is_sorted_by_key(|record| record.timestamp))
    }

    /// Reads all records to report their faults.
    pub fn check_records(&mut self, limits: &Limits, log: &mut Log) -> Result<()> {
        self.find_records(&mut Vec::new(), limits, log)?;
        log.check()
    }

    /// Reads a byte of each line of the cache.
    ///
    /// The size of a record determines where the next one begins, so a walk through memory that is
    /// not cached waits for each record. A processor can wait for many lines at once.
    #[inline(never)]
    fn load_into_cache(&self, offset: usize, len: usize) {
        let bytes = self.data().get(offset..).unwrap_or_default();
        let lines = bytes.get(..len).unwrap_or(bytes).chunks(LINE);
        black_box(
            lines
                .filter_map(|line| line.first())
                .fold(0, |all, byte| all | byte),
        );
    }

    /// The view of a record of this buffer.
    #[inline(always)]
    pub fn record_at(&self, record: RecordRef) -> Record<'_> {
        let RecordRef {
            timestamp,
            offset,
            kind,
            marks,
            ..
        } = record;
        let has_own_timestamp = marks & OWN_TIMESTAMP != 0;
        let found = Found {
            offset,
            len: self.len_of(record),
            kind,
            timestamp: has_own_timestamp.then_some(timestamp),
            is_doubtful: false,
        };
        self.record(found, timestamp).with_stale(record.is_stale())
    }

    #[inline(always)]
    fn len_of(&self, record: RecordRef) -> u32 {
        if record.len == 0 {
            self.large_len(record.offset)
        } else {
            record.len.into()
        }
    }

    /// The size of a large record at an offset.
    #[cold]
    fn large_len(&self, offset: u32) -> u32 {
        walk::record_at(self.data(), offset as usize, self.fill).map_or(0, |found| found.len)
    }

    /// Handles a record that has no timestamp or an earlier one than the record before it, and
    /// bytes that are not a record. Returns whether to continue.
    #[cold]
    #[inline(never)]
    fn pass_irregular(
        &mut self,
        found: Result<Found, Stop>,
        records: &mut Vec<RecordRef>,
        log: &mut Log,
    ) -> bool {
        // If the file was cut off, or the compressed bytes are damaged, the fault is reported
        // already, and the buffer can end within a record.
        let is_short = self.fill < self.entry.fill as usize;
        if found.is_err() && is_short && self.position >= self.fill {
            return false;
        }
        let tail = match self.tail {
            Some(tail) => tail,
            None => walk::tail(self.data(), self.fill),
        };
        self.tail = Some(tail);
        let may_end = self.position >= tail.max(self.min_fill) && self.min_fill < self.fill;
        if found.is_err() && may_end {
            return false;
        }
        let search = Search {
            data: self.data(),
            fill: self.fill,
            tail,
        };
        let last = records.last().map_or(self.timestamp, |last| last.timestamp);
        // In a compressed buffer, everything after a fault may come from damaged bytes: bytes that
        // look like a record are not a record that was written.
        let is_compressed = self.entry.compressed;
        // Records before the last fault are not searched again, so that the time is linear.
        let since_fault = records.get(self.resumed..).unwrap_or_default();
        if !is_compressed && let Some(hidden) = self.hidden(search, found, since_fault, last) {
            return self.uncover(hidden, records, log);
        }
        let stop = match found {
            Ok(found) if has_broken_items(self.data(), &found) => {
                return self.pass_broken_items(found, records, log);
            }
            Ok(found) => {
                self.position = walk::next_at(found.offset, found.len);
                records.push(RecordRef::new(found, found.timestamp.unwrap_or(last)));
                return true;
            }
            Err(Stop::End) => return false,
            Err(stop) => stop,
        };
        let next = if is_compressed {
            None
        } else {
            search.resync(self.position + 8, last)
        };
        let range = self.range(self.position, next.unwrap_or(self.fill));
        let is_reported = is_short && next.is_none();
        if !is_reported && !log.fault_after(records.len() as u64, range, self.error(stop)) {
            return false;
        }
        self.position = next.unwrap_or(self.fill);
        self.resumed = records.len();
        next.is_some()
    }

    /// Leaves out a record whose extended items leave it. Returns whether to continue.
    fn pass_broken_items(&mut self, found: Found, records: &[RecordRef], log: &mut Log) -> bool {
        let next = walk::next_at(found.offset, found.len).min(self.fill);
        let range = self.range(found.offset as usize, next);
        let error = Error::invalid(
            range.start,
            "extended items of a record",
            found.len.into(),
            "items that end within the record",
        );
        self.position = next;
        self.resumed = records.len();
        // In a compressed buffer, what follows may come from damaged bytes.
        log.fault_after(records.len() as u64, range, error) && !self.entry.compressed
    }

    /// The bytes that look like a record and hide others: the record that was `found`, or the last
    /// of the records since the last fault. `last` is the timestamp before `found`.
    fn hidden(
        &self,
        search: Search<'_>,
        found: Result<Found, Stop>,
        since_fault: &[RecordRef],
        last: i64,
    ) -> Option<Hidden> {
        let mut before = since_fault.iter().rev();
        let previous = before.next();
        match found {
            Ok(found) => {
                if let (Some(previous), Some(timestamp)) = (previous, found.timestamp)
                    && timestamp < last
                {
                    let len = self.len_of(*previous);
                    let hidden =
                        hidden_in(search, previous.offset, len, timestamp, ChainEnd::AtEnd);
                    if hidden.is_some() {
                        return hidden;
                    }
                }
                hidden_in(search, found.offset, found.len, last, ChainEnd::AtEnd)
            }
            Err(stop) => {
                let previous = previous?;
                let timestamp = before.next().map_or(last, |record| record.timestamp);
                let is_plausible = is_near(last, timestamp);
                if is_plausible && stop == Stop::End {
                    return None;
                }
                let chain_end = if is_plausible {
                    ChainEnd::Beyond
                } else {
                    ChainEnd::AtEnd
                };
                let len = self.len_of(*previous);
                hidden_in(search, previous.offset, len, timestamp, chain_end)
            }
        }
    }

    /// Continues with the records that another record hid. Its size is the fault.
    fn uncover(&mut self, hidden: Hidden, records: &mut Vec<RecordRef>, log: &mut Log) -> bool {
        let Hidden { offset, len, next } = hidden;
        let _ = records.pop_if(|last| last.offset == offset);
        let range = self.range(offset as usize, next);
        let expected = "a size that leads to the next record";
        let error = Error::invalid(range.start, "size of a record", len.into(), expected);
        self.position = next;
        self.resumed = records.len();
        log.fault_after(records.len() as u64, range, error)
    }

    /// The first timestamp of the records before any fault.
    pub fn first_timestamp(&self) -> Option<i64> {
        walk::first_timestamp(self.data(), self.fill)
    }

    /// Bytes of the buffer in addition to the bytes that its header declares.
    pub fn grown(&self) -> u64 {
        self.grown as u64
    }

    /// Number of the records that were found.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Leaves the buffer, and returns the number of its records.
    pub fn leave(&mut self) -> u64 {
        core::mem::take(&mut self.passed)
    }

    /// File bytes of a part of the buffer.
    fn range(&self, from: usize, to: usize) -> core::ops::Range<u64> {
        let start = self.entry.offset;
        if self.entry.compressed {
            start..start + u64::from(self.entry.stored)
        } else {
            start + from as u64..start + to as u64
        }
    }

    /// File offset of a byte of the buffer; of a compressed buffer always its start.
    fn file_offset(&self, offset: u32) -> u64 {
        if self.entry.compressed {
            self.entry.offset
        } else {
            self.entry.offset + u64::from(offset)
        }
    }

    fn error(&self, stop: Stop) -> Error {
        match stop {
            Stop::Short { offset, need, have } => {
                let offset = self.file_offset(offset);
                Error::truncated(offset, "record", need.into(), have.into())
            }
            Stop::NoRecord { offset, word } => Error::invalid(
                self.file_offset(offset),
                "first word of a record",
                word.into(),
                "the marker of a record kind",
            ),
            // Not used: the end is not a fault.
            Stop::End => Error::truncated(self.entry.offset, "record", 8, 0),
        }
    }

    #[inline(always)]
    fn record(&self, found: Found, timestamp: i64) -> Record<'_> {
        let location = RecordLocation {
            buffer_offset: self.entry.offset,
            sequence_number: self.entry.sequence_number,
            processor: self.entry.processor,
            in_buffer: found.offset,
        };
        Record::new(self.data(), found, timestamp, location)
    }
}

/// Whether a record is an EVENT record whose extended items leave it.
fn has_broken_items(data: &[u8], found: &Found) -> bool {
    matches!(found.kind, RecordKind::EVENT32 | RecordKind::EVENT64)
        && walk::has_broken_items(data, found)
}

/// Where filler may begin in a buffer that is not compressed.
fn end_of_records(fill: u32) -> usize {
    (fill as usize)
        .max(BUFFER_HEADER_SIZE)
        .next_multiple_of(RECORD_ALIGNMENT)
}

/// The records that the bytes of a record hide, whose size is too large.
fn hidden_in(
    search: Search<'_>,
    offset: u32,
    len: u32,
    timestamp: i64,
    chain_end: ChainEnd,
) -> Option<Hidden> {
    let range = offset as usize..walk::next_at(offset, len);
    let next = search.hidden(range, timestamp, chain_end)?;
    Some(Hidden { offset, len, next })
}

/// The result of decompressing a buffer.
struct Unpacked {
    /// Bytes of the decompressed buffer, its header included.
    fill: usize,
    /// Compressed bytes that were not used.
    unused: usize,
}

/// Decompresses the records of a buffer to `fill` bytes, its header included. `plain` never
/// shrinks.
fn unpack(
    format: CompressionFormat,
    raw: &[u8],
    packed: &[u8],
    plain: &mut Vec<u8>,
    fill: usize,
) -> Unpacked {
    if plain.len() < fill {
        // Not resized: the system has zeroed pages, and nothing has to be copied.
        *plain = vec![0; fill];
    }
    let plain = plain.get_mut(..fill).unwrap_or_default();
    if let Some(raw_header) = raw.first_chunk::<BUFFER_HEADER_SIZE>()
        && let Some((header, records)) = plain.split_first_chunk_mut()
    {
        *header = *raw_header;
        let mut progress = Progress::default();
        let _ = compress::decode(format, packed, records, &mut progress);
        Unpacked {
            fill: BUFFER_HEADER_SIZE + progress.produced,
            unused: packed.len().saturating_sub(progress.consumed),
        }
    } else {
        Unpacked {
            fill: 0,
            unused: packed.len(),
        }
    }
}
