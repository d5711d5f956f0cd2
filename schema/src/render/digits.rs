//! Numbers and bytes.

/// Appends a number in decimal.
#[inline]
pub fn decimal(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            *digit = b'0' + (n % 10) as u8;
        }
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(at..).unwrap_or_default());
}

/// Appends a signed number in decimal.
#[inline]
pub fn signed(out: &mut Vec<u8>, n: i64) {
    if n < 0 {
        out.push(b'-');
    }
    decimal(out, n.unsigned_abs());
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
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}

/// Appends `0x` and the number in hexadecimal, without leading zeros.
#[inline]
pub fn hexadecimal(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(b"0x");
    let places = (64 - n.leading_zeros()).div_ceil(4).max(1);
    for place in (0..places).rev() {
        out.push(digit((n >> (place * 4)) as u8 & 15));
    }
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
    fn numbers_print_as_the_standard_library_does() {
        for value in [0, 1, 9, 10, 15, 16, 255, 256, 1 << 40, u64::MAX] {
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
