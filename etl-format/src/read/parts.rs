//! Files of one session that begins a new file when the last one is full: finds missing files by
//! the sequence numbers of buffers.

use std::collections::BTreeMap;

use crate::constants::LogFileMode;
use crate::headers::FileHeader;
use crate::{FileTime, Ticks};

use super::index::BufferEntry;
use super::source::Source;
use super::trace::Trace;

/// A file of a session that writes several ([`LogFileMode::NEWFILE`]). Each file has a header of
/// its own, and the numbers of its buffers continue the numbers of the previous file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    session: SessionKey,
    processors: u32,
    /// Sequence number of the first buffer.
    first_number: i64,
    /// Sequence number of the last buffer.
    last_number: i64,
    /// A raw timestamp at which each processor has begun its first buffer.
    begun: i64,
    /// A raw timestamp at which no processor has gone beyond its last buffer.
    not_ended: i64,
}

/// The fields that are the same in the headers of all files of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SessionKey {
    name: Vec<u16>,
    start_time: FileTime,
    start_timestamp: Ticks,
    boot_time: FileTime,
}

/// First timestamps of the buffers of a processor.
struct Span {
    first: Ticks,
    last: Ticks,
}

/// A part with its index.
struct Indexed<'p> {
    index: usize,
    part: &'p Part,
}

/// Missing buffers between two consecutive files of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartGap {
    /// The index of the file before them.
    pub before: usize,
    /// The index of the file after them.
    pub after: usize,
    /// Sequence number of the first missing buffer.
    pub first: i64,
    /// How many numbers are missing.
    pub count: u64,
    /// The missing buffers begin at this raw timestamp at the earliest.
    pub from: i64,
    /// The missing buffers end at this raw timestamp at the latest.
    pub to: i64,
    /// Whether more buffers are missing than the kernel leaves out. It also numbers buffers that
    /// stay empty and are not written: at most one for each processor at the end of a file.
    pub is_loss: bool,
}

impl<S: Source> Trace<S> {
    /// The place of the file in its session; `None` for files of other modes, and files without
    /// buffers.
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
        let data = buffers.iter().filter(|b| !b.rebuilt && !b.is_header());
        let numbers = data.clone().map(|b| b.sequence_number);
        let mut spans: BTreeMap<u16, Span> = BTreeMap::new();
        for b in data {
            let span = spans.entry(b.processor).or_insert(Span {
                first: Ticks::MAX,
                last: Ticks::MIN,
            });
            span.first = span.first.min(b.first_timestamp);
            span.last = span.last.max(b.first_timestamp);
        }
        let latest_first = spans.values().map(|span| span.first).max()?;
        let earliest_last = spans.values().map(|span| span.last).min()?;
        Some(Part {
            session: SessionKey {
                name: header.logger_name.clone(),
                start_time: header.start_time,
                start_timestamp: header.timestamp,
                boot_time: header.boot_time,
            },
            processors: header.processors,
            first_number: numbers.clone().min()?,
            last_number: numbers.max()?,
            begun: latest_first.get(),
            not_ended: earliest_last.get(),
        })
    }

    /// What the count of each file adds to the counts of the files before it. The header of each
    /// file of a session counts from the start of the session.
    pub fn added<'p>(
        counts: impl IntoIterator<Item = (Option<&'p Part>, u32)>,
    ) -> impl Iterator<Item = u32> {
        let mut largest_counts: BTreeMap<_, u32> = BTreeMap::new();
        counts.into_iter().map(move |(part, count)| {
            let Some(part) = part else { return count };
            let largest = largest_counts.entry(&part.session).or_default();
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

    /// The buffers that are missing between files, in the order of their sessions. Each file has an
    /// index.
    #[must_use]
    pub fn gaps<'p>(parts: impl IntoIterator<Item = (usize, &'p Part)>) -> Vec<PartGap> {
        let mut parts: Vec<Indexed<'p>> = parts
            .into_iter()
            .map(|(index, part)| Indexed { index, part })
            .collect();
        parts.sort_by_key(|Indexed { part, .. }| {
            (&part.session, part.first_number, part.last_number)
        });
        let mut gaps = Vec::new();
        let mut previous: Option<Indexed<'p>> = None;
        for next in parts {
            if let Some(previous) = &previous
                && previous.part.is_of_session_of(next.part)
            {
                gaps.extend(gap_between(previous, &next));
                // A file that is named twice does not end before itself.
                if previous.part.last_number > next.part.last_number {
                    continue;
                }
            }
            previous = Some(next);
        }
        gaps
    }
}

/// The buffers that are missing between two files of a session.
fn gap_between(before: &Indexed<'_>, after: &Indexed<'_>) -> Option<PartGap> {
    let first = before.part.last_number.saturating_add(1);
    let count = u64::try_from(after.part.first_number.saturating_sub(first)).ok()?;
    if count == 0 {
        return None;
    }
    Some(PartGap {
        before: before.index,
        after: after.index,
        first,
        count,
        from: before.part.not_ended,
        to: after.part.begun,
        is_loss: count > u64::from(after.part.processors.max(1)),
    })
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use super::*;

    fn part(name: u16, numbers: RangeInclusive<i64>) -> Part {
        Part {
            session: SessionKey {
                name: vec![name],
                start_time: FileTime::new(1),
                start_timestamp: Ticks::new(2),
                boot_time: FileTime::new(3),
            },
            processors: 2,
            first_number: *numbers.start(),
            last_number: *numbers.end(),
            begun: 10 * numbers.start(),
            not_ended: 10 * numbers.end(),
        }
    }

    #[test]
    fn gaps_are_found_between_files_of_a_session() {
        let parts = [
            part(1, 1..=7),
            part(1, 22..=28),
            part(2, 50..=60),
            part(1, 8..=14),
            part(1, 31..=40),
            part(1, 8..=14),
        ];
        let gaps_of = |indices: &[usize]| {
            let gaps = Part::gaps(indices.iter().map(|&index| (index, &parts[index])));
            gaps.iter()
                .map(|gap| (gap.before, gap.after, gap.first, gap.count, gap.is_loss))
                .collect::<Vec<_>>()
        };
        assert_eq!(gaps_of(&[1, 0, 3, 5]), [(5, 1, 15, 7, true)]);
        assert_eq!(gaps_of(&[0, 3, 2]), [], "another session");
        assert_eq!(
            gaps_of(&[4, 1]),
            [(1, 4, 29, 2, false)],
            "one for each processor"
        );
        let gap = Part::gaps([(0, &parts[0]), (1, &parts[1])])[0];
        assert_eq!((gap.from, gap.to), (70, 220));
        assert_eq!(gaps_of(&[1]), [], "nothing is before the first file");
    }

    #[test]
    fn counts_of_a_session_add_up_to_the_largest() {
        let first = part(1, 1..=7);
        let second = part(2, 1..=7);
        let counts = [
            (Some(&first), 5),
            (None, 4),
            (Some(&second), 3),
            (Some(&first), 2),
            (Some(&first), 9),
        ];
        assert_eq!(Part::added(counts).collect::<Vec<_>>(), [5, 4, 3, 0, 4]);
    }
}
