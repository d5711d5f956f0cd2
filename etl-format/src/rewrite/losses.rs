//! Buffers that are missing from a trace in addition to the losses that its header counts.

use crate::constants::LogFileMode;
use crate::read::{Damage, Note, Source, Trace};

/// A larger count or gap is damaged itself, and only shows that something is missing.
const MAX_COUNT: u64 = 1 << 20;

/// The buffers that are missing from a trace although its header counts no loss.
///
/// A trace that is made from it counts them as lost, because nothing else in the new file can show
/// the loss: a relogger numbers its buffers from 1 and counts the buffers that it wrote.
#[derive(Clone, Debug, Default)]
pub(super) struct Missing {
    /// Missing buffers that are known before reading: the header counts more buffers than there
    /// are, or numbers have no buffer.
    buffers: u64,
    /// Where each buffer begins and ends, in the order of the file.
    extents: Vec<Extent>,
    /// The size of a buffer of an uncompressed file.
    spacing: u64,
}

/// The bytes of a buffer in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Extent {
    start: u64,
    end: u64,
}

impl Missing {
    pub fn from<S: Source>(trace: &Trace<S>) -> Self {
        let header = trace.header();
        let mut extents: Vec<_> = trace
            .buffers()
            .iter()
            .map(|b| Extent {
                start: b.offset,
                end: b.offset.saturating_add(b.stored.into()),
            })
            .collect();
        extents.sort_unstable();
        let len = extents.last().map_or(0, |extent| extent.end);
        let not_in_file = header.missing_buffers(extents.len() as u64, len);
        // The missing bytes of a buffer that is cut off begin at its end.
        if let Some(last) = extents.last_mut()
            && trace.buffers().iter().any(|buffer| buffer.cut)
        {
            last.end = last.end.saturating_add(1);
        }
        // If the session was not closed, the buffers in memory are lost: at least one.
        let unwritten = u64::from(trace.notes().contains(&Note::Unclosed));
        let gaps = sequence_gaps(trace.notes());
        // The kernel also numbers buffers that stay empty and are not written. But if there are two
        // buffers of one number, one of them is in the place of a missing one.
        let without_number = if header.mode.has(LogFileMode::RELOG) {
            gaps
        } else {
            gaps.min(repeated_numbers(trace.notes()))
        };
        let spacing = if header.mode.has(LogFileMode::COMPRESSED) {
            u64::MAX
        } else {
            u64::from(header.buffer_size).max(1)
        };
        let overwritten = trace.overwritten().map_or(0, plausible);
        let buffers = plausible(not_in_file)
            .max(without_number)
            .saturating_add(unwritten + overwritten);
        Missing {
            buffers,
            extents,
            spacing,
        }
    }

    /// How many buffers are missing, in whole or in part, with the damage found while reading.
    pub fn buffers(&self, damage: &[Damage]) -> u64 {
        let mut destroyed = 0_u64;
        let mut partial = 0_u64;
        // Buffers before this index are counted already: a buffer with several damaged ranges is
        // counted once.
        let mut next = 0;
        for Damage { range, .. } in damage {
            let range_end = range.end.max(range.start.saturating_add(1));
            let first = self
                .extents
                .partition_point(|extent| extent.end <= range.start);
            let end = self
                .extents
                .partition_point(|extent| extent.start < range_end);
            if first < end {
                partial += end.saturating_sub(first.max(next)) as u64;
                next = next.max(end);
            } else {
                let len = range.end.saturating_sub(range.start);
                destroyed = destroyed.saturating_add(len.div_ceil(self.spacing).max(1));
            }
        }
        self.buffers.max(destroyed).saturating_add(partial)
    }
}

/// How many buffers are missing by their numbers.
fn sequence_gaps(notes: &[Note]) -> u64 {
    let mut missing = 0u64;
    for note in notes {
        if let Note::SequenceGap { count, .. } = *note {
            missing = missing.saturating_add(plausible(count));
        }
    }
    missing
}

/// How many buffers have the number of another one.
fn repeated_numbers(notes: &[Note]) -> u64 {
    let repeated = notes
        .iter()
        .filter(|note| matches!(note, Note::SequenceTwice { .. } | Note::BufferTwice { .. }));
    repeated.count() as u64
}

fn plausible(count: u64) -> u64 {
    if count > MAX_COUNT { 1 } else { count }
}
