//! A trace with the index of its buffers: what time order and surveys start from.

use std::collections::BTreeMap;

use crate::clock::Clock;
use crate::constants::{CompressionFormat, LogFileMode};
use crate::error::Result;

use super::damage::{Damage, Log, Mode, Note};
use super::file_order::FileOrder;
use super::header::FileHeader;
use super::index::{BufferEntry, BufferWalk, Layout};
use super::limits::Limits;
use super::ordered::{OrderCheck, Ordered, measure};
use super::source::Source;

/// How a trace is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What happens at a fault.
    pub mode: Mode,
    /// How sure the time order has to be.
    pub order: OrderCheck,
    /// Bounds on memory.
    pub limits: Limits,
    /// Threads that decompress buffers when [`OrderCheck::Full`] looks at every record beforehand, the
    /// caller's own among them; 0 is 1. What is read is the same for any number. For the reading
    /// itself there is [`Ordered::with_threads`]. Those too on which [`crate::rewrite::repack::decompress`]
    /// works.
    pub threads: usize,
}

impl Options {
    /// [`Mode::Salvage`] with everything else at its default.
    #[must_use]
    pub fn salvage() -> Self {
        Options { mode: Mode::Salvage, ..Options::default() }
    }
}

/// A trace whose buffers have been found but not read: some 40 bytes of memory a buffer.
#[derive(Debug)]
pub struct Trace<S: Source> {
    source: S,
    options: Options,
    header: FileHeader,
    buffers: Vec<BufferEntry>,
    layout: Layout,
    format: CompressionFormat,
    notes: Vec<Note>,
    damage: Vec<Damage>,
}

impl<S: Source> Trace<S> {
    /// Reads the header event and every buffer's header.
    ///
    /// # Errors
    /// When the bytes are no trace that can be read; in [`Mode::Strict`] also at the first damaged
    /// buffer, or when buffers are missing.
    pub fn open(mut source: S, options: &Options) -> Result<Self> {
        let mut log = Log::new(options.mode);
        let limits = &options.limits;
        let (mut walk, header) = BufferWalk::open(&mut source, limits, &mut log)?;
        let format = walk.layout.format;
        let mut buffers = Vec::new();
        let mut block = S::Block::default();
        while let Some(entry) = walk.next(&mut source, &mut block, false, limits, &mut log)? {
            buffers.push(entry);
        }
        let BufferWalk { layout, mut notes, .. } = walk;
        // Where a buffer's first record tells no time, the ones behind it have to.
        let unknown = |e: &BufferEntry| e.first_timestamp == i64::MIN;
        measure(&mut source, &mut buffers, &layout, Mode::Salvage, 1, unknown)?;
        notes.extend(sequence_notes(&buffers, header.mode));
        let (options, damage) = (*options, log.damage);
        Ok(Trace { source, options, header, buffers, layout, format, notes, damage })
    }

    /// How it is read.
    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    /// How far the readers that it gives from now on look ahead for time order: a trace that turns out
    /// to need another [`OrderCheck`] need not be opened again.
    pub fn set_order(&mut self, order: OrderCheck) {
        self.options.order = order;
    }

    /// The header event.
    #[must_use]
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The clock of the trace's timestamps. Where the header event is lost ([`FileHeader::is_known`]), times count from
    /// the first record, by [`Clock::assumed`].
    #[must_use]
    pub fn clock(&self) -> Clock {
        if self.header.is_known() {
            return self.header.clock();
        }
        let data = self.buffers.iter().filter(|b| !b.is_header());
        let first = data.map(|b| b.first_timestamp).filter(|timestamp| *timestamp > i64::MIN).min();
        Clock::assumed(first.unwrap_or(0))
    }

    /// The buffers in file order.
    #[must_use]
    pub fn buffers(&self) -> &[BufferEntry] {
        &self.buffers
    }

    /// What there is to say about the trace, its buffers' sequence included.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Damage among the buffers, as far as finding them tells: how many records stand before and
    /// behind it is not known here. The readers' maps hold these faults again, with the counts, and
    /// those among records.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// The compression format that its (first) file header names for compressed buffers; see
    /// [`BufferEntry::format`] for that of each.
    #[must_use]
    pub fn compression(&self) -> CompressionFormat {
        self.format
    }

