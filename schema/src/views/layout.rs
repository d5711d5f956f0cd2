//! Positions of fields in the payloads of one event, from its schema.

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::cursor::{Bytes, utf16_nul};

use crate::decode::{Decoder, Reach};

/// Fields of variable size that a layout steps over.
const MAX_VARIABLE: usize = 7;

/// Position of a field: so many fields of variable size stand before it, and so many bytes after
/// the last of them (or from the start).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    variable: u8,
    /// Bytes of the field; 0 if its size is not fixed, or is above 255.
    size: u8,
    offset: u16,
}

impl Position {
    /// That of a field that the event does not have.
    pub const NONE: Position = Position { variable: u8::MAX, offset: 0, size: 0 };

    /// Whether the event has the field.
    pub fn is_known(self) -> bool {
        self != Position::NONE
    }
}

/// The fixed parts of a payload and the fields of variable size between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Bytes of the fixed fields before each field of variable size, and the kind of that field.
    parts: [(u16, Reach); MAX_VARIABLE],
    /// Bytes after the last field of variable size.
    tail: u16,
    pub pointers: PointerSize,
}

impl Layout {
    pub fn new(decoder: &Decoder, pointers: PointerSize) -> Self {
        let mut parts = [(0u16, Reach::Open); MAX_VARIABLE];
        let (mut part, mut tail) = (0, 0u16);
        for (_, reach) in decoder.reaches(pointers) {
            match (reach, parts.get_mut(part)) {
                (Reach::Fixed(bytes), fixed) => {
                    tail = tail.saturating_add(bytes);
                    if let Some((size, _)) = fixed {
                        *size = tail;
                    }
                }
                (variable, at) => {
                    if let Some((_, end)) = at {
                        *end = variable;
                    }
                    (part, tail) = (part + 1, 0);
                }
            }
        }
        Layout { parts, tail, pointers }
    }

    /// The position of the field with this name; [`Position::NONE`] if there is none.
    pub fn find(decoder: &Decoder, pointers: PointerSize, name: &str) -> Position {
        let mut at = Position { variable: 0, offset: 0, size: 0 };
        for (field, reach) in decoder.reaches(pointers) {
            let size = if let Reach::Fixed(bytes) = reach { bytes } else { 0 };
            if &*field.name == name {
                return Position { size: u8::try_from(size).unwrap_or(0), ..at };
            }
            at = match reach {
                Reach::Fixed(_) => Position { offset: at.offset.saturating_add(size), ..at },
                _ => Position { variable: at.variable.saturating_add(1), offset: 0, size: 0 },
            };
        }
        Position::NONE
    }

    /// Bytes before the first field of variable size.
    #[inline]
    pub const fn prefix(&self) -> usize {
        self.parts[0].0 as usize
    }

    /// Bytes after the last field of variable size.
    #[inline]
    pub const fn tail(&self) -> usize {
        self.tail as usize
    }

    /// Where a position is in this payload.
    #[inline]
    fn start(&self, payload: &[u8], at: Position) -> Option<usize> {
        let mut start = 0usize;
        for (fixed, variable) in self.parts.get(..usize::from(at.variable))? {
            start += usize::from(*fixed);
            start += len(*variable, payload.get(start..)?)?;
        }
        Some(start + usize::from(at.offset))
    }

    /// An unsigned integer or a pointer.
    #[inline(always)]
    pub fn uint(&self, payload: &[u8], at: Position) -> Option<u64> {
        let start =
            if at.variable == 0 { usize::from(at.offset) } else { self.start(payload, at)? };
        match at.size {
            8 => payload.u64_at(start),
            4 => payload.u32_at(start).map(u64::from),
            2 => payload.u16_at(start).map(u64::from),
            1 => payload.u8_at(start).map(u64::from),
            _ => None,
        }
    }

    #[inline(always)]
    pub fn u32(&self, payload: &[u8], at: Position) -> Option<u32> {
        self.uint(payload, at).map(|value| value as u32)
    }

    #[inline(always)]
    pub fn u16(&self, payload: &[u8], at: Position) -> Option<u16> {
        self.uint(payload, at).map(|value| value as u16)
    }

    pub fn guid(&self, payload: &[u8], at: Position) -> Option<Guid> {
        payload.guid_at(self.start(payload, at)?)
    }

    /// The bytes from a position to the end.
    #[inline]
    pub fn rest<'a>(&self, payload: &'a [u8], at: Position) -> Option<&'a [u8]> {
        payload.get(self.start(payload, at)?..)
    }

    /// A text without its NUL, or a SID.
    pub fn variable<'a>(&self, payload: &'a [u8], at: Position) -> Option<&'a [u8]> {
        let (_, reach) = self.parts.get(usize::from(at.variable))?;
        let rest = self.rest(payload, at)?;
        let len = len(*reach, rest)?;
        match *reach {
            Reach::Utf16 => rest.get(..len - 2),
            Reach::Ansi => rest.get(..len - 1),
            // The kernel stores a TOKEN_USER before the SID, or four zero bytes in place of both.
            Reach::Sid(pointer) => rest.get((2 * pointer).min(len)..len),
            Reach::Fixed(_) | Reach::Open => None,
        }
    }
}

/// The bytes of a field of variable size, its NUL included.
#[inline]
fn len(reach: Reach, data: &[u8]) -> Option<usize> {
    match reach {
        Reach::Utf16 => utf16_nul(data).map(|end| end + 2),
        Reach::Ansi => data.iter().position(|&byte| byte == 0).map(|end| end + 1),
        Reach::Sid(pointer) => crate::decode::wbem_sid_len(pointer, data),
        Reach::Fixed(_) | Reach::Open => None,
    }
}

/// How many texts in UTF-16, each with its NUL, `bytes` consists of; `None` where bytes are left
/// after the last one.
///
/// Counting the NULs takes a fraction of the time that finding each of them takes.
#[must_use]
pub fn count_texts(bytes: &[u8]) -> Option<usize> {
    let (units, []) = bytes.as_chunks::<2>() else { return None };
    if units.last() != Some(&[0, 0]) {
        return None;
    }
    // Sums of 16 bits are made eight at a time, and cannot overflow.
    let nuls = |units: &[[u8; 2]]| {
        units.iter().fold(0u16, |sum, unit| sum + u16::from(u16::from_le_bytes(*unit) == 0))
    };
    Some(units.chunks(1 << 12).map(|units| usize::from(nuls(units))).sum())
}
