//! Sequence numbers of buffers: gaps, repetitions, and buffers out of order.

use std::collections::BTreeMap;

use crate::constants::LogFileMode;
use crate::headers::FileHeader;

use super::damage::Note;
use super::index::BufferEntry;

/// Notes on sequence numbers: gaps, repetitions, and buffers out of order. Numbers start again with
/// each run of sessions, which the buffers learn. Damaged numbers are corrected.
pub(super) fn sequence_notes(buffers: &mut [BufferEntry], header: &FileHeader) -> Vec<Note> {
    let mode = header.mode;
    let len = buffers.last().map_or(0, BufferEntry::file_end);
    // A circular file that was never full has its first buffers.
    let starts_anywhere =
        mode.has(LogFileMode::NEWFILE) || header.may_have_overwritten(buffers.len() as u64, len);
    let mut notes = Vec::new();
    let runs = buffers.chunk_by_mut(|previous, next| !begins_run(previous, next, mode));
    for (index, run) in runs.enumerate() {
        for entry in run.iter_mut() {
            entry.run = u32::try_from(index).unwrap_or(u32::MAX);
        }
        correct(run, &mut notes);
        session_notes(run, starts_anywhere, &mut notes);
    }
    notes
}

/// Whether another run of a session begins with a buffer. A session that appends to a file writes
/// no file header; its buffers have another id and numbers from 1 on. Windows' setup and network
/// diagnostics append for years, some without the mode, so the id also tells; the same session can
/// get the same id again, so the mode tells too.
fn begins_run(previous: &BufferEntry, next: &BufferEntry, mode: LogFileMode) -> bool {
    if next.is_header() {
        return true;
    }
    if previous.is_header() || previous.rebuilt || next.rebuilt {
        return false;
    }
    let number = next.sequence_number;
    if next.logger_id == previous.logger_id {
        mode.has(LogFileMode::APPEND) && number == 1 && previous.sequence_number >= 1
    } else {
        // A damaged id does not change the numbers.
        number <= previous.sequence_number
    }
}

/// Numbers with a larger distance do not belong to the same session.
const MAX_DISTANCE: u64 = 1 << 20;

/// Corrects the wrong number of a buffer if one number is missing at its place, or only one number
/// is missing at all. The kernel also leaves numbers out, so a wrong number has no neighbours.
fn correct(session: &mut [BufferEntry], notes: &mut Vec<Note>) {
    let numbers: Vec<i64> = session
        .iter()
        .filter(|b| !b.rebuilt)
        .map(|b| b.sequence_number)
        .collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    let stray = find_stray(&sorted);
    let mut next_numbers = numbers.iter().skip(1);
    let mut previous = None;
    for entry in session.iter_mut().filter(|b| !b.rebuilt) {
        let number = entry.sequence_number;
        let next = next_numbers.next().copied();
        let Some(last) = previous.replace(number) else {
            continue;
        };
        let expected = match &stray {
            Some(stray) if stray.number == number => stray.expected,
            _ => {
                let expected = last.saturating_add(1);
                let is_missing_one = next == Some(expected.saturating_add(1));
                if number == expected || !is_missing_one || !is_isolated(number, expected, &sorted)
                {
                    continue;
                }
                expected
            }
        };
        notes.push(Note::SequenceWrong {
            offset: entry.offset,
            number,
            expected,
        });
        entry.sequence_number = expected;
        previous = Some(expected);
    }
}

/// Whether a number has no neighbours, and no buffer has the expected number.
fn is_isolated(number: i64, expected: i64, sorted: &[i64]) -> bool {
    let others = [expected, number.saturating_sub(1), number.saturating_add(1)];
    others
        .iter()
        .all(|other| sorted.binary_search(other).is_err())
}

/// A number that is far from all others.
struct Stray {
    number: i64,
    /// The only number that is missing among the others. If none is, the one after them.
    expected: i64,
}

fn find_stray(sorted: &[i64]) -> Option<Stray> {
    let (number, others) = match sorted {
        [number, others @ ..] if *number < 0 => (*number, others),
        [others @ .., number] => (*number, others),
        [] => return None,
    };
    let last = *others.last()?;
    if last <= 0 || last.abs_diff(number) <= MAX_DISTANCE {
        return None;
    }
    let pairs = others.iter().zip(others.iter().skip(1));
    let mut gaps = pairs.filter(|(before, after)| before.abs_diff(**after) != 1);
    let expected = match (gaps.next(), gaps.next()) {
        (None, _) => last.saturating_add(1),
        (Some((before, after)), None) if before.abs_diff(*after) == 2 => before.saturating_add(1),
        _ => return None,
    };
    Some(Stray { number, expected })
}

/// Notes on the numbers of a session. `starts_anywhere` is whether its first buffers may be in
/// another file, or overwritten.
fn session_notes(session: &[BufferEntry], starts_anywhere: bool, notes: &mut Vec<Note>) {
    // A rebuilt buffer has no number, which is not a gap.
    let mut numbered: Vec<&BufferEntry> = session.iter().filter(|b| !b.rebuilt).collect();
    let mut last_numbers = BTreeMap::new();
    for b in &numbered {
        let last = last_numbers.insert((!b.is_header(), b.processor), b.sequence_number);
        if last.is_some_and(|last| last > b.sequence_number) {
            notes.push(Note::Reordered { offset: b.offset });
            break;
        }
    }
    numbered.sort_unstable_by_key(|b| (b.sequence_number, b.offset));
    for (previous, b) in numbered.iter().zip(numbered.iter().skip(1)) {
        let before = previous.sequence_number;
        let number = b.sequence_number;
        let offset = b.offset;
        match number.saturating_sub(before) {
            0 => notes.push(Note::SequenceTwice { offset, number }),
            1 => {}
            // A later file of a session, and a full circular file, can start at any number.
            _ if before == 0 && starts_anywhere => {}
            step => notes.push(Note::SequenceGap {
                offset,
                first: before.saturating_add(1),
                count: step.unsigned_abs().saturating_sub(1),
            }),
        }
    }
}
