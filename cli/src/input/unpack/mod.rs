//! Unpacks gzip, Zstandard and ZIP files.

mod archive;
mod guard;
mod zst;

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};

use etl_format::read::Spooled;
use flate2::bufread::MultiGzDecoder;

use super::{InputArgs, MAX_IN_MEMORY};
use crate::error::Failure;

pub(super) use guard::failure;
use guard::{Count, Counted, Guard};

/// The format of a packed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Zstandard,
    Zip,
}

impl Packing {
    /// The origin of the unpacked bytes, in the words of an error.
    fn from(self, member: &str) -> String {
        match self {
            Packing::Gzip => "unpacked from gzip data".to_owned(),
            Packing::Zstandard => "unpacked from Zstandard data".to_owned(),
            Packing::Zip => format!("{member}, unpacked from the ZIP archive"),
        }
    }

    /// Recognizes the format by the first bytes; no trace starts with any of these.
    pub fn of(head: &[u8]) -> Option<Self> {
        const KNOWN: [(&[u8], Packing); 4] = [
            (b"\x1f\x8b\x08", Packing::Gzip),
            (b"\x28\xb5\x2f\xfd", Packing::Zstandard),
            (b"PK\x03\x04", Packing::Zip),
            (b"PK\x05\x06", Packing::Zip),
        ];
        KNOWN.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, packing)| *packing)
    }
}

/// A reader that can seek.
pub(super) trait Seekable: Read + Seek {}
impl<T: Read + Seek> Seekable for T {}

/// The unpacked bytes of a file, and their origin.
pub(super) fn file(
    file: File,
    packing: Packing,
    name: &str,
    args: &InputArgs,
) -> Result<(Spooled<File>, String), Failure> {
    if packing == Packing::Zip {
        return member(file, name, args);
    }
    let spooled = spool(&mut stream(file, packing, args.max_unpacked), name)?;
    Ok((spooled, packing.from("")))
}

/// The unpacked bytes of the trace in an archive, and their origin.
fn member(
    archive: impl Seekable,
    name: &str,
    args: &InputArgs,
) -> Result<(Spooled<File>, String), Failure> {
    archive::with_member(archive, name, args, |member, bytes| {
        Ok((spool(bytes, name)?, Packing::Zip.from(member)))
    })
}

/// The unpacked bytes of a pipe, and their origin. Only archives are read as a whole first.
pub(super) fn pipe<'r>(
    pipe: impl Read + 'r,
    packing: Packing,
    name: &str,
    args: &InputArgs,
) -> Result<(Box<dyn Read + 'r>, String), Failure> {
    if packing != Packing::Zip {
        return Ok((stream(pipe, packing, args.max_unpacked), packing.from("")));
    }
    // The directory of an archive is at its end.
    let whole: Box<dyn Seekable> = match spool(pipe, name)? {
        Spooled::Memory(bytes) => Box::new(Cursor::new(bytes)),
        Spooled::File(file) => Box::new(file.into_inner()),
    };
    let (spooled, from) = member(whole, name, args)?;
    let bytes: Box<dyn Read + 'r> = match spooled {
        Spooled::Memory(bytes) => Box::new(Cursor::new(bytes)),
        // Spooling leaves it at its beginning.
        Spooled::File(file) => Box::new(file.into_inner()),
    };
    Ok((bytes, from))
}

/// The bytes of a stream: in memory, or in a temporary file if there are many.
pub(super) fn spool(reader: impl Read, name: &str) -> Result<Spooled<File>, Failure> {
    Spooled::new(reader, MAX_IN_MEMORY, tempfile::tempfile).map_err(|e| failure(name, &e))
}

fn stream<'r>(reader: impl Read + 'r, packing: Packing, limit: Option<u64>) -> Box<dyn Read + 'r> {
    let count = Count::default();
    let reader = BufReader::with_capacity(1 << 16, Counted { inner: reader, count: count.clone() });
    match packing {
        Packing::Zstandard => {
            Box::new(Guard::new(zst::Frames::new(reader), "Zstandard data", count, limit))
        }
        _ => Box::new(Guard::new(MultiGzDecoder::new(reader), "gzip data", count, limit)),
    }
}

/// The first `len` bytes of a stream, and a reader of all of it.
pub(super) fn peek(mut reader: impl Read, len: usize) -> io::Result<(Vec<u8>, impl Read)> {
    let mut head = Vec::new();
    (&mut reader).take(len as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Cursor::new(head).chain(reader)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn plain() -> Vec<u8> {
        (0..40_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8 & 0x1f).collect()
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
        out.start_file("a.etl", zip::write::SimpleFileOptions::default()).unwrap();
        out.write_all(bytes).unwrap();
        out.finish().unwrap().into_inner()
    }

    /// The unpacked bytes, or the error.
    fn unpack(packed: &[u8]) -> Result<Vec<u8>, String> {
        let packing = Packing::of(packed).ok_or("not packed")?;
        let args = InputArgs { max_unpacked: Some(1 << 20), ..InputArgs::default() };
        let mut out = Vec::new();
        let (mut stream, _) = pipe(Cursor::new(packed.to_vec()), packing, "it", &args)
            .map_err(|failure| failure.to_string())?;
        stream.read_to_end(&mut out).map_err(|e| failure("it", &e).to_string())?;
        Ok(out)
    }

    #[test]
    fn pipe_unpacks_each_format() {
        let plain = plain();
        for packed in [gzip(&plain), zstandard(&plain), zip(&plain)] {
            assert!(packed.len() < plain.len());
            assert_eq!(unpack(&packed).as_ref(), Ok(&plain));
        }
        let (a, b) = plain.split_at(12_345);
        // Several members, as parallel packers write them; with a skippable frame in between.
        let skip = [&b"\x50\x2a\x4d\x18\x03\0\0\0"[..], b"abc"].concat();
        assert_eq!(unpack(&[gzip(a), gzip(b)].concat()).as_ref(), Ok(&plain));
        let frames = [zstandard(a), skip.clone(), zstandard(b), skip].concat();
        assert_eq!(unpack(&frames).as_ref(), Ok(&plain));
    }

    #[test]
    fn pipe_reports_damaged_input() {
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
    fn pipe_ends_on_any_bytes() {
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
