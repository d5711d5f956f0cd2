//! GUIDs of activities and providers.

use core::fmt;

/// A GUID in the byte order in which it is stored: the first three groups little-endian, the rest
/// as written.
///
/// ```
/// use etl_nettrace::Guid;
///
/// let mut stored = [0; 16];
/// stored[0] = 0x23;
/// let guid = Guid::from_bytes(stored);
/// assert_eq!(guid.to_string(), "00000023-0000-0000-0000-000000000000");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid([u8; 16]);

impl Guid {
    /// All bits zero: no activity.
    pub const ZERO: Guid = Guid([0; 16]);

    /// From the 16 bytes as stored.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Guid(bytes)
    }

    /// The 16 bytes as stored.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Whether all bits are zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Guid::ZERO
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a0, a1, a2, a3, b0, b1, c0, c1, d @ ..] = self.0;
        let first = u32::from_le_bytes([a0, a1, a2, a3]);
        let second = u16::from_le_bytes([b0, b1]);
        let third = u16::from_le_bytes([c0, c1]);
        let rest = u64::from_be_bytes(d);
        let fourth = rest >> 48;
        let fifth = rest & 0xffff_ffff_ffff;
        write!(
            f,
            "{first:08x}-{second:04x}-{third:04x}-{fourth:04x}-{fifth:012x}"
        )
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
