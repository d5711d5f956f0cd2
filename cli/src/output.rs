//! Standard output, buffered by us: commands fill one growing buffer and hand it over when it is
//! large, so that printing an event allocates nothing.

use std::io::{self, Write};

/// Bytes gathered before they are written.
const CHUNK: usize = 1 << 16;

/// A buffer on its way to standard output.
#[derive(Debug)]
pub(crate) struct Output {
    /// What is to be written next.
    pub buffer: Vec<u8>,
    out: io::Stdout,
}

impl Output {
    pub fn new() -> Self {
        Output { buffer: Vec::with_capacity(2 * CHUNK), out: io::stdout() }
    }

    /// Writes the buffer out when enough has gathered.
    #[inline]
    pub fn settle(&mut self) -> io::Result<()> {
        if self.buffer.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    /// Writes the buffer out.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut out = self.out.lock();
        out.write_all(&self.buffer)?;
        self.buffer.clear();
        out.flush()
    }
}

/// Prints text and flushes it.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Appends a decimal number.
#[inline]
pub(crate) fn decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            *digit = b'0' + (value % 10) as u8;
        }
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend(digits.get(at..).unwrap_or_default());
}

/// Appends a signed decimal number.
#[inline]
pub(crate) fn signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    decimal(out, value.unsigned_abs());
}

/// Appends `0x` and a hexadecimal number.
#[inline]
pub(crate) fn hexadecimal(out: &mut Vec<u8>, value: u64) {
    out.extend(b"0x");
    let digits = (64 - value.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(nibble((value >> (4 * digit)) as u8 & 15));
    }
}

/// Appends bytes as pairs of hexadecimal digits.
#[inline]
pub(crate) fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(2 * bytes.len());
    out.extend(bytes.iter().flat_map(|b| [nibble(b >> 4), nibble(b & 15)]));
}

#[inline]
const fn nibble(n: u8) -> u8 {
    if n < 10 { b'0' + n } else { b'a' + n - 10 }
}

/// A number of bytes for people: `4.7 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") }
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
        hex(&mut out, &[0, 0x1f, 0xff]);
        assert_eq!(out, b"001fff");
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(4_879_401), "4.7 MiB");
    }
}
