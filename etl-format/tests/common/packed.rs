//! The smallest encoders that are valid: nothing is ever matched.

/// XPRESS of literals only: a word of 32 clear flags before each 32 bytes, and set flags for what
/// is unused of the last word.
pub fn xpress(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in plain.chunks(32) {
        let flags = if piece.len() == 32 { 0 } else { u32::MAX >> piece.len() };
        out.extend(flags.to_le_bytes());
        out.extend(piece);
    }
    out
}

/// LZNT1 chunks that say that they are not compressed.
pub fn lznt1(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in plain.chunks(4096) {
        out.extend((0x3000 | (piece.len() as u16 - 1)).to_le_bytes());
        out.extend(piece);
    }
    out
}
