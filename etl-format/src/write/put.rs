//! Little-endian fields at the end of a byte vector: the only spelling of integers in this half.

use crate::Guid;
use crate::constants::{
    MARKER_EVENT_TRACE, MARKER_TRACE, PointerSize, RECORD_ALIGNMENT, RecordKind,
};
use crate::error::{Error, ErrorKind, Result};

/// Appends fields in the byte order of the format.
pub(crate) trait Put {
    fn bytes(&mut self, bytes: &[u8]);

    fn put_u8(&mut self, v: u8) {
        self.bytes(&[v]);
    }
    fn put_u16(&mut self, v: u16) {
        self.bytes(&v.to_le_bytes());
    }
    fn put_u32(&mut self, v: u32) {
        self.bytes(&v.to_le_bytes());
    }
    fn put_u64(&mut self, v: u64) {
        self.bytes(&v.to_le_bytes());
    }
    fn put_i64(&mut self, v: i64) {
        self.bytes(&v.to_le_bytes());
    }
    fn put_guid(&mut self, v: Guid) {
        self.bytes(&v.to_bytes());
    }
    /// The low half only for 32-bit pointers.
    fn put_pointer(&mut self, v: u64, size: PointerSize) {
        match size {
            PointerSize::P4 => self.put_u32(v as u32),
            PointerSize::P8 => self.put_u64(v),
        }
    }
    fn put_utf16z(&mut self, units: &[u16]) {
        for unit in units {
            self.put_u16(*unit);
        }
        self.put_u16(0);
    }
}

impl Put for Vec<u8> {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// An error for a request that the format cannot express. Its offset is 0, because there is no file
/// yet.
pub(crate) fn unwritable(why: &'static str) -> Error {
    Error::new(0, ErrorKind::Unwritable(why))
}

/// The last two bytes of a record's first word, for all kinds but the usual form of a message.
pub(crate) const fn marker(kind: RecordKind) -> [u8; 2] {
    [kind.0, MARKER_TRACE | MARKER_EVENT_TRACE]
}

/// Appends a record by `fill`, states its size at `size_at`, and takes it all back if it fails.
pub(crate) fn sized(
    out: &mut Vec<u8>,
    size_at: usize,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let start = out.len();
    let done = fill(out).and_then(|()| {
        let size = u16::try_from(out.len().saturating_sub(start))
            .map_err(|_| unwritable("a record takes at most 65535 bytes"))?;
        let field = out
            .get_mut(start + size_at..)
            .and_then(|rest| rest.first_chunk_mut::<2>())
            .ok_or_else(|| unwritable("the record is shorter than its header"))?;
        *field = size.to_le_bytes();
        Ok(())
    });
    if done.is_err() {
        out.truncate(start);
    }
    done
}

/// Zeros up to the next multiple of the record alignment.
pub(crate) fn align(out: &mut Vec<u8>) {
    let aligned = out.len().next_multiple_of(RECORD_ALIGNMENT);
    if aligned > out.len() {
        out.resize(aligned, 0);
    }
}

/// Overwrites the bytes at `at` of `out`; bytes beyond its end are dropped.
pub(crate) fn overwrite(out: &mut [u8], at: usize, bytes: &[u8]) {
    let places = out.get_mut(at..).unwrap_or_default();
    for (place, byte) in places.iter_mut().zip(bytes) {
        *place = *byte;
    }
}
