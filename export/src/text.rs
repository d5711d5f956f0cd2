//! Texts of events.

/// A text in UTF-16, up to its NUL. Invalid code units are replaced.
pub(crate) fn utf16(units: &[u8]) -> String {
    let units = units
        .chunks_exact(2)
        .filter_map(|unit| Some(u16::from_le_bytes(*unit.first_chunk()?)));
    let units = units.take_while(|&unit| unit != 0);
    char::decode_utf16(units)
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_its_nul() {
        assert_eq!(utf16(b"a\0\x3d\xd8\x00\xde\0\0b\0"), "a\u{1f600}");
        assert_eq!(utf16(b"\x3d\xd8a\0b"), "\u{fffd}a");
    }
}
