//! Text in a payload: UTF-16, eight-bit text, and the search for the end of text.

use etl_format::cursor::Bytes;
use etl_format::cursor::utf16_nul;
use std::borrow::Cow;
use std::fmt;

/// Decodes eight-bit text in an unknown encoding. Valid UTF-8 is decoded as such, all other bytes
/// as the characters U+0080 to U+00FF, so that different bytes stay different.
///
/// ```
/// use etl_schema::decode::ansi_text;
///
/// assert_eq!(ansi_text(b"caf\xe9"), "caf\u{e9}");
/// assert_eq!(ansi_text("caf\u{e9}".as_bytes()), "caf\u{e9}");
/// ```
#[must_use]
pub fn ansi_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => ansi_chars(bytes).collect(),
    }
}

/// The characters of [`ansi_text`].
pub(crate) fn ansi_chars(bytes: &[u8]) -> impl Iterator<Item = char> {
    bytes.utf8_chunks().flat_map(|chunk| {
        chunk
            .valid()
            .chars()
            .chain(chunk.invalid().iter().map(|byte| char::from(*byte)))
    })
}

/// UTF-16LE code units in a payload, valid or not.
///
/// `Display` shows lone surrogates as U+FFFD; [`Utf16::chars`] keeps them.
///
/// ```
/// use etl_schema::decode::Utf16;
///
/// let text = Utf16::new(b"G\0C\0\0\0x\0");
/// assert_eq!(text.len(), 4);
/// assert_eq!(text.before_nul().to_string(), "GC");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Utf16<'a>(&'a [u8]);

impl<'a> Utf16<'a> {
    /// Over these bytes; an odd last byte is left out.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Utf16(bytes.get(..bytes.len() & !1).unwrap_or_default())
    }

    /// The bytes; an even number.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Number of code units.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len() / 2
    }

    /// Whether it has no code units.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The code units.
    pub fn units(
        self,
    ) -> impl DoubleEndedIterator<Item = u16> + ExactSizeIterator + Clone + use<'a> {
        self.0
            .chunks_exact(2)
            .map(|pair| pair.u16_at(0).unwrap_or(0))
    }

    /// The characters; a lone surrogate comes as `Err` with its code unit.
    pub fn chars(self) -> impl Iterator<Item = Result<char, u16>> + Clone + use<'a> {
        char::decode_utf16(self.units()).map(|r| r.map_err(|e| e.unpaired_surrogate()))
    }

    /// The text, one byte for each code unit, if it is ASCII.
    pub(crate) fn ascii(self) -> Option<impl ExactSizeIterator<Item = u8> + use<'a>> {
        let (words, rest) = self.0.as_chunks::<8>();
        let all = words
            .iter()
            .fold(0, |all, word| all | u64::from_le_bytes(*word));
        let others = rest
            .as_chunks::<2>()
            .0
            .iter()
            .any(|unit| u16::from_le_bytes(*unit) >= 0x80);
        let is_ascii = all & 0xff80_ff80_ff80_ff80 == 0 && !others;
        is_ascii.then(|| self.0.as_chunks::<2>().0.iter().map(|[low, _]| *low))
    }

    /// Appends the text; a lone surrogate as U+FFFD.
    pub fn push_to(self, out: &mut String) {
        out.reserve(self.len());
        let mut rest = self.0;
        // Most texts are ASCII: a block of them is a few vector instructions.
        while let Some((block, after)) = rest.split_first_chunk::<{ 2 * BLOCK }>() {
            let Some(bytes) = ascii_block(block) else {
                break;
            };
            let Ok(text) = std::str::from_utf8(&bytes) else {
                break;
            };
            out.push_str(text);
            rest = after;
        }
        let mut block = [0; 2 * BLOCK];
        if let Some(padded) = block.get_mut(..rest.len())
            && let Some(text) = {
                padded.copy_from_slice(rest);
                ascii_block(&block)
            }
            && let Some(Ok(text)) = text.get(..rest.len() / 2).map(std::str::from_utf8)
        {
            return out.push_str(text);
        }
        out.extend(
            Utf16(rest)
                .chars()
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)),
        );
    }

    /// The text before the first NUL: the contents of a buffer of fixed length.
    #[must_use]
    pub fn before_nul(self) -> Self {
        Utf16(self.0.get(..utf16_len(self.0).0).unwrap_or_default())
    }
}

