//! Unpacks gzip, Zstandard and ZIP files.

mod archive;
mod guard;
mod zst;

use std::io::{BufReader, Cursor, Read};

use etl_format::read::Spooled;
use flate2::bufread::MultiGzDecoder;

use super::bytes::{Bytes, ReadSeek, spool};
use super::error::Error;
use super::packing::{Content, Packing, Unpacker};
use guard::{Count, Counted, Guard};

/// Unpacks packed bytes. Only archives are read as a whole.
pub(super) fn unpack(bytes: Bytes, packing: Packing, options: &Unpacker) -> Result<Content, Error> {
    let limit = options.max_unpacked;
    if packing == Packing::Zip {
        // The directory of an archive is at its end.
        let archive: Box<dyn ReadSeek> = match bytes {
            Bytes::Seekable(reader) => reader,
            bytes => match bytes.whole_within(limit)? {
                Spooled::Memory(bytes) => Box::new(Cursor::new(bytes)),
                Spooled::File(file) => Box::new(file.into_inner()),
            },
        };
        let member = options.member.as_deref();
        return archive::with_member(archive, member, limit, |member, bytes| {
            Ok(Content {
                bytes: Bytes::Whole(spool(bytes, u64::MAX)?),
                from: format!("{member}, unpacked from the ZIP archive"),
            })
        });
    }
    let inner = bytes.reader()?;
    let count = Count::default();
    let reader = BufReader::with_capacity(
        1 << 16,
        Counted {
            inner,
            count: count.clone(),
        },
    );
    let is_zstandard = packing == Packing::Zstandard;
    let unpacked: Box<dyn Read> = if is_zstandard {
        Box::new(zst::Frames::new(reader, options.window))
    } else {
        Box::new(MultiGzDecoder::new(reader))
    };
    let format = if is_zstandard {
        "Zstandard data"
    } else {
        "gzip data"
    };
    let pipe = Guard::new(unpacked, format, count, limit);
    Ok(Content {
        bytes: Bytes::Pipe(Box::new(pipe)),
        from: format!("unpacked from {format}"),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::input::OptionNames;

    fn plain() -> Vec<u8> {
        (0..40_000u32)
            .map(|i| (i.wrapping_mul(i) >> 7) as u8 & 0x1f)
            .collect()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn zstandard(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn zip(bytes: &[u8]) -> Vec<u8> {
        let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
        out.start_file("a.etl", zip::write::SimpleFileOptions::default())
            .unwrap();
        out.write_all(bytes).unwrap();
        out.finish().unwrap().into_inner()
    }

    /// The unpacked bytes, or the error. They are the same from a pipe and from a reader that can
    /// seek.
    fn unpack(packed: &[u8]) -> Result<Vec<u8>, String> {
        let unpacked = unpack_bytes(packed, Bytes::Pipe(Box::new(Cursor::new(packed.to_vec()))));
        let seekable = Bytes::Seekable(Box::new(Cursor::new(packed.to_vec())));
        assert_eq!(unpack_bytes(packed, seekable), unpacked);
        unpacked
    }

    fn unpack_bytes(packed: &[u8], bytes: Bytes) -> Result<Vec<u8>, String> {
        let packing = Packing::of(packed).ok_or("not packed")?;
        let options = Unpacker {
            max_unpacked: Some(1 << 20),
            ..Unpacker::default()
        };
        let names = OptionNames {
            member: "--member NAME",
            max_unpacked: "--max-unpacked 64G",
            max_memory: "--max-memory",
        };
        let text =
            |error: Error| format!("{error}\nhint: {}", error.hint(names).unwrap_or_default());
        let mut out = Vec::new();
        let unpacked = super::unpack(bytes, packing, &options).map_err(text)?;
        let mut stream = unpacked.bytes.reader().map_err(|e| e.to_string())?;
        stream.read_to_end(&mut out).map_err(|e| text(e.into()))?;
        Ok(out)
    }

    #[test]
    fn unpack_reads_each_format() {
        let plain = plain();
        for packed in [gzip(&plain), zstandard(&plain), zip(&plain)] {
            assert!(packed.len() < plain.len());
            assert_eq!(unpack(&packed).as_ref(), Ok(&plain));
        }
        let (a, b) = plain.split_at(12_345);
        // Several members, as parallel packers write them; with a skippable frame in between.
        let skip = [&b"\x50\x2a\x4d\x18\x03\0\0\0"[..], b"abc"].concat();
        assert_eq!(unpack(&[gzip(a), gzip(b)].concat()).as_ref(), Ok(&plain));
        let frames = [zstandard(a), skip.clone(), zstandard(b), skip.clone()].concat();
        assert_eq!(unpack(&frames).as_ref(), Ok(&plain));
        // `pzstd` writes a skippable frame first; its number is 0 to 15.
        for number in 0x50..=0x5f {
            let mut first = skip.clone();
            first[0] = number;
            let frames = [first, zstandard(a), zstandard(b)].concat();
            assert_eq!(unpack(&frames).as_ref(), Ok(&plain));
        }
    }

    /// Only the last file of a name could be read; the others would be lost without a word.
    #[test]
    fn unpack_refuses_archives_with_two_files_of_a_name() {
        let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for name in ["a.etl", "b.etl"] {
            out.start_file(name, zip::write::SimpleFileOptions::default())
                .unwrap();
            out.write_all(name.as_bytes()).unwrap();
        }
        let mut archive = out.finish().unwrap().into_inner();
        assert!(unpack(&archive).unwrap_err().contains("2 traces"));
        for at in 0..archive.len() - 5 {
            if &archive[at..at + 5] == b"b.etl" {
                archive[at] = b'a';
            }
        }
        let error = unpack(&archive).unwrap_err();
        assert!(
            error.contains("two files in the ZIP archive have the same name"),
            "{error}"
        );
    }

    #[test]
    fn unpack_reports_damaged_input() {
        let plain = plain();
        for packed in [gzip(&plain), zstandard(&plain), zip(&plain)] {
            for keep in [5, 20, packed.len() / 2, packed.len() - 1] {
                let error = unpack(&packed[..keep]).unwrap_err();
                assert!(error.contains("damaged or truncated"), "{keep}: {error}");
                assert!(error.contains("\nhint: "), "{keep}: {error}");
            }
        }
        // The checksum after the data.
        for mut packed in [gzip(&plain), zstandard(&plain)] {
            let at = packed.len() - 5;
            packed[at] ^= 1;
            assert!(unpack(&packed).is_err());
        }
    }

    #[test]
    fn unpack_ends_on_any_bytes() {
        let plain = plain();
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for packed in [gzip(&plain), zstandard(&plain), zip(&plain)] {
            for _ in 0..400 {
                let mut broken = packed.clone();
                for _ in 0..=random(8) {
                    // Headers and directories are the most fragile parts.
                    let len = broken.len();
                    let at = match random(3) {
                        0 => random(40.min(len)),
                        1 => len - 1 - random(100.min(len)),
                        _ => random(len),
                    };
                    broken[at] = [0, 1, 0x7f, 0xff, random(256) as u8][random(5)];
                }
                if let Ok(out) = unpack(&broken) {
                    assert!(out.len() <= 1 << 20);
                }
            }
        }
    }
}
