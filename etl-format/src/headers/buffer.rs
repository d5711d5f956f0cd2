//! The values of a buffer header, which both halves share.

use crate::Ticks;
use crate::constants::offset::buffer::{OFFSET, SAVED_OFFSET};
use crate::constants::{
    BUFFER_HEADER_SIZE, BufferFlags, BufferState, BufferType, PROCESSOR_INDEX_MASK,
};
use crate::error::{Error, Result};

/// The 0x48 bytes before the records of a buffer, decoded but not interpreted.
///
/// [`BufferHeader::processor`] and [`BufferHeader::fill`] interpret the fields whose meaning
/// depends on others. Fields that are stale memory on disk are kept for byte-exact copies of a
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
    /// Writers inside the buffer; 0 on disk.
    pub reference_count: i32,
    /// When the buffer was flushed, by the clock of the session. A relogger writes the time of the
    /// merge instead, in FILETIME units.
    pub timestamp: Ticks,
    /// Number of the buffer within its session, 0 for buffer 0.
    pub sequence_number: i64,
    /// Clock type and frequency of debugger buffers; elsewhere stale.
    pub clock: u64,
    /// The processor as stored: an index with [`BufferFlags::PROC_INDEX`], else a number in the low
    /// byte and the buffer alignment in the high one (Vista and Windows 7).
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

/// What a buffer header says of the fill of its buffer.
pub(crate) struct Fills {
    /// From here on, filler may end the records.
    pub least: u32,
    /// The records end here at the latest.
    pub most: u32,
    /// The field that cannot be right.
    pub fault: Option<FillFault>,
}

/// A fill that a buffer header states wrongly.
pub(crate) struct FillFault {
    /// Offset of the field in the header.
    pub at: u64,
    pub found: u64,
    pub expected: &'static str,
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

    /// The processor whose records the buffer holds.
    ///
    /// Windows 8 and later store an index of 11 bits and set a flag; earlier versions store the
    /// number in the low byte and an alignment in the high one.
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
    /// Data buffers state it twice, as `SavedOffset` and as `Offset`; where the two differ, this is
    /// the larger one that the buffer can hold. The first buffer states it as `Offset`, or else as
    /// `SavedOffset`. Never larger than an uncompressed buffer.
    #[must_use]
    pub fn fill(&self) -> u32 {
        self.fills(u32::MAX).most
    }

    /// What the header says of the fill. `capacity` is the size of a buffer's memory.
    pub(crate) fn fills(&self, capacity: u32) -> Fills {
        let header = BUFFER_HEADER_SIZE as u32;
        let (saved, offset) = (self.saved_offset, self.offset);
        let size = if self.is_compressed() {
            capacity
        } else {
            self.buffer_size
        };
        let exactly = |fill: u32| Fills {
            least: fill,
            most: fill,
            fault: None,
        };
        let holds = |fill: u32| (header..=size).contains(&fill);
        // Merges of Windows 10 and later save the end of the header event, earlier Windows nothing.
        let fine = saved == offset || self.is_header() && saved < offset;
        if fine && (offset == 0 || holds(offset)) {
            return exactly(offset);
        }
        if self.is_header() && offset == 0 && holds(saved) {
            return exactly(saved);
        }
        let differs = "what the other field for the fill states";
        let beyond = "at least 0x48 and no more than the buffer holds";
        let fault = |at, found: u32, expected| {
            Some(FillFault {
                at: at as u64,
                found: found.into(),
                expected,
            })
        };
        match (holds(saved), holds(offset)) {
            (true, true) => Fills {
                least: saved.min(offset),
                most: saved.max(offset),
                fault: fault(SAVED_OFFSET, saved, differs),
            },
            (true, false) => Fills {
                fault: fault(OFFSET, offset, beyond),
                ..exactly(saved)
            },
            (false, true) => Fills {
                fault: fault(SAVED_OFFSET, saved, beyond),
                ..exactly(offset)
            },
            // Filler ends the records.
            (false, false) => Fills {
                least: header,
                most: size,
                fault: fault(OFFSET, offset, beyond),
            },
        }
    }

    /// The header with its sizes replaced by `size`, where they alone are damaged and everything
    /// else is as a session writes it.
    pub(crate) fn resized(&self, size: u32) -> Option<Self> {
        let header = BufferHeader {
            buffer_size: size,
            saved_offset: size,
            offset: size,
            ..*self
        };
        let written = self.state == BufferState::FLUSH && !self.is_compressed();
        (written && header.is_plausible(size)).then_some(header)
    }

    /// Checks the fields that a walk depends on. `capacity` is the size of a buffer's memory, from
    /// the file header.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] naming the first field that cannot be right.
    pub fn check(&self, file_offset: u64, capacity: u32) -> Result<()> {
        let header = BUFFER_HEADER_SIZE as u32;
        let fault = |at, what, found: u32, expected| {
            Err(Error::invalid(
                file_offset + at,
                what,
                found.into(),
                expected,
            ))
        };
        if self.buffer_size < header {
            let expected = "at least the 0x48 bytes of the buffer header";
            return fault(0, "buffer size", self.buffer_size, expected);
        }
        if self.is_compressed() {
            let fits = |fill: u32| (header..=capacity).contains(&fill);
            if !fits(self.saved_offset) && !fits(self.offset) {
                let what = "uncompressed fill of a compressed buffer";
                let expected = "at least 0x48 and no more than the buffer size of the file header";
                return fault(4, what, self.saved_offset, expected);
            }
            // Compressed bytes exceed the uncompressed ones at most by the overhead of tokens.
            let most = u64::from(capacity) + u64::from(capacity / 4) + 0x400;
            if u64::from(self.buffer_size) > most {
                let expected = "about the buffer size of the file header at most";
                return fault(0, "size of a compressed buffer", self.buffer_size, expected);
            }
        } else {
            let used = self.saved_offset.max(self.offset);
            if used != 0 && used < header {
                let expected = "0 or at least the 0x48 bytes of the buffer header";
                return fault(0x30, "fill of a buffer", used, expected);
            }
        }
        match self.buffer_type.name() {
            Some(_) => Ok(()),
            None => fault(0x36, "buffer type", self.buffer_type.0.into(), "0 to 7"),
        }
    }

    /// Whether the header is probably one that a session wrote, for finding the next intact buffer
    /// in a damaged file. Stricter than [`BufferHeader::check`], because the bytes may be
    /// arbitrary.
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
