//! What is missing from a trace beyond the losses that its header counts.

use crate::constants::LogFileMode;
use crate::read::{Damage, Note, Source, Trace};

/// A count or a gap beyond this is damaged itself: it only says that something is missing.
const LARGEST: u64 = 1 << 20;

/// The buffers that are missing from a trace although its header counts no loss.
///
/// A trace that is made from it counts them as lost, because nothing else in the new file can say
/// it: a relogger numbers its buffers from 1 and counts what it wrote.
#[derive(Clone, Debug, Default)]
pub(super) struct Missing {
    /// Known before reading: what the header counts and is not there, or numbers without a buffer.
    buffers: u64,
    /// Where each buffer that was found begins and ends, by offset.
    found: Vec<(u64, u64)>,
    /// The size of a buffer of an uncompressed file.
    spacing: u64,
}

impl Missing {
    pub fn from<S: Source>(trace: &Trace<S>) -> Self {
        let header = trace.header();
        let mut found: Vec<_> = trace
            .buffers()
            .iter()
            .map(|b| (b.offset, b.offset.saturating_add(b.stored.into())))
            .collect();
        found.sort_unstable();
        let len = found.last().map_or(0, |(_, end)| *end);
        let absent = header.missing_buffers(found.len() as u64, len);
        // What is missing of a buffer that is cut off begins where its bytes end.
        if let Some((_, end)) = found.last_mut()
            && trace.buffers().iter().any(|buffer| buffer.cut)
        {
            *end = end.saturating_add(1);
        }
        // What was in memory when the session ended is lost: one buffer at least.
        let unwritten = u64::from(trace.notes().contains(&Note::Unclosed));
        // The kernel also numbers buffers that stay empty and are not written.
        let unnumbered = match header.mode.has(LogFileMode::RELOG) {
            true => trace.notes().iter().map(gap).fold(0, u64::saturating_add),
            false => 0,
        };
        let spacing = match header.mode.has(LogFileMode::COMPRESSED) {
            true => u64::MAX,
            false => u64::from(header.buffer_size).max(1),
        };
        // Newer buffers were written over these.
        let overwritten = trace.overwritten().map_or(0, plausible);
        let buffers = plausible(absent)
            .max(unnumbered)
            .saturating_add(unwritten + overwritten);
        Missing {
            buffers,
            found,
            spacing,
        }
    }

    /// How many buffers are missing, in whole or in part, with the damage found while reading.
    pub fn buffers(&self, damage: &[Damage]) -> u64 {
        let (mut destroyed, mut partial) = (0_u64, 0_u64);
        // Buffers before this one are counted: several ranges of one count once.
        let mut next = 0;
        for Damage { range, .. } in damage {
            let first = self.found.partition_point(|(_, end)| *end <= range.start);
            let least = range.start.saturating_add(1);
            let past = self
                .found
                .partition_point(|(begin, _)| *begin < range.end.max(least));
            if first < past {
                partial += past.saturating_sub(first.max(next)) as u64;
                next = next.max(past);
            } else {
                let len = range.end.saturating_sub(range.start);
                destroyed = destroyed.saturating_add(len.div_ceil(self.spacing).max(1));
            }
        }
        self.buffers.max(destroyed).saturating_add(partial)
    }
}

/// How many buffers a note says are missing by their numbers.
fn gap(note: &Note) -> u64 {
    match *note {
        Note::SequenceGap { count, .. } => plausible(count),
        _ => 0,
    }
}

fn plausible(count: u64) -> u64 {
    if count > LARGEST { 1 } else { count }
}
