//! Files of one session that writes a new file when the last one is full: which are missing between
//! others, by the sequence numbers of their buffers.

use std::collections::BTreeMap;

use crate::constants::LogFileMode;
use crate::headers::FileHeader;
use crate::{FileTime, Ticks};

use super::index::BufferEntry;
use super::source::Source;
use super::trace::Trace;

/// A file of such a session ([`LogFileMode::NEWFILE`]): each has a header of its own, and the
/// numbers of its buffers go on where those of the file before it end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What all files of the session share: its name, its start, and that of the machine.
    session: (Vec<u16>, FileTime, Ticks, FileTime),
    processors: u32,
    /// Numbers of the first and the last buffer.
    numbers: (i64, i64),
    /// A raw timestamp before which each processor has begun its first buffer, and one before which
    /// none has begun its last one.
    times: (i64, i64),
}

/// Buffers of a session that are in neither of two files that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartGap {
    /// The index of the file before them.
    pub before: usize,
    /// The index of the file after them.
    pub after: usize,
    /// Number of the first missing buffer.
    pub first: i64,
    /// How many numbers are missing.
    pub count: u64,
    /// Raw timestamp of the file before, from which on the buffers may be.
    pub from: i64,
    /// Raw timestamp of the file after, until which they may be.
    pub to: i64,
    /// Whether they are more than the kernel leaves out: it numbers buffers that stay empty and are
    /// not written, one for each processor at most where a file ends.
    pub is_loss: bool,
}

impl<S: Source> Trace<S> {
    /// What it is of its session; `None` for files of other modes, and those without buffers.
    #[must_use]
    pub fn part(&self) -> Option<Part> {
        Part::of(self.header(), self.buffers())
    }
}

impl Part {
    fn of(header: &FileHeader, buffers: &[BufferEntry]) -> Option<Self> {
        if !header.mode.has(LogFileMode::NEWFILE) || header.mode.has(LogFileMode::RELOG) {
            return None;
        }
        let own = || buffers.iter().filter(|b| !b.rebuilt && !b.is_header());
        let numbers = own().map(|b| b.sequence_number);
        let numbers = (numbers.clone().min()?, numbers.max()?);
        let mut spans: BTreeMap<u16, (i64, i64)> = BTreeMap::new();
        for b in own() {
            let (first, last) = spans.entry(b.processor).or_insert((i64::MAX, i64::MIN));
            (*first, *last) = (
                b.first_timestamp.get().min(*first),
                b.first_timestamp.get().max(*last),
            );
        }
        let firsts = spans.values().map(|(first, _)| *first);
        let lasts = spans.values().map(|(_, last)| *last);
        let name = header.logger_name.clone();
        Some(Part {
            session: (name, header.start_time, header.timestamp, header.boot_time),
            processors: header.processors,
            numbers,
            times: (firsts.max()?, lasts.min()?),
        })
    }

    /// What the counts of files add to those before them. In the files of a session, each header
    /// counts from the start of the session.
    pub fn added<'p>(
        counts: impl IntoIterator<Item = (Option<&'p Part>, u32)>,
    ) -> impl Iterator<Item = u32> {
        let mut known: BTreeMap<_, u32> = BTreeMap::new();
        counts.into_iter().map(move |(part, count)| {
            let Some(part) = part else { return count };
            let largest = known.entry(&part.session).or_default();
            let added = count.saturating_sub(*largest);
            *largest = count.max(*largest);
            added
        })
    }

    /// Whether both are files of one session.
    #[must_use]
    pub fn is_of_session_of(&self, other: &Self) -> bool {
        self.session == other.session
    }

    /// What is missing between files, which have these indices, in the order of their sessions.
    #[must_use]
    pub fn gaps<'p>(parts: impl IntoIterator<Item = (usize, &'p Part)>) -> Vec<PartGap> {
        let mut parts: Vec<_> = parts.into_iter().collect();
        parts.sort_by_key(|(_, part)| (&part.session, part.numbers));
        let mut gaps = Vec::new();
        let mut known: Option<(usize, &Part)> = None;
        for (after, part) in parts {
            if let Some((before, last)) = known.filter(|(_, last)| last.is_of_session_of(part)) {
                let next = last.numbers.1.saturating_add(1);
                let count = part.numbers.0.saturating_sub(next);
                if let Ok(count) = u64::try_from(count)
                    && count > 0
                {
                    let is_loss = count > u64::from(part.processors.max(1));
                    let (from, to) = (last.times.1, part.times.0);
                    gaps.push(PartGap {
                        before,
                        after,
                        first: next,
                        count,
                        from,
                        to,
                        is_loss,
                    });
                }
            }
            // A file that is named twice does not end before itself.
            let ends_later = |(_, last): &(usize, &Part)| {
                last.is_of_session_of(part) && last.numbers.1 > part.numbers.1
            };
            known = known.filter(ends_later).or(Some((after, part)));
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: u16, numbers: (i64, i64)) -> Part {
        let times = (10 * numbers.0, 10 * numbers.1);
        Part {
            session: (
                vec![name],
                FileTime::new(1),
                Ticks::new(2),
                FileTime::new(3),
            ),
            processors: 2,
            numbers,
            times,
        }
    }

    #[test]
    fn gaps_are_found_between_files_of_a_session() {
        let parts = [
            part(1, (1, 7)),
            part(1, (22, 28)),
            part(2, (50, 60)),
            part(1, (8, 14)),
            part(1, (31, 40)),
            part(1, (8, 14)),
        ];
        let of = |indices: &[usize]| {
            let gaps = Part::gaps(indices.iter().map(|&index| (index, &parts[index])));
            gaps.iter()
                .map(|g| (g.before, g.after, g.first, g.count, g.is_loss))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&[1, 0, 3, 5]), [(5, 1, 15, 7, true)]);
        assert_eq!(of(&[0, 3, 2]), [], "another session");
        assert_eq!(
            of(&[4, 1]),
            [(1, 4, 29, 2, false)],
            "one for each processor"
        );
        let gap = Part::gaps([(0, &parts[0]), (1, &parts[1])])[0];
        assert_eq!((gap.from, gap.to), (70, 220));
        assert_eq!(of(&[1]), [], "what is before the first one is not known");
    }

    #[test]
    fn counts_of_a_session_add_up_to_the_largest() {
        let (one, two) = (part(1, (1, 7)), part(2, (1, 7)));
        let counts = [
            (Some(&one), 5),
            (None, 4),
            (Some(&two), 3),
            (Some(&one), 2),
            (Some(&one), 9),
        ];
        assert_eq!(Part::added(counts).collect::<Vec<_>>(), [5, 4, 3, 0, 4]);
    }
}
