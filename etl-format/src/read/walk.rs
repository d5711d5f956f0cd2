//! Locates the records in a buffer: the hot loop of every reader.
//!
//! The first word of a record contains its kind, which determines the offsets of its size and its
//! timestamp. Nothing else is read here.

use crate::constants::offset::{event, full, kernel, message};
use crate::constants::{
    BUFFER_HEADER_SIZE, FILLER, FILLER_WORD, MARKER_EVENT_TRACE, MARKER_MESSAGE, MARKER_TRACE,
    MessageFlags, RECORD_ALIGNMENT, RecordKind,
};
use crate::cursor::Bytes;

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

const UNKNOWN_SHAPE: Shape = known(0, 0, 8);

const fn known(size_at: usize, timestamp_at: usize, header: usize) -> Shape {
    Shape {
        size_at: size_at as u8,
        timestamp_at: timestamp_at as u8,
        header: header as u8,
    }
}

/// The shapes by kind byte. Kinds up to SYSTEM/COMPACT and PERFINFO keep the hook id in the second
/// half of the second word and the size in the first half.
const SHAPES: [Shape; 256] = {
    let mut shapes = [UNKNOWN_SHAPE; 256];
    let mut kind = 0;
    while kind < 256 {
        // Evaluated by the compiler, where an index out of bounds is an error of the build.
        #[allow(clippy::indexing_slicing)]
        let shape = &mut shapes[kind];
        *shape = match RecordKind(kind as u8) {
            RecordKind::SYSTEM32 | RecordKind::SYSTEM64 => {
                known(kernel::SIZE, kernel::TIMESTAMP, SystemHeader::SIZE)
            }
            RecordKind::COMPACT32 | RecordKind::COMPACT64 => {
                known(kernel::SIZE, kernel::TIMESTAMP, 0x18)
            }
            RecordKind::PERFINFO32 | RecordKind::PERFINFO64 => known(
                kernel::SIZE,
                kernel::PERFINFO_TIMESTAMP,
                PerfInfoHeader::SIZE,
            ),
            RecordKind::FULL32 | RecordKind::FULL64 => known(0, full::TIMESTAMP, FullHeader::SIZE),
            RecordKind::INSTANCE32 | RecordKind::INSTANCE64 => {
                known(0, full::TIMESTAMP, InstanceHeader::SIZE)
            }
            RecordKind::EVENT32 | RecordKind::EVENT64 => {
                known(0, event::TIMESTAMP, EventHeader::SIZE)
            }
            _ => UNKNOWN_SHAPE,
        };
        kind += 1;
    }
    shapes
};

/// Bytes of the fixed part of a kind's header.
pub(crate) fn header_len(kind: RecordKind) -> usize {
    shape(kind).header.into()
}

/// Whether records of this kind have thread and process, which come before the timestamp.
#[inline]
pub(crate) fn has_thread(kind: RecordKind) -> bool {
    usize::from(shape(kind).timestamp_at) == event::TIMESTAMP
}

/// Offset of the size in a record of this kind.
pub(crate) fn size_offset(kind: RecordKind) -> usize {
    shape(kind).size_at.into()
}

/// Offset of the timestamp in a record, if it has one.
pub(crate) fn timestamp_offset(kind: RecordKind, record: &[u8]) -> Option<usize> {
    match shape(kind).timestamp_at {
        0 if kind == RecordKind::MESSAGE => {
            let offset = message_timestamp_at(MessageFlags(record.u16_at(message::FLAGS)?))?;
            (offset + 8 <= record.len()).then_some(offset)
        }
        0 => None,
        offset => Some(offset.into()),
    }
}

#[inline(always)]
fn shape(kind: RecordKind) -> Shape {
    SHAPES
        .get(usize::from(kind.0))
        .copied()
        .unwrap_or(UNKNOWN_SHAPE)
}

/// One record found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Offset from the start of the buffer.
    pub at: u32,
    /// Bytes of header and payload.
    pub len: u32,
    /// Kind.
    pub kind: RecordKind,
    /// Its own timestamp, when it has one.
    pub timestamp: Option<i64>,
}

