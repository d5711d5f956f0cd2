//! The buffers of a file whose records change. Changed buffers are written again, with their
//! numbers, times and flags; everything else in the file stays as it is.

use etl_format::{BufferHeader, Ticks};
use std::collections::{BTreeMap, BTreeSet};

use etl_format::constants::offset::buffer;
use etl_format::constants::{BUFFER_HEADER_SIZE, BufferFlags, LogFileMode, PROCESSOR_INDEX_MASK};
use etl_format::read::{BufferEntry, Trace};
use etl_format::write::fill;

use super::record::{EditableRecord, Home};
use super::{Problem, patch};
use crate::model::{Amount, HeaderField};

/// The buffers of a file, and which of them have changes.
pub(super) struct Buffers {
    found: Vec<BufferEntry>,
    size: usize,
    /// Whether the header counts the buffers of the file.
    counted: bool,
    touched: BTreeSet<Home>,
}

impl Buffers {
    pub fn of(trace: &Trace<&[u8]>) -> Result<Self, Problem> {
        let header = trace.header();
        if header.mode.has(LogFileMode::COMPRESSED) {
            return Err(
                "its buffers are compressed, and only records of other files can be \
                        edited: edit the files before they are merged, or merge them without \
                        compress"
                    .into(),
            );
        }
        Ok(Buffers {
            found: trace.buffers().to_vec(),
            size: usize::try_from(header.buffer_size).unwrap_or(0),
            counted: header.buffers_written > 1,
            touched: BTreeSet::new(),
        })
    }

    /// A buffer gets other records.
    pub fn touch(&mut self, home: Home) {
        self.touched.insert(home);
    }

    /// The buffer of a processor for a record of this time.
    pub fn home(&self, processor: u16, timestamp: i64) -> Home {
        let of_processor = self
            .found
            .iter()
            .filter(|b| !b.is_header() && b.processor == processor);
        let before = of_processor
            .clone()
            .filter(|b| b.first_timestamp <= Ticks::new(timestamp));
        let home = before.max_by_key(|b| b.sequence_number);
        let home = home.or(of_processor.min_by_key(|b| b.sequence_number));
        home.map_or(Home::New(processor), |b| Home::At(b.offset))
    }

