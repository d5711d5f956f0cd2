//! The header that stands before the records of each buffer (`WMI_BUFFER_HEADER`).

use crate::constants::{
    BUFFER_HEADER_SIZE, BufferFlags, BufferState, BufferType, PROCESSOR_INDEX_MASK,
};
use crate::cursor::Bytes;
use crate::error::{Error, Result};

/// The 0x48 bytes before the records of a buffer, decoded but not interpreted.
///
/// [`BufferHeader::processor`] and [`BufferHeader::fill`] interpret the fields whose meaning
/// depends on others. Fields that are stale memory on disk are kept, because a byte-exact copy of a
/// trace needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferHeader {
    /// Bytes from this buffer to the next one in the file.
    pub buffer_size: u32,
    /// Bytes of the (uncompressed) buffer in use, this header included; 0 in some buffers 0.
    pub saved_offset: u32,
    /// The writer's cursor when the buffer was sealed. Not a bound.
    pub current_offset: u32,
    /// Writers inside the buffer; 0 on disk.
    pub reference_count: i32,
    /// When the buffer was flushed: session clock (kernel-written) or FILETIME (relogged).
    pub timestamp: i64,
    /// Number of the buffer within its session, 0 for buffer 0.
    pub sequence_number: i64,
    /// Clock type and frequency of debugger buffers; elsewhere stale.
    pub clock: u64,
    /// The raw processor field; see [`BufferHeader::processor`].
    pub processor_field: u16,
    /// Id of the session; 0 or 0x8001 when relogged.
    pub logger_id: u16,
    /// State of the buffer; in buffer 0 of a compressed file its low word is the compression
    /// format.
    pub state: BufferState,
    /// Bytes in use when the buffer was flushed, this header included.
    pub offset: u32,
    /// Flags.
    pub flags: BufferFlags,
    /// Type.
    pub buffer_type: BufferType,
    /// Reference time of real-time buffers; elsewhere stale.
    pub tail: [u8; 16],
}

impl BufferHeader {
    /// Decodes the first 0x48 of `bytes`; `file_offset` is where they stand, for the error.
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

    /// The processor whose records the buffer holds.
    ///
    /// Windows 8 and later store an index of 11 bits and say so in the flags; before, the low byte
    /// is the number and the high one an alignment.
    #[must_use]
    pub fn processor(&self) -> u16 {
        if self.flags.has(BufferFlags::PROC_INDEX) {
            self.processor_field & PROCESSOR_INDEX_MASK
        } else {
            self.processor_field & 0xff
        }
    }

    /// Whether the records are compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.flags.has(BufferFlags::COMPRESSED)
    }

    /// Whether this buffer holds a file header.
    #[must_use]
    pub fn is_header(&self) -> bool {
        self.buffer_type == BufferType::HEADER
    }

    /// Bytes of the uncompressed buffer in use, counted from its start.
    ///
    /// `SavedOffset` for a compressed buffer; else `Offset`, or in a data buffer the larger of
    /// both: they are equal in all that Windows writes, and filler ends the records anyway. Never
    /// more than the buffer. Reference-time and empty-marker buffers hold no records.
    #[must_use]
    pub fn fill(&self) -> u32 {
        match self.buffer_type {
            BufferType::REFTIME | BufferType::EMPTY_MARKER => BUFFER_HEADER_SIZE as u32,
            _ if self.is_compressed() => self.saved_offset,
            _ if self.fill_differs() => self.offset.max(self.saved_offset).min(self.buffer_size),
            _ if self.offset != 0 => self.offset.min(self.buffer_size),
            _ => self.saved_offset.min(self.buffer_size),
        }
    }

    /// Whether a data buffer states two different fills.
    #[must_use]
    pub(crate) fn fill_differs(&self) -> bool {
        let stated = self.offset != 0 && self.saved_offset != 0;
        stated && self.offset != self.saved_offset && !self.is_header() && !self.is_compressed()
    }

    /// The header with its sizes replaced by `size`, where they alone are damaged and everything
    /// else is as a session writes it.
    pub(crate) fn resized(&self, size: u32) -> Option<Self> {
        let header = BufferHeader { buffer_size: size, saved_offset: size, offset: size, ..*self };
        let written = self.state == BufferState::FLUSH && !self.is_compressed();
        (written && header.is_plausible(size)).then_some(header)
    }

    /// Judges the fields that a walk depends on. `capacity` is the size of a buffer's memory, from
    /// the file header.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] naming the first field that cannot be right.
    pub fn check(&self, file_offset: u64, capacity: u32) -> Result<()> {
        let header = BUFFER_HEADER_SIZE as u32;
        if self.buffer_size < header {
            return Err(Error::invalid(
                file_offset,
                "buffer size",
                self.buffer_size.into(),
                "at least the 0x48 bytes of the buffer header",
            ));
        }
        if self.is_compressed() {
            if self.saved_offset < header || self.saved_offset > capacity {
                return Err(Error::invalid(
                    file_offset + 4,
                    "uncompressed fill of a compressed buffer",
                    self.saved_offset.into(),
                    "at least 0x48 and no more than the buffer size of the file header",
                ));
            }
            // The stored form may not outgrow what it stands for by more than the token overhead.
            let most = u64::from(capacity) + u64::from(capacity / 4) + 0x400;
            if u64::from(self.buffer_size) > most {
                return Err(Error::invalid(
                    file_offset,
                    "size of a compressed buffer",
                    self.buffer_size.into(),
                    "about the buffer size of the file header at most",
                ));
            }
        } else {
            let used = if self.offset != 0 { self.offset } else { self.saved_offset };
            if used != 0 && used < header {
                return Err(Error::invalid(
                    file_offset + 0x30,
                    "fill of a buffer",
                    used.into(),
                    "0 or at least the 0x48 bytes of the buffer header",
                ));
            }
        }
        if self.buffer_type.name().is_none() {
            return Err(Error::invalid(
                file_offset + 0x36,
                "buffer type",
                self.buffer_type.0.into(),
                "0 to 7",
            ));
        }
        Ok(())
    }

    /// Whether the header looks like one that a session wrote, for finding the next sound buffer in
    /// a damaged file: stricter than [`BufferHeader::check`], since any bytes may stand here.
    #[must_use]
    pub fn is_plausible(&self, capacity: u32) -> bool {
        self.check(0, capacity).is_ok()
            && self.reference_count == 0
            && self.flags.unnamed() == 0
            && self.buffer_size <= capacity.saturating_add(capacity / 4).saturating_add(0x400)
            && self.state.name().is_some()
            && self.sequence_number >= 0
            && (self.is_header() || self.saved_offset == self.offset)
            && (self.is_header() || self.offset >= BUFFER_HEADER_SIZE as u32)
    }
}
