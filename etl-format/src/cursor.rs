//! Little-endian values from a byte slice, with every bound checked.
//!
//! All bytes of a trace are read through this module; nothing else indexes them.

use crate::Guid;

/// Little-endian values at given offsets of a byte slice; `None` past its end.
///
/// ```
/// use etl_format::cursor::Bytes;
///
/// let bytes: &[u8] = &[1, 0, 2, 0, 0, 0];
/// assert_eq!((bytes.u16_at(0), bytes.u32_at(2)), (Some(1), Some(2)));
/// assert_eq!(bytes.u64_at(0), None, "eight bytes are more than there are");
/// ```
pub trait Bytes {
    /// `len` bytes at `at`.
    fn at(&self, at: usize, len: usize) -> Option<&[u8]>;
    /// An array of `N` bytes at `at`.
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]>;
    /// One byte.
    fn u8_at(&self, at: usize) -> Option<u8> {
        self.array::<1>(at).map(|[b]| b)
    }
    /// Two bytes, little-endian.
    fn u16_at(&self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }
    /// Four bytes, little-endian.
    fn u32_at(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }
    /// Eight bytes, little-endian.
    fn u64_at(&self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }
    /// Eight bytes, little-endian, signed.
    fn i64_at(&self, at: usize) -> Option<i64> {
        self.array(at).map(i64::from_le_bytes)
    }
    /// A GUID as stored.
    fn guid_at(&self, at: usize) -> Option<Guid> {
        self.array(at).map(Guid::from_bytes)
    }
}

impl Bytes for [u8] {
    #[inline(always)]
    fn at(&self, at: usize, len: usize) -> Option<&[u8]> {
        self.get(at..)?.get(..len)
    }

    #[inline(always)]
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.get(at..)?.first_chunk::<N>().copied()
    }
}

/// A reader that walks a byte slice front to back.
///
/// Each method returns `None` and moves nothing when fewer bytes are left than it needs.
///
/// ```
/// use etl_format::cursor::Cursor;
///
/// let mut cursor = Cursor::new(&[7, 0, b'a', b'b', 0, 1]);
/// assert_eq!((cursor.u16(), cursor.ansiz()), (Some(7), Some(&b"ab"[..])));
/// assert_eq!((cursor.u32(), cursor.position()), (None, 5), "only one byte is left");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    /// Bytes consumed so far.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// What is left.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let out = self.rest().get(..len)?;
        self.at += len;
        Some(out)
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let out = self.rest().first_chunk::<N>().copied()?;
        self.at += N;
        Some(out)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    /// Two bytes, little-endian.
    #[inline]
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Eight bytes, little-endian, signed.
    #[inline]
    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// A GUID as stored.
    #[inline]
    pub fn guid(&mut self) -> Option<Guid> {
        self.array().map(Guid::from_bytes)
    }

    /// UTF-16LE code units up to a NUL, which is consumed and not returned; `None` when there is no
    /// NUL. The slice has an even length.
    pub fn utf16z(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let len = utf16_nul(rest)?;
        self.at += len + 2;
        rest.get(..len)
    }

    /// Bytes up to a NUL, which is consumed and not returned; `None` when there is no NUL.
    pub fn ansiz(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let len = rest.iter().position(|&b| b == 0)?;
        self.at += len + 1;
        rest.get(..len)
    }
}

/// Offset of the first 16-bit code unit that is 0, of those that begin at even offsets; `None` when
/// there is none.
///
/// Many events have several texts, of a few dozen units each.
#[must_use]
#[inline]
pub fn utf16_nul(bytes: &[u8]) -> Option<usize> {
    // One step is a few vector instructions.
    const STEP: usize = 32;
    let has_nul = |chunk: &[u8; STEP]| {
        let (units, _) = chunk.as_chunks::<2>();
        units
            .iter()
            .fold(false, |hit, unit| hit | (u16::from_le_bytes(*unit) == 0))
    };
    let (chunks, _) = bytes.as_chunks::<STEP>();
    let whole = chunks.iter().position(has_nul).unwrap_or(chunks.len()) * STEP;
    let rest = bytes.get(whole..)?;
    // Four units at a time: subtracting 1 from a 16-bit lane borrows into its top bit exactly when
    // the lane is 0 (lanes above a borrow may be wrong, the lowest hit is right).
    const ONES: u64 = 0x0001_0001_0001_0001;
    const TOPS: u64 = 0x8000_8000_8000_8000;
    let mut at = whole;
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        let v = u64::from_le_bytes(*word);
        let hit = v.wrapping_sub(ONES) & !v & TOPS;
        if hit != 0 {
            return Some(at + (hit.trailing_zeros() as usize / 16) * 2);
        }
        at += 8;
    }
    let (units, _) = rest.as_chunks::<2>();
    Some(at + 2 * units.iter().position(|unit| *unit == [0, 0])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf16_nul_finds_the_end_at_each_length() {
        for len in 0..80usize {
            let mut bytes: Vec<u8> = (0..len).flat_map(|i| [0, 1 + i as u8]).collect();
            assert_eq!(utf16_nul(&bytes), None);
            bytes.extend([0, 0, 0, 0, 7]);
            assert_eq!(utf16_nul(&bytes), Some(2 * len));
        }
    }

    #[test]
    fn reads_past_the_end_return_none() {
        let bytes: &[u8] = &[1, 2, 3];
        assert_eq!(bytes.u16_at(1), Some(0x0302));
        assert_eq!(bytes.u16_at(2), None);
        assert_eq!(bytes.u8_at(usize::MAX), None);
        let mut c = Cursor::new(bytes);
        assert_eq!(c.u32(), None);
        assert_eq!(c.position(), 0);
        assert_eq!(c.u16(), Some(0x0201));
        assert_eq!(c.take(2), None);
        assert_eq!(c.rest(), &[3]);
    }

    #[test]
    fn strings_end_at_nul() {
        let mut c = Cursor::new(b"axc\0\0yz");
        assert_eq!(
            c.utf16z(),
            None,
            "zeros of two neighbouring units do not make a NUL"
        );
        assert_eq!(c.ansiz(), Some(&b"axc"[..]));
        let mut c = Cursor::new(b"a\0\0\0x");
        assert_eq!(c.utf16z(), Some(&b"a\0"[..]));
        assert_eq!(c.rest(), b"x");
    }
}
