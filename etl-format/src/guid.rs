//! GUIDs of providers, event classes and activities.

use core::fmt;
use core::str::FromStr;

/// A GUID in the byte order in which Windows stores it: the first three groups little-endian, the
/// rest as written.
///
/// Ordering and hashing are over the stored bytes. `Display` prints lower case without braces:
/// `e13c0d23-ccbc-4e12-931b-d9cc2eee27e4`.
///
/// ```
/// use etl_format::Guid;
///
/// let guid: Guid = "{E13C0D23-CCBC-4E12-931B-D9CC2EEE27E4}".parse()?;
/// assert_eq!(guid.to_string(), "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
/// assert_eq!(guid.to_bytes()[..4], [0x23, 0x0d, 0x3c, 0xe1], "little-endian");
/// # Ok::<(), etl_format::ParseGuidError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid([u8; 16]);

impl Guid {
    /// All bits are zero: "none" if the format has an optional GUID.
    pub const ZERO: Guid = Guid([0; 16]);

    /// From the four groups as they are printed, the last two as one array.
    #[must_use]
    pub const fn new(a: u32, b: u16, c: u16, d: [u8; 8]) -> Self {
        let [a0, a1, a2, a3] = a.to_le_bytes();
        let [b0, b1] = b.to_le_bytes();
        let [c0, c1] = c.to_le_bytes();
        let [d0, d1, d2, d3, d4, d5, d6, d7] = d;
        Guid([
            a0, a1, a2, a3, b0, b1, c0, c1, d0, d1, d2, d3, d4, d5, d6, d7,
        ])
    }

    /// From the printed form in either case, with or without braces.
    ///
    /// # Errors
    /// If the text is not a GUID.
    pub const fn parse(text: &str) -> Result<Self, ParseGuidError> {
        let mut text = match text.as_bytes() {
            [b'{', inner @ .., b'}'] => inner,
            all => all,
        };
        let mut value = 0u128;
        let mut position = 0;
        while let [byte, rest @ ..] = text {
            match (position, (*byte as char).to_digit(16)) {
                (8 | 13 | 18 | 23, None) if *byte == b'-' => {}
                (8 | 13 | 18 | 23 | 36.., _) | (_, None) => return Err(ParseGuidError),
                (_, Some(digit)) => value = value << 4 | digit as u128,
            }
            position += 1;
            text = rest;
        }
        if position < 36 {
            return Err(ParseGuidError);
        }
        Ok(Guid::new(
            (value >> 96) as u32,
            (value >> 80) as u16,
            (value >> 64) as u16,
            (value as u64).to_be_bytes(),
        ))
    }

    /// From the 16 bytes as stored in a trace.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Guid(bytes)
    }

    /// The 16 bytes as stored in a trace.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Whether all bits are zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 16]
    }

    /// The 36 characters of the printed form, in ASCII, without allocating.
    #[must_use]
    pub fn to_ascii(self) -> [u8; 36] {
        // Printed position of each stored byte; the other positions are dashes.
        const POSITIONS: [u8; 16] = [6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34];
        let mut text = [b'-'; 36];
        for (byte, position) in self.0.iter().zip(POSITIONS) {
            let position = usize::from(position);
            if let Some([high, low]) = text.get_mut(position..position + 2) {
                *high = hex_digit(byte >> 4);
                *low = hex_digit(byte & 15);
            }
        }
        text
    }
}

const fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 {
        b'0' + nibble
    } else {
        b'a' + nibble - 10
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(core::str::from_utf8(&self.to_ascii()).unwrap_or_default())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text was not a GUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a GUID: expected 8-4-4-4-12 hexadecimal digits, braces optional")]
pub struct ParseGuidError;

impl FromStr for Guid {
    type Err = ParseGuidError;

    fn from_str(s: &str) -> Result<Self, ParseGuidError> {
        Guid::parse(s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_parses_the_mixed_endian_form() {
        let stored = [
            0x23, 0x0d, 0x3c, 0xe1, 0xbc, 0xcc, 0x12, 0x4e, 0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee,
            0x27, 0xe4,
        ];
        let guid = Guid::from_bytes(stored);
        assert_eq!(guid.to_string(), "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
        assert_eq!("{E13C0D23-CCBC-4E12-931B-D9CC2EEE27E4}".parse(), Ok(guid));
        assert_eq!("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse(), Ok(guid));
    }

    #[test]
    fn from_str_refuses_other_text() {
        for bad in [
            "",
            "e13c0d23",
            "e13c0d23-ccbc-4e12-931b-d9cc2eee27e",
            "+13c0d23-ccbc-4e12-931b-d9cc2eee27e4",
            "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4-",
        ] {
            assert_eq!(bad.parse::<Guid>(), Err(ParseGuidError), "{bad}");
        }
    }
}