    /// Reads in file order.
    ///
    /// # Errors
    /// As [`FileOrder::open`].
    pub fn file_order(&mut self) -> Result<FileOrder<&mut S>> {
        FileOrder::open(&mut self.source, &self.options)
    }

    /// Reads in time order.
    ///
    /// # Errors
    /// With [`OrderCheck::Full`], as [`Ordered::next_record`].
    pub fn ordered(&mut self) -> Result<Ordered<&mut S>> {
        let mut buffers = self.buffers.clone();
        if self.options.order == OrderCheck::Full {
            let Options { mode, threads, .. } = self.options;
            measure(&mut self.source, &mut buffers, &self.layout, mode, threads, |_| true)?;
        }
        let (layout, damage) = (self.layout.clone(), self.damage.clone());
        Ok(Ordered::new(&mut self.source, buffers, layout, &self.options, damage))
    }

    /// Reads as the file stands, as [`Trace::file_order`] does, by a reader that other threads can
    /// decompress buffers for ([`Ordered::with_threads`]): the same records and the same damage. Its
    /// [`OrderReport`](super::OrderReport) tells how far that is from time order.
    pub fn in_file_order(&mut self) -> Ordered<&mut S> {
        let (buffers, layout) = (self.buffers.clone(), self.layout.clone());
        Ordered::as_it_stands(&mut self.source, buffers, layout, &self.options, self.damage.clone())
    }

    /// Reads the records of some buffers alone, as the file stands: what is in the vicinity of a moment, say.
    pub fn of_buffers(&mut self, wanted: impl Fn(&BufferEntry) -> bool) -> Ordered<&mut S> {
        let buffers = self.buffers.iter().filter(|b| wanted(b)).copied().collect();
        let layout = self.layout.clone();
        Ordered::as_it_stands(&mut self.source, buffers, layout, &self.options, Vec::new())
    }

    /// [`Trace::ordered`] for a reader that has the source to itself.
    ///
    /// # Errors
    /// As [`Trace::ordered`].
    pub fn into_ordered(mut self) -> Result<Ordered<S>> {
        if self.options.order == OrderCheck::Full {
            let (buffers, Options { mode, threads, .. }) = (&mut self.buffers, self.options);
            measure(&mut self.source, buffers, &self.layout, mode, threads, |_| true)?;
        }
        Ok(Ordered::new(self.source, self.buffers, self.layout, &self.options, self.damage))
    }
}

/// What the sequence numbers tell: gaps, repetitions, and buffers out of order. What was appended
/// behind a further file header is numbered anew.
fn sequence_notes(buffers: &[BufferEntry], mode: LogFileMode) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut rest = buffers;
    while let Some((first, others)) = rest.split_first() {
        let len = others.iter().position(BufferEntry::is_header).unwrap_or(others.len());
        let (session, behind) = others.split_at_checked(len).unwrap_or((others, &[]));
        session_notes(first, session, mode, &mut notes);
        rest = behind;
    }
    notes
}

fn session_notes(
    first: &BufferEntry,
    others: &[BufferEntry],
    mode: LogFileMode,
    notes: &mut Vec<Note>,
) {
    // A rebuilt buffer has lost its number; gaps could not be told from it.
    let numbered = || core::iter::once(first).chain(others).filter(|b| !b.rebuilt);
    let mut last_of = BTreeMap::new();
    for b in numbered() {
        let last = last_of.insert((!b.is_header(), b.processor), b.sequence_number);
        if last.is_some_and(|last| last > b.sequence_number) {
            notes.push(Note::Reordered { offset: b.offset });
            break;
        }
    }
    let mut by_number: Vec<_> = numbered().map(|b| (b.sequence_number, b.offset)).collect();
    by_number.sort_unstable();
    for (&(before, _), &(number, offset)) in by_number.iter().zip(by_number.iter().skip(1)) {
        match number.saturating_sub(before) {
            0 => notes.push(Note::SequenceTwice { offset, number }),
            1 => {}
            // A new file of a session that goes on, or a circular one, starts anywhere.
            _ if before == 0
                && (mode.has(LogFileMode::NEWFILE) || mode.has(LogFileMode::CIRCULAR)) => {}
            step => notes.push(Note::SequenceGap {
                offset,
                first: before.saturating_add(1),
                count: step.unsigned_abs().saturating_sub(1),
            }),
        }
    }
}
