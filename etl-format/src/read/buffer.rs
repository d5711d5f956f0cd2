//! Decodes the header before the records of each buffer (`WMI_BUFFER_HEADER`).

use crate::constants::offset::buffer;
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
            buffer_size: b.u32_at(buffer::BUFFER_SIZE)?,
            saved_offset: b.u32_at(buffer::SAVED_OFFSET)?,
            current_offset: b.u32_at(buffer::CURRENT_OFFSET)?,
            reference_count: b.u32_at(buffer::REFERENCE_COUNT)?.cast_signed(),
            timestamp: b.i64_at(buffer::TIMESTAMP)?.into(),
            sequence_number: b.i64_at(buffer::SEQUENCE)?,
            clock: b.u64_at(buffer::CLOCK)?,
            processor_field: b.u16_at(buffer::PROCESSOR)?,
            logger_id: b.u16_at(buffer::LOGGER_ID)?,
            state: BufferState(b.u32_at(buffer::STATE)?),
            offset: b.u32_at(buffer::OFFSET)?,
            flags: BufferFlags(b.u16_at(buffer::FLAGS)?),
            buffer_type: BufferType(b.u16_at(buffer::TYPE)?),
            tail: b.array(buffer::TAIL)?,
        })
    }
}
