//! Locates the records in a buffer: the hot loop of every reader.
//!
//! The first word of a record contains its kind, which determines the offsets of its size and its
//! timestamp. Nothing else is read here.

use crate::constants::offset::{event, full, kernel, message};
use crate::constants::{
    BUFFER_HEADER_SIZE, EventFlags, FILLER, FILLER_WORD, MARKER_EVENT_TRACE, MARKER_MESSAGE,
    MARKER_TRACE, MessageFlags, RECORD_ALIGNMENT, RecordKind, hook,
};
use crate::cursor::Bytes;

use super::extended::ExtendedItems;
use super::kinds::{EventHeader, FullHeader, InstanceHeader, PerfInfoHeader, SystemHeader};

/// Offsets of size and timestamp, and the size of the header, of a record kind.
#[derive(Clone, Copy)]
struct Shape {
    /// Offset of the 16-bit size: 0 or 4.
    size_at: u8,
    /// Offset of the 64-bit timestamp; 0 for none at a fixed offset.
    timestamp_at: u8,
    /// Bytes of the fixed header.
    header: u8,
}

impl Shape {
    const UNKNOWN: Shape = Shape::new(0, 0, 8);

    const fn new(size_at: usize, timestamp_at: usize, header: usize) -> Self {
        Shape {
            size_at: size_at as u8,
            timestamp_at: timestamp_at as u8,
            header: header as u8,
        }
    }

    #[inline(always)]
    fn of(kind: RecordKind) -> Self {
        SHAPES
            .get(usize::from(kind.0))
            .copied()
            .unwrap_or(Shape::UNKNOWN)
    }
}

/// Bytes of the header of a COMPACT record: a SYSTEM header without the CPU times.
const COMPACT_HEADER_SIZE: usize = 0x18;

/// The shapes by kind byte. SYSTEM, COMPACT and PERFINFO records have the size in the first half of
/// the second word and the hook in the second half.
const SHAPES: [Shape; 256] = {
    let mut shapes = [Shape::UNKNOWN; 256];
    let mut kind = 0;
    while kind < 256 {
        // Evaluated by the compiler, where an index out of bounds is an error of the build.
        #[allow(clippy::indexing_slicing)]
        let shape = &mut shapes[kind];
        *shape = match RecordKind(kind as u8) {
            RecordKind::SYSTEM32 | RecordKind::SYSTEM64 => {
                Shape::new(kernel::SIZE, kernel::TIMESTAMP, SystemHeader::SIZE)
            }
            RecordKind::COMPACT32 | RecordKind::COMPACT64 => {
                Shape::new(kernel::SIZE, kernel::TIMESTAMP, COMPACT_HEADER_SIZE)
            }
            RecordKind::PERFINFO32 | RecordKind::PERFINFO64 => Shape::new(
                kernel::SIZE,
                kernel::PERFINFO_TIMESTAMP,
                PerfInfoHeader::SIZE,
            ),
            RecordKind::FULL32 | RecordKind::FULL64 => {
                Shape::new(0, full::TIMESTAMP, FullHeader::SIZE)
            }
            RecordKind::INSTANCE32 | RecordKind::INSTANCE64 => {
                Shape::new(0, full::TIMESTAMP, InstanceHeader::SIZE)
            }
            RecordKind::EVENT32 | RecordKind::EVENT64 => {
                Shape::new(0, event::TIMESTAMP, EventHeader::SIZE)
            }
            _ => Shape::UNKNOWN,
        };
        kind += 1;
    }
    shapes
};

/// Bytes of the fixed part of a kind's header.
pub(crate) fn header_len(kind: RecordKind) -> usize {
    Shape::of(kind).header.into()
}

/// Whether records of this kind have thread and process, which come before the timestamp.
#[inline]
pub(crate) fn has_thread(kind: RecordKind) -> bool {
    usize::from(Shape::of(kind).timestamp_at) == event::TIMESTAMP
}

/// Offset of the size in a record of this kind.
pub(crate) fn size_offset(kind: RecordKind) -> usize {
    Shape::of(kind).size_at.into()
}

/// Offset of the timestamp in a record, if it has one.
pub(crate) fn timestamp_offset(kind: RecordKind, record: &[u8]) -> Option<usize> {
    match Shape::of(kind).timestamp_at {
        0 if kind == RecordKind::MESSAGE => {
            let offset = message_timestamp_at(MessageFlags(record.u16_at(message::FLAGS)?))?;
            (offset + 8 <= record.len()).then_some(offset)
        }
        0 => None,
        offset => Some(offset.into()),
    }
}