/// Units that are narrowed at a time.
const BLOCK: usize = 16;

/// Units as bytes, if all are ASCII.
#[inline]
fn ascii_block(units: &[u8; 2 * BLOCK]) -> Option<[u8; BLOCK]> {
    let mut bytes = [0; BLOCK];
    let mut all = 0;
    for (byte, unit) in bytes.iter_mut().zip(units.as_chunks::<2>().0) {
        let unit = u16::from_le_bytes(*unit);
        all |= unit;
        *byte = unit as u8;
    }
    (all < 0x80).then_some(bytes)
}

impl fmt::Display for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.chars()
            .try_for_each(|c| f.write_char(c.unwrap_or(char::REPLACEMENT_CHARACTER)))
    }
}

impl fmt::Debug for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Bytes of UTF-16 text before a NUL, and bytes to step over (the NUL included, if there is one).
#[inline]
pub(super) fn utf16_len(data: &[u8]) -> (usize, usize) {
    match utf16_nul(data) {
        Some(len) => (len, len + 2),
        None => (data.len() & !1, data.len() & !1),
    }
}

/// Bytes of eight-bit text before a NUL, and bytes to step over.
#[inline]
pub(super) fn ansi_len(data: &[u8]) -> (usize, usize) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let mut offset = 0usize;
    let (chunks, rest) = data.as_chunks::<8>();
    for chunk in chunks {
        let v = u64::from_le_bytes(*chunk);
        let hit = v.wrapping_sub(ONES) & !v & TOPS;
        if hit != 0 {
            let len = offset + hit.trailing_zeros() as usize / 8;
            return (len, len + 1);
        }
        offset += 8;
    }
    match rest.iter().position(|&b| b == 0) {
        Some(more) => (offset + more, offset + more + 1),
        None => (data.len(), data.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn utf16_len_and_ansi_len_agree_with_a_plain_search(
            data in proptest::collection::vec(prop_oneof![3 => Just(0u8), 2 => Just(1u8), 2 => Just(0x80u8), 4 => any::<u8>()], 0..64)
        ) {
            let even = data.len() & !1;
            let wide = data.chunks_exact(2).position(|p| p == [0, 0]);
            prop_assert_eq!(utf16_len(&data), wide.map_or((even, even), |n| (n * 2, n * 2 + 2)));
            let narrow = data.iter().position(|&b| b == 0);
            prop_assert_eq!(ansi_len(&data), narrow.map_or((data.len(), data.len()), |n| (n, n + 1)));
        }
    }

    proptest! {
        #[test]
        fn push_to_agrees_with_the_standard_library(
            units in proptest::collection::vec(prop_oneof![30 => 0u16..0x80, 1 => any::<u16>()], 0..80)
        ) {
            let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
            let mut text = String::from("before ");
            Utf16::new(&bytes).push_to(&mut text);
            prop_assert_eq!(text, format!("before {}", String::from_utf16_lossy(&units)));
        }
    }

    #[test]
    fn ansi_text_keeps_bytes_that_are_no_utf8_apart() {
        assert_eq!(ansi_text(b"notep\xe9d.exe"), "notep\u{e9}d.exe");
        assert_eq!(
            ansi_text("notepéd.exe\u{20ac}".as_bytes()),
            "notepéd.exe\u{20ac}"
        );
        assert_eq!(ansi_text(b"\xc3\xa9\xff\xe2\x82"), "é\u{ff}\u{e2}\u{82}");
    }

    #[test]
    fn chars_keeps_lone_surrogates() {
        let bytes = [0x61, 0, 0x00, 0xd8, 0x62, 0];
        let text = Utf16::new(&bytes);
        assert_eq!(
            text.chars().collect::<Vec<_>>(),
            [Ok('a'), Err(0xd800), Ok('b')]
        );
        assert_eq!(text.to_string(), "a\u{fffd}b");
        assert_eq!(Utf16::new(b"a\0b\0\0\0c\0").before_nul().to_string(), "ab");
    }
}
