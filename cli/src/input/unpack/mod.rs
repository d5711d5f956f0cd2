//! Unpacks gzip, Zstandard and ZIP files.

mod archive;
mod guard;
mod zst;

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};

use etl_format::read::{Reused, Source as _, Spooled};
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

/// Opened bytes, packed or not.
pub(super) enum Bytes {
    /// All of them, in a file or in memory.
    Whole(Spooled<File>),
    Pipe(Box<dyn Read>),
}

impl Bytes {
    /// The first `len` bytes, and all of them.
    pub fn peek(self, len: usize) -> io::Result<(Vec<u8>, Self)> {
        match self {
            Bytes::Whole(mut whole) => {
                let mut block = Reused::default();
                whole.read(0, len, &mut block)?;
                Ok((block.as_ref().to_vec(), Bytes::Whole(whole)))
            }
            Bytes::Pipe(mut pipe) => {
                let mut head = Vec::new();
                (&mut pipe).take(len as u64).read_to_end(&mut head)?;
                Ok((head.clone(), Bytes::Pipe(Box::new(Cursor::new(head).chain(pipe)))))
            }
        }
    }

    /// The bytes front to back.
    pub fn reader(self) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Bytes::Whole(Spooled::Memory(bytes)) => Box::new(Cursor::new(bytes)),
            Bytes::Whole(Spooled::File(file)) => {
                let mut file = file.into_inner();
                file.rewind()?;
                Box::new(file)
            }
            Bytes::Pipe(pipe) => pipe,
        })
    }

    /// All bytes: in memory, or in a temporary file if a pipe has many.
    pub fn whole(self, name: &str) -> Result<Spooled<File>, Failure> {
        match self {
            Bytes::Whole(whole) => Ok(whole),
            Bytes::Pipe(pipe) => spool(pipe, name),
        }
    }

    /// The unpacked bytes, and their origin. Only archives are read as a whole.
    pub fn unpack(
        self,
        packing: Packing,
        name: &str,
        args: &InputArgs,
    ) -> Result<(Self, String), Failure> {
        let limit = args.max_unpacked;
        if packing == Packing::Zip {
            // The directory of an archive is at its end.
            let archive: Box<dyn Seekable> = match self.whole(name)? {
                Spooled::Memory(bytes) => Box::new(Cursor::new(bytes)),
                Spooled::File(file) => Box::new(file.into_inner()),
            };
            return archive::with_member(archive, name, args, |member, bytes| {
                let from = format!("{member}, unpacked from the ZIP archive");
                Ok((Bytes::Whole(spool(bytes, name)?), from))
            });
        }
        let inner = self.reader().map_err(|e| Failure::io(name, &e))?;
        let count = Count::default();
        let reader = BufReader::with_capacity(1 << 16, Counted { inner, count: count.clone() });
        let (format, unpacked): (_, Box<dyn Read>) = match packing {
            Packing::Zstandard => {
                // The window is only a part of what the command needs.
                let window = args.max_memory.map(|memory| memory / 4);
                ("Zstandard data", Box::new(zst::Frames::new(reader, window)))
            }
            _ => ("gzip data", Box::new(MultiGzDecoder::new(reader))),
        };
        let pipe = Box::new(Guard::new(unpacked, format, count, limit));
        Ok((Bytes::Pipe(pipe), format!("unpacked from {format}")))
    }
}

/// A reader that can seek.
trait Seekable: Read + Seek {}
impl<T: Read + Seek> Seekable for T {}

fn spool(reader: impl Read, name: &str) -> Result<Spooled<File>, Failure> {
    Spooled::new(reader, MAX_IN_MEMORY, tempfile::tempfile).map_err(|e| failure(name, &e))
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
        let mut args = InputArgs::default();
        args.max_unpacked = Some(1 << 20);
        let mut out = Vec::new();
        let (unpacked, _) = Bytes::Pipe(Box::new(Cursor::new(packed.to_vec())))
            .unpack(packing, "it", &args)
            .map_err(|failure| failure.to_string())?;
        let mut stream = unpacked.reader().map_err(|e| e.to_string())?;
        stream.read_to_end(&mut out).map_err(|e| failure("it", &e).to_string())?;
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
        let frames = [zstandard(a), skip.clone(), zstandard(b), skip].concat();
        assert_eq!(unpack(&frames).as_ref(), Ok(&plain));
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
