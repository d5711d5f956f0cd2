//! One buffer in memory, decompressed, and the position of its next record.

use core::hint::black_box;
use std::io;

use crate::compress;
use crate::constants::offset::buffer::{FLAGS, OFFSET, SAVED_OFFSET};
use crate::constants::{
    BUFFER_HEADER_SIZE, CompressionFormat, MAX_EXPANSION, RECORD_ALIGNMENT, RecordKind,
};
use crate::error::{Error, ErrorKind, Result};

use super::damage::Log;
use super::index::{BufferEntry, Layout};
use super::limits::Limits;
use super::record::{Record, RecordLocation};
use super::resync::{Search, is_near};
use super::source::Source;
use super::walk::{self, Found, Stop};

/// Position and timestamp of a record in a buffer: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordRef {
    pub timestamp: i64,
    at: u32,
    /// 0 for the few records whose size does not fit; they are located once more.
    len: u16,
    kind: RecordKind,
    /// [`OWN_TIMESTAMP`] and [`STALE`].
    marks: u8,
}

const OWN_TIMESTAMP: u8 = 1;
const STALE: u8 = 2;

impl RecordRef {
    /// Bytes that one counts for in [`super::Limits::held`]. It is fixed, so that the limit has the
    /// same effect on every machine.
    pub const COST: u64 = 16;

    #[inline(always)]
    fn new(found: Found, timestamp: i64) -> Self {
        let Found {
            at,
            len,
            kind,
            timestamp: own,
        } = found;
        let marks = if own.is_some() { OWN_TIMESTAMP } else { 0 };
        RecordRef {
            timestamp,
            at,
            len: u16::try_from(len).unwrap_or(0),
            kind,
            marks,
        }
    }

    /// Marks the record if its offset is in this list.
    pub fn mark_stale(&mut self, offsets: &[u32]) {
        if offsets.binary_search(&self.at).is_ok() {
            self.marks |= STALE;
        }
    }

