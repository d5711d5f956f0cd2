//! Numbers in bytes and in the rows of the table.

/// A place of a number: its offset and its width in bytes.
pub type Place = (usize, usize);

/// The number at a place.
pub fn get(bytes: &[u8], (at, width): Place) -> u64 {
    bytes[at..at + width]
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Writes a number to a place; what does not fit is cut off.
pub fn put(bytes: &mut [u8], (at, width): Place, value: u64) {
    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

/// A number in decimal or hexadecimal digits.
pub fn parse(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|_| panic!("{text:?} is not a number"))
}

/// Changes the number at a place as a row states: `n`, `+n`, `-n`, `&n`, `|n` or `^n`.
pub fn alter(bytes: &mut [u8], place: Place, text: &str) {
    let old = get(bytes, place);
    let by = || parse(&text[1..]);
    let value = match text.as_bytes()[0] {
        b'+' => old.wrapping_add(by()),
        b'-' => old.wrapping_sub(by()),
        b'&' => old & by(),
        b'|' => old | by(),
        b'^' => old ^ by(),
        _ => parse(text),
    };
    put(bytes, place, value);
}

/// Milliseconds as ticks of 100 ns, the clock of the trace.
pub fn ticks(milliseconds: &str) -> i64 {
    let number: f64 = milliseconds.parse().expect("a number of milliseconds");
    (number * 10_000.0) as i64
}