/// A record that was found in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Offset from the start of the buffer.
    pub offset: u32,
    /// Bytes of header and payload.
    pub len: u32,
    pub kind: RecordKind,
    /// Its own timestamp, if it has one.
    pub timestamp: Option<i64>,
    /// Whether it may contradict itself: it may have extended items, or it is long. Only then
    /// [`is_suspicious`] has to look.
    pub is_doubtful: bool,
}

/// Why there is no record at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The records of the buffer end here.
    End,
    /// A record begins here but is not complete.
    Short {
        /// Offset of the record in the buffer.
        offset: u32,
        /// Bytes that it states or needs.
        need: u32,
        /// Bytes that exist, or that it states.
        have: u32,
    },
    /// The word at the offset cannot begin a record.
    NoRecord {
        /// Offset in the buffer.
        offset: u32,
        word: u32,
    },
}

/// The record at an offset of a buffer. The records end at `fill`; `data` may be shorter if the
/// file was cut off.
#[inline(always)]
pub(crate) fn record_at(data: &[u8], offset: usize, fill: usize) -> Result<Found, Stop> {
    // Most records are long enough that header fields can be taken from one array.
    let end = fill.min(data.len());
    if let Some(head) = data.get(offset..end).and_then(|d| d.first_chunk::<0x18>()) {
        let [w0, w1, w2, w3, w4, w5, ..] = *head;
        if w3 == 0xc0 {
            let kind = RecordKind(w2);
            let shape = Shape::of(kind);
            // Few combinations exist, so the compiler sees constant offsets.
            let (size, timestamp) = match (shape.size_at, shape.timestamp_at) {
                // EVENT records are among these. Their flags follow.
                (0, 0x10) => (u16::from_le_bytes([w0, w1]), timestamp_in(head, 0x10)),
                (4, 0x10) => (u16::from_le_bytes([w4, w5]), timestamp_in(head, 0x10)),
                (4, 0x08) => (u16::from_le_bytes([w4, w5]), timestamp_in(head, 0x08)),
                _ => return slow_record_at(data, offset, fill),
            };
            let size = usize::from(size);
            if size >= usize::from(shape.header) && size <= end - offset {
                let flags = EventFlags(u16::from_le_bytes([w4, w5]));
                let has_items = shape.size_at == 0 && flags.has(EventFlags::EXTENDED_INFO);
                return Ok(Found {
                    offset: offset as u32,
                    len: size as u32,
                    kind,
                    timestamp: Some(timestamp),
                    is_doubtful: has_items || size as u32 >= MIN_OVERLONG,
                });
            }
        }
    }
    slow_record_at(data, offset, fill)
}

/// Whether a record contradicts itself although its size leads to another one: its extended items
/// leave it, or it is far longer than its layout.
#[inline(always)]
pub(crate) fn is_suspicious(data: &[u8], found: &Found) -> bool {
    found.is_doubtful && contradicts_itself(data, found)
}

fn contradicts_itself(data: &[u8], found: &Found) -> bool {
    match found.kind {
        RecordKind::EVENT32 | RecordKind::EVENT64 => has_broken_items(data, found),
        _ => found.len >= MIN_OVERLONG && is_overlong(data, found),
    }
}

/// Whether the extended items of an EVENT record leave it.
pub(crate) fn has_broken_items(data: &[u8], found: &Found) -> bool {
    let offset = found.offset as usize;
    let flags = data.u16_at(offset + event::FLAGS).unwrap_or(0);
    if !EventFlags(flags).has(EventFlags::EXTENDED_INFO) {
        return false;
    }
    let record = data.get(offset..offset + found.len as usize);
    let mut items = ExtendedItems::new(record.unwrap_or_default(), EventHeader::SIZE, true);
    while items.next_raw().is_some() {}
    items.is_broken()
}

/// Records of at least this many bytes are compared with their layout. The records with a fixed
/// layout have less than 128 bytes.
const MIN_OVERLONG: u32 = 512;

/// Whether a record of at least [`MIN_OVERLONG`] bytes has a fixed layout, which is shorter.
#[cold]
#[inline(never)]
fn is_overlong(data: &[u8], found: &Found) -> bool {
    let has_hook = matches!(
        found.kind,
        RecordKind::SYSTEM32
            | RecordKind::SYSTEM64
            | RecordKind::COMPACT32
            | RecordKind::COMPACT64
            | RecordKind::PERFINFO32
            | RecordKind::PERFINFO64
    );
    let hook = data.u16_at(found.offset as usize + kernel::HOOK);
    has_hook && hook.is_some_and(hook::has_fixed_layout)
}

/// The timestamp at an offset; the compiler sees that both offsets are in bounds.
#[inline(always)]
fn timestamp_in(head: &[u8; 0x18], offset: usize) -> i64 {
    head.as_slice().i64_at(offset).unwrap_or(0)
}

