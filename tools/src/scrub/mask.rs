//! Replacements: equal values get equal replacements, and a guess cannot be tested without the
//! salt.

use sha2::{Digest, Sha256};

/// The characters of replaced text.
const LETTERS: [u8; 36] = *b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Makes replacements from a salt.
#[derive(Clone)]
pub struct Mask {
    key: [u8; 32],
    /// How far the addresses of each zone move.
    distances: [u64; ZONES.len()],
}

/// First address and size of each zone of addresses.
const ZONES: [(u64, u64); 3] = [
    (0x1_0000, (1 << 32) - 0x1_0000),
    (1 << 32, (1 << 47) - (1 << 32)),
    (0xffff_8000_0000_0000, 1 << 47),
];

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The salt is a secret.
        f.write_str("Mask")
    }
}

impl Mask {
    /// The replacements of a salt.
    #[must_use]
    pub fn new(salt: &[u8]) -> Self {
        let key = Sha256::new()
            .chain_update(b"etlkit scrub\0")
            .chain_update(salt)
            .finalize();
        let mut mask = Mask {
            key: key.into(),
            distances: [0; ZONES.len()],
        };
        mask.distances = ZONES.map(|(low, size)| mask.number("zone", low, size >> 16) << 16);
        mask
    }

    /// Endless bytes that depend on a value.
    pub(super) fn stream(&self, domain: &str, value: &[u8]) -> impl Iterator<Item = u8> + use<> {
        // The value is hashed first, so that no value is the continuation of another.
        let inner: [u8; 32] = Sha256::new()
            .chain_update(self.key)
            .chain_update([1])
            .chain_update(domain)
            .chain_update([0])
            .chain_update(value)
            .finalize()
            .into();
        let key = self.key;
        (0u64..).flat_map(move |block| {
            let digest: [u8; 32] = Sha256::new()
                .chain_update(key)
                .chain_update([2])
                .chain_update(inner)
                .chain_update(block.to_le_bytes())
                .finalize()
                .into();
            digest
        })
    }

    /// Endless letters and digits that depend on a text, but not on its case, and on `attempt`.
    pub(super) fn letters(&self, text: &str, attempt: u32) -> impl Iterator<Item = u8> + use<> {
        let mut value = text.to_lowercase().into_bytes();
        if attempt > 0 {
            value.push(0);
            value.extend(attempt.to_le_bytes());
        }
        // 252 is the largest multiple of 36 in a byte: no letter is likelier than another.
        self.stream("text", &value)
            .filter(|byte| *byte < 252)
            .map(|byte| LETTERS.get(usize::from(byte % 36)).copied().unwrap_or(b'x'))
    }

    /// The replacement of a number, below a limit.
    pub(super) fn number(&self, domain: &str, value: u64, below: u64) -> u64 {
        let mut bytes = self.stream(domain, &value.to_le_bytes());
        let mut word = [0; 8];
        for byte in &mut word {
            *byte = bytes.next().unwrap_or(0);
        }
        u64::from_le_bytes(word) % below.max(1)
    }

    /// The replacement of a number with as many decimal digits.
    pub(super) fn same_digits(&self, value: u32) -> u32 {
        let digits = value.checked_ilog10().unwrap_or(0);
        let low = if digits == 0 { 0 } else { 10u64.pow(digits) };
        let high = 10u64.pow(digits + 1).min(1 << 32);
        let number = low + self.number("number", value.into(), high - low);
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The replacement of an address: all addresses of a zone move by the same distance, so that
    /// ranges still contain their addresses. The low 16 bits stay.
    ///
    /// The zones are 32-bit addresses, 64-bit user space, and the kernel. Addresses in the lowest
    /// 64 KB, which are never mapped, stay.
    pub(super) fn address(&self, value: u64) -> u64 {
        for ((low, size), distance) in ZONES.into_iter().zip(self.distances) {
            if let Some(offset) = value.checked_sub(low)
                && offset < size
            {
                return low + (offset + distance) % size;
            }
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn letters_depend_on_salt_and_not_on_case() {
        let text = |salt: &[u8], text| {
            String::from_utf8(Mask::new(salt).letters(text, 0).take(12).collect()).unwrap()
        };
        assert_eq!(text(b"a", "John"), text(b"a", "JOHN"));
        assert_ne!(text(b"a", "John"), text(b"b", "John"));
        assert_ne!(text(b"a", "John"), text(b"a", "Jane"));
        // Replacements do not change between versions.
        assert_eq!(text(b"salt", "john"), "gcbpvpusfco6");
    }

    proptest! {
        #[test]
        fn same_digits_keeps_the_number_of_digits(value: u32) {
            let other = Mask::new(b"x").same_digits(value);
            prop_assert_eq!(other.to_string().len(), value.to_string().len());
        }

        #[test]
        fn address_keeps_distances(value: u64, step in 0u64..0x1000) {
            let mask = Mask::new(b"x");
            let (a, b) = (mask.address(value), mask.address(value.saturating_add(step)));
            prop_assert_eq!(a & 0xffff, value & 0xffff);
            // Except at the ends of a zone.
            if b >= a && value < u64::MAX - 0x1000 {
                prop_assert!(b - a == step || (b - a) > 0x1000);
            }
        }
    }
}
