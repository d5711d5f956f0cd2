//! Damaged ranges of a trace, and notes about its content.

use core::ops::Range;

use crate::constants::LogFileMode;
use crate::error::{Error, Result};

/// What a reader does at a fault.
///
/// ```
/// use etl_format::read::{Mode, Options, Trace};
/// # use etl_format::FileHeader;
/// # use etl_format::write::Session;
/// # let bytes = Session::in_memory(FileHeader::new())?.finish()?;
///
/// let cut = &bytes[..bytes.len() / 2];
/// let strict = Options { mode: Mode::Strict, ..Options::default() };
/// assert!(Trace::open(cut, &strict).is_err());
/// let trace = Trace::open(cut, &Options::salvage())?;
/// assert_eq!(trace.damage().len(), 1);
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Stop at the first fault and return it as an error.
    #[default]
    Strict,
    /// Continue at the next intact buffer or record, and keep a map of the damage.
    Salvage,
}

/// A range of a trace that could not be read.
///
/// It does not depend on the order in which the trace is read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Damage {
    /// Bytes of the file. For a fault among the records of a compressed buffer, all of its bytes.
    /// If bytes are missing, the place where they should be: it is empty or beyond the end.
    pub range: Range<u64>,
    /// The fault at the start of the range.
    pub error: Error,
    /// Readable records before the range in the file.
    pub records_before: u64,
    /// Readable records after the range. Both numbers are complete when the trace has been read to
    /// its end.
    pub records_after: u64,
}

/// Collects damage, or turns it into an error.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub mode: Mode,
    pub damage: Vec<Damage>,
    /// Records of the buffers that have been read.
    pub records: u64,
    /// The fault that ended the reading. It is kept here because the hot loop cannot return it.
    pub failed: Option<Error>,
}

impl Log {
    pub fn new(mode: Mode) -> Self {
        Log {
            mode,
            ..Log::default()
        }
    }

    /// Returns the fault in strict mode, and adds it to the damage in salvage mode.
    #[cold]
    pub fn fault(&mut self, range: Range<u64>, error: Error) -> Result<()> {
        // Reading cannot continue after an I/O error.
        if self.mode == Mode::Strict || error.is_io() {
            return Err(error);
        }
        self.add(Damage {
            range,
            error,
            records_before: self.records,
            records_after: 0,
        });
        Ok(())
    }

    /// [`Log::fault`] after `passed` records that are not counted here yet. Returns whether to
    /// continue; if not, [`Log::check`] returns the error.
    #[cold]
    pub fn fault_after(&mut self, passed: u64, range: Range<u64>, error: Error) -> bool {
        self.records += passed;
        self.failed = self.fault(range, error).err();
        self.records -= passed;
        self.failed.is_none()
    }

    /// Returns the fault that ended the records of a buffer, if there is one.
    pub fn check(&mut self) -> Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Adds damage that follows the ranges already added. Adjoining ranges become one.
    pub fn add(&mut self, piece: Damage) {
        if let Some(last) = self.damage.last_mut()
            && last.records_before == piece.records_before
            && last.range.end >= piece.range.start
            && last.range.start <= piece.range.start
        {
            last.range.end = last.range.end.max(piece.range.end);
        } else {
            self.damage.push(piece);
        }
    }

    /// Puts the damage in the order of the file, and fills in the counts that are complete only at
    /// the end.
    pub fn finish(&mut self) {
        // Ranges with the same number of records before them are joined, also if they were not
        // found one after the other.
        let mut all = core::mem::take(&mut self.damage);
        all.sort_by_key(|damage| (damage.records_before, damage.range.start));
        all.into_iter().for_each(|piece| self.add(piece));
        self.damage
            .sort_by_key(|damage| (damage.range.start, damage.records_before));
        for damage in &mut self.damage {
            damage.records_after = self.records.saturating_sub(damage.records_before);
        }
    }
}

