//! Decodes the header before the records of each buffer (`WMI_BUFFER_HEADER`).

use crate::constants::{BUFFER_HEADER_SIZE, BufferFlags, BufferState, BufferType};
use crate::cursor::Bytes;
use crate::error::{Error, Result};
use crate::headers::BufferHeader;

impl BufferHeader {
    /// Decodes the first 0x48 of `bytes`; `file_offset` is their position, for errors.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Truncated`] when there are fewer bytes. The values are not judged; see
    /// [`BufferHeader::check`].
    pub fn parse(bytes: &[u8], file_offset: u64) -> Result<Self> {
        Self::decode(bytes).ok_or_else(|| {
            Error::truncated(
                file_offset,
                "buffer header",
                BUFFER_HEADER_SIZE as u64,
                bytes.len() as u64,
            )
        })
    }

    fn decode(b: &[u8]) -> Option<Self> {
        let b: &[u8; BUFFER_HEADER_SIZE] = b.first_chunk()?;
        let b = b.as_slice();
        Some(BufferHeader {
            buffer_size: b.u32_at(0x00)?,
            saved_offset: b.u32_at(0x04)?,
            current_offset: b.u32_at(0x08)?,
            reference_count: b.u32_at(0x0c)?.cast_signed(),
            timestamp: b.i64_at(0x10)?,
            sequence_number: b.i64_at(0x18)?,
            clock: b.u64_at(0x20)?,
            processor_field: b.u16_at(0x28)?,
            logger_id: b.u16_at(0x2a)?,
            state: BufferState(b.u32_at(0x2c)?),
            offset: b.u32_at(0x30)?,
            flags: BufferFlags(b.u16_at(0x34)?),
            buffer_type: BufferType(b.u16_at(0x36)?),
            tail: b.array(0x38)?,
        })
    }
}
