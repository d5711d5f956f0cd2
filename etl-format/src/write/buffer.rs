//! Encodes buffer headers (`WMI_BUFFER_HEADER`) and the filler after records.

use crate::constants::{
    BUFFER_HEADER_SIZE, BufferFlags, BufferState, BufferType, FILLER, LEGACY_BUFFER_ALIGNMENT,
};

use super::put::{Put, overwrite};

/// The processor of a buffer, in the form of the Windows that writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// A 16-bit index (Windows 8 and later); goes with [`BufferFlags::PROC_INDEX`].
    Index(u16),
    /// A number and the buffer alignment (Vista and Windows 7).
    Number {
        /// The processor.
        number: u8,
        /// 8 on real files.
        alignment: u8,
    },
}

impl Processor {
    /// The form of Vista and Windows 7, with the alignment they write.
    #[must_use]
    pub const fn legacy(number: u8) -> Self {
        Processor::Number { number, alignment: LEGACY_BUFFER_ALIGNMENT }
    }
}

/// The fields of a buffer header.
///
/// | at | | at | |
/// |---|---|---|---|
/// | 00 | u32 size in the file | 28 | processor, 2 bytes |
/// | 04 | u32 saved offset | 2a | u16 logger id |
/// | 08 | u32 current offset | 2c | u32 state |
/// | 0c | i32 references | 30 | u32 offset |
/// | 10 | i64 flush timestamp | 34 | u16 flags |
/// | 18 | i64 sequence number | 36 | u16 type |
/// | 20 | u64 clock | 38 | 16 bytes |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferHeader {
    /// Bytes from this buffer to the next one in the file.
    pub buffer_size: u32,
    /// Bytes in use, this header included, of the buffer before compression.
    pub saved_offset: u32,
    /// The cursor of the writers when the buffer was sealed.
    pub current_offset: u32,
    /// Writers inside the buffer; 0 on disk.
    pub reference_count: i32,
    /// When the buffer was flushed: session clock (kernel) or FILETIME (relogger).
    pub timestamp: i64,
    /// Number of the buffer within its session.
    pub sequence_number: i64,
    /// Clock type and frequency of debugger buffers; 0 in a fresh header.
    pub clock: u64,
    /// The processor.
    pub processor: Processor,
    /// Id of the session.
    pub logger_id: u16,
    /// State; in buffer 0 of a compressed file its low word is the compression format.
    pub state: BufferState,
    /// Bytes in use, this header included.
    pub offset: u32,
    /// Flags.
    pub flags: BufferFlags,
    /// Type.
    pub buffer_type: BufferType,
    /// Reference time of real-time buffers; 0 in a fresh header.
    pub tail: [u8; 16],
}

impl BufferHeader {
    /// The header of a buffer with records, as Windows 8 and later write it; sizes and numbers 0.
    #[must_use]
    pub const fn data() -> Self {
        BufferHeader {
            buffer_size: 0,
            saved_offset: 0,
            current_offset: 0,
            reference_count: 0,
            timestamp: 0,
            sequence_number: 0,
            clock: 0,
            processor: Processor::Index(0),
            logger_id: 0,
            state: BufferState::FLUSH,
            offset: 0,
            flags: BufferFlags::PROC_INDEX,
            buffer_type: BufferType::GENERIC,
            tail: [0; 16],
        }
    }

    /// Appends the 0x48 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.buffer_size);
        out.put_u32(self.saved_offset);
        out.put_u32(self.current_offset);
        out.put_u32(self.reference_count.cast_unsigned());
        out.put_i64(self.timestamp);
        out.put_i64(self.sequence_number);
        out.put_u64(self.clock);
        match self.processor {
            Processor::Index(index) => out.put_u16(index),
            Processor::Number { number, alignment } => out.bytes(&[number, alignment]),
        }
        out.put_u16(self.logger_id);
        out.put_u32(self.state.0);
        out.put_u32(self.offset);
        out.put_u16(self.flags.0);
        out.put_u16(self.buffer_type.0);
        out.bytes(&self.tail);
    }

    /// Overwrites the first 0x48 bytes of a buffer.
    pub fn overwrite(&self, buffer: &mut [u8]) {
        let mut bytes = Vec::with_capacity(BUFFER_HEADER_SIZE);
        self.encode(&mut bytes);
        overwrite(buffer, 0, &bytes);
    }
}

/// Fills an uncompressed buffer after its records.
pub fn fill(buffer: &mut Vec<u8>, size: usize) {
    if buffer.len() < size {
        buffer.resize(size, FILLER);
    }
}
