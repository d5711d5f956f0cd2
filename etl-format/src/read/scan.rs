//! The search for the next intact buffer after damage.

use core::ops::Range;

use crate::constants::BUFFER_HEADER_SIZE;
use crate::constants::offset::buffer;
use crate::cursor::Bytes;
use crate::error::{Error, Result};
use crate::headers::BufferHeader;

use super::index::Layout;
use super::source::Source;

/// Bytes that are read first: few, because the next buffer is often near.
const FIRST_WINDOW: usize = 1 << 12;
const MAX_WINDOW: usize = 1 << 20;

/// Bytes that are needed to check a candidate.
pub(crate) const REACH: usize = BUFFER_HEADER_SIZE + 8;

/// The result of a scan.
pub(crate) enum Scan {
    /// A plausible buffer at this file offset.
    Buffer(u64, BufferHeader),
    /// The end of the source.
    End(u64),
}

impl Scan {
    /// Where the scan ended.
    pub fn offset(&self) -> u64 {
        match *self {
            Scan::Buffer(offset, _) | Scan::End(offset) => offset,
        }
    }
}

/// A plausible buffer among bytes in memory.
pub(crate) struct Candidate {
    /// Offset in the bytes.
    pub offset: usize,
    pub header: BufferHeader,
}

/// The first plausible buffer at or after `from`. It may begin at any offset, because bytes may be
/// missing and compressed buffers are not aligned.
pub(crate) fn next_buffer<S: Source>(
    source: &mut S,
    from: u64,
    capacity: u32,
    layout: Option<&Layout>,
) -> Result<Scan> {
    let mut block = S::Block::default();
    let mut base = from;
    let mut window = FIRST_WINDOW;
    loop {
        // The windows overlap by the bytes that a candidate needs.
        source
            .read(base, window + REACH, &mut block)
            .map_err(|e| Error::new(base, e.into()))?;
        let bytes = block.as_ref();
        if let Some(Candidate { offset, header }) = within(bytes, 0..window, capacity, layout) {
            return Ok(Scan::Buffer(base + offset as u64, header));
        }
        if bytes.len() < window + REACH {
            return Ok(Scan::End(base + bytes.len() as u64));
        }
        base += window as u64;
        window = (window * 2).min(MAX_WINDOW);
    }
}

/// The first plausible buffer that begins in this range of bytes in memory.
pub(crate) fn within(
    bytes: &[u8],
    range: Range<usize>,
    capacity: u32,
    layout: Option<&Layout>,
) -> Option<Candidate> {
    let end = range.end.min(bytes.len());
    let mut offset = after_zeros(bytes, range.start);
    while offset < end {
        if let Some(header) = candidate(bytes, offset, capacity, layout) {
            return Some(Candidate { offset, header });
        }
        offset = after_zeros(bytes, offset + 1);
    }
    None
}

/// The first offset from `from` on at which a buffer may begin: with a size that is not 0. Long
/// zeros are passed quickly, because a pipe of zeros may have no end.
fn after_zeros(bytes: &[u8], from: usize) -> usize {
    const SIZE_BYTES: usize = size_of::<u32>();
    let rest = bytes.get(from..).unwrap_or_default();
    let zeros = rest.iter().position(|byte| *byte != 0);
    let zeros = zeros.unwrap_or(rest.len());
    from + zeros.saturating_sub(SIZE_BYTES - 1)
}

/// The header of the buffer that plausibly begins at an offset.
pub(crate) fn candidate(
    bytes: &[u8],
    offset: usize,
    capacity: u32,
    layout: Option<&Layout>,
) -> Option<BufferHeader> {
    // The cheapest tests first: no writers inside, a known type, no unknown flags.
    let head: &[u8; BUFFER_HEADER_SIZE] = bytes.get(offset..)?.first_chunk()?;
    let &[.., flags_high, type_low, type_high] = head.first_chunk::<{ buffer::TAIL }>()?;
    if head.u32_at(buffer::REFERENCE_COUNT)? != 0
        || type_low > 7
        || type_high != 0
        || flags_high != 0
    {
        return None;
    }
    let header = BufferHeader::parse(head, 0).ok()?;
    if !header.is_plausible(capacity) {
        return None;
    }
    let is_compressed = header.is_compressed();
    if let Some(Layout { buffers, .. }) = layout {
        let has_other_size = buffers.spacing != 0 && header.buffer_size != buffers.spacing;
        let has_other_kind = buffers.packed != is_compressed && !header.is_header();
        if has_other_size || has_other_kind {
            return None;
        }
    }
    // Zeros pass all checks above except the size; but records do not follow them.
    let marker = bytes.u32_at(offset + BUFFER_HEADER_SIZE)?;
    let is_possible = if header.is_header() {
        matches!(marker >> 16, 0xc001 | 0xc002)
    } else {
        let is_empty = header.offset as usize <= BUFFER_HEADER_SIZE;
        let begins_record = matches!(marker >> 24, 0xc0 | 0x90);
        is_compressed || is_empty || begins_record
    };
    is_possible.then_some(header)
}
