//! Looking for the next sound buffer behind damage.

use crate::constants::BUFFER_HEADER_SIZE;
use crate::cursor::Bytes;
use crate::error::{Error, Result};

use super::buffer::BufferHeader;
use super::index::Layout;
use super::source::Source;

/// Bytes looked at in one go.
const WINDOW: usize = 1 << 20;

/// The first plausible buffer at or behind `from`: any offset can be one, since bytes may have
/// gone missing and compressed buffers are packed without alignment.
pub(crate) fn next_buffer<S: Source>(
    source: &mut S,
    from: u64,
    capacity: u32,
    layout: Option<&Layout>,
) -> Result<Option<(u64, BufferHeader)>> {
    let mut block = S::Block::default();
    let mut base = from;
    loop {
        // The windows overlap by what a candidate needs behind its first byte.
        let overlap = BUFFER_HEADER_SIZE + 8;
        source.read(base, WINDOW + overlap, &mut block).map_err(|e| Error::new(base, e.into()))?;
        let bytes = block.as_ref();
        for at in 0..bytes.len().min(WINDOW) {
            if let Some(header) = candidate(bytes, at, capacity, layout) {
                return Ok(Some((base + at as u64, header)));
            }
        }
        if bytes.len() <= WINDOW {
            return Ok(None);
        }
        base += WINDOW as u64;
    }
}

fn candidate(
    bytes: &[u8],
    at: usize,
    capacity: u32,
    layout: Option<&Layout>,
) -> Option<BufferHeader> {
    // The cheapest tests first: no writers inside, a known type, no unknown flags.
    let head: &[u8; BUFFER_HEADER_SIZE] = bytes.get(at..)?.first_chunk()?;
    let &[.., flags_high, type_low, type_high] = head.first_chunk::<0x38>()?;
    if head.u32_at(0x0c)? != 0 || type_low > 7 || type_high != 0 || flags_high != 0 {
        return None;
    }
    let header = BufferHeader::parse(head, 0).ok()?;
    if !header.is_plausible(capacity) {
        return None;
    }
    let packed = header.is_compressed();
    if layout.is_some_and(|l| l.packed != packed && !header.is_header()) {
        return None;
    }
    if layout.is_some_and(|l| l.spacing != 0 && header.buffer_size != l.spacing) {
        return None;
    }
    // Zeros would pass all of the above but the size; records would not follow them.
    let marker = bytes.u32_at(at + BUFFER_HEADER_SIZE)?;
    let records = header.offset as usize > BUFFER_HEADER_SIZE;
    let trace = matches!(marker >> 24, 0xc0 | 0x90);
    (packed || trace || !records).then_some(header)
}
