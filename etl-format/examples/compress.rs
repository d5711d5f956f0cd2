//! Compresses and decompresses buffers: `cargo run --release --example compress [FILE.etl]`.
//!
//! Only the buffers change, as when Windows merges with compression. Decompressing restores the
//! file byte for byte.

mod input;

use etl_format::compress::Effort;
use etl_format::constants::CompressionFormat;
use etl_format::rewrite::repack::Repacker;
use etl_format::write::BufferCompressor;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plain = input::bytes()?;
    // Windows' own tools write XPRESS; the two others are in its documents.
    for format in [
        CompressionFormat::XPRESS,
        CompressionFormat::LZNT1,
        CompressionFormat::XPRESS_HUFF,
    ] {
        let compressor = BufferCompressor::new(format, Effort::Default)?;
        let mut packed = Vec::new();
        let done = Repacker::compress(compressor).run(plain.as_slice(), &mut packed)?;
        println!(
            "{format}: {} buffers, {} of {} bytes",
            done.buffers, done.bytes_out, done.used
        );
        let mut again = Vec::new();
        Repacker::decompress().run(packed.as_slice(), &mut again)?;
        if !done.was_compressed {
            assert_eq!(again, plain, "nothing else has changed");
        }
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
