//! Numbers and bytes.

/// A number in decimal.
pub(super) fn decimal(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut len = 0;
    for slot in digits.iter_mut().rev() {
        *slot = b'0' + (n % 10) as u8;
        n /= 10;
        len += 1;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len() - len..).unwrap_or_default());
}

/// A signed number in decimal.
pub(super) fn signed(out: &mut Vec<u8>, n: i64) {
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

fn digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}

/// `0x` and the number in hexadecimal, without leading zeros.
pub(super) fn hexadecimal(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(b"0x");
    let places = (64 - n.leading_zeros()).div_ceil(4).max(1);
    for place in (0..places).rev() {
        out.push(digit((n >> (place * 4)) as u8 & 15));
    }
}

/// Two digits for each byte.
pub(super) fn hex_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
}
