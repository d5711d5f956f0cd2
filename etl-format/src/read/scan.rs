//! The search for the next intact buffer after damage.

use core::ops::Range;

use crate::constants::BUFFER_HEADER_SIZE;
use crate::constants::offset::buffer;
use crate::cursor::Bytes;
use crate::error::{Error, Result};
use crate::headers::BufferHeader;

use super::index::Layout;
use super::source::Source;

/// Bytes per read: few at first, because the next buffer is often near, then more.
const WINDOWS: [usize; 2] = [1 << 12, 1 << 20];

/// Bytes that are needed to judge a candidate.
pub(crate) const REACH: usize = BUFFER_HEADER_SIZE + 8;

/// The result of a scan.
pub(crate) enum Scan {
    /// A plausible buffer at this offset.
    Buffer(u64, BufferHeader),
    /// The end of the source.
    End(u64),
}

impl Scan {
    /// Where the scan ended.
    pub fn offset(&self) -> u64 {
        match *self {
            Scan::Buffer(at, _) | Scan::End(at) => at,
        }
    }
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
    let [mut window, most] = WINDOWS;
    loop {
        // The windows overlap by the bytes that a candidate needs.
        source
            .read(base, window + REACH, &mut block)
            .map_err(|e| Error::new(base, e.into()))?;
        let bytes = block.as_ref();
        if let Some((at, header)) = within(bytes, 0..window, capacity, layout) {
            return Ok(Scan::Buffer(base + at as u64, header));
        }
        if bytes.len() < window + REACH {
            return Ok(Scan::End(base + bytes.len() as u64));
        }
        base += window as u64;
        window = (window * 2).min(most);
    }
}

/// The first plausible buffer that begins in this range of bytes in memory.
pub(crate) fn within(
    bytes: &[u8],
    range: Range<usize>,
    capacity: u32,
    layout: Option<&Layout>,
) -> Option<(usize, BufferHeader)> {
    let end = range.end.min(bytes.len());
    (range.start..end).find_map(|at| Some((at, candidate(bytes, at, capacity, layout)?)))
}

/// The buffer that plausibly begins at `at`.
pub(crate) fn candidate(
    bytes: &[u8],
    at: usize,
    capacity: u32,
    layout: Option<&Layout>,
) -> Option<BufferHeader> {
    // The cheapest tests first: no writers inside, a known type, no unknown flags.
    let head: &[u8; BUFFER_HEADER_SIZE] = bytes.get(at..)?.first_chunk()?;
    let &[.., flags_high, type_low, type_high] = head.first_chunk::<0x38>()?;
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
    let packed = header.is_compressed();
    if layout.is_some_and(|l| l.buffers.packed != packed && !header.is_header()) {
        return None;
    }
    if layout.is_some_and(|l| l.buffers.spacing != 0 && header.buffer_size != l.buffers.spacing) {
        return None;
    }
    // Zeros would pass all of the above but the size; records would not follow them.
    let marker = bytes.u32_at(at + BUFFER_HEADER_SIZE)?;
    if header.is_header() {
        return matches!(marker >> 16, 0xc001 | 0xc002).then_some(header);
    }
    let records = header.offset as usize > BUFFER_HEADER_SIZE;
    let trace = matches!(marker >> 24, 0xc0 | 0x90);
    (packed || trace || !records).then_some(header)
}
