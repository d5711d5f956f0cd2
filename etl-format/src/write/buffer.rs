//! Encodes buffer headers (`WMI_BUFFER_HEADER`) and the filler after records.

use byteorder::{ByteOrder, LE};

use crate::constants::{BUFFER_HEADER_SIZE, FILLER};
use crate::headers::BufferHeader;

impl BufferHeader {
    /// The 0x48 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; BUFFER_HEADER_SIZE] {
        let mut out = [0; BUFFER_HEADER_SIZE];
        LE::write_u32(&mut out[0x00..0x04], self.buffer_size);
        LE::write_u32(&mut out[0x04..0x08], self.saved_offset);
        LE::write_u32(&mut out[0x08..0x0c], self.current_offset);
        LE::write_i32(&mut out[0x0c..0x10], self.reference_count);
        LE::write_i64(&mut out[0x10..0x18], self.timestamp.get());
        LE::write_i64(&mut out[0x18..0x20], self.sequence_number);
        LE::write_u64(&mut out[0x20..0x28], self.clock);
        LE::write_u16(&mut out[0x28..0x2a], self.processor_field);
        LE::write_u16(&mut out[0x2a..0x2c], self.logger_id);
        LE::write_u32(&mut out[0x2c..0x30], self.state.0);
        LE::write_u32(&mut out[0x30..0x34], self.offset);
        LE::write_u16(&mut out[0x34..0x36], self.flags.0);
        LE::write_u16(&mut out[0x36..0x38], self.buffer_type.0);
        out[0x38..].copy_from_slice(&self.tail);
        out
    }
}

/// Fills an uncompressed buffer after its records.
pub fn fill(buffer: &mut Vec<u8>, size: usize) {
    if buffer.len() < size {
        buffer.resize(size, FILLER);
    }
}
