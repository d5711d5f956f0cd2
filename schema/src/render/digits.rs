//! Numbers as decimal and hexadecimal digits, bytes as hexadecimal digits.

/// Appends a number in decimal.
#[inline]
pub fn decimal(out: &mut Vec<u8>, n: u64) {
    // Most numbers are small.
    if n < 10 {
        out.push(b'0' + n as u8);
    } else {
        out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
    }
}

/// Appends a signed number in decimal.
#[inline]
pub fn signed(out: &mut Vec<u8>, n: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// A number with at least `width` digits.
pub(super) fn padded(out: &mut Vec<u8>, n: u64, width: usize) {
    let mut limit = 10u64;
    for _ in 1..width {
        if n < limit {
            out.push(b'0');
        }
        limit = limit.saturating_mul(10);
    }
    // The zeros were pushed one for each place that `n` does not reach.
    decimal(out, n);
}

#[inline]
const fn digit(nibble: u8) -> u8 {
    if nibble < 10 {
        b'0' + nibble
    } else {
        b'a' + nibble - 10
    }
}

/// Appends `0x` and the number in hexadecimal, without leading zeros.
#[inline]
pub fn hexadecimal(out: &mut Vec<u8>, n: u64) {
    let places = (64 - n.leading_zeros()).div_ceil(4).max(1);
    // The first digit comes first in memory; bytes after the last digit are ignored.
    let n = n << (64 - 4 * places);
    let mut text = *b"0x................";
    if let Some(places) = text.last_chunk_mut::<16>()
        && let Some((high, low)) = places.split_first_chunk_mut::<8>()
    {
        *high = digits((n >> 32) as u32);
        low.copy_from_slice(&digits(n as u32));
    }
    append(out, &text, 2 + places as usize);
}

/// Appends the first `len` bytes of a text. To copy a fixed number of bytes takes less time than to
/// copy the right number.
#[inline]
pub(super) fn append<const N: usize>(out: &mut Vec<u8>, text: &[u8; N], len: usize) {
    let end = out.len() + len;
    out.extend_from_slice(text);
    out.truncate(end);
}

/// The eight hexadecimal digits of a number, all made at once: its half bytes are spread over the
/// bytes of a word.
#[inline]
const fn digits(n: u32) -> [u8; 8] {
    let n = n as u64;
    let n = (n << 16 | n) & 0x0000_ffff_0000_ffff;
    let n = (n << 8 | n) & 0x00ff_00ff_00ff_00ff;
    let n = (n << 4 | n) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = ((n + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    (n + 0x3030_3030_3030_3030 + letters * (b'a' - b'0' - 10) as u64).to_be_bytes()
}

/// Appends two hexadecimal digits for each byte.
#[inline]
pub fn hex_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(2 * bytes.len());
    out.extend(bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_like_the_standard_library() {
        for value in [
            0,
            1,
            9,
            10,
            15,
            16,
            255,
            256,
            1 << 40,
            0x0123_4567_89ab_cdef,
            u64::MAX,
        ] {
            let mut out = Vec::new();
            decimal(&mut out, value);
            out.push(b' ');
            hexadecimal(&mut out, value);
            out.push(b' ');
            signed(&mut out, value.cast_signed());
            let expected = format!("{value} {value:#x} {}", value.cast_signed());
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        let mut out = Vec::new();
        hex_bytes(&mut out, &[0, 0x1f, 0xff]);
        assert_eq!(out, b"001fff");
    }
}
