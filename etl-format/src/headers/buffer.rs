//! The values of a buffer header, which both halves share.

use crate::Ticks;
use crate::constants::offset::buffer::{BUFFER_SIZE, OFFSET, SAVED_OFFSET, TYPE};
use crate::constants::{
    BUFFER_HEADER_SIZE, BufferFlags, BufferState, BufferType, PROCESSOR_INDEX_MASK,
};
use crate::error::{Error, Result};

/// The 0x48 bytes before the records of a buffer, decoded but not interpreted.
///
/// [`BufferHeader::processor`] and [`BufferHeader::fill`] interpret the fields whose meaning
/// depends on other fields. Fields that contain stale memory are kept for byte-exact copies of a
/// trace.
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
///
/// ```
/// use etl_format::BufferHeader;
/// # use etl_format::FileHeader;
/// # use etl_format::write::Session;
/// # let bytes = Session::in_memory(FileHeader::new())?.finish()?;
///
/// let header = BufferHeader::parse(&bytes, 0)?;
/// assert_eq!((header.buffer_size, header.sequence_number), (0x1_0000, 0));
/// assert_eq!(header.to_bytes(), bytes[..0x48]);
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferHeader {
    /// Bytes from this buffer to the next one in the file.
    pub buffer_size: u32,
    /// Bytes of the (uncompressed) buffer in use, this header included; 0 in some buffers 0.
    pub saved_offset: u32,
    /// The writer's cursor when the buffer was sealed. Not a bound.
    pub current_offset: u32,
    /// Writers that are using the buffer; 0 in files.
    pub reference_count: i32,
    /// When the buffer was flushed, by the clock of the session. A relogger writes the time of the
    /// merge instead, in FILETIME units.
    pub timestamp: Ticks,
    /// Number of the buffer within its session, 0 for buffer 0.
    pub sequence_number: i64,
    /// Clock type and frequency of debugger buffers; stale memory in other buffers.
    pub clock: u64,
    /// The processor as stored: an index with [`BufferFlags::PROC_INDEX`]; otherwise a number in
    /// the low byte and the buffer alignment in the high byte (Vista and Windows 7).
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
    /// Reference time of real-time buffers; stale memory in other buffers.
    pub tail: [u8; 16],
}

/// The bytes of a buffer in use, as its header states them.
pub(crate) struct Fill {
    /// The records end here at the earliest: from here on, filler ends them.
    pub min: u32,
    /// The records end here at the latest.
    pub max: u32,
    /// The field that cannot be right.
    pub fault: Option<FillFault>,
}

impl Fill {
    fn exact(fill: u32) -> Self {
        Fill {
            min: fill,
            max: fill,
            fault: None,
        }
    }
}

/// A fill that a buffer header states wrongly.
pub(crate) struct FillFault {
    /// Offset of the field in the header.
    pub field: u64,
    pub found: u64,
    pub expected: &'static str,
}

impl FillFault {
    fn new(field: usize, found: u32, expected: &'static str) -> Self {
        FillFault {
            field: field as u64,
            found: found.into(),
            expected,
        }
    }
}

impl BufferHeader {
    /// The header of a buffer with records, as Windows 8 and later write it; sizes and numbers 0.
    #[must_use]
    pub fn data() -> Self {
        BufferHeader {
            state: BufferState::FLUSH,
            flags: BufferFlags::PROC_INDEX,
            ..BufferHeader::default()
        }
    }

    /// The processor whose records the buffer contains.
    ///
    /// Windows 8 and later store an index of 11 bits and set a flag; earlier versions store the
    /// number in the low byte and an alignment in the high byte.
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

    /// Whether this buffer contains a file header.
    #[must_use]
    pub fn is_header(&self) -> bool {
        self.buffer_type == BufferType::HEADER
    }

    /// Bytes of the uncompressed buffer in use, counted from its start.
    ///
    /// Data buffers state it twice, as `SavedOffset` and as `Offset`; if the two differ, this is
    /// the larger one that fits into the buffer. The first buffer states it as `Offset`, or if that
    /// is 0 as `SavedOffset`. Never larger than an uncompressed buffer.
    #[must_use]
    pub fn fill(&self) -> u32 {
        self.fill_within(u32::MAX).max
    }