/// Why there is no record at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The records of the buffer end here.
    End,
    /// A record begins here but is not complete.
    Short {
        /// Offset of the record in the buffer.
        at: u32,
        /// Bytes it claims, or needs.
        need: u32,
        /// Bytes there are, or that it claims.
        have: u32,
    },
    /// The word here begins no record.
    NoRecord {
        /// Offset in the buffer.
        at: u32,
        /// The word.
        word: u32,
    },
}

/// The record at `at` of a buffer whose data are `data` and whose records end at `fill`.
///
/// `data` may be shorter than `fill` in a file that was cut off.
#[inline(always)]
pub(crate) fn record_at(data: &[u8], at: usize, fill: usize) -> Result<Found, Stop> {
    // Most records are long enough that header fields can be taken from one array.
    let end = fill.min(data.len());
    if let Some(head) = data.get(at..end).and_then(|d| d.first_chunk::<0x18>()) {
        let [w0, w1, w2, w3, w4, w5, ..] = *head;
        if w3 == 0xc0 {
            let kind = RecordKind(w2);
            let s = shape(kind);
            // Few combinations exist, so the compiler sees constant offsets.
            let (size, timestamp) = match (s.size_at, s.timestamp_at) {
                (0, 0x10) => (u16::from_le_bytes([w0, w1]), timestamp_in(head, 0x10)),
                (4, 0x10) => (u16::from_le_bytes([w4, w5]), timestamp_in(head, 0x10)),
                (4, 0x08) => (u16::from_le_bytes([w4, w5]), timestamp_in(head, 0x08)),
                _ => return slow_record_at(data, at, fill),
            };
            let size = usize::from(size);
            if size >= usize::from(s.header) && size <= end - at {
                return Ok(Found {
                    at: at as u32,
                    len: size as u32,
                    kind,
                    timestamp: Some(timestamp),
                });
            }
        }
    }
    slow_record_at(data, at, fill)
}

/// The timestamp at `at`; the compiler sees that both offsets are in bounds.
#[inline(always)]
fn timestamp_in(head: &[u8; 0x18], at: usize) -> i64 {
    head.as_slice().i64_at(at).unwrap_or(0)
}

/// Handles what the fast path does not: rare kinds, ends, faults.
#[cold]
#[inline(never)]
fn slow_record_at(data: &[u8], at: usize, fill: usize) -> Result<Found, Stop> {
    // A record header has at least 8 bytes; fewer remaining bytes are the alignment padding of the
    // last record.
    if at + 8 > fill {
        return Err(Stop::End);
    }
    let here = at as u32;
    let left = fill.min(data.len()).saturating_sub(at);
    let cut = |need: usize| Stop::Short {
        at: here,
        need: need as u32,
        have: left as u32,
    };
    let Some(word) = data.u32_at(at).filter(|_| left >= 8) else {
        return Err(cut(8));
    };
    if word == FILLER_WORD || word == 0 {
        return Err(Stop::NoRecord { at: here, word });
    }
    let Some((kind, size)) = classify(data, at, word) else {
        return Err(Stop::NoRecord { at: here, word });
    };
    let s = shape(kind);
    let least = usize::from(s.header);
    if size < least {
        return Err(Stop::Short {
            at: here,
            need: least as u32,
            have: size as u32,
        });
    }
    if size > left {
        return Err(cut(size));
    }
    let timestamp = match s.timestamp_at {
        0 if kind == RecordKind::MESSAGE => message_timestamp(data, at, size),
        0 => None,
        offset => data.i64_at(at + usize::from(offset)),
    };
    Ok(Found {
        at: here,
        len: size as u32,
        kind,
        timestamp,
    })
}