/// A remark on a readable trace.
///
/// ```
/// use etl_format::read::{Note, Options, Trace};
/// use etl_format::FileHeader;
/// use etl_format::write::Session;
///
/// // The session ends as in a crash.
/// let bytes = Session::in_memory(FileHeader::new())?.abandon()?.output;
/// let trace = Trace::open(bytes.as_slice(), &Options::salvage())?;
/// assert_eq!(trace.notes(), [Note::Unclosed]);
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Note {
    /// The session was never closed: the machine or the session crashed, or it is still running.
    #[error("the session was not closed: no end time or buffer count")]
    Unclosed,
    /// The header counts more or fewer buffers than the file has.
    #[error("the header counts {stated} buffers, the file has {found}")]
    BufferCount {
        /// The count in the header.
        stated: u32,
        /// The number of buffers in the file.
        found: u64,
    },
    /// The session lost events.
    #[error("{} lost", count(*.0, "event was", "events were"))]
    EventsLost(u32),
    /// The session lost buffers.
    #[error("{} lost", count(*.0, "buffer was", "buffers were"))]
    BuffersLost(u32),
    /// A buffer is flagged: events were lost while it was filled.
    #[error("events were lost on processor {processor} while this buffer was filled")]
    EventsLostInBuffer {
        /// Its file offset.
        offset: u64,
        /// Its processor.
        processor: u16,
    },
    /// A buffer is flagged: a buffer was lost before it.
    #[error("a buffer of processor {processor} was lost before this one")]
    BufferLostBefore {
        /// Its file offset.
        offset: u64,
        /// Its processor.
        processor: u16,
    },
    /// Sequence numbers that no buffer has.
    #[error("{count} buffers are missing before this one, from number {first} on")]
    SequenceGap {
        /// File offset of the buffer after the gap.
        offset: u64,
        /// The first missing number.
        first: i64,
        /// How many are missing.
        count: u64,
    },
    /// Two buffers with the same sequence number.
    #[error("a second buffer with sequence number {number}")]
    SequenceTwice {
        /// File offset of the second buffer.
        offset: u64,
        /// The sequence number of both.
        number: i64,
    },
    /// A buffer whose sequence number is far from all others, or differs from the only number that
    /// is missing at its place: the number is damaged, and no buffer is missing.
    #[error("the sequence number {number} of a buffer is wrong; {expected} is missing there")]
    SequenceWrong {
        /// File offset of the buffer.
        offset: u64,
        /// The wrong number.
        number: i64,
        /// The number that is missing at its place.
        expected: i64,
    },
    /// A copy of another buffer. Repairing a trace leaves it out.
    #[error("a copy of the buffer with sequence number {number}")]
    BufferTwice {
        /// File offset of the copy.
        offset: u64,
        /// The sequence number of both.
        number: i64,
    },
    /// Buffers of a processor are not in the order of their numbers, as in a circular file that
    /// wrapped. They are read in order.
    #[error("buffers are out of sequence (wrapped or shuffled) and are read in order")]
    Reordered {
        /// File offset of the first buffer that is out of order.
        offset: u64,
    },
    /// Another file header in the middle: a trace was appended.
    #[error("another file header: appended data")]
    AnotherHeader {
        /// Its file offset.
        offset: u64,
    },
    /// Unused space after the last buffer.
    #[error("{len} bytes after the last buffer were never written")]
    UnusedTail {
        /// Where it begins.
        offset: u64,
        /// How many bytes.
        len: u64,
    },
    /// The header event states another pointer size than its kind.
    #[error("the header event states pointers of {stated} bytes, its kind another size")]
    PointerSize {
        /// The stated size.
        stated: u32,
    },
    /// The buffers are compressed, but the header names no format. The format in which the first
    /// buffer decompresses to its stated size is assumed; if there is none, XPRESS.
    #[error("no compression format is named (state {state:#x}); it was inferred from the data")]
    CompressionUnnamed {
        /// The stored value, which should be a format.
        state: u32,
    },
}

fn count(count: u32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// How serious a note is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// No data are missing.
    Detail,
    /// Data were lost, or may have been lost, before they were in the file.
    Incomplete,
    /// Data that were in the file are missing: as serious as damage.
    Loss,
}

impl Note {
    /// How serious the note is for a trace of this mode.
    ///
    /// The kernel gives numbers to buffers that it then does not write, so its files may have gaps.
    /// Reloggers and mergers number only the buffers that they write, so a gap in their files is a
    /// loss. A circular file also counts the buffers that were overwritten.
    #[must_use]
    pub fn weight(&self, mode: LogFileMode) -> Weight {
        match *self {
            Note::BufferCount { stated, found }
                if found < u64::from(stated) && !mode.has(LogFileMode::CIRCULAR) =>
            {
                Weight::Loss
            }
            Note::SequenceWrong { .. } => Weight::Loss,
            Note::SequenceGap { .. } if mode.has(LogFileMode::RELOG) => Weight::Loss,
            Note::SequenceGap { .. }
            | Note::Unclosed
            | Note::EventsLost(_)
            | Note::BuffersLost(_)
            | Note::EventsLostInBuffer { .. }
            | Note::BufferLostBefore { .. } => Weight::Incomplete,
            _ => Weight::Detail,
        }
    }

    /// A name of the kind of note, which does not change between versions.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Note::Unclosed => "unclosed",
            Note::BufferCount { .. } => "buffer-count",
            Note::EventsLost(_) => "events-lost",
            Note::BuffersLost(_) => "buffers-lost",
            Note::EventsLostInBuffer { .. } => "events-lost-in-buffer",
            Note::BufferLostBefore { .. } => "buffer-lost-before",
            Note::SequenceGap { .. } => "sequence-gap",
            Note::SequenceTwice { .. } => "sequence-twice",
            Note::SequenceWrong { .. } => "sequence-wrong",
            Note::BufferTwice { .. } => "buffer-twice",
            Note::Reordered { .. } => "reordered",
            Note::AnotherHeader { .. } => "another-header",
            Note::UnusedTail { .. } => "unused-tail",
            Note::PointerSize { .. } => "pointer-size",
            Note::CompressionUnnamed { .. } => "compression-unnamed",
        }
    }

    /// File offset of the buffer or the bytes that the note is about; 0 for the whole file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match *self {
            Note::EventsLostInBuffer { offset, .. }
            | Note::BufferLostBefore { offset, .. }
            | Note::SequenceGap { offset, .. }
            | Note::SequenceTwice { offset, .. }
            | Note::SequenceWrong { offset, .. }
            | Note::BufferTwice { offset, .. }
            | Note::Reordered { offset }
            | Note::AnotherHeader { offset }
            | Note::UnusedTail { offset, .. } => offset,
            _ => 0,
        }
    }
}
