//! Targets for compression formats.

use etl_format::compress::{Effort, compress, decompress};
use etl_format::constants::CompressionFormat;

use super::choice;

/// Bytes of decompressed output: a buffer of a usual session.
const OUTPUT: usize = 1 << 16;

pub(super) fn xpress(data: &[u8]) {
    both(CompressionFormat::XPRESS, data);
}

pub(super) fn lznt1(data: &[u8]) {
    both(CompressionFormat::LZNT1, data);
}

pub(super) fn huffman(data: &[u8]) {
    both(CompressionFormat::XPRESS_HUFF, data);
}

/// Decompresses the bytes; then compresses and decompresses them.
fn both(format: CompressionFormat, data: &[u8]) {
    let (way, data) = choice(data);
    let mut whole = vec![0xa5; OUTPUT];
    let produced = match decompress(format, data, &mut whole) {
        Ok(()) => OUTPUT,
        Err(fault) => {
            assert!(
                fault.produced <= OUTPUT && fault.consumed <= data.len(),
                "{fault:?}"
            );
            assert!(!fault.to_string().is_empty());
            fault.produced
        }
    };
    // A shorter output is a prefix of a longer one.
    for len in [
        produced,
        produced / 2,
        produced.saturating_sub(1),
        usize::from(way),
    ] {
        let mut piece = vec![0x5a; len];
        let done = decompress(format, data, &mut piece);
        if len <= produced {
            assert_eq!(done, Ok(()), "{len} of {produced}");
            assert!(piece == whole[..len], "{len} of {produced} differ");
        }
    }
    let effort = [Effort::Fast, Effort::Default, Effort::Best][usize::from(way % 3)];
    let mut packed = Vec::new();
    compress(format, data, effort, &mut packed).expect("a known format");
    let mut back = vec![0; data.len()];
    decompress(format, &packed, &mut back).expect("what was packed can be unpacked");
    assert!(back == data, "packed and unpacked differ");
}
