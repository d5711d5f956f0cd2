//! Steps that the encoders of records and buffers share.

use crate::constants::{MARKER_EVENT_TRACE, MARKER_TRACE, RECORD_ALIGNMENT, RecordKind};
use crate::error::{Error, ErrorKind, Result};

/// An error for a request that the format cannot express. Its offset is 0, because there is no file
/// yet.
pub(crate) fn unwritable(why: &'static str) -> Error {
    Error::new(0, ErrorKind::Unwritable(why))
}

/// The last two bytes of a record's first word, for all kinds but the usual form of a message.
pub(crate) const fn marker(kind: RecordKind) -> [u8; 2] {
    [kind.0, MARKER_TRACE | MARKER_EVENT_TRACE]
}

/// Appends a record with `encode` and writes its size at an offset in it. After an error `out` is
/// unchanged.
pub(crate) fn sized(
    out: &mut Vec<u8>,
    size_offset: usize,
    encode: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let start = out.len();
    let encoded = encode(out).and_then(|()| put_size(out, start, size_offset));
    if encoded.is_err() {
        out.truncate(start);
    }
    encoded
}

/// Writes the size of the record that begins at `start`.
fn put_size(out: &mut [u8], start: usize, size_offset: usize) -> Result<()> {
    let Ok(size) = u16::try_from(out.len().saturating_sub(start)) else {
        return Err(unwritable("a record takes at most 65535 bytes"));
    };
    let rest = out.get_mut(start + size_offset..).unwrap_or_default();
    let Some(field) = rest.first_chunk_mut::<2>() else {
        return Err(unwritable("the record is shorter than its header"));
    };
    *field = size.to_le_bytes();
    Ok(())
}

/// Zeros up to the next multiple of the record alignment.
pub(crate) fn align(out: &mut Vec<u8>) {
    let aligned = out.len().next_multiple_of(RECORD_ALIGNMENT);
    if aligned > out.len() {
        out.resize(aligned, 0);
    }
}

/// Overwrites the bytes at an offset of `out`; bytes beyond its end are dropped.
pub(crate) fn overwrite(out: &mut [u8], offset: usize, bytes: &[u8]) {
    let places = out.get_mut(offset..).unwrap_or_default();
    for (place, byte) in places.iter_mut().zip(bytes) {
        *place = *byte;
    }
}
