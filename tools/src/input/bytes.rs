//! Opened bytes, and their unpacking.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};

use etl_format::read::{FileSource, Reused, Source as _, Spooled};
use flate2::bufread::MultiGzDecoder;

use super::error::{Advice, Error};
use super::guard::{Count, Counted, Guard};
use super::head::Head;
use super::temporary::Temporary;
use super::{archive, sniff, zst};

/// Bytes of a pipe, or of unpacked input, that are kept in memory. Longer input goes to a temporary
/// file.
const MAX_IN_MEMORY: usize = 16 << 20;

/// Bytes that are enough to recognize the type of a file.
const HEAD: usize = 512;

/// How packed input is unpacked.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Unpacker {
    /// The file of a ZIP archive to read; needed if the archive contains several traces.
    pub member: Option<String>,
    /// The largest unpacked size. Default: 250 times the packed size, but at least 256 MiB and at
    /// most 16 GiB.
    pub max_unpacked: Option<u64>,
    /// The most memory for the window of Zstandard data. Default: 128 MiB, as `zstd` has it.
    pub window: Option<u64>,
}

impl Unpacker {
    /// Unpacks bytes where they are packed. Returns what messages about them need as well.
    ///
    /// # Errors
    /// When the bytes cannot be read or unpacked, or have another format than that of traces.
    pub fn open(&self, bytes: Bytes) -> Result<(Bytes, Head), Error> {
        let (head, bytes) = bytes.peek(HEAD)?;
        let packing = Packing::of(&head);
        if self.member.is_some() && packing != Some(Packing::Zip) {
            return Err(Error::new(
                "only a ZIP archive has files to choose from, and this is not one",
            )
            .advise(Advice::OmitMember));
        }
        let Some(packing) = packing else {
            sniff::reject_other_formats(&head)?;
            return Ok((bytes, Head { bytes: head, from: None }));
        };
        let (bytes, from) = bytes.unpack(packing, self)?;
        let (head, bytes) = bytes.peek(HEAD)?;
        sniff::reject_other_formats(&head).map_err(|error| error.unpacked_from(Some(&from)))?;
        Ok((bytes, Head { bytes: head, from: Some(from) }))
    }
}

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
pub enum Bytes {
    /// All of them, in a file or in memory.
    Whole(Spooled<File>),
    /// A pipe, which is read front to back.
    Pipe(Box<dyn Read>),
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bytes::Whole(whole) => f.debug_tuple("Whole").field(whole).finish(),
            Bytes::Pipe(_) => f.write_str("Pipe"),
        }
    }
}

impl Bytes {
    /// The bytes of a file. A named pipe cannot seek: it is read front to back.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of_file(file: File) -> io::Result<Self> {
        if file.metadata().is_ok_and(|m| m.is_file()) {
            Ok(Bytes::Whole(Spooled::File(FileSource::new(file)?)))
        } else {
            Ok(Bytes::Pipe(Box::new(file)))
        }
    }

    /// The first `len` bytes, and all of them.
    fn peek(self, len: usize) -> io::Result<(Vec<u8>, Self)> {
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
    ///
    /// # Errors
    /// When the file cannot seek.
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
    ///
    /// # Errors
    /// When they cannot be read or unpacked.
    pub fn whole(self) -> Result<Spooled<File>, Error> {
        match self {
            Bytes::Whole(whole) => Ok(whole),
            Bytes::Pipe(pipe) => spool(pipe),
        }
    }

    /// The unpacked bytes, and their origin. Only archives are read as a whole.
    fn unpack(self, packing: Packing, options: &Unpacker) -> Result<(Self, String), Error> {
        let limit = options.max_unpacked;
        if packing == Packing::Zip {
            // The directory of an archive is at its end.
            let archive: Box<dyn Seekable> = match self.whole()? {
                Spooled::Memory(bytes) => Box::new(Cursor::new(bytes)),
                Spooled::File(file) => Box::new(file.into_inner()),
            };
            return archive::with_member(archive, options, |member, bytes| {
                let from = format!("{member}, unpacked from the ZIP archive");
                Ok((Bytes::Whole(spool(bytes)?), from))
            });
        }
        let inner = self.reader()?;
        let count = Count::default();
        let reader = BufReader::with_capacity(1 << 16, Counted { inner, count: count.clone() });
        let (format, unpacked): (_, Box<dyn Read>) = match packing {
            Packing::Zstandard => {
                ("Zstandard data", Box::new(zst::Frames::new(reader, options.window)))
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

fn spool(reader: impl Read) -> Result<Spooled<File>, Error> {
    Ok(match Spooled::new(reader, MAX_IN_MEMORY, Temporary::create)? {
        Spooled::Memory(bytes) => Spooled::Memory(bytes),
        Spooled::File(file) => Spooled::File(FileSource::new(file.into_inner().into_file())?),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::input::OptionNames;

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
        let options = Unpacker { max_unpacked: Some(1 << 20), ..Unpacker::default() };
        let names = OptionNames { member: "--member NAME", max_unpacked: "--max-unpacked 64G" };
        let text =
            |error: Error| format!("{error}\nhint: {}", error.hint(names).unwrap_or_default());
        let mut out = Vec::new();
        let (unpacked, _) = Bytes::Pipe(Box::new(Cursor::new(packed.to_vec())))
            .unpack(packing, &options)
            .map_err(text)?;
        let mut stream = unpacked.reader().map_err(|e| e.to_string())?;
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