    /// The file with the changed buffers. If records no longer fit in a buffer, further buffers
    /// follow it, and the numbers of later buffers go up.
    pub fn write(self, bytes: &[u8], records: &[EditableRecord]) -> Result<Vec<u8>, Problem> {
        let mut contents: BTreeMap<Home, Vec<&EditableRecord>> = BTreeMap::new();
        for record in records.iter().filter(|r| self.touched.contains(&r.home)) {
            contents.entry(record.home).or_default().push(record);
        }
        let mut made: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
        // How many buffers are added after the one of a number.
        let mut more: BTreeMap<i64, i64> = BTreeMap::new();
        for entry in self
            .found
            .iter()
            .filter(|b| self.touched.contains(&Home::At(b.offset)))
        {
            let records = contents.remove(&Home::At(entry.offset)).unwrap_or_default();
            let old = part(bytes, entry.offset, entry.offset + u64::from(entry.stored));
            let buffers = self.rebuilt(&BufferHeader::parse(old, entry.offset)?, &records)?;
            let further = i64::try_from(buffers.len())
                .unwrap_or(i64::MAX)
                .saturating_sub(1);
            if further > 0 {
                *more.entry(entry.sequence_number).or_default() += further;
            }
            made.insert(entry.offset, buffers);
        }
        let mut sum = 0_i64;
        for added in more.values_mut() {
            sum = sum.saturating_add(*added);
            *added = sum;
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        let mut last = 0;
        for entry in &self.found {
            let end = entry.offset.saturating_add(entry.stored.into());
            out.extend_from_slice(part(bytes, at, entry.offset));
            let written = match made.remove(&entry.offset) {
                Some(written) => written,
                None => vec![part(bytes, entry.offset, end).to_vec()],
            };
            for (nth, mut written) in (0..).zip(written) {
                if !entry.is_header() {
                    let before = more.range(..entry.sequence_number).next_back();
                    let added = before.map_or(0, |(_, sum)| *sum);
                    let number = entry
                        .sequence_number
                        .saturating_add(added)
                        .saturating_add(nth);
                    put(&mut written, buffer::SEQUENCE, &number.to_le_bytes());
                    last = number.max(last);
                }
                out.extend_from_slice(&written);
            }
            at = end;
        }
        let added = self.add_new(bytes, &contents, last, &mut out)?;
        out.extend_from_slice(part(bytes, at, bytes.len() as u64));
        let further = sum.saturating_add(added);
        if self.counted && further > 0 {
            patch::header(&mut out, HeaderField::BUFFERS, Amount::Raise(further))?;
        }
        Ok(out)
    }

    /// Adds buffers of processors that had none. Returns their number.
    fn add_new(
        &self,
        bytes: &[u8],
        contents: &BTreeMap<Home, Vec<&EditableRecord>>,
        mut last: i64,
        out: &mut Vec<u8>,
    ) -> Result<i64, Problem> {
        let mut added = 0_i64;
        for (home, records) in contents {
            let Home::New(processor) = *home else {
                continue;
            };
            let model = self.found.iter().rfind(|b| !b.is_header());
            let model = model.ok_or("the file has no buffer with records")?;
            let mut header =
                BufferHeader::parse(part(bytes, model.offset, bytes.len() as u64), model.offset)?;
            let mask = if header.flags.has(BufferFlags::PROC_INDEX) {
                PROCESSOR_INDEX_MASK
            } else {
                0xff
            };
            if processor > mask {
                return Err(format!("a buffer cannot have the processor {processor}").into());
            }
            header.processor_field = header.processor_field & !mask | processor;
            for mut buffer in self.rebuilt(&header, records)? {
                last = last.saturating_add(1);
                put(&mut buffer, buffer::SEQUENCE, &last.to_le_bytes());
                out.extend_from_slice(&buffer);
                added += 1;
            }
        }
        Ok(added)
    }

    /// A buffer with other records; more than one if they do not fit.
    fn rebuilt(
        &self,
        old: &BufferHeader,
        records: &[&EditableRecord],
    ) -> Result<Vec<Vec<u8>>, Problem> {
        let mut all = Vec::new();
        let mut buffer = vec![0; BUFFER_HEADER_SIZE];
        for record in records {
            let bytes = record.bytes();
            let from = buffer.len().next_multiple_of(8);
            let free = self.size.saturating_sub(from);
            if bytes.len() > free && buffer.len() > BUFFER_HEADER_SIZE {
                all.push(core::mem::replace(&mut buffer, vec![0; BUFFER_HEADER_SIZE]));
            }
            if bytes.len() > self.size.saturating_sub(BUFFER_HEADER_SIZE) {
                let name = record.name();
                let size = self.size;
                return Err(format!("{name} becomes larger than a buffer of {size} bytes").into());
            }
            buffer.resize(buffer.len().next_multiple_of(8), 0);
            buffer.extend_from_slice(bytes);
        }
        all.push(buffer);
        let last = all.len().saturating_sub(1);
        for (nth, buffer) in all.iter_mut().enumerate() {
            let used = u32::try_from(buffer.len().next_multiple_of(8)).unwrap_or(u32::MAX);
            // Losses come before the first record, the end of a flush after the last one.
            let first = BufferFlags::EVENTS_LOST.0 | BufferFlags::BUFFER_LOST.0;
            let off = if nth > 0 { first } else { 0 }
                | if nth < last {
                    BufferFlags::FLUSH_MARKER.0
                } else {
                    0
                };
            let header = BufferHeader {
                saved_offset: used,
                offset: used,
                current_offset: old
                    .current_offset
                    .saturating_sub(old.saved_offset)
                    .saturating_add(used),
                flags: BufferFlags(old.flags.0 & !off),
                ..*old
            };
            put(buffer, 0, &header.to_bytes());
            buffer.resize(usize::try_from(used).unwrap_or(usize::MAX), 0);
            fill(buffer, self.size);
        }
        Ok(all)
    }
}

fn part(bytes: &[u8], from: u64, to: u64) -> &[u8] {
    let len = bytes.len();
    let [from, to] = [from, to].map(|at| usize::try_from(at).map_or(len, |at| at.min(len)));
    bytes.get(from..to).unwrap_or_default()
}

fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at.saturating_add(new.len())) {
        place.copy_from_slice(new);
    }
}