/// Kind and size of the record that begins with `word`, or `None` when nothing does.
fn classify(data: &[u8], at: usize, word: u32) -> Option<(RecordKind, usize)> {
    let top = (word >> 24) as u8;
    if top & MARKER_TRACE == 0 {
        // It would be the size of a WNODE, as any small number. No known session writes these.
        return None;
    }
    if top & MARKER_EVENT_TRACE != 0 {
        // Two bits and the kind byte determine the kind; the published masks ignore the other six
        // bits. All known real records have them clear, so with bits set only kinds with a known
        // header are accepted.
        let kind = RecordKind((word >> 16) as u8);
        let s = shape(kind);
        let known = s.timestamp_at != 0 || kind == RecordKind::MESSAGE;
        let size = data.u16_at(at + usize::from(s.size_at))?;
        return (top == 0xc0 || known).then_some((kind, size.into()));
    }
    let size = usize::from(data.u16_at(at)?);
    match top & 0x30 {
        bits if bits == MARKER_MESSAGE => Some((RecordKind::MESSAGE, size)),
        0x20 => Some((RecordKind::ULONG32, size)),
        0x30 => Some((RecordKind::ULONG32_TIME, size)),
        _ => None,
    }
}

/// The timestamp of a WPP message: it follows other optional fields and is not aligned.
fn message_timestamp(data: &[u8], at: usize, size: usize) -> Option<i64> {
    let offset = message_timestamp_at(MessageFlags(data.u16_at(at + message::FLAGS)?))?;
    if offset + 8 <= size {
        data.i64_at(at + offset)
    } else {
        None
    }
}

/// Offset of the timestamp in a WPP message with these flags.
fn message_timestamp_at(flags: MessageFlags) -> Option<usize> {
    flags.has_timestamp().then(|| flags.timestamp_offset())
}

/// Where the record after one at `at` of `len` bytes begins.
#[inline(always)]
pub(crate) fn next_at(at: u32, len: u32) -> usize {
    (at as usize + len as usize).next_multiple_of(RECORD_ALIGNMENT)
}

/// The start of the filler or zeros after the records; `fill` if there are none.
pub(crate) fn tail(data: &[u8], fill: usize) -> usize {
    let used = data.get(..fill).unwrap_or(data);
    match used.last() {
        Some(&byte @ (0 | FILLER)) => used.iter().rposition(|&b| b != byte).map_or(0, |at| at + 1),
        _ => used.len(),
    }
}

/// Whether these bytes, which no record takes, are filler or zeros, as far as is to be expected.
pub(crate) fn is_filler(bytes: &[u8]) -> bool {
    // Nearly always all of it is filler, which is compared a block at a time.
    const FILLED: &[u8] = &[FILLER; 256];
    let mut blocks = bytes.chunks(FILLED.len());
    blocks.all(|block| FILLED.starts_with(block) || block.iter().all(|&b| matches!(b, 0 | FILLER)))
}

/// The timestamp of the first record, from the first bytes of a buffer; the record may be
/// incomplete. `None` when it has no timestamp or cannot be read.
pub(crate) fn record_at_head(head: &[u8], fill: usize) -> Option<i64> {
    let at = BUFFER_HEADER_SIZE;
    if at + 8 > fill {
        return None;
    }
    let (kind, size) = classify(head, at, head.u32_at(at)?)?;
    let s = shape(kind);
    if size < usize::from(s.header) || at + size > fill {
        return None;
    }
    match s.timestamp_at {
        0 => message_timestamp(head, at, size).filter(|_| kind == RecordKind::MESSAGE),
        offset => head.i64_at(at + usize::from(offset)),
    }
}

/// Whether the records of a buffer follow each other up to its fill.
pub(crate) fn is_intact(data: &[u8], fill: usize) -> bool {
    let mut at = BUFFER_HEADER_SIZE;
    loop {
        match record_at(data, at, fill) {
            Ok(found) => at = next_at(found.at, found.len),
            Err(stop) => return stop == Stop::End,
        }
    }
}

/// The first timestamp in a buffer; earlier records without one take it over.
pub(crate) fn first_timestamp(data: &[u8], fill: usize) -> Option<i64> {
    let mut at = BUFFER_HEADER_SIZE;
    loop {
        let found = record_at(data, at, fill).ok()?;
        if found.timestamp.is_some() {
            return found.timestamp;
        }
        at = next_at(found.at, found.len);
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
                at: 0,
                need: 48,
                have: 40
            })
        );
        assert_eq!(
            record_at(&data[..32], 0, 48),
            Err(Stop::Short {
                at: 0,
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
                matches!(stop, Err(Stop::NoRecord { at: 8, .. })),
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
