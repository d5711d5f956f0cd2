//! Little-endian values from a byte slice, with every bound checked. Errors have file offsets.
//!
//! All bytes of a block are read through this module; nothing else indexes them.

use crate::error::{Error, Result};
use crate::guid::Guid;

/// Reads a byte slice front to back.
///
/// Each method names the field that it reads, for the error if there are too few bytes. Then it
/// consumes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    /// File offset of the first byte.
    base: u64,
}

impl<'a> Cursor<'a> {
    /// At the start of bytes that are at a file offset.
    pub fn new(bytes: &'a [u8], base: u64) -> Self {
        Cursor {
            bytes,
            position: 0,
            base,
        }
    }

    /// The same, after `position` bytes.
    pub fn resume(bytes: &'a [u8], base: u64, position: usize) -> Self {
        Cursor {
            bytes,
            position: position.min(bytes.len()),
            base,
        }
    }

    /// Bytes consumed so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The file offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.base.saturating_add(self.position as u64)
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.position >= self.bytes.len()
    }

    #[inline]
    pub fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8]> {
        let rest = self.rest();
        let Some(taken) = rest.get(..len) else {
            let have = rest.len() as u64;
            return Err(Error::truncated(self.offset(), what, len as u64, have));
        };
        self.position += len;
        Ok(taken)
    }

    /// The next `len` bytes as a cursor of their own.
    pub fn sub(&mut self, len: usize, what: &'static str) -> Result<Cursor<'a>> {
        let base = self.offset();
        Ok(Cursor::new(self.take(len, what)?, base))
    }

    #[inline]
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let rest = self.rest();
        let Some(array) = rest.first_chunk::<N>() else {
            let have = rest.len() as u64;
            return Err(Error::truncated(self.offset(), what, N as u64, have));
        };
        self.position += N;
        Ok(*array)
    }

    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub fn u16(&mut self, what: &'static str) -> Result<u16> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub fn u64(&mut self, what: &'static str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub fn i64(&mut self, what: &'static str) -> Result<i64> {
        self.array(what).map(i64::from_le_bytes)
    }

    pub fn guid(&mut self, what: &'static str) -> Result<Guid> {
        self.array(what).map(Guid::from_bytes)
    }

    /// A 32-bit integer that must not be negative: a size or a count.
    pub fn size(&mut self, what: &'static str) -> Result<usize> {
        let start = self.offset();
        let value = self.u32(what)?;
        match i32::try_from(value) {
            Ok(_) => Ok(value as usize),
            Err(_) => Err(Error::invalid(start, what, value.into(), "0 to 0x7fffffff")),
        }
    }

    /// A LEB128 number of at most 32 bits.
    #[inline]
    pub fn var32(&mut self, what: &'static str) -> Result<u32> {
        // `var` has checked the range.
        self.var(32, what).map(|value| value as u32)
    }

    /// A LEB128 number of at most 64 bits.
    #[inline]
    pub fn var64(&mut self, what: &'static str) -> Result<u64> {
        self.var(64, what)
    }

    /// A zigzag-encoded signed number of at most 64 bits.
    pub fn zigzag(&mut self, what: &'static str) -> Result<i64> {
        let value = self.var64(what)?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    #[inline]
    fn var(&mut self, bits: u32, what: &'static str) -> Result<u64> {
        let start = self.offset();
        let mut value = 0u64;
        let mut shift = 0;
        while shift < bits {
            let byte = self.u8(what)?;
            let low = u64::from(byte & 0x7f);
            if shift + 7 > bits && low >> (bits - shift) != 0 {
                break;
            }
            value |= low << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
        }
        let expected = if bits == 32 {
            "a number of at most 32 bits"
        } else {
            "a number of at most 64 bits"
        };
        Err(Error::invalid(start, what, value, expected))
    }

    /// UTF-16 text up to a NUL, which is consumed. Unpaired surrogates are replaced.
    pub fn utf16_text(&mut self, what: &'static str) -> Result<String> {
        let (units, _) = self.rest().as_chunks::<2>();
        let Some(len) = units.iter().position(|unit| *unit == [0, 0]) else {
            let have = self.rest().len() as u64;
            return Err(Error::truncated(self.offset(), what, have + 2, have));
        };
        let text = units.iter().take(len).map(|unit| u16::from_le_bytes(*unit));
        let text = char::decode_utf16(text)
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
        self.position += 2 * len + 2;
        Ok(text)
    }

    /// UTF-8 text after its length as a LEB128 number. Invalid bytes are replaced.
    pub fn utf8_text(&mut self, what: &'static str) -> Result<String> {
        let len = self.var32(what)? as usize;
        let bytes = self.take(len, what)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leb128_has_at_most_the_bits_of_its_type() {
        let mut all = Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0x80, 0x01], 0);
        assert_eq!(all.var32("x").ok(), Some(u32::MAX));
        assert_eq!(all.var64("x").ok(), Some(128));
        for long in [
            &[0xff, 0xff, 0xff, 0xff, 0x10][..],
            &[0x80, 0x80, 0x80, 0x80, 0x80, 0],
        ] {
            let error = Cursor::new(long, 7).var32("x").err();
            assert_eq!(error.map(|e| (e.offset, e.code())), Some((7, "invalid")));
        }
        let max = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(Cursor::new(&max, 0).var64("x").ok(), Some(u64::MAX));
        assert_eq!(Cursor::new(&max, 0).zigzag("x").ok(), Some(i64::MIN));
        let over = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert!(Cursor::new(&over, 0).var64("x").is_err());
    }

    #[test]
    fn errors_have_the_offset_in_the_file() {
        let mut cursor = Cursor::new(&[1, 2, 3], 0x100);
        assert_eq!(cursor.u16("first").ok(), Some(0x0201));
        let error = cursor.u32("second").err();
        let text = "at offset 0x102: second: needs 4 bytes, has 1";
        assert_eq!(error.map(|e| e.to_string()).as_deref(), Some(text));
        assert_eq!(cursor.u8("third").ok(), Some(3), "nothing was consumed");
    }

    #[test]
    fn utf16_text_ends_at_an_aligned_nul() {
        let mut cursor = Cursor::new(b"a\0\0\xd8b\0\0\0rest", 0);
        assert_eq!(cursor.utf16_text("x").ok().as_deref(), Some("a\u{fffd}b"));
        assert_eq!(cursor.rest(), b"rest");
        assert!(cursor.utf16_text("x").is_err());
    }
}