    pub fn is_stale(&self) -> bool {
        self.marks & STALE != 0
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of a buffer whose records are located in one go; all first levels of caches hold them.
/// After each such piece, the memory is looked at.
const AHEAD: usize = 1 << 14;

const _: () = assert!(core::mem::size_of::<RecordRef>() as u64 <= RecordRef::COST);

/// Bytes of filler that are read in one go, and from how many on they are read apart.
const PIECE: usize = 1 << 15;

/// Bytes that look like a record and hide others.
struct Hidden {
    at: u32,
    len: u32,
    /// Where the first hidden record begins.
    next: usize,
}

/// A buffer of the trace, held by a reader. `B` is the source's block.
#[derive(Debug, Default)]
pub(crate) struct Loaded<B> {
    /// The bytes as stored in the file.
    pub raw: B,
    /// The decompressed buffer: header and records. It never shrinks, so it is zeroed only once.
    plain: Vec<u8>,
    pub entry: BufferEntry,
    /// Where the records end.
    fill: usize,
    /// From here on, filler ends them too.
    least_fill: usize,
    /// Bytes that were decompressed beyond what the buffer declares.
    grown: usize,
    /// Where the next record begins.
    at: usize,
    /// The timestamp of records before the first one that has its own.
    timestamp: i64,
    /// The timestamp of records before the first timestamp: the session's start.
    start: i64,
    /// Records that were found.
    passed: u64,
    /// Where the filler after the records begins; determined at the first fault.
    tail: Option<usize>,
    /// How many records come before the last fault.
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

    /// Reads the bytes of a buffer that [`Loaded::set`] needs: all of them, or those before the
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
        let sparse = !entry.compressed && stored.saturating_sub(fill) >= PIECE;
        let used = if sparse { fill } else { stored };
        source.read(entry.offset, used, &mut self.raw)?;
        let mut at = used;
        while at < stored {
            let len = PIECE.min(stored - at);
            source.read(entry.offset + at as u64, len, scratch)?;
            if !walk::is_filler(scratch.as_ref()) {
                return source.read(entry.offset, stored, &mut self.raw);
            }
            at += len;
        }
        Ok(())
    }

    /// Takes over the bytes in `self.raw`, which are those of `entry`.
    pub fn set(&mut self, entry: BufferEntry, layout: &Layout, log: &mut Log) -> Result<()> {
        self.entry = entry;
        self.start = layout.start;
        self.fill = entry.fill as usize;
        self.least_fill = entry.least_fill as usize;
        (self.at, self.tail) = (BUFFER_HEADER_SIZE, None);
        (self.passed, self.grown, self.resumed) = (0, 0, 0);
        let has_records = self.fill > BUFFER_HEADER_SIZE;
        if entry.compressed && !entry.layout.packed && has_records && self.is_plain() {
            self.entry.compressed = false;
            let at = entry.offset + FLAGS as u64;
            let expected = "no flag of compression, as the records are not compressed";
            let flags = entry.flags.0.into();
            log.fault(
                at..at + 2,
                Error::invalid(at, "flags of a buffer", flags, expected),
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

    /// Whether only filler follows the records of a buffer that is not compressed. Else the fill is
    /// too small, and the records may go on up to the end of the buffer. Filler does not show that
    /// the last bytes of a record are missing.
    fn check_rest(&mut self, log: &mut Log) -> Result<()> {
        let Loaded { entry, raw, .. } = self;
        let raw = raw.as_ref();
        let from = end_of_records(entry.fill);
        let rest = raw.get(from..).unwrap_or_default();
        let fill = entry.fill as usize;
        let is_filler = walk::is_filler(rest);
        let is_whole = fill.is_multiple_of(RECORD_ALIGNMENT) || walk::is_intact(raw, fill);
        if is_filler && is_whole {
            return Ok(());
        }
        let at = entry.offset + OFFSET as u64;
        let expected = if is_filler {
            "the end of a record"
        } else {
            "a fill that only filler follows"
        };
        let error = Error::invalid(at, "fill of a buffer", entry.fill.into(), expected);
        self.fill = if is_filler {
            from.min(raw.len())
        } else {
            raw.len()
        };
        entry.fill = self.fill as u32;
        log.fault(at..at + 4, error)
    }

    fn decompress(&mut self, log: &mut Log) -> Result<()> {
        let (entry, format) = (self.entry, self.entry.format);
        let raw = self.raw.as_ref();
        let Some((_, packed)) = raw.split_at_checked(BUFFER_HEADER_SIZE) else {
            self.fill = 0;
            return Ok(());
        };
        let expanded = raw.len().saturating_mul(MAX_EXPANSION);
        let declared = self.fill;
        let (made, rest) = unpack(format, raw, packed, &mut self.plain, declared.min(expanded));
        self.fill = made;
        // In a file that is not compressed, filler brings all buffers to the same size.
        let filler = packed.get(packed.len() - rest..).unwrap_or_default();
        let ends = compress::is_end(format, rest)
            || entry.layout.spacing == entry.stored && walk::is_filler(filler);
        if made == declared && ends {
            return Ok(());
        }
        if made == self.least_fill && ends {
            // The header states two fills; the data say which of them is right.
            self.entry.fill = entry.least_fill;
            return Ok(());
        }
        if entry.cut {
            // That bytes are missing is reported already.
            return Ok(());
        }
        let at = entry.offset + SAVED_OFFSET as u64;
        let expected = "the size of the decompressed data";
        let wrong_fill = Error::invalid(at, "fill of a buffer", entry.fill.into(), expected);
        if made == declared {
            let most = expanded.min(entry.layout.capacity as usize);
            let (all, rest) = unpack(format, raw, packed, &mut self.plain, most.max(made));
            if all > declared && compress::is_end(format, rest) {
                (self.fill, self.grown) = (all, all - declared);
                self.entry.fill = all as u32;
                return log.fault(at..at + 4, wrong_fill);
            }
        }
        let intact = compress::before_hole(format, packed);
        if intact.len() < packed.len() {
            (self.fill, _) = unpack(format, raw, intact, &mut self.plain, self.fill);
        }
        let size = |fill: usize| fill.saturating_sub(BUFFER_HEADER_SIZE) as u64;
        let error = if self.fill < declared {
            let format = format.name().unwrap_or("compressed");
            let (produced, declared) = (size(self.fill), size(declared));
            let kind = ErrorKind::Compression {
                format,
                produced,
                declared,
            };
            Error::new(entry.offset, kind)
        } else {
            wrong_fill
        };
        log.fault(entry.offset..entry.offset + u64::from(entry.stored), error)
    }

    /// Fills `records` with the records. Returns whether they are in time order. Then
    /// [`Log::check`] returns the fault that ended them, if there is one.
    ///
    /// # Errors
    /// When the records of the buffer take more memory than `limits` allow.
    pub fn find_records(
        &mut self,
        records: &mut Vec<RecordRef>,
        limits: &Limits,
        log: &mut Log,
    ) -> Result<bool> {
        records.clear();
        let mut warm = self.at;
        let mut ordered = true;
        loop {
            // What the loop over the records changes is not in memory.
            let (data, fill, mut at) = (self.data(), self.fill, self.at);
            let mut last = records.last().map_or(i64::MIN, |last| last.timestamp);
            let irregular = loop {
                if at >= warm && at < fill {
                    break None;
                }
                let found = match walk::record_at(data, at, fill) {
                    Ok(found) => found,
                    Err(stop) => break Some(Err(stop)),
                };
                match found.timestamp {
                    Some(timestamp) if last <= timestamp => last = timestamp,
                    _ => break Some(Ok(found)),
                }
                at = walk::next_at(found.at, found.len);
                records.push(RecordRef::new(found, last));
            };
            self.at = at;
            let Some(irregular) = irregular else {
                limits.check(self.entry.offset)?;
                warm = self.warm(at, AHEAD.min(fill.saturating_sub(at)));
                continue;
            };
            if !self.pass_irregular(irregular, records, log) {
                break;
            }
            ordered = false;
        }
        self.passed = records.len() as u64;
        Ok(ordered || records.is_sorted_by_key(|record| record.timestamp))
    }

    /// Goes over the records for their faults.
    pub fn check_records(&mut self, limits: &Limits, log: &mut Log) -> Result<()> {
        self.find_records(&mut Vec::new(), limits, log)?;
        log.check()
    }

    /// Brings the bytes from `at` into the cache, and returns the offset up to which it did.
    ///
    /// The size of a record says where the next one begins, so a walk through memory that no cache
    /// holds waits for each record. Many lines can be waited for at once.
    #[inline(never)]
    pub fn warm(&self, at: usize, len: usize) -> usize {
        let bytes = self.data().get(at..).unwrap_or_default();
        let lines = bytes.get(..len).unwrap_or(bytes).chunks(LINE);
        black_box(
            lines
                .filter_map(|line| line.first())
                .fold(0, |all, byte| all | byte),
        );
        at + len
    }

    /// The view of a record that was found here.
    #[inline(always)]
    pub fn record_at(&self, record: RecordRef) -> Record<'_> {
        let RecordRef {
            timestamp,
            at,
            kind,
            marks,
            ..
        } = record;
        let own = (marks & OWN_TIMESTAMP != 0).then_some(timestamp);
        let found = Found {
            at,
            len: self.len_of(record),
            kind,
            timestamp: own,
        };
        self.record(found, timestamp).with_stale(record.is_stale())
    }

    #[inline(always)]
    fn len_of(&self, record: RecordRef) -> u32 {
        if record.len == 0 {
            self.large_at(record.at)
        } else {
            record.len.into()
        }
    }

    /// The size of a large record that was found here.
    #[cold]
    fn large_at(&self, at: u32) -> u32 {
        walk::record_at(self.data(), at as usize, self.fill).map_or(0, |found| found.len)
    }

    /// Handles a record that is earlier than the one before it or has no timestamp, or what is no
    /// record. Returns whether to continue.
    #[cold]
    #[inline(never)]
    fn pass_irregular(
        &mut self,
        found: Result<Found, Stop>,
        records: &mut Vec<RecordRef>,
        log: &mut Log,
    ) -> bool {
        // A buffer that ends within a record because the file was cut off, or because its
        // compressed bytes are damaged, is reported already.
        let short = self.fill < self.entry.fill as usize;
        if found.is_err() && short && self.at >= self.fill {
            return false;
        }
        let tail = self
            .tail
            .unwrap_or_else(|| walk::tail(self.data(), self.fill));
        self.tail = Some(tail);
        if found.is_err() && self.at >= tail.max(self.least_fill) && self.least_fill < self.fill {
            return false;
        }
        let search = Search {
            data: self.data(),
            fill: self.fill,
            tail,
        };
        let last = records.last().map_or(self.timestamp, |last| last.timestamp);
        // In a compressed buffer, everything after a fault may come from damaged bytes: what looks
        // like a record is none that was written.
        let packed = self.entry.compressed;
        // Records before the last fault are not searched again, so that this is linear.
        let since = records.get(self.resumed..).unwrap_or_default();
        if !packed && let Some(hidden) = self.hidden(search, found, since, last) {
            return self.uncover(hidden, records, log);
        }
        let stop = match found {
            Ok(found) => {
                self.at = walk::next_at(found.at, found.len);
                records.push(RecordRef::new(found, found.timestamp.unwrap_or(last)));
                return true;
            }
            Err(Stop::End) => return false,
            Err(stop) => stop,
        };
        let next = if packed {
            None
        } else {
            search.resync(self.at + 8, last)
        };
        let range = self.range(self.at, next.unwrap_or(self.fill));
        let known = short && next.is_none();
        if !known && !log.fault_after(records.len() as u64, range, self.error(stop)) {
            return false;
        }
        (self.at, self.resumed) = (next.unwrap_or(self.fill), records.len());
        next.is_some()
    }

    /// The bytes that look like a record and hide others. Either what was `found` is none, or the
    /// last of the records `since` the fault before. `last` is the timestamp before.
    fn hidden(
        &self,
        search: Search<'_>,
        found: Result<Found, Stop>,
        since: &[RecordRef],
        last: i64,
    ) -> Option<Hidden> {
        let hides = |at: u32, len: u32, timestamp: i64, to_end: bool| {
            let range = at as usize..walk::next_at(at, len);
            let next = search.hidden(range, timestamp, to_end)?;
            Some(Hidden { at, len, next })
        };
        let mut before = since.iter().rev();
        let suspect = before
            .next()
            .map(|record| (record.at, self.len_of(*record)));
        match found {
            Ok(Found {
                at, len, timestamp, ..
            }) => suspect
                .zip(timestamp)
                .and_then(|((at, len), timestamp)| hides(at, len, timestamp, true))
                .or_else(|| hides(at, len, last, true)),
            Err(stop) => {
                let near = before.next().map_or(last, |record| record.timestamp);
                let odd = !is_near(last, near);
                let (at, len) = suspect.filter(|_| odd || stop != Stop::End)?;
                hides(at, len, near, odd)
            }
        }
    }

    /// Continues with the records that another one hid, which is the fault.
    fn uncover(&mut self, hidden: Hidden, records: &mut Vec<RecordRef>, log: &mut Log) -> bool {
        let Hidden { at, len, next } = hidden;
        let _ = records.pop_if(|last| last.at == at);
        let range = self.range(at as usize, next);
        let expected = "a size that leads to the next record";
        let error = Error::invalid(range.start, "size of a record", len.into(), expected);
        (self.at, self.resumed) = (next, records.len());
        log.fault_after(records.len() as u64, range, error)
    }

    /// The first timestamp of the records before any fault.
    pub fn first_timestamp(&self) -> Option<i64> {
        walk::first_timestamp(self.data(), self.fill)
    }

    /// Bytes that the buffer takes beyond what its header declares.
    pub fn grown(&self) -> u64 {
        self.grown as u64
    }

    /// Records that were found.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Leaves the buffer; returns the number of records that it had.
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

    fn error(&self, stop: Stop) -> Error {
        let base = self.entry.offset;
        let offset = |at: u32| {
            if self.entry.compressed {
                base
            } else {
                base + u64::from(at)
            }
        };
        match stop {
            Stop::Short { at, need, have } => {
                Error::truncated(offset(at), "record", need.into(), have.into())
            }
            Stop::NoRecord { at, word } => Error::invalid(
                offset(at),
                "first word of a record",
                word.into(),
                "the marker of a record kind",
            ),
            // Not used: the end is no fault.
            Stop::End => Error::truncated(base, "record", 8, 0),
        }
    }

    #[inline(always)]
    fn record(&self, found: Found, timestamp: i64) -> Record<'_> {
        let location = RecordLocation {
            buffer_offset: self.entry.offset,
            sequence_number: self.entry.sequence_number,
            processor: self.entry.processor,
            in_buffer: found.at,
        };
        Record::new(self.data(), found, timestamp, location)
    }
}

/// Where filler may begin in a buffer that is not compressed.
fn end_of_records(fill: u32) -> usize {
    (fill as usize)
        .max(BUFFER_HEADER_SIZE)
        .next_multiple_of(RECORD_ALIGNMENT)
}

/// Decompresses the records of a buffer to `fill` bytes, its header included. Returns the bytes
/// made and the number of bytes of `packed` that were not used. `plain` never shrinks.
fn unpack(
    format: CompressionFormat,
    raw: &[u8],
    packed: &[u8],
    plain: &mut Vec<u8>,
    fill: usize,
) -> (usize, usize) {
    if plain.len() < fill {
        // Not resized: the system has zeroed pages, and nothing has to be copied.
        *plain = vec![0; fill];
    }
    let plain = plain.get_mut(..fill).unwrap_or_default();
    let (Some(from), Some((header, records))) = (
        raw.first_chunk::<BUFFER_HEADER_SIZE>(),
        plain.split_first_chunk_mut(),
    ) else {
        return (0, packed.len());
    };
    *header = *from;
    let (_, done) = compress::decode(format, packed, records);
    (
        BUFFER_HEADER_SIZE + done.produced,
        packed.len().saturating_sub(done.consumed),
    )
}
