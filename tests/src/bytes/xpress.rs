//! A decoder of plain XPRESS: 32 flags, then 32 items, each a byte or a copy of earlier output.

/// The bytes after the input's position, little-endian.
fn take(input: &[u8], at: &mut usize, width: usize) -> usize {
    let bytes = &input[*at..*at + width];
    *at += width;
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | usize::from(*byte))
}

/// The decompressed bytes: as many as `size`.
///
/// # Panics
/// When the input is not the compressed form of so many bytes.
pub fn decompress(input: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(size);
    let (mut at, mut flags, mut left) = (0, 0, 0);
    // Two lengths share a byte: the place of the one whose upper half is not used yet.
    let mut half: Option<usize> = None;
    while out.len() < size {
        if left == 0 {
            (flags, left) = (take(input, &mut at, 4), 32);
        }
        left -= 1;
        if flags >> left & 1 == 0 {
            out.push(input[at]);
            at += 1;
            continue;
        }
        let item = take(input, &mut at, 2);
        let distance = (item >> 3) + 1;
        let mut length = item & 7;
        if length == 7 {
            length = match half.take() {
                Some(place) => usize::from(input[place] >> 4),
                None => {
                    half = Some(at);
                    take(input, &mut at, 1) & 15
                }
            };
            if length == 15 {
                length = take(input, &mut at, 1);
                if length == 255 {
                    length = take(input, &mut at, 2);
                    if length == 0 {
                        length = take(input, &mut at, 4);
                    }
                    length -= 15 + 7;
                }
                length += 15;
            }
            length += 7;
        }
        for _ in 0..length + 3 {
            out.push(out[out.len() - distance]);
        }
    }
    assert_eq!(out.len(), size, "a copy ends with the output");
    out
}
