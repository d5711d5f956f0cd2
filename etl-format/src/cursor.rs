//! Little-endian values from a byte slice, with every bound checked.
//!
//! All bytes of a trace are read through this module; nothing else indexes them.

use crate::Guid;

/// Little-endian values at offsets of a byte slice; `None` past its end.
///
/// ```
/// use etl_format::cursor::Bytes;
///
/// let bytes: &[u8] = &[1, 0, 2, 0, 0, 0];
/// assert_eq!((bytes.u16_at(0), bytes.u32_at(2)), (Some(1), Some(2)));
/// assert_eq!(bytes.u64_at(0), None, "eight bytes are more than there are");
/// ```
pub trait Bytes {
    /// `len` bytes from an offset on.
    fn at(&self, offset: usize, len: usize) -> Option<&[u8]>;
    /// `N` bytes from an offset on, as an array.
    fn array<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;
    /// One byte.
    fn u8_at(&self, offset: usize) -> Option<u8> {
        self.array::<1>(offset).map(|[byte]| byte)
    }
    /// Two bytes, little-endian.
    fn u16_at(&self, offset: usize) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }
    /// Four bytes, little-endian.
    fn u32_at(&self, offset: usize) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }
    /// Eight bytes, little-endian.
    fn u64_at(&self, offset: usize) -> Option<u64> {
        self.array(offset).map(u64::from_le_bytes)
    }
    /// Eight bytes, little-endian, signed.
    fn i64_at(&self, offset: usize) -> Option<i64> {
        self.array(offset).map(i64::from_le_bytes)
    }
    /// Sixteen bytes: a GUID in the byte order of Windows.
    fn guid_at(&self, offset: usize) -> Option<Guid> {
        self.array(offset).map(Guid::from_bytes)
    }
}

impl Bytes for [u8] {
    #[inline(always)]
    fn at(&self, offset: usize, len: usize) -> Option<&[u8]> {
        self.get(offset..)?.get(..len)
    }

    #[inline(always)]
    fn array<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.get(offset..)?.first_chunk::<N>().copied()
    }
}

/// A reader that walks a byte slice front to back.
///
/// If fewer bytes are left than a method needs, it returns `None` and does not move.
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
    position: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, position: 0 }
    }

    /// Bytes consumed so far.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The bytes after the position.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// Whether no bytes are left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let bytes = self.rest().get(..len)?;
        self.position += len;
        Some(bytes)
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.rest().first_chunk::<N>().copied()?;
        self.position += N;
        Some(bytes)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
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

    /// Sixteen bytes: a GUID in the byte order of Windows.
    #[inline]
    pub fn guid(&mut self) -> Option<Guid> {
        self.array().map(Guid::from_bytes)
    }

    /// UTF-16LE code units up to a NUL, which is consumed and not returned; `None` if there is no
    /// NUL. The slice has an even length.
    pub fn utf16z(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let len = utf16_nul(rest)?;
        self.position += len + 2;
        rest.get(..len)
    }

    /// Bytes up to a NUL, which is consumed and not returned; `None` if there is no NUL.
    pub fn ansiz(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let len = rest.iter().position(|&b| b == 0)?;
        self.position += len + 1;
        rest.get(..len)
    }
}

/// Offset of the first 16-bit code unit that is 0 and begins at an even offset; `None` if there is
/// none.
///
/// Many events have several texts, of a few dozen units each.
#[must_use]
#[inline]
pub fn utf16_nul(bytes: &[u8]) -> Option<usize> {
    /// One step is a few vector instructions.
    const STEP: usize = 32;
    const ONES: u64 = 0x0001_0001_0001_0001;
    const TOPS: u64 = 0x8000_8000_8000_8000;

    #[inline(always)]
    fn has_nul(chunk: &[u8; STEP]) -> bool {
        let (units, _) = chunk.as_chunks::<2>();
        units
            .iter()
            .fold(false, |has, unit| has | (u16::from_le_bytes(*unit) == 0))
    }

    let (chunks, _) = bytes.as_chunks::<STEP>();
    let mut offset = chunks.iter().position(has_nul).unwrap_or(chunks.len()) * STEP;
    let rest = bytes.get(offset..)?;
    // Four units at a time: subtracting 1 from a 16-bit lane borrows into its top bit exactly if
    // the lane is 0. Lanes above a borrow may be wrong, but the lowest lane that is found is right.
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        let lanes = u64::from_le_bytes(*word);
        let zero_lanes = lanes.wrapping_sub(ONES) & !lanes & TOPS;
        if zero_lanes != 0 {
            return Some(offset + (zero_lanes.trailing_zeros() as usize / 16) * 2);
        }
        offset += 8;
    }
    let (units, _) = rest.as_chunks::<2>();
    Some(offset + 2 * units.iter().position(|unit| *unit == [0, 0])?)
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
