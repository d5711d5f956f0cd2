//! Encodes buffer headers (`WMI_BUFFER_HEADER`) and the filler after records.

use byteorder::{ByteOrder, LE};

use crate::constants::offset::buffer;
use crate::constants::{BUFFER_HEADER_SIZE, FILLER};
use crate::headers::BufferHeader;

impl BufferHeader {
    /// The 0x48 bytes as they are in a file.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; BUFFER_HEADER_SIZE] {
        let mut out = [0; BUFFER_HEADER_SIZE];
        LE::write_u32(&mut out[buffer::BUFFER_SIZE..], self.buffer_size);
        LE::write_u32(&mut out[buffer::SAVED_OFFSET..], self.saved_offset);
        LE::write_u32(&mut out[buffer::CURRENT_OFFSET..], self.current_offset);
        LE::write_i32(&mut out[buffer::REFERENCE_COUNT..], self.reference_count);
        LE::write_i64(&mut out[buffer::TIMESTAMP..], self.timestamp.get());
        LE::write_i64(&mut out[buffer::SEQUENCE..], self.sequence_number);
        LE::write_u64(&mut out[buffer::CLOCK..], self.clock);
        LE::write_u16(&mut out[buffer::PROCESSOR..], self.processor_field);
        LE::write_u16(&mut out[buffer::LOGGER_ID..], self.logger_id);
        LE::write_u32(&mut out[buffer::STATE..], self.state.0);
        LE::write_u32(&mut out[buffer::OFFSET..], self.offset);
        LE::write_u16(&mut out[buffer::FLAGS..], self.flags.0);
        LE::write_u16(&mut out[buffer::TYPE..], self.buffer_type.0);
        out[buffer::TAIL..].copy_from_slice(&self.tail);
        out
    }
}

/// Fills an uncompressed buffer up to its size, after its records.
pub fn fill(buffer: &mut Vec<u8>, size: usize) {
    if buffer.len() < size {
        buffer.resize(size, FILLER);
    }
}