    /// The fill that the header states. `capacity` is the size of a buffer's memory.
    pub(crate) fn fill_within(&self, capacity: u32) -> Fill {
        let size = if self.is_compressed() {
            capacity
        } else {
            self.buffer_size
        };
        let min = BUFFER_HEADER_SIZE as u32;
        let possible = min..=size;
        let saved = self.saved_offset;
        let offset = self.offset;
        // Merges of Windows 10 and later save the end of the header event here, earlier versions of
        // Windows 0.
        let agrees = saved == offset || self.is_header() && saved < offset;
        if agrees && (offset == 0 || possible.contains(&offset)) {
            return Fill::exact(offset);
        }
        if self.is_header() && offset == 0 && possible.contains(&saved) {
            return Fill::exact(saved);
        }
        let equal = "what the other field for the fill states";
        let in_buffer = "at least 0x48 and no more than the buffer holds";
        match (possible.contains(&saved), possible.contains(&offset)) {
            (true, true) => Fill {
                min: saved.min(offset),
                max: saved.max(offset),
                fault: Some(FillFault::new(SAVED_OFFSET, saved, equal)),
            },
            (true, false) => Fill {
                fault: Some(FillFault::new(OFFSET, offset, in_buffer)),
                ..Fill::exact(saved)
            },
            (false, true) => Fill {
                fault: Some(FillFault::new(SAVED_OFFSET, saved, in_buffer)),
                ..Fill::exact(offset)
            },
            // Filler ends the records.
            (false, false) => Fill {
                min,
                max: size,
                fault: Some(FillFault::new(OFFSET, offset, in_buffer)),
            },
        }
    }

    /// The header with all sizes replaced by `size`, if nothing else in it is damaged.
    pub(crate) fn resized(&self, size: u32) -> Option<Self> {
        let header = BufferHeader {
            buffer_size: size,
            saved_offset: size,
            offset: size,
            ..*self
        };
        let is_flushed = self.state == BufferState::FLUSH && !self.is_compressed();
        if is_flushed && header.is_plausible(size) {
            Some(header)
        } else {
            None
        }
    }

    /// Checks the fields that a walk depends on. `capacity` is the size of a buffer's memory, from
    /// the file header.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] with the first field that cannot be right.
    pub fn check(&self, file_offset: u64, capacity: u32) -> Result<()> {
        let min = BUFFER_HEADER_SIZE as u32;
        if self.buffer_size < min {
            return Err(Error::invalid(
                file_offset + BUFFER_SIZE as u64,
                "buffer size",
                self.buffer_size.into(),
                "at least the 0x48 bytes of the buffer header",
            ));
        }
        if self.is_compressed() {
            self.check_compressed(file_offset, capacity)?;
        } else {
            let used = self.saved_offset.max(self.offset);
            if used != 0 && used < min {
                return Err(Error::invalid(
                    file_offset + OFFSET as u64,
                    "fill of a buffer",
                    used.into(),
                    "0 or at least the 0x48 bytes of the buffer header",
                ));
            }
        }
        if self.buffer_type.name().is_none() {
            return Err(Error::invalid(
                file_offset + TYPE as u64,
                "buffer type",
                self.buffer_type.0.into(),
                "0 to 7",
            ));
        }
        Ok(())
    }

    /// Checks the sizes of a compressed buffer.
    fn check_compressed(&self, file_offset: u64, capacity: u32) -> Result<()> {
        let possible = BUFFER_HEADER_SIZE as u32..=capacity;
        if !possible.contains(&self.saved_offset) && !possible.contains(&self.offset) {
            return Err(Error::invalid(
                file_offset + SAVED_OFFSET as u64,
                "uncompressed fill of a compressed buffer",
                self.saved_offset.into(),
                "at least 0x48 and no more than the buffer size of the file header",
            ));
        }
        // Compressed bytes exceed the uncompressed ones at most by the overhead of tokens.
        let max = u64::from(capacity) + u64::from(capacity / 4) + 0x400;
        if u64::from(self.buffer_size) > max {
            return Err(Error::invalid(
                file_offset + BUFFER_SIZE as u64,
                "size of a compressed buffer",
                self.buffer_size.into(),
                "about the buffer size of the file header at most",
            ));
        }
        Ok(())
    }

    /// Whether a session probably wrote the header, to find the next intact buffer in a damaged
    /// file. Stricter than [`BufferHeader::check`], because the bytes may be arbitrary.
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
