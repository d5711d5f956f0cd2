//! Formats of packed files, and how they are unpacked.

use super::bytes::Bytes;
use crate::eventpipe::ConvertOptions;

/// How packed input is unpacked, and an EventPipe stream converted.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Unpacker {
    /// The file of a ZIP archive to read; needed if the archive contains several traces.
    pub member: Option<String>,
    /// The largest unpacked size, and the largest trace of an EventPipe stream. Default: 250 times
    /// the packed size, but at least 256 MiB and at most 16 GiB.
    pub max_unpacked: Option<u64>,
    /// The most memory for the window of Zstandard data. Default: 128 MiB, as `zstd` has it.
    pub window: Option<u64>,
    /// How an EventPipe stream (`.nettrace`) is converted.
    pub eventpipe: ConvertOptions,
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
        if is_skippable_frame(head) {
            return Some(Packing::Zstandard);
        }
        KNOWN
            .iter()
            .find(|(magic, _)| head.starts_with(magic))
            .map(|(_, packing)| *packing)
    }
}

/// Whether bytes begin with a skippable frame of Zstandard. `pzstd` writes one before each frame
/// with content. A trace with these bytes would have a first buffer of 407 MB.
fn is_skippable_frame(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The unpacked content of a packed file.
pub(super) struct Content {
    pub bytes: Bytes,
    /// The origin of the bytes in words.
    pub from: String,
}
