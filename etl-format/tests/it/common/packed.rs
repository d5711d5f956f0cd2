//! Minimal encoders: they write literals only.

/// XPRESS of literals only: a word of 32 clear flags before each 32 bytes, and set flags for what
/// is unused of the last word.
pub fn xpress(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in plain.chunks(32) {
        let flags = if piece.len() == 32 {
            0
        } else {
            u32::MAX >> piece.len()
        };
        out.extend(flags.to_le_bytes());
        out.extend(piece);
    }
    out
}

/// LZNT1 chunks that are marked as uncompressed.
pub fn lznt1(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in plain.chunks(4096) {
        out.extend((0x3000 | (piece.len() as u16 - 1)).to_le_bytes());
        out.extend(piece);
    }
    out
}

/// XPRESS with Huffman coding where all 512 symbols have 9 bits, so that each code is its symbol.
pub fn huffman(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in plain.chunks(0x1_0000) {
        out.extend([0x99; 256]);
        let (mut bits, mut held) = (0u32, 0);
        for &byte in piece {
            (bits, held) = (bits << 9 | u32::from(byte), held + 9);
            while held >= 16 {
                held -= 16;
                out.extend(((bits >> held) as u16).to_le_bytes());
            }
        }
        if held > 0 {
            out.extend(((bits << (16 - held)) as u16).to_le_bytes());
        }
        // A decoder always looks one word ahead.
        out.extend([0; 2]);
    }
    out
}