/// Handles what the fast path does not: rare kinds, ends, faults.
#[cold]
#[inline(never)]
fn slow_record_at(data: &[u8], offset: usize, fill: usize) -> Result<Found, Stop> {
    // A record header has at least 8 bytes; fewer remaining bytes are the alignment padding of the
    // last record.
    if offset + 8 > fill {
        return Err(Stop::End);
    }
    let left = fill.min(data.len()).saturating_sub(offset);
    let Some(word) = data.u32_at(offset).filter(|_| left >= 8) else {
        return Err(short(offset, 8, left));
    };
    if word == FILLER_WORD || word == 0 {
        return Err(no_record(offset, word));
    }
    let Some(KindAndSize { kind, size }) = classify(data, offset, word) else {
        return Err(no_record(offset, word));
    };
    let shape = Shape::of(kind);
    let min_size = usize::from(shape.header);
    if size < min_size {
        return Err(short(offset, min_size, size));
    }
    if size > left {
        return Err(short(offset, size, left));
    }
    let timestamp = match shape.timestamp_at {
        0 if kind == RecordKind::MESSAGE => message_timestamp(data, offset, size),
        0 => None,
        field => data.i64_at(offset + usize::from(field)),
    };
    Ok(Found {
        offset: offset as u32,
        len: size as u32,
        kind,
        timestamp,
        is_doubtful: true,
    })
}

fn short(offset: usize, need: usize, have: usize) -> Stop {
    Stop::Short {
        offset: offset as u32,
        need: need as u32,
        have: have as u32,
    }
}

fn no_record(offset: usize, word: u32) -> Stop {
    let offset = offset as u32;
    Stop::NoRecord { offset, word }
}

/// What the first words of a record state.
struct KindAndSize {
    kind: RecordKind,
    size: usize,
}

/// Kind and size of the record that begins with `word`; `None` if the word cannot begin a record.
fn classify(data: &[u8], offset: usize, word: u32) -> Option<KindAndSize> {
    let top = (word >> 24) as u8;
    if top & MARKER_TRACE == 0 {
        // The word could be the size of a WNODE, but so could any small number, and no known
        // session writes these.
        return None;
    }
    if top & MARKER_EVENT_TRACE != 0 {
        // Two bits and the kind byte determine the kind; the published masks ignore the other six
        // bits. All known real records have them clear, so with bits set only kinds with a known
        // header are accepted.
        let kind = RecordKind((word >> 16) as u8);
        let shape = Shape::of(kind);
        let is_known = shape.timestamp_at != 0 || kind == RecordKind::MESSAGE;
        let size = data.u16_at(offset + usize::from(shape.size_at))?.into();
        return (top == 0xc0 || is_known).then_some(KindAndSize { kind, size });
    }
    let size = data.u16_at(offset)?.into();
    let kind = match top & 0x30 {
        bits if bits == MARKER_MESSAGE => RecordKind::MESSAGE,
        0x20 => RecordKind::ULONG32,
        0x30 => RecordKind::ULONG32_TIME,
        _ => return None,
    };
    Some(KindAndSize { kind, size })
}

/// The timestamp of a WPP message: it follows other optional fields and is not aligned.
fn message_timestamp(data: &[u8], offset: usize, size: usize) -> Option<i64> {
    let field = message_timestamp_at(MessageFlags(data.u16_at(offset + message::FLAGS)?))?;
    if field + 8 <= size {
        data.i64_at(offset + field)
    } else {
        None
    }
}

/// Offset of the timestamp in a WPP message with these flags.
fn message_timestamp_at(flags: MessageFlags) -> Option<usize> {
    flags.has_timestamp().then(|| flags.timestamp_offset())
}

/// Where the next record begins after a record of `len` bytes.
#[inline(always)]
pub(crate) fn next_at(offset: u32, len: u32) -> usize {
    (offset as usize + len as usize).next_multiple_of(RECORD_ALIGNMENT)
}

/// The start of the filler or zeros after the records; `fill` if there are none.
pub(crate) fn tail(data: &[u8], fill: usize) -> usize {
    let used = data.get(..fill).unwrap_or(data);
    match used.last() {
        Some(&byte @ (0 | FILLER)) => {
            let last_other = used.iter().rposition(|&b| b != byte);
            last_other.map_or(0, |offset| offset + 1)
        }
        _ => used.len(),
    }
}

/// Whether all these bytes are filler or zeros.
pub(crate) fn is_filler(bytes: &[u8]) -> bool {
    // Nearly always all of them are filler, which is compared a block at a time.
    const FILLED: &[u8] = &[FILLER; 256];
    let mut blocks = bytes.chunks(FILLED.len());
    blocks.all(|block| FILLED.starts_with(block) || block.iter().all(|&b| matches!(b, 0 | FILLER)))
}

/// The timestamp of the first record, from the first bytes of a buffer; the record may be
/// incomplete. `None` if it has no timestamp or cannot be read.
pub(crate) fn record_at_head(head: &[u8], fill: usize) -> Option<i64> {
    let offset = BUFFER_HEADER_SIZE;
    if offset + 8 > fill {
        return None;
    }
    let KindAndSize { kind, size } = classify(head, offset, head.u32_at(offset)?)?;
    let shape = Shape::of(kind);
    if size < usize::from(shape.header) || offset + size > fill {
        return None;
    }
    match shape.timestamp_at {
        0 => message_timestamp(head, offset, size).filter(|_| kind == RecordKind::MESSAGE),
        field => head.i64_at(offset + usize::from(field)),
    }
}

/// Whether the records of a buffer follow each other up to its fill.
pub(crate) fn is_intact(data: &[u8], fill: usize) -> bool {
    let mut offset = BUFFER_HEADER_SIZE;
    loop {
        match record_at(data, offset, fill) {
            Ok(found) => offset = next_at(found.offset, found.len),
            Err(stop) => return stop == Stop::End,
        }
    }
}

/// The first timestamp in a buffer. Records without a timestamp before it have it as well.
pub(crate) fn first_timestamp(data: &[u8], fill: usize) -> Option<i64> {
    let mut offset = BUFFER_HEADER_SIZE;
    loop {
        let found = record_at(data, offset, fill).ok()?;
        if found.timestamp.is_some() {
            return found.timestamp;
        }
        offset = next_at(found.offset, found.len);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn perfinfo(size: u16, timestamp: i64) -> Vec<u8> {
        let mut r = vec![2, 0, 0x11, 0xc0];
        r.extend(size.to_le_bytes());
        r.extend([0x2e, 0x0f]);
        r.extend(timestamp.to_le_bytes());
        r.resize(usize::from(size).next_multiple_of(8), 0);
        r
    }

    #[test]
    fn record_at_finds_a_short_last_record() {
        let data = perfinfo(16, 7);
        let found = record_at(&data, 0, data.len()).unwrap();
        assert_eq!(
            (found.len, found.kind, found.timestamp),
            (16, RecordKind::PERFINFO64, Some(7))
        );
        assert_eq!(record_at(&data, 16, data.len()), Err(Stop::End));
    }

    #[test]
    fn record_at_refuses_a_record_longer_than_its_buffer() {
        let data = perfinfo(48, 7);
        assert_eq!(
            record_at(&data, 0, 40),
            Err(Stop::Short {
                offset: 0,
                need: 48,
                have: 40
            })
        );
        assert_eq!(
            record_at(&data[..32], 0, 48),
            Err(Stop::Short {
                offset: 0,
                need: 48,
                have: 32
            })
        );
    }

    #[test]
    fn record_at_finds_no_record_in_filler() {
        for byte in [0, 0xff] {
            let stop = record_at(&[byte; 32], 8, 32);
            assert!(
                matches!(stop, Err(Stop::NoRecord { offset: 8, .. })),
                "{stop:?}"
            );
        }
    }

    #[test]
    fn is_filler_accepts_zeros_and_filler() {
        let mut data = vec![0xff; 200];
        assert!(is_filler(&data) && is_filler(&[]));
        data[3..70].fill(0);
        assert!(is_filler(&data));
        data[199] = 0xfe;
        assert!(!is_filler(&data));
    }

    #[test]
    fn message_timestamp_at_follows_the_flags() {
        assert_eq!(message_timestamp_at(MessageFlags(0x02)), None);
        assert_eq!(message_timestamp_at(MessageFlags(0x08)), Some(8));
        assert_eq!(message_timestamp_at(MessageFlags(0x0b)), Some(28));
        assert_eq!(
            message_timestamp_at(MessageFlags(0x0f)),
            Some(16),
            "a component id displaces the GUID"
        );
        assert_eq!(message_timestamp_at(MessageFlags(0x12)), Some(24));
    }

    #[test]
    fn tail_finds_the_final_filler() {
        for (bytes, start) in [
            (&[1u8, 0, 0][..], 1),
            (&[1, 0xff], 1),
            (&[0, 0], 0),
            (&[7], 1),
        ] {
            assert_eq!(tail(bytes, bytes.len()), start);
        }
        assert_eq!((tail(&[1, 0, 0, 1], 3), tail(&[1, 0], 9)), (1, 1));
    }
}
